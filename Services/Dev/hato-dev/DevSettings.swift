import HatoRuntime

/// What `hato-dev` can be told.
enum DevSettings {
    static let process = ServiceProcess(service: "dev", declared: declared)

    private static var declared: [Setting] {
        let own = [
            Setting("data", .file, default: "./hato-data", help: "the folder that holds everything"),
            Setting(
                "ephemeral", .flag, default: "false", help: "keep everything in a temporary folder that is gone at exit"
            ),
            port("auth", 7701),
            port("messages", 7702),
            port("notifier", 7703),
            Setting(
                "rules", .file,
                help: "security rules for the default database, set at every start: a file, or chat for those of a chat"
            ),
            Setting(
                "allow-private-webhooks", .flag, default: "true",
                help: "let webhooks go to this machine and private networks"),
        ]
        // No TLS: the links between the services of this process are plain, and whoever needs it runs the services.
        let notOurs: Set<String> = ["data", "port", "admin-key-file", "tls-certificate", "tls-key", "tls-client-ca"]
        return own + ServeSettings.declared(defaultPort: 0).filter { !notOurs.contains($0.name) }
    }

    private static func port(_ service: String, _ number: Int) -> Setting {
        Setting(
            "\(service)-port", .integer(0...65535), default: String(number),
            help: "the port of \(service); 0 takes any free one")
    }
}
