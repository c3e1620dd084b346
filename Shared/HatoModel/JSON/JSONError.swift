/// Why a text is not valid JSON for this system, and at which position.
///
/// The position is the offset of the byte at which reading stopped, counted from the start of the given bytes.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of the error.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        case endedEarly = "the text ends in the middle of a value"
        case unexpectedByte = "no JSON value can go on like this"
        case trailingBytes = "something follows the value"
        case badNumber = "a number is not written as RFC 8259 says"
        case numberTooLarge = "a number is larger than a double can hold"
        case badEscape = "an escape sequence that JSON does not know"
        case unpairedSurrogate = "half of a surrogate pair"
        case controlCharacter = "a control character must be escaped inside a string"
        case badUTF8 = "bytes that are not UTF-8"
        case duplicateMember = "the same member name twice in one object"
        case tooLong = "a string or number is too long to be read"
        case tooDeep = "arrays and objects are nested deeper than allowed"
        case tooManyValues = "the values take more memory than one text may"
    }

    /// The kind of the error.
    public var reason: Reason
    /// The offset of the wrong byte, from 0.
    public var position: Int
    /// What the text may have, for reasons that are limits: levels of nesting, or bytes.
    public var limit: Int?

    public init(_ reason: Reason, at position: Int, limit: Int? = nil) {
        self.reason = reason
        self.position = position
        self.limit = limit
    }

    public var description: String {
        let limit = limit.map { "; the maximum is \($0) \(reason == .tooDeep ? "levels" : "bytes")" } ?? ""
        return "\(reason.rawValue)\(limit) (byte \(position))"
    }
}
