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
        let folder = start.settings["data"]
        let file = start.settings.text("admin-key-file")
        var configuration = NotifierConfiguration(
            server: try start.serverConfiguration(version: Service.version),
            auth: try start.clientConfiguration(to: "auth"), messages: try start.clientConfiguration(to: "messages"),
            administratorKeys: try administratorKeys(file, start.logger))
        configuration.administratorKey = try file.flatMap { try administratorKey($0) }
        configuration.identity = IdentityConfiguration(
            project: start.settings["project"], keysFile: "\(folder)/auth-keys.json")
        configuration.backupFolder = start.settings.text("backup-dir").map {
            BackupFolder($0, service: NotifierTarget.service)
        }
        try NotifierSettings.apply(start.settings, to: &configuration)
        try DataFolder.make(folder)
        let store = try RocksDBStore.open(folder: RocksDBStore.folder(in: folder))
        do {
            return RunningNotifier(
                server: try await NotifierServer.start(configuration, store: store, logger: start.logger), store: store)
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

    private static func administratorKeys(_ file: String?, _ logger: Logger) throws -> AdministratorKeys {
        guard let file else {
            logger.notice("no administrator key: there are no triggers and nobody can send; see --admin-key-file")
            return .none
        }
        do {
            let keys = try AdministratorKeys(file: file)
            for warning in keys.warnings { logger.warning("\(warning)") }
            return keys
        } catch {
            throw SettingsError("setting admin-key-file: \(error)")
        }
    }

    /// The first key of the file, shown to messages; the others are there until every service has the new one.
    private static func administratorKey(_ file: String) throws -> String? {
        let (bytes, _) = try SecretFile.read(file)
        return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first.map(String.init)
    }
}
