/// A value that the server fills in when it applies a write (spec realtime-database §6).
public enum ServerValue: Sendable, Hashable {
    /// `{".sv": "timestamp"}`: the server's time in milliseconds, the same everywhere in one write.
    case timestamp
    /// `{".sv": {"increment": n}}`: the number that was there before the write, plus n; n where there was none.
    case increment(Double)

    /// Reads what stands under `.sv`.
    public init(json: JSONValue) throws(ArgumentError) {
        switch json {
        case .string("timestamp"):
            self = .timestamp
        case .object(let object) where object.count == 1:
            guard case .number(let amount)? = object["increment"] else { fallthrough }
            self = .increment(amount)
        default:
            throw ArgumentError(
                reason: "invalid_server_value",
                "A server value is a timestamp or an increment by a number, e.g. {\".sv\": \"timestamp\"} or "
                    + "{\".sv\": {\"increment\": 1}}")
        }
    }

    /// What `.sv` holds.
    public var json: JSONValue {
        switch self {
        case .timestamp: [".sv": "timestamp"]
        case .increment(let amount): [".sv": ["increment": .number(amount)]]
        }
    }
}

/// Where a server value stands in a written value: the keys from the written node, and whether it is that node's
/// priority.
public struct ServerValuePlace: Sendable, Hashable {
    /// The keys from the value that is written down to the server value.
    public var keys: [TreeKey]
    /// Whether it stands for a priority.
    public var isPriority: Bool

    public init(keys: [TreeKey], isPriority: Bool) {
        self.keys = keys
        self.isPriority = isPriority
    }
}
