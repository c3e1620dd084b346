import ArgumentParser
import HatoRuntime

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the service until a signal stops it.",
        discussion: "Settings:\n\(MessagesSettings.process.resolver.help)")

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    func run() async throws {
        throw ExitCode(await MessagesSettings.process.run(settings) { try await RunningMessages.start($0) })
    }
}

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Print the effective settings of `serve` with the same arguments, secrets hidden.")

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    func run() async throws {
        throw ExitCode(MessagesSettings.process.showSettings(settings))
    }
}
