import Foundation
import HatoFirebase
import HatoGateway
import HatoModel
import HatoRuntime

/// The settings of `hato-gateway serve`.
enum GatewaySettings {
    static let process = ServiceProcess(
        service: GatewayTarget.service,
        declared: ServeSettings.listening(defaultPort: GatewayTarget.port)
            + [
                ServeSettings.peer("auth", defaultPort: 7701), ServeSettings.peer("messages", defaultPort: 7702),
                ServeSettings.peer("notifier", defaultPort: 7703), ServeSettings.outgoingKey,
                Setting(
                    "project", .name, default: "hato", shared: true,
                    help: "the project's id: it and PROJECT-default-rtdb are the namespaces of the default database"),
                Setting(
                    "namespaces", .text, default: "",
                    help:
                        "databases of further namespaces, such as old-name=archive,other=default; others have their name"
                ),
                Setting(
                    "database-domain", .text,
                    help: "domain below which the first label of a host is a namespace, such as db.example.com"),
                Setting(
                    "api-keys", .text,
                    help: "API keys that clients of accounts may show, such as AIza1,AIza2; unless set, any; web apps "
                        + "with a key that is taken out lose their user at the next page load"),
                Setting(
                    "emulator", .flag, default: "false",
                    help: "take the words of Firebase's emulators, by which every client may be an administrator"),
                Setting(
                    "emulator-beyond-loopback", .flag, default: "false",
                    help: "let an emulator listen beyond this machine, where everything may be read and changed"),
                Setting(
                    "admin-key-file", .file, shared: true,
                    help: "file with the administrator key, with which an emulator acts for its clients"),
                trustedProxies, publicURL, origins, accessLog, ServeSettings.eventLoops,
            ] + [ServeSettings.memory] + ServeSettings.peerTLS + limits,
        // A client's socket has a connection to messages: two open files.
        servers: 2, check: check)

    /// Checks the lists, and limits that belong together. Throws `SettingsError`.
    private static let check = { @Sendable (settings: Settings) throws in
        _ = try trust(settings)
        _ = try apiKeys(settings)
        _ = try namespaces(settings)
        let limits = settings.limits(GatewayLimits.self)
        guard limits.silenceMsMax >= limits.pingMs else {
            throw SettingsError(
                "setting silence-ms-max: \(limits.silenceMsMax) is less than ping-ms: sockets would close before their "
                    + "clients could respond to a ping; give at least \(limits.pingMs)")
        }
    }

    /// The limits, of which those of bytes follow from `memory-bytes`. Two event loops hold two thirds at most.
    private static let limits = GatewayLimits.all.map { limit in
        let setting = Setting(limit)
        return memory[limit.name].map { setting.following($0) } ?? setting
    }
    private static let memory = [
        "held-bytes-max": MemoryDerivation(.requests, dividedBy: 3, atLeast: GatewayLimits.heldBytesMin),
        "held-bytes-per-address-max": MemoryDerivation(.requests, dividedBy: 6, atLeast: GatewayLimits.heldBytesMin),
        "call-bytes-max": MemoryDerivation(.requests, dividedBy: 3),
        "untaken-bytes-max": MemoryDerivation(.requests, dividedBy: 2),
        "untaken-bytes-per-address-max": MemoryDerivation(.requests, dividedBy: 8),
        "poll-bytes-per-address-max": MemoryDerivation(.requests, dividedBy: 12, atLeast: GatewayLimits.heldBytesMin),
    ]

    private static let trustedProxies = Setting(
        "trusted-proxies", .text, default: "",
        help: "addresses and networks of the proxies in front, such as 10.0.0.0/8,2001:db8::1: the rightmost address "
            + "of X-Forwarded-For that is none of them is the client's")
    private static let publicURL = Setting(
        "public-url", .text, default: "",
        help: "where clients reach the gateway, such as https://chat.example.com, for links; when empty, the Host "
            + "of their requests, with the X-Forwarded-Proto of a trusted proxy")
    private static let origins = Setting(
        "origins", .text, default: "",
        help: "origins of the pages whose scripts may call the gateway, such as https://chat.example.com; any when "
            + "empty")

