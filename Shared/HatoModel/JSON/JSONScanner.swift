/// Reads a JSON text from left to right, value by value: a caller gets the parts it needs in one pass, and all of the
/// text is validated.
///
/// The scanner holds only a position; the bytes are passed to each call and must be the same for all of them. After an
/// error the scanner must not be used. A JSON-RPC envelope is read like this:
/// ```swift
/// var scanner = JSONScanner()
/// guard try scanner.kind(bytes) == .object else { … }
/// var members = try scanner.beginObject(bytes)
/// while let name = try scanner.nextMember(bytes, &members) {
///     switch name {
///     case "method": method = try scanner.string(bytes)
///     case "id": idKind = try scanner.kind(bytes); idRange = try scanner.skip(bytes)
///     case "params": params = try scanner.object(bytes)
///     default: _ = try scanner.skip(bytes)
///     }
/// }
/// try scanner.end(bytes)
/// ```
public struct JSONScanner: Sendable {
    /// The offset of the next byte to be read.
    public internal(set) var position: Int
    let depthMax: Int
    var depth = 0
    let memoryMax: Int
    /// About how many bytes the values take that were read so far. An array of small arrays takes 30 times its text.
    public private(set) var memory = 0

    /// The kind of a value, determined by its first byte.
    public enum Kind: Sendable, Hashable {
        case null, bool, number, string, array, object
    }

    /// The position of a caller among the members of an object, or the elements of an array.
    public struct Cursor: Sendable {
        var isFirst = true
        var names = JSONNameSet()
    }

    /// A scanner that begins at `position`.
    ///
    /// - Parameters:
    ///   - depth: how many arrays and objects may be inside each other.
    ///   - memoryMax: bytes that the values may take (`memory`).
    public init(at position: Int = 0, depth: Int = JSONParser.depthDefault, memoryMax: Int = .max) {
        self.position = position
        depthMax = depth
        self.memoryMax = memoryMax
    }

    // MARK: One value

    /// The kind of the next value. Skips white space; the value itself is still to be read. Throws `JSONError`.
    public mutating func kind(_ bytes: Span<UInt8>) throws(JSONError) -> Kind {
        switch nextByte(bytes) {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
        default: throw unexpected(bytes)
        }
    }

