import ArgumentParser
import HatoCommand
import HatoModel

/// What has happened to accounts, sessions and settings.
struct AuditCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(commandName: "audit", abstract: Auth.Audit.List.summary)

    @OptionGroup var options: ClientOptions
    @Option(help: "Only entries of this account.") var uid: String?
    @Option(help: "Only entries of this type, such as signInFailed.") var type: String?
    @Option(help: "Only entries at or after this time, in milliseconds since 1970.") var from: Int64?
    @Option(help: "Only entries before this time, in milliseconds since 1970.") var until: Int64?
    @Option(help: "The `after` of the previous page.") var after: String?
    @Option(help: "The maximum number of entries, 1 to 1,000.") var limit: Int?

    func request() throws -> Auth.Audit.List {
        var request = Auth.Audit.List()
        request.uid = uid
        request.type = try type.map { name in
            guard let type = Auth.Audit.EntryType(rawValue: name) else {
                let all = Auth.Audit.EntryType.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("--type \(name): give one of \(all).")
            }
            return type
        }
        request.from = from
        request.until = until
        request.after = after
        request.limit = limit
        return request
    }

    func table(_ result: JSONValue) -> CommandTable? {
        CommandTable(
            ["time", "type", "uid", "by", "method", "provider", "reason", "address", "label", "count"],
            of: result["entries"]?.array ?? [])
    }
}
