import ArgumentParser
import HatoCommand
import HatoModel

/// The options of every command about one database.
struct DatabaseOption: ParsableArguments {
    @Option(help: "The database.") var database: String?

    func name() throws -> DatabaseName? { try database.map { try DatabaseName($0) } }
}

/// A query as options.
struct QueryOptions: ParsableArguments {
    @Option(help: "Order by a child path, $key, $value or $priority.") var orderBy: String?
    @Option(help: bound("Begin at")) var startAt: String?
    @Option(help: bound("Begin after")) var startAfter: String?
    @Option(help: bound("End at")) var endAt: String?
    @Option(help: bound("End before")) var endBefore: String?
    @Option(help: bound("Only")) var equalTo: String?
    @Option(help: "At most so many, from the lowest.") var limitToFirst: Int?
    @Option(help: "At most so many, from the highest.") var limitToLast: Int?

    private static func bound(_ verb: String) -> ArgumentHelp {
        ArgumentHelp("\(verb) this value: JSON, or a text as it is.", valueName: "value")
    }

    /// Nil when no option was given.
    func query() throws -> TreeQuery? {
        var object = JSONObject()
        if let orderBy { object["orderBy"] = .string(orderBy) }
        for (name, text) in [
            ("startAt", startAt), ("startAfter", startAfter), ("endAt", endAt), ("endBefore", endBefore),
            ("equalTo", equalTo),
        ] {
            if let text { object[name] = (try? JSONParser.parse(text)) ?? .string(text) }
        }
        if let limitToFirst { object["limitToFirst"] = .number(Double(limitToFirst)) }
        if let limitToLast { object["limitToLast"] = .number(Double(limitToLast)) }
        return object.isEmpty ? nil : try TreeQuery(.object(object))
    }
}
