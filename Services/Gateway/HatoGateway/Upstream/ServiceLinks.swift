import HatoModel
import HatoRPC
import Logging
import NIOCore

/// The services behind the gateway. One that was not configured is nil.
struct ServiceLinks: Sendable {
    var messages: ServiceLink
    var auth: ServiceLink?
    var notifier: ServiceLink?

    /// Throws `TLSFileError`.
    init(_ configuration: GatewayConfiguration, _ logger: Logger) throws {
        func link(_ service: String, _ client: RPCClientConfiguration) throws -> ServiceLink {
            ServiceLink(
                connector: try RPCWireConnector(RPCWireConfiguration(client)), forwardKey: configuration.forwardKey,
                reports: ServiceReports(service, at: "\(client.host):\(client.port)", logger),
                carriesOutTogether: service == "messages")
        }
        messages = try link("messages", configuration.messages)
        auth = try configuration.auth.map { try link("auth", $0) }
        notifier = try configuration.notifier.map { try link("notifier", $0) }
    }

    /// By the name of the service, as it stands in `/rpc/NAME`.
    subscript(name: Substring) -> ServiceLink? {
        switch name {
        case "auth": auth
        case "messages": messages
        case "notifier": notifier
        default: nil
        }
    }
}

extension ServiceLink {
    /// The params of `session.forward`.
    ///
    /// - Parameters:
    ///   - client: the IP address for which the connection speaks unless its calls say so; nil: each call does.
    ///   - isOfClient: whether all later lines are that client's own.
    func declaration(for client: String?, isOfClient: Bool = false) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("auth")
        writer.write(forwardKey)
        if let client {
            writer.member("from")
            writer.write(client)
        }
        if isOfClient {
            writer.member("clientLines")
            writer.write(true)
        }
        writer.endObject()
        return writer.bytes
    }

    /// Begins to connect, on this event loop, for lines that a client writes itself.
    func connectLines(
        on loop: any EventLoop, for client: String, _ delegate: any RPCLineWireDelegate
    ) -> RPCLineWire {
        connector.connectLines(
            on: loop, opening: Session.Forward.method, params: declaration(for: client, isOfClient: true), delegate)
    }
}
