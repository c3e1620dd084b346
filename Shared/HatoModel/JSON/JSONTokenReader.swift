/// Reads one JSON text that arrives in pieces, token by token, for texts larger than memory: it holds only the current
/// piece and token.
///
/// It is as strict as `JSONParser`, with one exception: it keeps no names, so a duplicate name in an object is returned
/// twice.
/// ```swift
/// var tokens = JSONTokenReader()
/// while let piece = try file.next() {
///     tokens.append(piece)
///     while let token = try tokens.next() { … }
/// }
/// tokens.finish()
/// while let token = try tokens.next() { … }
/// ```
public struct JSONTokenReader: Sendable {
    /// A part of a JSON text.
    public enum Token: Sendable, Hashable {
        case beginObject, endObject, beginArray, endArray
        /// The name of a member; its value follows.
        case name(String)
        /// Null, a boolean, a number or a string.
        case value(JSONValue)
    }

    /// The tokens that may come next.
    private enum Expectation {
        case value, elementOrEnd, name, nameOrEnd, colon, commaOrEnd, nothing
    }

    /// Bytes of one string or number in the text; the longest string of the tree, entirely escaped, fits.
    public static let tokenBytesMax = 64 << 20

    private var buffer: [UInt8] = []
    /// The index of the next byte in the buffer.
    private var position = 0
    /// The number of bytes before the buffer.
    private var passed = 0
    /// The string at `position` is known to continue up to here.
    private var searched = 0
    private var isFinished = false
    private var expectation = Expectation.value
    /// The open containers: whether each is an object.
    private var open: [Bool] = []
    private let depthMax: Int
    private let tokenBytesMax: Int

    public init(depth: Int = JSONParser.depthDefault, tokenBytesMax: Int = JSONTokenReader.tokenBytesMax) {
        depthMax = depth
        self.tokenBytesMax = tokenBytesMax
    }

    /// Adds the next piece of the text.
    public mutating func append(_ piece: some Collection<UInt8>) {
        buffer.removeSubrange(0..<position)
        passed += position
        searched = max(0, searched - position)
        position = 0
        buffer.append(contentsOf: piece)
    }

    /// Marks the end of the text.
    public mutating func finish() { isFinished = true }

    /// The next token; nil when another piece is needed, and at the end. Positions of errors count from the start of
    /// the whole text. Throws `JSONError` when the text is no JSON.
    public mutating func next() throws(JSONError) -> Token? {
        do {
            return try nextToken()
        } catch {
            throw JSONError(error.reason, at: passed + error.position, limit: error.limit)
        }
    }

    private mutating func nextToken() throws(JSONError) -> Token? {
        while true {
            var scanner = JSONScanner(at: position)
            let byte = scanner.nextByte(buffer.span)
            position = scanner.position
            if position == buffer.count {
                if isFinished, expectation != .nothing { throw JSONError(.endedEarly, at: position) }
                return nil
            }
            switch (expectation, byte) {
            case (.commaOrEnd, UInt8(ascii: ",")):
                position += 1
                expectation = open.last == true ? .name : .value
            case (.colon, UInt8(ascii: ":")):
                position += 1
                expectation = .value
            case (.commaOrEnd, UInt8(ascii: "}")) where open.last == true, (.nameOrEnd, UInt8(ascii: "}")):
                return close(.endObject)
            case (.commaOrEnd, UInt8(ascii: "]")) where open.last == false, (.elementOrEnd, UInt8(ascii: "]")):
                return close(.endArray)
            case (.name, UInt8(ascii: "\"")), (.nameOrEnd, UInt8(ascii: "\"")):
                guard case .string(let name)? = try primitive(byte) else { return nil }
                expectation = .colon
                return .name(name)
            case (.value, _), (.elementOrEnd, _): return try value(byte)
            case (.nothing, _): throw JSONError(.trailingBytes, at: position)
            default: throw JSONError(.unexpectedByte, at: position)
            }
        }
    }

    private mutating func value(_ byte: UInt8) throws(JSONError) -> Token? {
        if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
            guard open.count < depthMax else { throw JSONError(.tooDeep, at: position, limit: depthMax) }
            let isObject = byte == UInt8(ascii: "{")
            open.append(isObject)
            position += 1
            expectation = isObject ? .nameOrEnd : .elementOrEnd
            return isObject ? .beginObject : .beginArray
        }
        guard let value = try primitive(byte) else { return nil }
        expectation = open.isEmpty ? .nothing : .commaOrEnd
        return .value(value)
    }

    private mutating func close(_ token: Token) -> Token {
        open.removeLast()
        position += 1
        expectation = open.isEmpty ? .nothing : .commaOrEnd
        return token
    }

    /// The primitive that begins at `position`; nil when its end has not arrived yet.
    private mutating func primitive(_ byte: UInt8) throws(JSONError) -> JSONValue? {
        if !isFinished, byte == UInt8(ascii: "\""), !hasEndOfString() {
            guard buffer.count - position <= tokenBytesMax else {
                throw JSONError(.tooLong, at: position, limit: tokenBytesMax)
            }
            return nil
        }
        var scanner = JSONScanner(at: position)
        let value: JSONValue
        do {
            value = try scanner.value(buffer.span)
        } catch {
            if error.reason == .endedEarly, !isFinished { return try waitForMore() }
            throw error
        }
        // The digits of a number may continue.
        if scanner.position == buffer.count, !isFinished, case .number = value { return try waitForMore() }
        position = scanner.position
        searched = position
        return value
    }

    private func waitForMore() throws(JSONError) -> JSONValue? {
        guard buffer.count - position <= tokenBytesMax else {
            throw JSONError(.tooLong, at: position, limit: tokenBytesMax)
        }
        return nil
    }

    /// Whether the closing quote of the string at `position` has arrived. Bytes that were searched are not searched
    /// again.
    private mutating func hasEndOfString() -> Bool {
        let (end, isEnd) = Self.endOfString(in: buffer.span, from: max(searched, position + 1))
        searched = end
        return isEnd
    }

    /// The end of the string, or the index at which to continue the search when more has arrived.
    private static func endOfString(in bytes: Span<UInt8>, from start: Int) -> (index: Int, isEnd: Bool) {
        var index = start
        while true {
            index = plainRunEnd(in: bytes, from: index)
            guard index < bytes.count else { return (index, false) }
            // A control character is an error, which the scanner reports.
            guard bytes[index] == UInt8(ascii: "\\") else { return (index, true) }
            guard index + 1 < bytes.count else { return (index, false) }
            index += 2
        }
    }
}
