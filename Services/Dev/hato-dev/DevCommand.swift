/// All services in one process.
import ArgumentParser
import HatoRuntime

@main
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-dev",
        abstract: "Starts auth, messages, notifier and the gateway in one process, for a laptop or a test run.",
        discussion: "Settings:\n\(DevSettings.process.resolver.help)")

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    func run() async throws {
        if settings.contains("--help") || settings.contains("-h") { throw CleanExit.helpRequest(Self.self) }
        throw ExitCode(await DevSettings.process.run(settings) { try await DevStack.start($0) })
    }
}
