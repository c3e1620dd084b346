import Logging

/// The settings of every `serve` (protocol §8).
public enum ServeSettings {
    /// The settings of every service; `defaultPort` is the default of its port.
    public static func declared(defaultPort: Int) -> [Setting] {
        [
            Setting("data", .file, required: true, help: "the folder of all data of the service"),
            Setting(
                "project", .name, default: "hato", shared: true, help: "the project's id: issuer and audience of tokens"
            ),
            Setting(
                "admin-key-file", .file, shared: true,
                help: "file with the administrator key, one of 32 bytes or more a line"),
            Setting(
                "service-keys-file", .file, shared: true,
                help: "file with the keys of other services (YAML): name, key, the methods that it may call, and "
                    + "forward: true for a gateway"),
            Setting(
                "tls-client-ca", .file, shared: true,
                help: "certificates in PEM that clients must be signed by (mutual TLS)"),
            Setting(
                "backup-dir", .file, shared: true, help: "the folder of all backups; unless set, there are none"),
            Setting(
                preparedLog, .integer(0...(1 << 30)), default: String(4 << 20), shared: true,
                help:
                    "bytes of zeros that a store writes ahead into its log, so that a sync takes half as long; 0: none"),
            memory,
            Setting(
                blockCache, .integer(1 << 20...1 << 40),
                help: "blocks, indexes and filters of tables in memory, in bytes"
            )
            .following(MemoryDerivation(.blockCache)),
            Setting(
                memtables, .integer(1 << 20...1 << 36),
                help:
                    "newest rows that are in no table yet, in bytes; the same amount again may be on its way into tables"
            )
            .following(MemoryDerivation(.memtables)),
        ] + listening(defaultPort: defaultPort) + wire
    }

    /// The settings of everything that listens, also without a store; `defaultPort` is the default of its port.
    public static func listening(defaultPort: Int) -> [Setting] {
        [
            Setting("host", .text, default: "127.0.0.1", help: "the address to listen on"),
            Setting(
                "port", .integer(0...65535), default: String(defaultPort),
                help: "the port to listen on; 0 takes any free one"),
            Setting("tls-certificate", .file, shared: true, help: "certificate chain in PEM; turns TLS on"),
            Setting("tls-key", .file, shared: true, help: "private key of the certificate in PEM"),
            Setting(
                "metrics-port", .integer(0...65535),
                help: "port of the metrics for Prometheus (HTTP); unless set, there is none"),
            Setting(
                metricsHost, .text, default: "127.0.0.1", shared: true,
                help: "the address of metrics-port, which requires no credential"),
            Setting(
                "log-level", .choice(Logger.Level.allCases.map(\.rawValue)), default: "info", shared: true,
                help: "the least important level that is logged"),
            Setting(
                "log-format", .choice(["text", "json"]), default: "text", shared: true,
                help: "format of the log on stderr"),
            Setting(
                "grace-seconds", .integer(0...3600), default: "10", shared: true,
                help: "seconds for accepted requests to finish when the service stops"),
            Setting(
                openFilesReserve, .integer(0...1_000_000_000), default: String(OpenFilesPlan.reserveDefault),
                shared: true,
                help: "open files that connections leave to the store, at most half of those the system allows"
            ),
            exitWithStandardInput,
        ] + fromWhere
    }

    /// The memory that the service may use; the limits of its parts are derived from it (`MemoryPlan`).
    public static let memory = Setting(
        "memory-bytes", .integer(1...(1 << 46)),
        default: String(AvailableMemory.defaultBytes(available: AvailableMemory.bytes)), shared: true,
        help: "memory the service may use, in bytes"
    ).describingDefault("four fifths of the memory of the cgroup or the machine, at most 1.5 GiB")

    /// The file of the key with which a service calls the others; a setting of services that call others.
    public static let outgoingKey = Setting(
        "outgoing-key-file", .file,
        help: "file with this service's own key for the others, which list it in their service-keys-file")

    /// Where messages keeps names and photos of accounts; a setting of services that have messages.
    public static let profiles = Setting(
        "profiles", .text,
        help: "where the tree has name and photo of each account, such as default:/users/{uid}; unless set, nowhere")

    /// The file of the keys that encrypt the private keys of auth; a setting of services that have auth.
    public static let keyEncryption = Setting(
        "key-encryption-file", .file,
        help: "file that encrypts the private keys in the store, a key of 32 bytes or more a line: the first encrypts")

    /// The name of the setting for the block cache (`RocksDBMemory`).
    public static let blockCache = "block-cache-bytes"
    /// The name of the setting for memtables (`RocksDBMemory`).
    public static let memtables = "memtable-bytes"

    /// The name of the setting for the reserve of an `OpenFilesPlan`.
    static let openFilesReserve = "open-files-reserve"

    /// The name of the setting for the address of `metrics-port`.
    static let metricsHost = "metrics-host"

    /// The name of the setting for `RocksDBOptions.preparedLogBytes`.
    public static let preparedLog = "prepared-log-bytes"

    /// For a parent process that starts a service and must not leave it running, such as a test suite.
    public static let exitWithStandardInput = Setting(
        "exit-with-stdin", .flag, default: "false", help: "stop when standard input ends")

    /// The settings that choose the settings file and its section.
    public static let fromWhere = [
        Setting("config", .file, shared: true, help: "a settings file in YAML or JSON"),
        Setting(
            "environment", .choice(SettingsFile.environments), default: "development", shared: true,
            help: "the section of the settings file"),
    ]
}

extension SettingsResolver {
    /// Resolves the settings of a start: reads the settings file if flags or environment name one. Throws
    /// `SettingsError`.
    public func resolve(arguments: [String], environment: [String: String]) throws -> Settings {
        let flags = try flags(of: arguments)
        let first = try SettingsResolver(service: service, declared: ServeSettings.fromWhere)
            .resolve(flags: flags, environment: environment.filter { isAboutFile($0.key) })
        let file = try first.text("config").map { try SettingsFile(path: $0, environment: first["environment"]) }
        let settings = try resolve(flags: flags, environment: environment, file: file)
        if let problem = ServeSettings.memoryProblem(settings) ?? ServeSettings.readsProblem(settings) {
            throw SettingsError(problem)
        }
        return settings
    }

    private func isAboutFile(_ variable: String) -> Bool {
        ServeSettings.fromWhere.contains { variables(of: $0).contains(variable) }
    }

    /// The list of settings for `--help`.
    public var help: String {
        declared.map { setting in
            let flag = "--\(setting.name)" + (setting.placeholder.map { " \($0)" } ?? "")
            let preset = setting.defaultText.map { " (default: \($0))" } ?? (setting.isRequired ? " (required)" : "")
            return "  \(flag)\n        \(setting.help)\(preset); \(variables(of: setting).joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}
