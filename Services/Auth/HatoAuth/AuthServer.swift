import HatoFollow
import HatoModel
public import HatoRPC
import HatoStorage
import Logging

/// The auth service while it listens: its server, and its periodic work.
public final class AuthServer: Sendable {
    /// The address it listens on.
    public let host: String
    /// The port it listens on.
    public let port: Int
    private let service: AuthService
    private let server: RPCServer
    private let upkeep: [Task<Void, Never>]

    /// Starts listening as `configuration` says; methods, health and name are set here.
    ///
    /// - Throws: `RPCServerError` when it cannot listen, `TLSFileError` for files of TLS.
    public static func start(_ service: AuthService, _ configuration: RPCServerConfiguration) async throws -> AuthServer
    {
        var configuration = configuration
        configuration.methods = Auth.methods
        configuration.health = { service.health }
        configuration.now = service.environment.now
        let server = RPCServer(
            configuration, router: service.router, authenticator: service.authenticator,
            logger: service.environment.logger)
        let (host, port) = try await server.start()
        return AuthServer(service, server, host: host, port: port)
    }

    private init(_ service: AuthService, _ server: RPCServer, host: String, port: Int) {
        self.service = service
        self.server = server
        self.host = host
        self.port = port
        // Lives as long as the server: `shutdown` cancels it and waits for it.
        upkeep = [
            Task { await service.run() }, Task { await service.mail?.run() },
            Task { await service.auditWriter.run(service.metrics) }, Task { await FailureKeeper(service).run() },
        ]
    }

    /// Stops accepting, finishes accepted requests, closes the store.
    public func shutdown(grace: Duration) async {
        await server.shutdown(grace: grace)
        await service.followers.stop()
        for task in upkeep { task.cancel() }
        for task in upkeep { await task.value }
        await service.providers.shutdown()
        service.store.close()
    }
}
