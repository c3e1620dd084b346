/// A value that the server computes when it applies a write (spec realtime-database §6).
public enum ServerValue: Sendable, Hashable {
    /// `{".sv": "timestamp"}`: the server's time in milliseconds, the same everywhere in one write.
    case timestamp
    /// `{".sv": {"increment": n}}`: the previous number plus n; n where there was none.
    case increment(Double)

    /// Reads the value of `.sv`. Throws `ArgumentError` for another one than `timestamp` and `increment`.
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

    /// The value of `.sv`.
    public var json: JSONValue {
        switch self {
        case .timestamp: [".sv": "timestamp"]
        case .increment(let amount): [".sv": ["increment": .number(amount)]]
        }
    }
}

/// The position of a server value in a written value: the keys from the written node, and whether it is that node's
/// priority.
public struct ServerValueLocation: Sendable, Hashable {
    /// The keys from the written node to the server value.
    public var keys: [TreeKey]
    /// Whether it is a priority.
    public var isPriority: Bool

    public init(keys: [TreeKey], isPriority: Bool) {
        self.keys = keys
        self.isPriority = isPriority
    }
}
