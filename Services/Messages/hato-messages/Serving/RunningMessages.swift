import HatoIdentity
import HatoMessages
import HatoModel
import HatoRPC
import HatoRocksDB
import HatoRuntime
import HatoStorage
import Logging

/// The running service on its store, with the task that fetches the keys for tokens.
struct RunningMessages: RunningService {
    private let service: MessagesServer
    private let store: RocksDBStore
    private let address: ServiceAddress
    private let auth: RPCClient
    private let upkeep: Task<Void, Never>

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let problem = Failpoints.arm(environment: start.environment) { start.logger.warning("\($0)") }
        if let problem { throw SettingsError(problem) }
        let keys = try start.administratorKeys()
        let auth = RPCClient(try start.clientConfiguration(to: "auth"))
        let folder = try start.dataFolder()
        var identity = IdentityConfiguration(
            project: start.settings["project"], keysFile: "\(folder)/auth-keys.json")
        identity.serviceKeys = try start.serviceKeys()
        let authenticator = ServiceAuthenticator(configuration: identity, administratorKeys: keys) {
            try await auth.call(Auth.Keys()).keys
        }
        let accounts = try start.outgoingKey(missing: "changes of accounts are not followed").map { key in
            try start.clientConfiguration(to: "auth").with(credential: key)
        }
        var configuration = MessagesConfiguration(server: try start.serverConfiguration(version: Service.version))
        configuration.limits = MessagesSettings.limits(start.settings)
        configuration.backupFolder = try start.backupPath().map { BackupFolder($0, service: MessagesTarget.service) }
        configuration.firstRules =
            start.settings["first-rules"] == "signed-in" ? DefaultRules.signedIn : DefaultRules.deny
        configuration.logsWholePaths = start.settings["slow-operation-paths"] == "whole"
        configuration.metricsText = start.metricsText
        configuration.keys = { authenticator.health }
        let profiles = try MessagesSettings.profiles(start.settings)
        configuration.auth = accounts.map {
            AuthLink(configuration: $0, authenticator: authenticator, profiles: profiles)
        }
        var options = RocksDBOptions()
        options.preparedLogBytes = start.settings.integer(ServeSettings.preparedLog)
        options.memory = RocksDBMemory(
            blockCacheBytes: start.settings.integer(ServeSettings.blockCache),
            memtableBytes: start.settings.integer(ServeSettings.memtables))
        let store = try RocksDBStore.open(
            folder: RocksDBStore.folder(in: folder), of: MessagesTarget.service, options: options)
        let service: MessagesServer
        do {
            service = try MessagesServer(
                store: store, configuration: configuration, authenticator: authenticator, logger: start.logger)
        } catch {
            store.close()
            throw error
        }
        start.show(storeOf: MessagesTarget.service) { store.statistics }
        start.beforeScrape { await service.refreshFigures() }
        let (host, port): (String, Int)
        do { (host, port) = try await service.start() } catch {
            await service.shutdown(grace: .zero)
            throw error
        }
        return RunningMessages(
            service: service, store: store, address: ServiceAddress(host: host, port: port), auth: auth,
            upkeep: Task { await authenticator.run() })
    }

    var announcement: JSONObject {
        ["service": .string(MessagesTarget.service), "listening": .string("\(address)")]
    }

    func shutdown(grace: Duration) async {
        upkeep.cancel()
        await service.shutdown(grace: grace)
        await auth.close()
    }

    func failure() async -> String? {
        let error = await store.ended()
        return Task.isCancelled ? nil : "\(error)"
    }
}