    /// Reads the next value completely. Throws `JSONError`.
    public mutating func value(_ bytes: Span<UInt8>) throws(JSONError) -> JSONValue {
        switch nextByte(bytes) {
        case UInt8(ascii: "\""): return .string(try readKeptString(bytes))
        case UInt8(ascii: "{"): return .object(try object(bytes))
        case UInt8(ascii: "["): return .array(try array(bytes))
        case UInt8(ascii: "t"):
            try literal("true", bytes)
            return .bool(true)
        case UInt8(ascii: "f"):
            try literal("false", bytes)
            return .bool(false)
        case UInt8(ascii: "n"):
            try literal("null", bytes)
            return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try readNumber(bytes))
        default: throw unexpected(bytes)
        }
    }

    /// Reads the next value, which must be a string. Throws `JSONError`.
    public mutating func string(_ bytes: Span<UInt8>) throws(JSONError) -> String {
        guard nextByte(bytes) == UInt8(ascii: "\"") else { throw unexpected(bytes) }
        return try readString(bytes)
    }

    /// Reads the next value, which must be a number. Throws `JSONError`.
    public mutating func number(_ bytes: Span<UInt8>) throws(JSONError) -> Double {
        guard try kind(bytes) == .number else { throw unexpected(bytes) }
        return try readNumber(bytes)
    }

    /// Reads the next value, which must be an object, with all its members. Throws `JSONError`.
    public mutating func object(_ bytes: Span<UInt8>) throws(JSONError) -> JSONObject {
        guard nextByte(bytes) == UInt8(ascii: "{") else { throw unexpected(bytes) }
        try descend()
        var members: [JSONObject.Member] = []
        if nextByte(bytes) == UInt8(ascii: "}") {
            ascend()
            return JSONObject()
        }
        members.reserveCapacity(4)
        var names = JSONNameSet()
        while true {
            guard nextByte(bytes) == UInt8(ascii: "\"") else { throw unexpected(bytes) }
            let start = position
            let name = try readKeptString(bytes)
            guard names.insert(name, among: members) else { throw JSONError(.duplicateMember, at: start) }
            guard nextByte(bytes) == UInt8(ascii: ":") else { throw unexpected(bytes) }
            position += 1
            members.append(JSONObject.Member(name, try value(bytes)))
            switch nextByte(bytes) {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "}"):
                ascend()
                try take(Self.blockBytes + members.capacity * MemoryLayout<JSONObject.Member>.stride)
                return JSONObject(uniqueMembers: members)
            default: throw unexpected(bytes)
            }
        }
    }

    /// Reads the next value, which must be an array, with all its elements. Throws `JSONError`.
    public mutating func array(_ bytes: Span<UInt8>) throws(JSONError) -> [JSONValue] {
        guard nextByte(bytes) == UInt8(ascii: "[") else { throw unexpected(bytes) }
        try descend()
        var elements: [JSONValue] = []
        if nextByte(bytes) == UInt8(ascii: "]") {
            ascend()
            return elements
        }
        while true {
            // The array doubles when it grows.
            if elements.count == elements.capacity { try take(max(elements.count, 2) * MemoryLayout<JSONValue>.stride) }
            elements.append(try value(bytes))
            switch nextByte(bytes) {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "]"):
                ascend()
                try take(Self.blockBytes)
                return elements
            default: throw unexpected(bytes)
            }
        }
    }

    /// Skips the next value, validated like any other, and returns its range (without the white space around it).
    /// Throws `JSONError`.
    public mutating func skip(_ bytes: Span<UInt8>) throws(JSONError) -> Range<Int> {
        _ = nextByte(bytes)
        let start = position
        _ = try value(bytes)
        return start..<position
    }

    // MARK: Piece by piece

    /// Enters the next value, which must be an object. Throws `JSONError`.
    public mutating func beginObject(_ bytes: Span<UInt8>) throws(JSONError) -> Cursor {
        guard nextByte(bytes) == UInt8(ascii: "{") else { throw unexpected(bytes) }
        try descend()
        return Cursor()
    }

    /// The name of the next member, whose value must be read before the next call; nil when the object ends here.
    /// Throws `JSONError`.
    public mutating func nextMember(_ bytes: Span<UInt8>, _ cursor: inout Cursor) throws(JSONError) -> String? {
        guard try hasNext(bytes, &cursor, closing: UInt8(ascii: "}")) else { return nil }
        guard nextByte(bytes) == UInt8(ascii: "\"") else { throw unexpected(bytes) }
        let start = position
        let name = try readString(bytes)
        guard cursor.names.insert(name) else { throw JSONError(.duplicateMember, at: start) }
        guard nextByte(bytes) == UInt8(ascii: ":") else { throw unexpected(bytes) }
        position += 1
        return name
    }

    /// Enters the next value, which must be an array. Throws `JSONError`.
    public mutating func beginArray(_ bytes: Span<UInt8>) throws(JSONError) -> Cursor {
        guard nextByte(bytes) == UInt8(ascii: "[") else { throw unexpected(bytes) }
        try descend()
        return Cursor()
    }

    /// Whether another element follows, which must be read before the next call. Throws `JSONError`.
    public mutating func nextElement(_ bytes: Span<UInt8>, _ cursor: inout Cursor) throws(JSONError) -> Bool {
        try hasNext(bytes, &cursor, closing: UInt8(ascii: "]"))
    }

    /// Throws unless only white space is left.
    public mutating func end(_ bytes: Span<UInt8>) throws(JSONError) {
        _ = nextByte(bytes)
        guard position == bytes.count else { throw JSONError(.trailingBytes, at: position) }
    }

    private mutating func hasNext(
        _ bytes: Span<UInt8>, _ cursor: inout Cursor, closing: UInt8
    ) throws(JSONError) -> Bool {
        let byte = nextByte(bytes)
        if byte == closing {
            ascend()
            return false
        }
        if cursor.isFirst {
            cursor.isFirst = false
            return true
        }
        guard byte == UInt8(ascii: ",") else { throw unexpected(bytes) }
        position += 1
        return true
    }

    // MARK: Small steps

    /// The next byte that is not white space, without consuming it; 0, which is no byte of JSON, at the end.
    @inline(__always)
    mutating func nextByte(_ bytes: Span<UInt8>) -> UInt8 {
        while position < bytes.count {
            let byte = bytes[position]
            if byte > UInt8(ascii: " ") { return byte }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return 0 }
            position += 1
        }
        return 0
    }

    /// Consumes the opening bracket.
    @inline(__always)
    private mutating func descend() throws(JSONError) {
        guard depth < depthMax else { throw JSONError(.tooDeep, at: position, limit: depthMax) }
        depth += 1
        position += 1
    }

    /// Consumes the closing bracket.
    @inline(__always)
    private mutating func ascend() {
        depth -= 1
        position += 1
    }

    /// The header of an array's memory, and what the allocator keeps beside it.
    private static let blockBytes = 48
    /// Longer strings have memory of their own.
    private static let inlineStringBytesMax = 15

    @inline(__always)
    private mutating func readKeptString(_ bytes: Span<UInt8>) throws(JSONError) -> String {
        let text = try readString(bytes)
        if text.utf8.count > Self.inlineStringBytesMax { try take(Self.blockBytes + text.utf8.count) }
        return text
    }

    @inline(__always)
    private mutating func take(_ bytes: Int) throws(JSONError) {
        memory += bytes
        guard memory <= memoryMax else { throw JSONError(.tooManyValues, at: position, limit: memoryMax) }
    }

    private mutating func literal(_ word: StaticString, _ bytes: Span<UInt8>) throws(JSONError) {
        for expected in word.description.utf8 {
            guard position < bytes.count else { throw JSONError(.endedEarly, at: position) }
            guard bytes[position] == expected else { throw unexpected(bytes) }
            position += 1
        }
    }

    func unexpected(_ bytes: Span<UInt8>) -> JSONError {
        JSONError(position < bytes.count ? .unexpectedByte : .endedEarly, at: position)
    }
}