    static let accessLog = Setting(
        "access-log", .flag, default: "true", help: "log a line for each request, without its query")

    /// Which proxies and pages a gateway trusts.
    private typealias Trust = (proxies: TrustedProxies, publicURL: PublicURL?, origins: AllowedOrigins)

    /// Sets which proxies and pages the gateway trusts. Throws `SettingsError`.
    static func setTrust(_ settings: Settings, of configuration: inout GatewayConfiguration) throws {
        let trust = try trust(settings)
        (configuration.trustedProxies, configuration.publicURL) = (trust.proxies, trust.publicURL)
        configuration.origins = trust.origins
    }

    private static func trust(_ settings: Settings) throws -> Trust {
        var trust = (proxies: TrustedProxies.none, publicURL: PublicURL?.none, origins: AllowedOrigins.any)
        do { trust.proxies = try TrustedProxies(settings[trustedProxies.name]) } catch {
            throw SettingsError("setting \(trustedProxies.name): \(error.message)")
        }
        let url = settings[publicURL.name]
        do { trust.publicURL = url.isEmpty ? nil : try PublicURL(url) } catch {
            throw SettingsError("setting \(publicURL.name): \(error.message)")
        }
        do { trust.origins = try AllowedOrigins(settings[origins.name]) } catch {
            throw SettingsError("setting \(origins.name): \(error.message)")
        }
        return trust
    }

    /// Firebase Auth over HTTP. Throws `SettingsError`.
    static func accounts(_ start: ServiceProcess.Start) throws -> AccountsConfiguration {
        let settings = start.settings
        var accounts = AccountsConfiguration(
            auth: try start.clientConfiguration(to: "auth"), project: settings["project"])
        if let keys = try apiKeys(settings) { accounts.apiKeys = .listed(keys) }
        return accounts
    }

    /// Nil: any.
    private static func apiKeys(_ settings: Settings) throws -> Set<String>? {
        guard let text = settings.text("api-keys"), !text.isEmpty else { return nil }
        let keys = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
        // A list of none would let everything in.
        guard !keys.isEmpty else { throw SettingsError("setting api-keys has no key; give e.g. AIza1,AIza2") }
        return Set(keys)
    }

    /// The conventions of emulators; nil unless they are asked for. Throws `SettingsError`.
    static func emulator(_ start: ServiceProcess.Start) throws -> EmulatorConfiguration? {
        guard start.settings.flag("emulator") else { return nil }
        guard let key = try start.administratorKey() else {
            throw SettingsError(
                "setting admin-key-file is missing: an emulator acts for its clients with the administrator key")
        }
        var emulator = EmulatorConfiguration(administratorKey: key)
        emulator.listensBeyondLoopback = start.settings.flag("emulator-beyond-loopback")
        return emulator
    }

    /// Throws `SettingsError`.
    static func namespaces(_ settings: Settings) throws -> NamespaceTable {
        var table = NamespaceTable(project: settings["project"])
        table.domain = settings.text("database-domain")
        if let domain = table.domain, !domain.isEmpty, !isDomain(domain) {
            throw SettingsError(
                "setting database-domain: \"\(domain)\" is no name of a domain; give one without scheme, port and dots "
                    + "at its ends, e.g. db.example.com")
        }
        for pair in settings["namespaces"].split(separator: ",") {
            let words = pair.split(separator: "=", omittingEmptySubsequences: false)
            guard words.count == 2, !words[0].isEmpty, let database = DatabaseName(rawValue: String(words[1])) else {
                throw SettingsError(
                    "setting namespaces: \"\(pair)\" is no NAMESPACE=DATABASE; give e.g. old-name=archive,other=default"
                )
            }
            guard table.databases.updateValue(database, forKey: words[0].lowercased()) == nil else {
                throw SettingsError(
                    "setting namespaces: \"\(words[0])\" is there twice; give each one database, "
                        + "e.g. old-name=archive,other=default")
            }
        }
        return table
    }

    /// Labels of letters, digits and hyphens with dots between them.
    private static func isDomain(_ text: String) -> Bool {
        text.utf8.count <= 253
            && text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.count)
                    && label.allSatisfy { byte in
                        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x2D
                    }
            }
    }
}
