import Foundation
import HatoAuth
import HatoFetch
import HatoGateway
import HatoIdentity
import HatoMessages
import HatoModel
import HatoNotifier
import HatoRPC
import HatoRocksDB
import HatoRuntime
import HatoStorage
import Logging

/// The services of this process, started in the order of their dependencies and connected by loopback sockets.
struct DevStack: RunningService {
    private let folder: DevFolder
    private let auth: AuthServer
    private let messages: MessagesPart
    private let notifier: NotifierServer
    private let gateway: GatewayServer
    private let stores: Stores
    private let isEmulator: Bool

    static func start(_ start: ServiceProcess.Start) async throws -> any RunningService {
        let problem = Failpoints.arm(environment: start.environment) { start.logger.warning("\($0)") }
        if let problem { throw SettingsError(problem) }
        // Before anything is started that would have to be stopped.
        let rules = try start.settings.text("rules").map { try DevRules.text(of: $0) }
        _ = try DevSettings.profiles(start.settings)
        let triggers = try DevTriggers(start.settings)
        for service in ["auth", "messages", "notifier"] { _ = try start.backupPath(in: service) }
        let folder = try DevFolder(start.settings) { [logger = start.logger] in logger.warning("\($0)") }
        do {
            let keys = try folder.administratorKeys()
            let stores = try Stores(folder, start.settings)
            start.show(storeOf: "auth") { stores.auth.statistics }
            start.show(storeOf: "messages") { stores.messages.statistics }
            start.show(storeOf: "notifier") { stores.notifier.statistics }
            let parts = Parts(start: start, folder: folder, keys: keys, stores: stores)
            let auth = try await parts.startAuth()
            let authAddress = ServiceAddress(host: auth.host, port: auth.port)
            let messages = try await MessagesPart(parts, auth: authAddress, rules: rules)
            let notifier = try await parts.startNotifier(auth: authAddress, messages: messages.address)
            let gateway: GatewayServer
            do {
                try await triggers.set(
                    at: RPCClientConfiguration(host: notifier.host, port: notifier.port)
                        .with(credential: try folder.administratorKey()))
                gateway = try await parts.startGateway(
                    messages: messages.address, auth: authAddress,
                    notifier: ServiceAddress(host: notifier.host, port: notifier.port))
            } catch {
                await notifier.shutdown(grace: .zero)
                throw error
            }
            return DevStack(
                folder: folder, auth: auth, messages: messages, notifier: notifier, gateway: gateway, stores: stores,
                isEmulator: start.settings.flag("emulator"))
        } catch {
            folder.leave()
            throw error
        }
    }

    var announcement: JSONObject {
        var line: JSONObject = [
            "auth": .string("\(ServiceAddress(host: auth.host, port: auth.port))"),
            "messages": .string("\(messages.address)"),
            "notifier": .string("\(ServiceAddress(host: notifier.host, port: notifier.port))"),
            "gateway": .string("http://\(ServiceAddress(host: gateway.host, port: gateway.port))"),
            "adminKeyFile": .string(folder.administratorKeyFile),
        ]
        if isEmulator {
            line["emulator"] = true
            line["settingsOfAuth"] = .array(gateway.fixedSettings.map { .string($0) })
        }
        return line
    }

    /// In the order of their dependencies, all within `grace`: each has an equal share of what is left of it.
    func shutdown(grace: Duration) async {
        let end = ContinuousClock.now + grace
        func left() -> Duration { max(.zero, ContinuousClock.now.duration(to: end)) }
        await gateway.shutdown(grace: left() / 4)
        await notifier.shutdown(grace: left() / 3)
        await messages.shutdown(grace: left() / 2)
        await auth.shutdown(grace: left())
        folder.leave()
    }

    func failure() async -> String? {
        await withTaskGroup { group in
            for store in [stores.auth, stores.messages, stores.notifier] { group.addTask { await store.ended() } }
            let error = await group.next()
            group.cancelAll()
            return Task.isCancelled ? nil : error.map { "\($0)" }
        }
    }

