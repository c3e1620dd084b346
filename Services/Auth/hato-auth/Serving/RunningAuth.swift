import HatoAuth
import HatoIdentity
import HatoModel
import HatoRocksDB
import HatoRuntime
import HatoStorage
import Logging

/// The service with its store, as the process runs it.
struct RunningAuth: RunningService {
    private let server: AuthServer
    private let store: RocksDBStore

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let problem = Failpoints.arm(environment: start.environment) { start.logger.warning("\($0)") }
        if let problem { throw SettingsError(problem) }
        var configuration = try AuthSettings.configuration(start.settings)
        configuration.backupFolder = try start.backupPath().map { BackupFolder($0, service: AuthTarget.service) }
        configuration.serviceKeys = try start.serviceKeys()
        configuration.keyEncryption = try start.keyEncryption()
        configuration.pepper = try AuthSettings.pepper(start)
        do {
            for warning in try configuration.setMail({ start.settings.text($0) }) { start.logger.warning("\(warning)") }
        } catch { throw SettingsError("setting \(error)") }
        let keys = try start.administratorKeys()
        let folder = try start.dataFolder()
        var options = RocksDBOptions()
        options.preparedLogBytes = start.settings.integer(ServeSettings.preparedLog)
        options.memory = RocksDBMemory(
            blockCacheBytes: start.settings.integer(ServeSettings.blockCache),
            memtableBytes: start.settings.integer(ServeSettings.memtables))
        let store = try RocksDBStore.open(
            folder: RocksDBStore.folder(in: folder), of: AuthTarget.service, options: options)
        do {
            let service = try await AuthService.open(
                configuration, store: store, administratorKeys: keys,
                environment: AuthEnvironment(logger: start.logger))
            start.show(storeOf: AuthTarget.service) { store.statistics }
            start.beforeScrape { service.refreshFigures() }
            return RunningAuth(
                server: try await AuthServer.start(service, try start.serverConfiguration(version: Service.version)),
                store: store)
        } catch {
            store.close()
            if let error = error as? KeyEncryptionError { throw SettingsError(error.description) }
            if let error = error as? PepperError { throw SettingsError(error.description) }
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
}
