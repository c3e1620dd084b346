import ArgumentParser
import HatoCommand
import HatoModel
import HatoRuntime

/// Runs the gateway.
@main
struct GatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-gateway", abstract: "Firebase's protocols in front of Hato's services.",
        subcommands: [
            ServeCommand<GatewayTarget>.self, GatewayHealthCommand.self, ConfigCommand<GatewayTarget>.self,
            VersionCommand<GatewayTarget>.self,
        ])
}

/// The gateway has no methods of its own: it speaks HTTP.
enum GatewayTarget: ServingTarget {
    static let service = "gateway"
    static let port = 7700
    static let methods: [any RPCRequest.Type] = []

    static var settingsHelp: String { GatewaySettings.process.resolver.help }

    static func serve(_ settings: [String]) async -> Int32 {
        await GatewaySettings.process.run(settings) { try await RunningGateway.start($0) }
    }

    static func showSettings(_ settings: [String]) -> Int32 { GatewaySettings.process.showSettings(settings) }
}
