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
        .invalidParams(member.name, "There is no parameter '\(member.name)'", reason: "unknown_parameter")
    }

    static func mismatch(_ member: JSONObject.Member, _ expected: String) -> RPCError {
        .invalidParams(member.name, "'\(member.name)' must be \(expected)")
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

    static func version(_ member: JSONObject.Member) throws(RPCError) -> UInt64 {
        guard case .number(let number) = member.value, let version = UInt64(exactly: number),
            number < 9_007_199_254_740_992
        else { throw mismatch(member, "a version: an integer from 0") }
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
