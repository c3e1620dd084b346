import HatoAuth
import HatoFetch
import HatoMessages
import HatoModel
import HatoNotifier
import HatoRuntime

/// The settings of `hato-dev`.
enum DevSettings {
    /// Three services, and the gateway, of which each socket takes two open files.
    static let process = ServiceProcess(service: "dev", declared: declared, servers: 5)

    private static var declared: [Setting] {
        let own = [
            Setting("data", .file, default: "./hato-data", help: "the folder of all data"),
            Setting(
                "ephemeral", .flag, default: "false",
                help: "keep all data in a temporary folder, deleted at exit, and hash passwords at little cost"),
            port("auth", 7701),
            port("messages", 7702),
            port("notifier", 7703),
            port("gateway", 7700),
            Setting(
                "emulator", .flag, default: "false",
                help: "let the gateway take the words of Firebase's emulators, by which every client may be an "
                    + "administrator"),
            Setting(
                "rules", .file,
                help: "security rules for the default database, set at every start: a file, or chat for those of a chat"
            ),
            Setting(
                "triggers", .text,
                help: "triggers that come along and are set at every start, with commas between: chat, latest-message"
            ),
            Setting(
                "allow-private-webhooks", .flag, default: "true",
                help: "let webhooks go to this machine and private networks"),
            Setting(
                "allow-private-providers", .flag, default: "true",
                help: "let providers be on this machine, over plain http too, and in private networks"),
        ]
        // No TLS: the connections between the services of this process are plain. Separate services can have TLS.
        let notOurs: Set<String> = [
            "data", "port", "admin-key-file", "service-keys-file", "tls-certificate", "tls-key", "tls-client-ca",
        ]
        return own + [ServeSettings.keyEncryption, profiles] + ServeSettings.mail + slowLog.map(\.setting) + [
            slowPaths, onDisconnect,
        ]
            + notifierSettings
            + ServeSettings.declared(defaultPort: 0).filter { !notOurs.contains($0.name) }
    }

    /// The settings of `hato-messages serve` about slow operations, with the same names: slow operations matter during
    /// development.
    private static let slowLog = MessagesLimits.all.filter { $0.name.hasPrefix("slow-operation-") }.map { limit in
        (limit: limit, setting: Setting(limit))
    }

    private static let slowPaths = Setting(
        "slow-operation-paths", .choice(["shape", "whole"]), default: "shape",
        help: "keys of a path that the log of slow operations shows: those that rules name, or all")

    private static let profiles = Setting(
        ServeSettings.profiles.name, .text,
        help: "where the tree has name and photo of each account; default:/users/{uid} with --rules chat, or nowhere")

    /// Where profiles are kept; nil: nowhere. The rules of a chat let users read them and not write them. Throws
    /// `SettingsError`.
    static func profiles(_ settings: Settings) throws(SettingsError) -> ProfilePlace? {
        let chat = settings.text("rules") == DevRules.chat ? "default:/users/{uid}" : nil
        guard let text = settings.text(profiles.name) ?? chat else { return nil }
        do { return try ProfilePlace(text) } catch {
            throw SettingsError("setting \(profiles.name): \(error.message)")
        }
    }

    private static let onDisconnect = Setting(
        "on-disconnect-service-bytes-max", .integer(1...(1 << 40)),
        help: "bytes that connections leave to be written when they end"
    ).following(MemoryDerivation(.onDisconnect, dividedBy: 2))

    /// Settings of `hato-notifier serve`, with the same names: those of limits that are hard to reach otherwise.
    private static let notifierSettings: [Setting] =
        [
            Setting(
                "apps-file", .file,
                help: "file with the credentials of apps for APNs, FCM, Web Push and e-mail, in YAML")
        ] + digests.map(\.setting)
        + NotifierLimits.all.filter { reachable.contains($0.name) }.map { Setting($0) }
        + ResolverLimits.all.map { Setting($0) }

