import Foundation
import HatoAuth
import HatoIdentity
import HatoModel
import HatoRocksDB
import HatoRuntime
import HatoStorage
import Logging

/// The service on its store, as the process sees it.
struct RunningAuth: RunningService {
    private let server: AuthServer
    private let store: RocksDBStore

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let configuration = try AuthSettings.configuration(start.settings)
        let keys = try administratorKeys(start)
        let folder = start.settings["data"]
        // The store holds the keys that sign: what is made here is for this user alone.
        _ = umask(0o077)
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let store = try RocksDBStore.open(folder: "\(folder)/store")
        do {
            let service = try await AuthService.open(
                configuration, store: store, administratorKeys: keys,
                environment: AuthEnvironment(logger: start.logger))
            return RunningAuth(
                server: try await AuthServer.start(service, try start.serverConfiguration(version: Service.version)),
                store: store)
        } catch {
            store.close()
            throw error
        }
    }

    var announcement: JSONObject {
        [
            "service": .string(AuthTarget.service),
            "listening": .string("\(ServiceAddress(host: server.host, port: server.port))"),
        ]
    }

    func shutdown(grace: Duration) async { await server.shutdown(grace: grace) }

    func failure() async -> String? {
        let error = await store.ended()
        return Task.isCancelled ? nil : "\(error)"
    }

    private static func administratorKeys(_ start: ServiceProcess.Start) throws -> AdministratorKeys {
        guard let file = start.settings.text("admin-key-file") else {
            start.logger.notice("no administrator key: methods for administrators are closed; see --admin-key-file")
            return .none
        }
        do {
            let keys = try AdministratorKeys(file: file)
            for warning in keys.warnings { start.logger.warning("\(warning)") }
            return keys
        } catch {
            throw SettingsError("setting admin-key-file: \(error)")
        }
    }
}
