/// Reads one JSON text that comes in pieces, token by token, for texts larger than memory: it holds no more than the
/// piece and the token at hand.
///
/// It is as strict as `JSONParser`, but for one thing: it does not remember names, so a name that stands twice in an
/// object is told twice.
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

    /// What may come next.
    private enum Expectation {
        case value, elementOrEnd, name, nameOrEnd, colon, commaOrEnd, nothing
    }

    /// Bytes of one string or number as it is written; the longest string of the tree, all of it escaped, fits.
    public static let tokenBytesMax = 64 << 20

    private var buffer: [UInt8] = []
    /// The next byte of the buffer.
    private var position = 0
    /// Bytes that stood before the buffer.
    private var passed = 0
    /// Up to here the string at `position` is known to go on.
    private var searched = 0
    private var isFinished = false
    private var expectation = Expectation.value
    /// The containers that are open: whether each is an object.
    private var open: [Bool] = []
    private let depthMax: Int
    private let tokenBytesMax: Int

    public init(depth: Int = JSONParser.depthDefault, tokenBytesMax: Int = JSONTokenReader.tokenBytesMax) {
        depthMax = depth
        self.tokenBytesMax = tokenBytesMax
    }

    /// Hands in what follows.
    public mutating func append(_ piece: some Collection<UInt8>) {
        buffer.removeSubrange(0..<position)
        passed += position
        searched = max(0, searched - position)
        position = 0
        buffer.append(contentsOf: piece)
    }

    /// Nothing follows any more.
    public mutating func finish() { isFinished = true }

    /// The next token; nil when more must be handed in, and at the end. Positions of errors are those of the whole
    /// text.
    public mutating func next() throws(JSONError) -> Token? {
        do {
            return try nextToken()
        } catch {
            throw JSONError(error.reason, at: passed + error.position)
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
            guard open.count < depthMax else { throw JSONError(.tooDeep, at: position) }
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

    /// The primitive that begins at `position`; nil when its end has not come yet.
    private mutating func primitive(_ byte: UInt8) throws(JSONError) -> JSONValue? {
        if !isFinished, byte == UInt8(ascii: "\""), !hasEndOfString() {
            guard buffer.count - position <= tokenBytesMax else { throw JSONError(.tooLong, at: position) }
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
        // The digits of a number may go on.
        if scanner.position == buffer.count, !isFinished, case .number = value { return try waitForMore() }
        position = scanner.position
        searched = position
        return value
    }

    private func waitForMore() throws(JSONError) -> JSONValue? {
        guard buffer.count - position <= tokenBytesMax else { throw JSONError(.tooLong, at: position) }
        return nil
    }

    /// Whether the closing quote of the string at `position` is there. What was searched is not searched again.
    private mutating func hasEndOfString() -> Bool {
        let (end, isEnd) = Self.endOfString(in: buffer.span, from: max(searched, position + 1))
        searched = end
        return isEnd
    }

    /// Where the string ends, or where to search on when more has come.
    private static func endOfString(in bytes: Span<UInt8>, from start: Int) -> (index: Int, isEnd: Bool) {
        var index = start
        while true {
            index = plainRunEnd(in: bytes, from: index)
            guard index < bytes.count else { return (index, false) }
            // A control character is an error, which the scanner tells.
            guard bytes[index] == UInt8(ascii: "\\") else { return (index, true) }
            guard index + 1 < bytes.count else { return (index, false) }
            index += 2
        }
    }
}
