/// Writes JSON texts into bytes, without white space, members in the order they are written.
///
/// The writer adds commas: `beginObject`, `member`, a value, …, `endObject`. It does not check that the calls make one
/// valid text; the documentation of each method says what must follow. Numbers are written as JavaScript writes them
/// (spec realtime-database §2.8; `JSONWriter+Number.swift`), so that every client shows the number that one client
/// wrote. Only characters for which RFC 8259 requires it are escaped.
public struct JSONWriter: Sendable {
    /// The text that was written.
    public private(set) var bytes: [UInt8] = []
    /// Whether a comma is needed before the next value or name.
    private var needsComma = false

    /// A writer with capacity for a short text.
    public init() { self.init(capacity: 128) }

    /// A writer with capacity for `capacity` bytes.
    public init(capacity: Int) { bytes.reserveCapacity(capacity) }

    /// Bytes that were written.
    public var count: Int { bytes.count }

    /// Removes all bytes and keeps the capacity.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    /// Removes everything after the first `count` bytes, which must end where a value may begin or has ended.
    public mutating func truncate(to count: Int, valueFollows: Bool) {
        bytes.removeLast(bytes.count - count)
        needsComma = !valueFollows
    }

    // MARK: Structure

    /// Begins an object; `member` and a value follow for each member.
    @inline(__always)
    public mutating func beginObject() {
        separate()
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    /// Ends the innermost object.
    @inline(__always)
    public mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    /// Begins an array; its elements follow.
    @inline(__always)
    public mutating func beginArray() {
        separate()
        bytes.append(UInt8(ascii: "["))
        needsComma = false
    }

    /// Ends the innermost array.
    @inline(__always)
    public mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    /// The name of a member; its value follows.
    public mutating func member(_ name: String) {
        write(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    // MARK: Values

    public mutating func write(_ value: JSONValue) {
        switch value {
        case .null: writeNull()
        case .bool(let bool): write(bool)
        case .number(let number): write(number)
        case .string(let string): write(string)
        case .array(let elements):
            beginArray()
            for element in elements { write(element) }
            endArray()
        case .object(let object): write(object)
        }
    }

    public mutating func write(_ object: JSONObject) {
        beginObject()
        for index in object.members.indices {
            member(object.members[index].name)
            write(object.members[index].value)
        }
        endObject()
    }

    /// Writes null.
    public mutating func writeNull() {
        separate()
        append("null")
        needsComma = true
    }

    public mutating func write(_ bool: Bool) {
        separate()
        append(bool ? "true" : "false")
        needsComma = true
    }

    /// Writes infinite numbers and NaN, which JSON cannot contain, as null.
    public mutating func write(_ number: Double) {
        if let integer = number.exactInteger {
            write(integer)
            return
        }
        separate()
        needsComma = true
        guard number.isFinite else {
            append("null")
            return
        }
        appendShortest(number)
    }

    public mutating func write(_ integer: Int) { write(Int64(integer)) }

    public mutating func write(_ integer: UInt64) {
        separate()
        appendDigits(integer)
        needsComma = true
    }

    public mutating func write(_ integer: Int64) {
        separate()
        if integer < 0 { bytes.append(UInt8(ascii: "-")) }
        appendDigits(integer.magnitude)
        needsComma = true
    }

    public mutating func write(_ string: String) { write(utf8: string.utf8Span.span) }

    /// Writes a string from its UTF-8.
    public mutating func write(utf8: Span<UInt8>) {
        separate()
        needsComma = true
        bytes.append(UInt8(ascii: "\""))
        if plainRunEnd(in: utf8, from: 0) == utf8.count {
            append(utf8)
        } else {
            appendEscaped(utf8)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Begins a string; `appendToString` for each of its parts and `endString` follow.
    @inline(__always)
    public mutating func beginString() {
        separate()
        bytes.append(UInt8(ascii: "\""))
    }

    /// A part of a string.
    public mutating func appendToString(_ part: String) {
        let utf8 = part.utf8Span.span
        if plainRunEnd(in: utf8, from: 0) == utf8.count { append(utf8) } else { appendEscaped(utf8) }
    }

    /// Ends a string.
    @inline(__always)
    public mutating func endString() {
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// The name of a member from its UTF-8; its value follows.
    public mutating func member(utf8: Span<UInt8>) {
        write(utf8: utf8)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    // MARK: Raw

    /// Writes a complete value that is already encoded.
    public mutating func write(encoded: [UInt8]) {
        separate()
        bytes.append(contentsOf: encoded)
        needsComma = true
    }

    /// Writes a complete value that is already encoded: the bytes of `source` in `range`.
    public mutating func write(encoded source: Span<UInt8>, _ range: Range<Int>) {
        separate()
        append(source.extracting(range))
        needsComma = true
    }

    /// Writes one or more members that are already encoded, without braces (`"version":1,"events":[]`).
    public mutating func write(encodedMembers: [UInt8]) {
        guard !encodedMembers.isEmpty else { return }
        separate()
        bytes.append(contentsOf: encodedMembers)
        needsComma = true
    }

    /// Appends a byte without comma handling before or after it.
    @inline(__always)
    public mutating func appendRaw(_ raw: UInt8) { bytes.append(raw) }

    /// Appends text without any check: the caller guarantees that it fits.
    public mutating func appendRaw(_ raw: String) { append(raw) }

    /// Appends bytes without any check: the caller guarantees that they fit.
    public mutating func appendRaw(_ raw: some Collection<UInt8>) { bytes.append(contentsOf: raw) }

    // MARK: Small steps

    @inline(__always)
    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    @inline(__always)
    private mutating func append(_ text: some StringProtocol) { bytes.append(contentsOf: text.utf8) }

    /// One copy; the standard library has no append of a span yet. The pointer does not leave the closure.
    @inline(__always)
    private mutating func append(_ source: Span<UInt8>) {
        source.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }

    private mutating func appendDigits(_ value: UInt64) {
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var first = 20
        var rest = value
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            first &-= 1
            digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
            rest = quotient
        } while rest > 0
        for index in first..<20 { bytes.append(digits[index]) }
    }

    /// Appends runs of plain bytes unchanged, and escapes the byte between two runs.
    private mutating func appendEscaped(_ text: Span<UInt8>) {
        var index = 0
        while index < text.count {
            let end = plainRunEnd(in: text, from: index)
            append(text.extracting(index..<end))
            guard end < text.count else { return }
            appendEscape(of: text[end])
            index = end + 1
        }
    }

    private mutating func appendEscape(of byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            append("u00")
            bytes.append(hexDigit(byte >> 4))
            bytes.append(hexDigit(byte & 15))
        }
    }

    private func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
