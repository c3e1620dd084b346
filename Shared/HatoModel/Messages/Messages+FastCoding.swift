// The hot methods read their params and write their results by hand: Codable cost fifteen times as much per request
// when it was measured. The tests hold the two ways together.

/// Reads the members of params one by one; what nobody asked for is refused by name.
private struct ParamsReader {
    var database: DatabaseName?
    var path: TreePath?

    /// Takes the two members that most methods share; false when it is another one.
    mutating func takeShared(_ member: JSONObject.Member) throws(RPCError) -> Bool {
        switch member.name {
        case "database": database = try Self.optional(member, Self.database)
        case "path": path = try Self.path(member)
        default: return false
        }
        return true
    }

    func requiredPath() throws(RPCError) -> TreePath {
        guard let path else { throw Self.missing("path") }
        return path
    }

    static func missing(_ name: String) -> RPCError {
        .invalidParams(name, "'\(name)' is missing", reason: "missing_parameter")
    }

    static func unknown(_ member: JSONObject.Member) -> RPCError {
        .invalidParams(member.name, "'\(member.name)' is no known parameter", reason: "unknown_parameter")
    }

    static func mismatch(_ member: JSONObject.Member, _ expected: String) -> RPCError {
        .invalidParams(member.name, "'\(member.name)' must be \(expected), not \(member.value.kind)")
    }

    static func optional<T>(
        _ member: JSONObject.Member, _ read: (JSONObject.Member) throws(RPCError) -> T
    ) throws(RPCError) -> T? {
        if case .null = member.value { return nil }
        return try read(member)
    }

    static func string(_ member: JSONObject.Member) throws(RPCError) -> String {
        guard case .string(let text) = member.value else { throw mismatch(member, "a string") }
        return text
    }

    static func bool(_ member: JSONObject.Member) throws(RPCError) -> Bool {
        guard case .bool(let value) = member.value else { throw mismatch(member, "true or false") }
        return value
    }

    static func texts(_ member: JSONObject.Member) throws(RPCError) -> [String: String] {
        guard case .object(let texts) = member.value else { throw mismatch(member, "an object of strings") }
        var found: [String: String] = [:]
        for text in texts.members { found[text.name] = try string(text) }
        return found
    }

    static func version(_ member: JSONObject.Member) throws(RPCError) -> UInt64 {
        guard case .number(let number) = member.value else { throw mismatch(member, "an integer") }
        guard let version = UInt64(exactly: number), number < 9_007_199_254_740_992 else {
            throw .invalidParams(
                member.name, "'\(member.name)' must be a version: an integer from 0 to 9007199254740991")
        }
        return version
    }

    static func database(_ member: JSONObject.Member) throws(RPCError) -> DatabaseName {
        try checked(member, DatabaseName.init(_:), string(member))
    }

    static func path(_ member: JSONObject.Member) throws(RPCError) -> TreePath {
        try checked(member, TreePath.init(_:), string(member))
    }

    static func pushKey(_ member: JSONObject.Member) throws(RPCError) -> PushKey {
        try checked(member, PushKey.init(_:), string(member))
    }

    static func query(_ member: JSONObject.Member) throws(RPCError) -> TreeQuery {
        try checked(member, TreeQuery.init(_:), member.value)
    }

    private static func checked<Raw, T>(
        _ member: JSONObject.Member, _ make: (Raw) throws(ArgumentError) -> T, _ raw: Raw
    ) throws(RPCError) -> T {
        do { return try make(raw) } catch {
            throw RPCError.invalidArgument(member.name, reason: error.reason, error.message)
        }
    }
}

extension Messages.Get {
    public static func decode(_ params: JSONObject) throws -> Messages.Get {
        var reader = ParamsReader()
        var request = Messages.Get(path: .root)
        for member in params.members where try !reader.takeShared(member) {
            switch member.name {
            case "query": request.query = try ParamsReader.optional(member, ParamsReader.query)
            case "shallow": request.shallow = try ParamsReader.optional(member, ParamsReader.bool)
            case "export": request.export = try ParamsReader.optional(member, ParamsReader.bool)
            case "etag": request.etag = try ParamsReader.optional(member, ParamsReader.bool)
            default: throw ParamsReader.unknown(member)
            }
        }
        request.path = try reader.requiredPath()
        request.database = reader.database
        return request
    }

    public static func encode(_ result: Result, into writer: inout JSONWriter) throws {
        writer.beginObject()
        writer.member("value")
        writer.write(result.value)
        if let keys = result.keys {
            writer.member("keys")
            writer.beginArray()
            for key in keys { writer.write(key) }
            writer.endArray()
        }
        if let etag = result.etag {
            writer.member("etag")
            writer.write(etag)
        }
        writer.member("version")
        writer.write(result.version)
        writer.endObject()
    }
}

extension Messages.Set {
    public static func decode(_ params: JSONObject) throws -> Messages.Set {
        var reader = ParamsReader()
        var value: JSONValue?
        var ifMatch: String?
        var ifVersion: UInt64?
        for member in params.members where try !reader.takeShared(member) {
            switch member.name {
            case "value": value = member.value
            case "ifMatch": ifMatch = try ParamsReader.optional(member, ParamsReader.string)
            case "ifVersion": ifVersion = try ParamsReader.optional(member, ParamsReader.version)
            default: throw ParamsReader.unknown(member)
            }
        }
        guard let value else { throw ParamsReader.missing("value") }
        return Messages.Set(
            database: reader.database, path: try reader.requiredPath(), value: value, ifMatch: ifMatch,
            ifVersion: ifVersion)
    }

    public static func encode(_ result: Result, into writer: inout JSONWriter) throws {
        writer.beginObject()
        if let etag = result.etag {
            writer.member("etag")
            writer.write(etag)
        }
        writer.member("version")
        writer.write(result.version)
        writer.endObject()
    }
}