    /// Tests that count pushes switch the pace off.
    private static let reachable: Set<String> = ["pending-max", "device-interval-ms", "user-interval-ms"]

    /// Applies the settings about slow operations, and those that follow from `memory-bytes`.
    static func apply(_ settings: Settings, to configuration: inout MessagesConfiguration) {
        configuration.limits.onDisconnectServiceBytesMax = settings.integer(onDisconnect.name)
        // The other half of the share `held` is for passwords that are being hashed (`hashingThreads`).
        let plan = MemoryPlan(bytes: settings.integer(ServeSettings.memory.name))
        configuration.limits.onDisconnectClientBytesMax = max(1, configuration.limits.onDisconnectServiceBytesMax / 4)
        configuration.limits.listenersServiceBytesMax = MemoryDerivation(.listeners, dividedBy: 2).value(in: plan)
        configuration.limits.listenersClientBytesMax = MemoryDerivation(.listeners, dividedBy: 8).value(in: plan)
        // As in `hato-messages serve`: two writes are prepared at a time, with some 250 bytes a value.
        let values = MemoryDerivation(.requests, dividedBy: 512, atMost: configuration.limits.writeValuesMax)
        configuration.limits.writeValuesMax = values.value(in: plan)
        for (limit, setting) in slowLog {
            limit.set(settings.integer(setting.name), in: &configuration.limits)
        }
        configuration.logsWholePaths = settings[slowPaths.name] == "whole"
    }

    /// When threads have e-mails, in seconds.
    private static let digests: [(setting: Setting, path: any WritableKeyPath<DeliveryPolicy, Duration> & Sendable)] = [
        (
            Setting(
                "digest-wait-seconds", .integer(1...315_360_000), default: "60",
                help: "seconds from the first notification of a thread to its e-mail, which a phone of the user can end"
            ), \.digestWait
        ),
        (
            Setting(
                "digest-pause-seconds", .integer(1...315_360_000), default: "600",
                help: "seconds from one e-mail of a thread to the next"), \.digestPause
        ),
    ]

    /// Applies the settings of the notifier, and those that follow from `memory-bytes`.
    static func apply(_ settings: Settings, to configuration: inout NotifierConfiguration) {
        configuration.limits = settings.limits(NotifierLimits.self)
        configuration.lookUps = settings.limits(ResolverLimits.self)
        for (setting, path) in digests {
            configuration.delivery[keyPath: path] = .seconds(settings.integer(setting.name))
        }
        let plan = MemoryPlan(bytes: settings.integer(ServeSettings.memory.name))
        let bytes = MemoryDerivation(.held, dividedBy: 4, atMost: configuration.limits.triggerBytesMax)
        configuration.limits.triggerBytesMax = bytes.value(in: plan)
    }

    /// Tests sign in many users, and their hashes go with the process: no thief gets them.
    static func scrypt(_ settings: Settings) -> ScryptCost {
        settings.flag("ephemeral") ? ScryptCost(logN: 10, p: 1) : ScryptCost()
    }

    /// Passwords hashed at a time: the other half of the share `held`.
    static func hashingThreads(_ settings: Settings, _ configuration: AuthConfiguration) -> Int {
        let threads = MemoryDerivation(
            .held, dividedBy: 2 * configuration.scrypt.memoryBytes, atMost: configuration.hashingThreads)
        return threads.value(in: MemoryPlan(bytes: settings.integer(ServeSettings.memory.name)))
    }

    /// The memory of a password hash of an import: as above.
    static func importedHashMemory(_ settings: Settings, _ configuration: AuthConfiguration) -> Int {
        let bytes = MemoryDerivation(.held, dividedBy: 2, atMost: configuration.importedHashMemoryBytesMax)
        return bytes.value(in: MemoryPlan(bytes: settings.integer(ServeSettings.memory.name)))
    }

    private static func port(_ service: String, _ number: Int) -> Setting {
        Setting(
            "\(service)-port", .integer(0...65535), default: String(number),
            help: "the port of \(service); 0 takes any free one")
    }
}
