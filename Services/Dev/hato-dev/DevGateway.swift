import Foundation
import HatoFirebase
import HatoGateway
import HatoModel
import HatoRPC
import HatoRuntime

extension DevStack.Parts {
    /// Firebase's protocols in front of the services of this process. Throws `RPCServerError` when it cannot listen.
    ///
    /// - Parameters:
    ///   - messages: where messages listens.
    ///   - auth: where auth listens.
    ///   - notifier: where the notifier listens.
    func startGateway(
        messages: ServiceAddress, auth: ServiceAddress, notifier: ServiceAddress
    ) async throws -> GatewayServer {
        func client(_ service: ServiceAddress) -> RPCClientConfiguration {
            RPCClientConfiguration(host: service.host, port: service.port)
        }
        var configuration = GatewayConfiguration(
            messages: client(messages), forwardKey: serviceKeys.gateway,
            now: { Int64(Date().timeIntervalSince1970 * 1_000) })
        let settings = start.settings
        (configuration.auth, configuration.notifier) = (client(auth), client(notifier))
        configuration.accounts = AccountsConfiguration(auth: client(auth), project: settings["project"])
        if settings.flag("emulator") {
            configuration.emulator = EmulatorConfiguration(administratorKey: try folder.administratorKey())
        }
        configuration.host = settings["host"]
        configuration.port = settings.integer("gateway-port")
        configuration.loops = settings.integer(ServeSettings.eventLoops.name)
        configuration.namespaces = NamespaceTable(project: settings["project"])
        configuration.logsRequests = false
        configuration.limits.connectionsMax = start.connectionsMax(wanted: configuration.limits.connectionsMax)
        // The gateway has a share of the memory of requests.
        let plan = MemoryPlan(bytes: settings.integer(ServeSettings.memory.name))
        let bytes = MemoryDerivation(.requests, dividedBy: 8).value(in: plan)
        let held = max(bytes, GatewayLimits.heldBytesMin)
        (configuration.limits.heldBytesMax, configuration.limits.callBytesMax) = (held, bytes)
        (configuration.limits.heldBytesPerAddressMax, configuration.limits.pollBytesPerAddressMax) = (held, held)
        (configuration.limits.untakenBytesMax, configuration.limits.untakenBytesPerAddressMax) = (bytes, bytes)
        let server = try await GatewayServer.start(configuration, logger: logger("gateway"))
        start.beforeScrape { await server.refreshFigures() }
        return server
    }
}