    /// The stores of the services, which share one process's memory.
    struct Stores {
        let auth: RocksDBStore
        let messages: RocksDBStore
        let notifier: RocksDBStore

        init(_ folder: DevFolder, _ settings: Settings) throws {
            var options = RocksDBOptions()
            options.preparedLogBytes = settings.integer(ServeSettings.preparedLog)
            options.memory = RocksDBMemory(
                blockCacheBytes: settings.integer(ServeSettings.blockCache),
                memtableBytes: settings.integer(ServeSettings.memtables))
            options.memtableShare = 0.125
            auth = try RocksDBStore.open(folder: try folder.store("auth"), of: "auth", options: options)
            notifier = try RocksDBStore.open(folder: try folder.store("notifier"), of: "notifier", options: options)
            options.memtableShare = 0.75
            messages = try RocksDBStore.open(folder: try folder.store("messages"), of: "messages", options: options)
        }
    }

    /// The common input for the start of each service.
    struct Parts {
        var start: ServiceProcess.Start
        var folder: DevFolder
        var keys: AdministratorKeys
        var stores: Stores
        /// Of the services for each other.
        let serviceKeys = DevKeys()

        func server(_ service: String) throws -> RPCServerConfiguration {
            var configuration = try start.serverConfiguration(version: Service.version)
            configuration.service = service
            configuration.port = start.settings.integer("\(service)-port")
            configuration.limits = try StackMemory.limits(of: service, start.settings, from: configuration.limits)
            return configuration
        }

        /// Each service has a folder of its own there, so that their backups may have the same name.
        func backupFolder(_ service: String) throws -> BackupFolder? {
            try start.backupPath(in: service).map { BackupFolder($0, service: service) }
        }

        func logger(_ service: String) -> Logger { ServiceProcess.logger(service, start.settings) }

        func startAuth() async throws -> AuthServer {
            var configuration = AuthConfiguration()
            configuration.project = start.settings["project"]
            configuration.serviceKeys = try serviceKeys.ofAuth(keys)
            configuration.passwordLengthMin = 6
            configuration.refusesCommonPasswords = false
            configuration.credentialAgeSecondsMax = 0
            // Tests of an app sign up hundreds of users, some of them through the gateway.
            (configuration.limitsLoopback, configuration.limitsForwardedLoopback) = (false, false)
            configuration.allowsPrivateProviders = start.settings.flag("allow-private-providers")
            configuration.scrypt = DevSettings.scrypt(start.settings)
            configuration.hashingThreads = DevSettings.hashingThreads(start.settings, configuration)
            configuration.importedHashMemoryBytesMax = DevSettings.importedHashMemory(start.settings, configuration)
            configuration.backupFolder = try backupFolder("auth")
            configuration.keyEncryption = try start.keyEncryption()
            configuration.limits.codePauseMs = 0
            configuration.limits.codesPerHourMax = 0
            // People who develop an app read its mails in this folder, unless they name a server.
            let settings = start.settings
            let mailbox = settings.text("mail-url") == nil ? "\(folder.path)/mailbox" : nil
            do {
                for warning in try configuration.setMail({ settings.text($0) ?? ($0 == "mailbox" ? mailbox : nil) }) {
                    start.logger.warning("\(warning)")
                }
            } catch { throw SettingsError("setting \(error)") }
            let service: AuthService
            do {
                service = try await AuthService.open(
                    configuration, store: stores.auth, administratorKeys: keys,
                    environment: AuthEnvironment(logger: logger("auth")))
            } catch let error as KeyEncryptionError { throw SettingsError(error.description) }
            start.beforeScrape { service.refreshFigures() }
            return try await AuthServer.start(service, try server("auth"))
        }

