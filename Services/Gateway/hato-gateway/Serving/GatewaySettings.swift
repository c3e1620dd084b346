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
                ServeSettings.peer("messages", defaultPort: 7702), ServeSettings.outgoingKey,
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
                ServeSettings.eventLoops,
            ] + ServeSettings.peerTLS + GatewayLimits.all.map { Setting($0) })

    /// Throws `SettingsError`.
    static func namespaces(_ settings: Settings) throws -> NamespaceTable {
        var table = NamespaceTable(project: settings["project"])
        table.domain = settings.text("database-domain")
        for pair in settings["namespaces"].split(separator: ",") {
            let words = pair.split(separator: "=", omittingEmptySubsequences: false)
            guard words.count == 2, !words[0].isEmpty, let database = DatabaseName(rawValue: String(words[1])) else {
                throw SettingsError(
                    "setting namespaces: \"\(pair)\" is no NAMESPACE=DATABASE; give e.g. old-name=archive,other=default"
                )
            }
            table.databases[words[0].lowercased()] = database
        }
        return table
    }
}
