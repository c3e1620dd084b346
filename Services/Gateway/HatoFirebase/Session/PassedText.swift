import HatoModel

/// JSON texts that pass through without a tree of values.
///
/// Texts of clients are checked as strictly as the services check them, so that a service never refuses a line as a
/// whole. Texts of services are trusted to be JSON: there, only the ends of values are searched.
enum PassedText {
    /// Checks the next value and returns its range. Throws `JSONError`.
    static func check(_ scanner: inout JSONScanner, _ bytes: Span<UInt8>) throws(JSONError) -> Range<Int> {
        let kind = try scanner.kind(bytes)
        let start = scanner.position
        switch kind {
        case .object:
            var members = try scanner.beginObject(bytes)
            while try scanner.nextMember(bytes, &members) != nil { _ = try check(&scanner, bytes) }
        case .array:
            var elements = try scanner.beginArray(bytes)
            while try scanner.nextElement(bytes, &elements) { _ = try check(&scanner, bytes) }
        case .string, .number, .bool, .null: _ = try scanner.value(bytes)
        }
        return start..<scanner.position
    }

    /// The value whose checked text this is. Throws `JSONError`.
    static func value(_ text: ArraySlice<UInt8>) throws(JSONError) -> JSONValue {
        var scanner = JSONScanner(at: 0)
        return try scanner.value(text.span)
    }
}

extension JSONWriter {
    /// Writes a checked value in one line: line ends, which stand only between tokens, become blanks.
    mutating func write(passed text: ArraySlice<UInt8>) {
        if text.contains(where: { $0 < 0x20 }) {
            write(encoded: text.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })
        } else {
            write(encoded: text.span, 0..<text.count)
        }
    }
}

/// Walks over the members of an object, or the elements of an array, that a service has written. A text that is no
/// JSON ends the walk early and never traps.
struct TrustedMembers {
    private let text: ArraySlice<UInt8>
    private var position: Int
    private let isObject: Bool

    /// Nil when the text begins neither an object nor an array.
    init?(_ text: ArraySlice<UInt8>) {
        guard let first = text.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return nil }
        self.text = text
        isObject = first == UInt8(ascii: "{")
        position = text.startIndex + 1
    }

    /// The next member: its name as it stands between the quotes (empty in an array), and its value.
    mutating func next() -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
        skip { $0 <= 0x20 || $0 == UInt8(ascii: ",") }
        guard position < text.endIndex, text[position] != UInt8(ascii: "}"), text[position] != UInt8(ascii: "]") else {
            return nil
        }
        var name: ArraySlice<UInt8> = []
        if isObject {
            guard let range = passString() else { return nil }
            name = text[range]
            skip { $0 <= 0x20 || $0 == UInt8(ascii: ":") }
        }
        let start = position
        guard passValue(), position > start else { return nil }
        return (name, text[start..<position])
    }

    private mutating func skip(while isSkipped: (UInt8) -> Bool) {
        while position < text.endIndex, isSkipped(text[position]) { position += 1 }
    }

    /// Passes the string at `position` and returns the range between its quotes.
    private mutating func passString() -> Range<Int>? {
        guard position < text.endIndex, text[position] == UInt8(ascii: "\"") else { return nil }
        position += 1
        let start = position
        while position < text.endIndex {
            switch text[position] {
            case UInt8(ascii: "\""):
                position += 1
                return start..<position - 1
            case UInt8(ascii: "\\"): position += 2
            default: position += 1
            }
        }
        return nil
    }

    /// Passes the value at `position`; false when it does not end.
    private mutating func passValue() -> Bool {
        var depth = 0
        while position < text.endIndex {
            switch text[position] {
            case UInt8(ascii: "\""):
                guard passString() != nil else { return false }
                if depth == 0 { return true }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // The end of the container of a number or a word.
                if depth == 0 { return true }
                depth -= 1
                if depth == 0 {
                    position += 1
                    return true
                }
            case UInt8(ascii: ","), 0...0x20: if depth == 0 { return true }
            default: break
            }
            position += 1
        }
        return false
    }
}

extension ArraySlice<UInt8> {
    /// Whether these are the bytes of `text`.
    func equals(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { count == $0.count && elementsEqual($0) }
    }
}
