import HatoModel
import HatoRPC
import NIOCore

/// How the gateway reaches each service.
struct ServiceLinks: Sendable {
    var messages: ServiceLink
    var auth: ServiceLink?

    /// Throws `TLSFileError` for files of TLS.
    init(_ configuration: GatewayConfiguration) throws {
        func link(to service: RPCClientConfiguration) throws -> ServiceLink {
            ServiceLink(
                connector: try RPCWireConnector(RPCWireConfiguration(service)), forwardKey: configuration.forwardKey)
        }
        messages = try link(to: configuration.messages)
        auth = try configuration.accounts.map { try link(to: $0.auth) }
    }
}

/// The services, as one event loop reaches them.
final class Upstream {
    /// A connection of its own for each session and event stream.
    let messages: ServiceLink
    /// Those that single calls share.
    let sharedMessages: SharedWires
    /// Those of calls of auth; nil where no accounts are served.
    let sharedAuth: SharedWires?
    private let namespaces: EmulatorNamespaces?

    init(_ links: ServiceLinks, on loop: any EventLoop, _ configuration: GatewayConfiguration) {
        let limits = configuration.limits
        messages = links.messages
        sharedMessages = SharedWires(links.messages, on: loop, limits)
        namespaces = configuration.emulator.map { [sharedMessages] emulator in
            EmulatorNamespaces(emulator.administratorKey, sharedMessages)
        }
        // Auth responds on a connection to one call after the other.
        let share = max(1, limits.authWiresMax / max(1, configuration.loops))
        sharedAuth = links.auth.map { SharedWires($0, on: loop, limits, wiresMax: share) }
    }

    /// Calls `then` when the database of a namespace may be used: an emulator makes it.
    func prepare(_ database: DatabaseName, then: @escaping () -> Void) {
        guard let namespaces else { return then() }
        namespaces.prepare(database, then: then)
    }

    func close() {
        sharedMessages.close()
        sharedAuth?.close()
    }
}
