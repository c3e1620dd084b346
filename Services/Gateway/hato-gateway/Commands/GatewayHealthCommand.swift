import ArgumentParser
import Foundation
import HatoCommand
import HatoGateway
import HatoModel

/// `health`: prints the health of the gateway; ends with 0 when it is ready or degraded. Suitable for a container's
/// health check.
struct GatewayHealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health", abstract: "Print the health of the gateway and of the services behind it.",
        discussion: "Ends with 0 when it is ready or degraded, with 69 when it is neither or does not respond.")

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("Ask again until it is ready, for at most so long.", valueName: "seconds"))
    var wait: Double = 0

    func validate() throws {
        guard (0...86_400).contains(wait) else { throw ValidationError("--wait is in seconds, 0 to 86400.") }
    }

    func run() async throws {
        let output = CommandOutput.standard(json: options.json)
        try await CommandSession.reporting(GatewayTarget.self, output) {
            // The health requires no credential.
            let environment = ProcessInfo.processInfo.environment.filter {
                !["HATO_TOKEN", "HATO_ADMIN_KEY_FILE"].contains($0.key)
            }
            let gateway = try ClientSettings(options, GatewayTarget.self, environment: environment).configuration
            let end = ContinuousClock.now + .milliseconds(Int(wait * 1000))
            while true {
                do {
                    let health = try await GatewayProbe.health(of: gateway)
                    let isUp = ["ready", "degraded"].contains(health["status"]?.string)
                    if isUp || .now >= end {
                        try show(health, output)
                        if !isUp { throw ExitCode(CommandFailure.Code.unavailable.rawValue) }
                        return
                    }
                } catch let error as RPCError where error.code == .unavailable && .now < end {}
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    private func show(_ health: JSONValue, _ output: CommandOutput) throws {
        if let member = options.only { try output.show(member: member, of: health) } else { try output.show(health) }
    }
}
