import HatoModel

/// Finds the ends of values in a JSON text that a service wrote, without reading the values.
///
/// The text is trusted to be JSON: a text that is none gives a wrong end or nil, never a trap. `JSONScanner` is for
/// texts of peers.
struct JSONTextScanner {
    /// The offset of the next byte to be read.
    private(set) var position: Int

    init(at position: Int = 0) { self.position = position }

    /// A member of an object: its name between the quotes, still escaped, and its value.
    struct Member {
        var name: Range<Int>
        var value: Range<Int>
    }

    /// The next byte that is not white space; 0 at the end.
    mutating func nextByte(_ bytes: Span<UInt8>) -> UInt8 {
        while position < bytes.count {
            let byte = bytes[position]
            if byte > 0x20 { return byte }
            position += 1
        }
        return 0
    }

    /// Passes over `byte` if it comes next.
    mutating func take(_ byte: UInt8, _ bytes: Span<UInt8>) -> Bool {
        guard nextByte(bytes) == byte else { return false }
        position += 1
        return true
    }

    /// Passes over the name of a member and its colon; the range is between the quotes.
    mutating func takeName(_ bytes: Span<UInt8>) -> Range<Int>? {
        guard nextByte(bytes) == UInt8(ascii: "\"") else { return nil }
        let start = position + 1
        guard skipString(bytes) else { return nil }
        let end = position - 1
        return take(UInt8(ascii: ":"), bytes) ? start..<end : nil
    }

    /// Passes over the next value and returns its range, without white space around it.
    mutating func takeValue(_ bytes: Span<UInt8>) -> Range<Int>? {
        let first = nextByte(bytes)
        let start = position
        switch first {
        case UInt8(ascii: "\""): return skipString(bytes) ? start..<position : nil
        case UInt8(ascii: "{"), UInt8(ascii: "["): return skipContainer(bytes) ? start..<position : nil
        default:
            while position < bytes.count, !Self.endsPrimitive(bytes[position]) { position += 1 }
            return start < position ? start..<position : nil
        }
    }

    /// Passes over a string whose quote comes next.
    private mutating func skipString(_ bytes: Span<UInt8>) -> Bool {
        position += 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return true
            case UInt8(ascii: "\\"): position += 2
            default: position += 1
            }
        }
        position = bytes.count
        return false
    }

    private mutating func skipContainer(_ bytes: Span<UInt8>) -> Bool {
        var depth = 0
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                guard skipString(bytes) else { return false }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth == 0 {
                    position += 1
                    return true
                }
            default: break
            }
            position += 1
        }
        return false
    }

    private static func endsPrimitive(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
    }
}

extension JSONTextScanner {
    /// The members of an object, or of a text that has only members (`"version":1,"events":[]`). Nil for another text.
    static func members(_ bytes: Span<UInt8>, in range: Range<Int>? = nil) -> [Member]? {
        let range = range ?? 0..<bytes.count
        var scanner = JSONTextScanner(at: range.lowerBound)
        let hasBraces = scanner.take(UInt8(ascii: "{"), bytes)
        var members: [Member] = []
        if hasBraces, scanner.take(UInt8(ascii: "}"), bytes) { return [] }
        repeat {
            guard let name = scanner.takeName(bytes), let value = scanner.takeValue(bytes) else { return nil }
            members.append(Member(name: name, value: value))
        } while scanner.take(UInt8(ascii: ","), bytes)
        let isEnded = hasBraces ? scanner.take(UInt8(ascii: "}"), bytes) : scanner.nextByte(bytes) == 0
        return isEnded && scanner.position <= range.upperBound ? members : nil
    }

    /// The elements of an array. Nil for another text.
    static func elements(_ bytes: Span<UInt8>, in range: Range<Int>) -> [Range<Int>]? {
        var scanner = JSONTextScanner(at: range.lowerBound)
        guard scanner.take(UInt8(ascii: "["), bytes) else { return nil }
        var elements: [Range<Int>] = []
        if scanner.take(UInt8(ascii: "]"), bytes) { return [] }
        repeat {
            guard let element = scanner.takeValue(bytes) else { return nil }
            elements.append(element)
        } while scanner.take(UInt8(ascii: ","), bytes)
        return scanner.take(UInt8(ascii: "]"), bytes) && scanner.position <= range.upperBound ? elements : nil
    }

    /// Whether the bytes of a range are those of `text`.
    static func matches(_ bytes: Span<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { expected in
            for index in expected.indices where expected[index] != bytes[range.lowerBound + index] { return false }
            return true
        }
    }

    /// The text of a string value, quotes and all; nil when it is no string.
    static func string(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String? {
        var scanner = JSONScanner(at: range.lowerBound)
        return try? scanner.string(bytes)
    }
}

/// The members of a service's result or notification, found by name and still encoded.
struct ResultMembers {
    private let bytes: [UInt8]
    private let members: [JSONTextScanner.Member]

    /// Nil when the text is no object.
    init?(_ bytes: [UInt8]) {
        guard let members = JSONTextScanner.members(bytes.span) else { return nil }
        self.bytes = bytes
        self.members = members
    }

    /// The JSON text of a member; nil when it is absent.
    subscript(name: StaticString) -> [UInt8]? { range(of: name).map { Array(bytes[$0]) } }

    /// The range of a member's value in the text.
    func range(of name: StaticString) -> Range<Int>? {
        members.first { JSONTextScanner.matches(bytes.span, $0.name, name) }?.value
    }

    /// The text of a member that is a string.
    func string(_ name: StaticString) -> String? {
        range(of: name).flatMap { JSONTextScanner.string(bytes.span, $0) }
    }
}
