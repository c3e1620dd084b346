/// Why a JSON value cannot be decoded as a field, and the path of that value.
public struct FieldError: Error, Sendable, RPCErrorConvertible, CustomStringConvertible {
    /// The kind of the error.
    public enum Reason: Sendable, Hashable {
        case missing
        case unknownField
        case wrongType
        /// The JSON type is right, the contents are not.
        case invalid(ArgumentError)
        /// A method has its own error for this value.
        case answered(RPCError)
    }

    /// The kind of the error.
    public private(set) var reason: Reason
    /// Names and indexes from the root to the value, the innermost first.
    private var reversedPath: [String] = []
    /// The text after the quoted path in the message.
    private let predicate: String

    init(_ reason: Reason, _ predicate: String) {
        self.reason = reason
        self.predicate = predicate
    }

    /// An error for a value whose contents are not right.
    public init(_ error: ArgumentError) { self.init(.invalid(error), "") }

    /// Wraps an error that a method returns unchanged.
    public init(_ error: RPCError) { self.init(.answered(error), "") }

    static func wrongType(_ expected: String, _ found: JSONValue) -> FieldError {
        FieldError(.wrongType, "must be \(expected), not \(found.kind)")
    }

    static func missing(_ name: String) -> FieldError { FieldError(.missing, "is missing").below(name) }

    /// The same error, for the object or array that holds the value as `name`.
    consuming func below(_ name: String) -> FieldError {
        // A peer may have chosen the name.
        reversedPath.append(name.shortened(to: 200))
        return self
    }

    /// The dotted path of the value: `query.limitToFirst`; empty for the value itself.
    public var parameter: String { reversedPath.reversed().joined(separator: ".") }

    /// The problem with the path of the value, as a sentence.
    public var message: String {
        switch reason {
        case .missing, .unknownField, .wrongType:
            "\(reversedPath.isEmpty ? "the value" : "'\(parameter)'") \(predicate)"
        case .invalid(let error): error.message
        case .answered(let error): error.message
        }
    }

    public var rpcError: RPCError {
        switch reason {
        case .missing: .invalidParams(parameter, message, reason: "missing_parameter")
        case .unknownField: .invalidParams(parameter, message, reason: "unknown_parameter")
        case .wrongType: .invalidParams(parameter, message)
        case .invalid(let error): .invalidArgument(parameter, reason: error.reason, error.message)
        case .answered(let error): error
        }
    }

    public var description: String { message }
}

extension String {
    /// At most so many of its first Unicode scalars, for messages, followed by `…` if there are more.
    package func shortened(to countMax: Int) -> String {
        // A scalar has a byte at least.
        guard utf8.count > countMax, unicodeScalars.count > countMax else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.prefix(countMax))) + "…"
    }
}

extension JSONValue {
    /// The JSON type, as errors name it.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
