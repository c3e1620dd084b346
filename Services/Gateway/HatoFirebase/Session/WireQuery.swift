public import HatoModel

/// A query as Firebase's clients write it (`q`, spec realtime-database §4.3), in the words of both generations: with
/// `sin` and `ein`, or with bounds that are always inclusive and successor keys.
///
/// Keys of bounds are compared only and need not be legal keys.
public struct WireQuery: Sendable, Hashable {
    /// The query with sorted members: two texts of one query have the same one. Empty for the default query.
    public let canonical: String
    /// The native query (protocol §5); nil when the query selects everything, which is the node itself.
    public let native: JSONValue?

    /// The default query, `{}`.
    public static let everything = WireQuery(canonical: "", native: .none)

    private init(canonical: String, native: JSONValue?) {
        self.canonical = canonical
        self.native = native
    }

    /// Reads a query. Throws `ArgumentError` for what is no query; the service checks the values themselves.
    public init(_ json: JSONValue) throws(ArgumentError) {
        guard case .object(let object) = json else { throw Self.wrong("A query must be an object") }
        let members = try Members(object)
        guard !object.isEmpty else {
            self = .everything
            return
        }
        canonical = Self.canonicalText(object)
        native = try members.native
    }

    private static func canonicalText(_ object: JSONObject) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        for member in object.members.sorted(by: { UTF16Order.compare($0.name, $1.name) < 0 }) {
            writer.member(member.name)
            writer.write(member.value)
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func wrong(_ message: String) -> ArgumentError {
        ArgumentError(reason: "invalid_query", "\(message), e.g. {\"i\":\"date\",\"l\":50,\"vf\":\"r\"}")
    }

    /// The members of a query; an absent one is `.none`, since null is a legal bound.
    private struct Members {
        var index: String?
        var start = Bound()
        var end = Bound()
        var limit: Double?
        var isLimitedFromLeft: Bool?

        /// The value and the key of a bound.
        struct Bound {
            var value: JSONValue?
            var key: String?
            var isInclusive = true
        }

        init(_ object: JSONObject) throws(ArgumentError) {
            for member in object.members {
                switch (member.name, member.value) {
                case ("i", .string(let text)): index = text
                case ("sp", .array), ("sp", .object), ("ep", .array), ("ep", .object):
                    throw WireQuery.wrong("Constraint index field must be a JSON primitive")
                case ("sp", let value): start.value = value
                case ("ep", let value): end.value = value
                case ("sn", .string(let text)): start.key = text
                case ("en", .string(let text)): end.key = text
                case ("sin", .bool(let bool)): start.isInclusive = bool
                case ("ein", .bool(let bool)): end.isInclusive = bool
                case ("l", .number(let number)): limit = number
                case ("vf", "l"): isLimitedFromLeft = true
                case ("vf", "r"): isLimitedFromLeft = false
                case ("i", _), ("sn", _), ("en", _): throw WireQuery.wrong("\"\(member.name)\" must be a text")
                case ("sin", _), ("ein", _): throw WireQuery.wrong("\"\(member.name)\" must be true or false")
                case ("l", _): throw WireQuery.wrong("\"l\" must be a number")
                case ("vf", _): throw WireQuery.wrong("\"vf\" must be \"l\" or \"r\"")
                default: throw WireQuery.wrong("A query has no such \"\(member.name.prefix(40))\"")
                }
            }
        }

        var native: JSONValue? {
            get throws(ArgumentError) {
                guard start.value != .none || end.value != .none || limit != nil else { return .none }
                var query = JSONObject()
                let orderBy = try orderBy
                query.append("orderBy", .string(orderBy))
                if let value = start.value {
                    query.append(
                        start.isInclusive ? "startAt" : "startAfter",
                        bound(value, start, KeyOrder.minName, of: orderBy))
                }
                if let value = end.value {
                    query.append(
                        end.isInclusive ? "endAt" : "endBefore", bound(value, end, KeyOrder.maxName, of: orderBy))
                }
                if let limit {
                    let isFromLeft = isLimitedFromLeft ?? (start.value != .none)
                    query.append(isFromLeft ? "limitToFirst" : "limitToLast", .number(limit))
                }
                return .object(query)
            }
        }

        private var orderBy: String {
            get throws(ArgumentError) {
                switch index {
                case nil, ".priority": return "$priority"
                case ".key": return "$key"
                case ".value": return "$value"
                case let index?:
                    // A native order by key is no child path here.
                    guard !index.hasPrefix("$") else {
                        throw WireQuery.wrong("orderBy must be a valid JSON encoded path")
                    }
                    return index
                }
            }
        }

        /// A bound without a key is that of the lowest or the highest name. Native bounds that exclude a value leave
        /// out all children with it, so an exclusive bound names this key.
        private func bound(_ value: JSONValue, _ bound: Bound, _ edge: String, of orderBy: String) -> JSONValue {
            // The value is the key; no second one is allowed.
            if orderBy == "$key" { return value }
            guard let key = bound.key ?? (bound.isInclusive ? nil : edge) else { return value }
            return ["value": value, "key": .string(key)]
        }
    }
}
