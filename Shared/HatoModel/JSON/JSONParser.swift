/// Reads whole JSON texts, strictly: RFC 8259 and nothing beside it.
///
/// What the RFC leaves open is decided here. Numbers are doubles, correctly rounded, and one that overflows is refused;
/// those too small for a double are 0, and -0 is 0. Bytes must be UTF-8 without overlong forms and surrogates; an
/// escaped half of a surrogate pair is refused. A name that stands twice in an object, at any level, is refused. Names
/// are equal when their characters are (no Unicode normalisation). Nesting is bounded. A byte order mark is not white
/// space.
public enum JSONParser {
    /// How many arrays and objects may stand inside each other (protocol §1).
    public static let depthDefault = 64

    /// The one value that `bytes` are, white space around it allowed.
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