        func startNotifier(auth: ServiceAddress, messages: ServiceAddress) async throws -> NotifierServer {
            var configuration = NotifierConfiguration(
                server: try server("notifier"), auth: RPCClientConfiguration(host: auth.host, port: auth.port),
                messages: RPCClientConfiguration(host: messages.host, port: messages.port), administratorKeys: keys)
            configuration.identity = IdentityConfiguration(
                project: start.settings["project"], keysFile: folder.keysFile("notifier"))
            configuration.identity.serviceKeys = try serviceKeys.ofNotifier(keys)
            (configuration.messagesKey, configuration.authKey) = (serviceKeys.notifier, serviceKeys.notifier)
            configuration.addresses.allowsPrivate = start.settings.flag("allow-private-webhooks")
            configuration.backupFolder = try backupFolder("notifier")
            DevSettings.apply(start.settings, to: &configuration)
            configuration.readApps = start.reader(of: "apps-file") { try AppsFile($0, read: $1).apps() }
            if let read = configuration.readApps { configuration.apps = try read() }
            let notifier = try await NotifierServer.start(
                configuration, store: stores.notifier, logger: logger("notifier"))
            start.beforeScrape { await notifier.refreshFigures() }
            return notifier
        }
    }
}

/// The messages service, and the task that fetches the keys with which it verifies tokens.
struct MessagesPart: Sendable {
    let address: ServiceAddress
    private let service: MessagesServer
    private let link: RPCClient
    private let upkeep: Task<Void, Never>

    /// - Parameter rules: for the default database; nil: the stored ones, or `DefaultRules` for a new store.
    init(_ parts: DevStack.Parts, auth: ServiceAddress, rules: String?) async throws {
        let link = RPCClient(RPCClientConfiguration(host: auth.host, port: auth.port))
        let accounts = RPCClientConfiguration(host: auth.host, port: auth.port)
            .with(credential: parts.serviceKeys.messages)
        var identity = IdentityConfiguration(
            project: parts.start.settings["project"], keysFile: parts.folder.keysFile("messages"))
        identity.serviceKeys = try parts.serviceKeys.ofMessages(parts.keys)
        let authenticator = ServiceAuthenticator(configuration: identity, administratorKeys: parts.keys) {
            try await link.call(Auth.Keys()).keys
        }
        var configuration = MessagesConfiguration(server: try parts.server("messages"))
        configuration.firstRules = DefaultRules.signedIn
        configuration.keys = { authenticator.health }
        configuration.auth = AuthLink(
            configuration: accounts, authenticator: authenticator,
            profiles: try DevSettings.profiles(parts.start.settings))
        configuration.metricsText = parts.start.metricsText
        configuration.backupFolder = try parts.backupFolder("messages")
        DevSettings.apply(parts.start.settings, to: &configuration)
        service = try MessagesServer(
            store: parts.stores.messages, configuration: configuration, authenticator: authenticator,
            logger: parts.logger("messages"))
        parts.start.beforeScrape { [service] in await service.refreshFigures() }
        let (host, port) = try await service.start()
        address = ServiceAddress(host: host, port: port)
        self.link = link
        // Lives as long as the service: `shutdown` cancels it.
        upkeep = Task { await authenticator.run() }
        guard let rules else { return }
        do { try await setRules(rules, parts) } catch {
            // Nothing remains that would write to the folder after it is deleted.
            await shutdown(grace: .zero)
            throw error
        }
    }

    private func setRules(_ text: String, _ parts: DevStack.Parts) async throws {
        let key = try parts.folder.administratorKey()
        let client = RPCClient(RPCClientConfiguration(host: address.host, port: address.port).with(credential: key))
        do {
            _ = try await client.call(Messages.Rules.Set(rules: text))
        } catch let error as RPCError {
            throw DevRules.refusal(error, of: parts.start.settings["rules"])
        }
        await client.close()
    }

    func shutdown(grace: Duration) async {
        upkeep.cancel()
        await upkeep.value
        await service.shutdown(grace: grace)
        await link.close()
    }
}
