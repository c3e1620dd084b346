import HatoIdentity
import HatoModel
import HatoNotifier
import HatoRPC
import HatoRocksDB
import HatoRuntime
import HatoStorage
import Logging

/// The service on its store, as the process sees it.
struct RunningNotifier: RunningService {
    private let server: NotifierServer
    private let store: RocksDBStore

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let problem = Failpoints.arm(environment: start.environment) { start.logger.warning("\($0)") }
        if let problem { throw SettingsError(problem) }
        let folder = start.settings["data"]
        var configuration = NotifierConfiguration(
            server: try start.serverConfiguration(version: Service.version),
            auth: try start.clientConfiguration(to: "auth"), messages: try start.clientConfiguration(to: "messages"),
            administratorKeys: try start.administratorKeys(missing: "no caller can set triggers or send"))
        let key = try start.outgoingKey(missing: "there are no triggers, and changes of accounts are not followed")
        (configuration.messagesKey, configuration.authKey) = (key, key)
        configuration.identity = IdentityConfiguration(
            project: start.settings["project"], keysFile: "\(folder)/auth-keys.json")
        configuration.identity.serviceKeys = try start.serviceKeys()
        configuration.backupFolder = try start.backupPath().map { BackupFolder($0, service: NotifierTarget.service) }
        try NotifierSettings.apply(start.settings, to: &configuration)
        configuration.readApps = start.reader(of: "apps-file") { try AppsFile($0, read: $1).apps() }
        if let read = configuration.readApps { configuration.apps = try read() }
        _ = try start.dataFolder()
        var options = RocksDBOptions()
        options.preparedLogBytes = start.settings.integer(ServeSettings.preparedLog)
        options.memory = RocksDBMemory(
            blockCacheBytes: start.settings.integer(ServeSettings.blockCache),
            memtableBytes: start.settings.integer(ServeSettings.memtables))
        let store = try RocksDBStore.open(
            folder: RocksDBStore.folder(in: folder), of: NotifierTarget.service, options: options)
        do {
            start.show(storeOf: NotifierTarget.service) { store.statistics }
            let server = try await NotifierServer.start(configuration, store: store, logger: start.logger)
            start.beforeScrape { await server.refreshFigures() }
            return RunningNotifier(server: server, store: store)
        } catch {
            store.close()
            throw error
        }
    }

    var announcement: JSONObject {
        [
            "service": .string(NotifierTarget.service),
            "listening": .string("\(ServiceAddress(host: server.host, port: server.port))"),
        ]
    }

    func shutdown(grace: Duration) async { await server.shutdown(grace: grace) }

    func failure() async -> String? {
        let error = await store.ended()
        return Task.isCancelled ? nil : "\(error)"
    }
}
