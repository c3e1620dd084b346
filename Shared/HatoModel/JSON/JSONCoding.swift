/// Codable to and from `JSONValue`, for everything that is not hot: params, results, settings, records.
///
/// Numbers become integers only when they are integral and below 2^53; nothing is rounded in silence. Errors name the
/// value they are about by its dotted path (`query.limitToFirst`, `to.uids.0`). A `JSONValue` or `JSONObject` inside a
/// type is taken as it is. Dates have no form of their own here: times are integers, in milliseconds since 1970.
public enum JSONCoding {
    /// What to do with members that the type did not ask for.
    public enum UnknownNames: Sendable {
        /// Params: a typo must not be silent.
        case refused
        /// Results and records: whoever wrote them may know more than we.
        case ignored
    }

    /// Makes params. Throws `RPCError`: -32602 with `data.parameter` for what is missing, unknown or of the wrong JSON
    /// type; -32008 where a value type refused the content (`ArgumentError`).
    public static func decode<T: Decodable>(_ type: T.Type, from params: JSONObject) throws(RPCError) -> T {
        do { return try decode(type, from: .object(params), unknown: .refused) } catch { throw error.rpcError }
    }

    public static func decode<T: Decodable>(
        _ type: T.Type, from value: JSONValue, unknown: UnknownNames
    ) throws(JSONCodingError) -> T {
        let source = JSONDecodingSource(unknown: unknown)
        do { return try source.decode(type, value, at: .root) } catch { throw JSONCodingError(error, at: .root) }
    }

    /// Throws only when the type's own `encode(to:)` does, or when a number in it is not finite or not exact as a
    /// double.
    public static func encode(_ value: some Encodable) throws(JSONCodingError) -> JSONValue {
        do { return try JSONEncodingTarget.encode(value, at: .root) } catch { throw JSONCodingError(error, at: .root) }
    }
}
