/// Parses whole JSON texts, strictly by RFC 8259.
///
/// Where the RFC leaves a choice: numbers are doubles, correctly rounded, and one that overflows is refused; those too
/// small for a double are 0, and -0 is 0. Bytes must be UTF-8 without overlong forms and surrogates; an escaped half of
/// a surrogate pair is refused. A duplicate name in an object, at any level, is refused. Names are equal when their
/// characters are (no Unicode normalisation). Nesting is bounded. A byte order mark is not white space.
public enum JSONParser {
    /// The maximum nesting depth of arrays and objects (protocol §1).
    public static let depthDefault = 64

    /// Parses `bytes` as one value, with white space around it allowed.
    /// Throws `JSONError` with the offset of what is wrong.
    public static func parse(_ bytes: Span<UInt8>, depth: Int = depthDefault) throws(JSONError) -> JSONValue {
        var scanner = JSONScanner(depth: depth)
        let value = try scanner.value(bytes)
        try scanner.end(bytes)
        return value
    }

    /// Parses one JSON text. Throws `JSONError`, also for more than `depth` nested containers.
    public static func parse(_ bytes: [UInt8], depth: Int = depthDefault) throws(JSONError) -> JSONValue {
        try parse(bytes.span, depth: depth)
    }

    /// Parses one JSON text. Throws `JSONError`, also for more than `depth` nested containers.
    public static func parse(_ text: String, depth: Int = depthDefault) throws(JSONError) -> JSONValue {
        try parse(Array(text.utf8), depth: depth)
    }
}