extension Messages.Update {
    public static func decode(_ params: JSONObject) throws -> Messages.Update {
        var reader = ParamsReader()
        var values: JSONObject?
        for member in params.members where try !reader.takeShared(member) {
            guard member.name == "values" else { throw ParamsReader.unknown(member) }
            guard case .object(let object) = member.value else {
                throw ParamsReader.mismatch(member, "an object of new values by path")
            }
            values = object
        }
        guard let values else { throw ParamsReader.missing("values") }
        return Messages.Update(database: reader.database, path: try reader.requiredPath(), values: values)
    }

    public static func encode(_ result: Result, into writer: inout JSONWriter) throws {
        writer.beginObject()
        writer.member("version")
        writer.write(result.version)
        writer.endObject()
    }
}

extension Messages.Push {
    public static func decode(_ params: JSONObject) throws -> Messages.Push {
        var reader = ParamsReader()
        var value: JSONValue?
        var key: PushKey?
        for member in params.members where try !reader.takeShared(member) {
            switch member.name {
            case "value": value = member.value
            case "key": key = try ParamsReader.optional(member, ParamsReader.pushKey)
            default: throw ParamsReader.unknown(member)
            }
        }
        guard let value else { throw ParamsReader.missing("value") }
        return Messages.Push(database: reader.database, path: try reader.requiredPath(), value: value, key: key)
    }

    public static func encode(_ result: Result, into writer: inout JSONWriter) throws {
        writer.beginObject()
        writer.member("key")
        writer.write(result.key.description)
        writer.member("version")
        writer.write(result.version)
        writer.endObject()
    }
}

extension Messages.Import {
    /// Ten thousand rows a call: on the event loop, like every request.
    public static func decode(_ params: JSONObject) throws -> Messages.Import {
        var reader = ParamsReader()
        var request = Messages.Import(path: .root, value: .null)
        request.value = nil
        for member in params.members where try !reader.takeShared(member) {
            switch member.name {
            case "rows": request.rows = try ParamsReader.optional(member, rows)
            case "value": request.value = member.value
            case "disableTriggers": request.disableTriggers = try ParamsReader.optional(member, ParamsReader.bool)
            default: throw ParamsReader.unknown(member)
            }
        }
        // Null is a tree too, that of nothing; beside `rows`, be they null, it means that there is none.
        if request.value == .null, params.members.contains(where: { $0.name == "rows" }) { request.value = nil }
        request.path = try reader.requiredPath()
        request.database = reader.database
        return request
    }

    private static func rows(_ member: JSONObject.Member) throws(RPCError) -> [[JSONValue]] {
        guard case .array(let elements) = member.value else { throw ParamsReader.mismatch(member, "an array of rows") }
        var rows: [[JSONValue]] = []
        rows.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            guard case .array(let row) = element else {
                throw ParamsReader.mismatch(
                    JSONObject.Member("rows.\(index)", element), "a row, such as [\"/title\", \"磯野家\"]")
            }
            rows.append(row)
        }
        return rows
    }
}

extension Messages.Change {
    /// Names that are not known are ignored: what services tell each other may grow.
    public static func decode(_ params: JSONObject) throws -> Messages.Change {
        var change = Messages.Change(subscription: "", version: 0, epoch: "", time: 0, changes: [])
        var missing: Swift.Set<String> = ["subscription", "version", "epoch", "time", "changes"]
        for member in params.members {
            switch member.name {
            case "subscription": change.subscription = try ParamsReader.string(member)
            case "version": change.version = try ParamsReader.version(member)
            case "epoch": change.epoch = try ParamsReader.string(member)
            case "time":
                guard let time = member.value.integer else { throw ParamsReader.mismatch(member, "a time") }
                change.time = time
            case "disableTriggers": change.disableTriggers = try ParamsReader.optional(member, ParamsReader.bool)
            case "changes":
                guard case .array(let entries) = member.value else { throw ParamsReader.mismatch(member, "an array") }
                change.changes = try entries.map { entry in
                    guard case .object(let members) = entry else {
                        throw ParamsReader.mismatch(member, "an array of objects")
                    }
                    return try Entry.decode(members)
                }
            default: continue
            }
            missing.remove(member.name)
        }
        if let name = missing.sorted().first { throw ParamsReader.missing(name) }
        return change
    }
}

extension Messages.Change.Entry {
    fileprivate static func decode(_ members: JSONObject) throws -> Messages.Change.Entry {
        var path: String?
        var entry = Messages.Change.Entry(path: "", type: .created)
        var type: Messages.Change.EntryType?
        for member in members.members {
            switch member.name {
            case "pattern": entry.pattern = try ParamsReader.optional(member, ParamsReader.string)
            case "params": entry.params = try ParamsReader.optional(member, ParamsReader.texts)
            case "path": path = try ParamsReader.string(member)
            case "type":
                type = try Messages.Change.EntryType(rawValue: ParamsReader.string(member))
                guard type != nil else { throw ParamsReader.mismatch(member, "created, updated or deleted") }
            case "before": entry.before = member.value
            case "after": entry.after = member.value
            case "uid": entry.uid = try ParamsReader.optional(member, ParamsReader.string)
            case "partial": entry.partial = try ParamsReader.optional(member, ParamsReader.bool)
            case "truncated": entry.truncated = try ParamsReader.optional(member, ParamsReader.bool)
            case "many": entry.many = try ParamsReader.optional(member, ParamsReader.bool)
            default: continue
            }
        }
        guard let path else { throw ParamsReader.missing("path") }
        guard let type else { throw ParamsReader.missing("type") }
        entry.path = path
        entry.type = type
        return entry
    }
}
