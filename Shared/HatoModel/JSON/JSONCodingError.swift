/// Why a JSON value does not make a value of the type, or the other way round, and where in it.
public struct JSONCodingError: Error, Sendable, RPCErrorConvertible, CustomStringConvertible {
    public enum Reason: Sendable, Hashable {
        case missing
        case unknownName
        case wrongType
        /// The JSON type is right, the content is not.
        case refused(ArgumentError)
        /// A type made its own wire error.
        case answered(RPCError)
    }

    public var reason: Reason
    /// The dotted path from the value that was decoded: `query.limitToFirst`; empty for the value itself.
    public var parameter: String
    public var message: String

    init(_ reason: Reason, at path: JSONCodingPath, _ message: String) {
        self.reason = reason
        parameter = path.text
        self.message = message
    }

    /// Any error thrown while the value at `path` was coded.
    init(_ error: any Error, at path: JSONCodingPath) {
        switch error {
        case let error as JSONCodingError: self = error
        case let error as ArgumentError: self.init(.refused(error), at: path, error.message)
        case let error as RPCError: self.init(.answered(error), at: path, error.message)
        case DecodingError.dataCorrupted(let context), DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            self.init(.wrongType, at: path, context.debugDescription)
        case DecodingError.keyNotFound(let key, _):
            let path = path + key
            self.init(.missing, at: path, "\(path.quoted) is missing")
        default: self.init(.wrongType, at: path, "\(path.quoted) cannot be read: \(error)")
        }
    }

    public var rpcError: RPCError {
        switch reason {
        case .missing: .invalidParams(parameter, message, reason: "missing_parameter")
        case .unknownName: .invalidParams(parameter, message, reason: "unknown_parameter")
        case .wrongType: .invalidParams(parameter, message)
        case .refused(let error): .invalidArgument(parameter, reason: error.reason, error.message)
        case .answered(let error): error
        }
    }

    public var description: String { message }
}

/// Where in a JSON value the coder is.
struct JSONCodingPath: Sendable {
    private(set) var keys: [any CodingKey]

    static let root = JSONCodingPath(keys: [])

    static func + (path: JSONCodingPath, key: any CodingKey) -> JSONCodingPath {
        JSONCodingPath(keys: path.keys + [key])
    }

    var text: String { keys.map(\.stringValue).joined(separator: ".") }

    /// For messages.
    var quoted: String { keys.isEmpty ? "the value" : "'\(text)'" }
}

/// A name or a position that no type declared.
struct JSONCodingKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}
