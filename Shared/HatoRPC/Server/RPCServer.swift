public import HatoModel
public import Logging

/// Serves a router over TCP (protocol §1, §2).
public final class RPCServer: Sendable {
    private let configuration: RPCServerConfiguration

    public init(
        _ configuration: RPCServerConfiguration, router: RPCRouter, authenticator: any Authenticator, logger: Logger
    ) {
        self.configuration = configuration
    }

    /// Listens; returns the address it got. Throws `RPCServerError`.
    public func start() async throws -> (host: String, port: Int) { (configuration.host, configuration.port) }

    /// Stops accepting, answers what was accepted, closes; what is not done after `grace` is cut off.
    public func shutdown(grace: Duration) async {}
}
