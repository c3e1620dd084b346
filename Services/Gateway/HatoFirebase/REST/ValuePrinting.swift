import HatoModel

/// Prints JSON texts of a service for clients, text to text.
enum ValuePrinting {
    /// The text as Firebase prints it with `print=pretty`: two blanks a level of objects, arrays on one line, a blank
    /// on both sides of a colon. The result ends without a line end.
    static func pretty(_ text: [UInt8]) -> [UInt8] {
        var printer = PrettyPrinter(capacity: text.count + text.count / 2)
        printer.print(text.span)
        return printer.printed
    }

    /// The text inside a script: the two line ends that JSON allows in strings, and older scripts do not, are escaped.
    static func script(_ text: [UInt8]) -> [UInt8] {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.count + 16)
        var index = 0
        while index < text.count {
            if text[index] == 0xE2, index + 2 < text.count, text[index + 1] == 0x80, text[index + 2] & 0xFE == 0xA8 {
                escaped.append(contentsOf: (text[index + 2] == 0xA8 ? "\\u2028" : "\\u2029").utf8)
                index += 3
            } else {
                escaped.append(text[index])
                index += 1
            }
        }
        return escaped
    }

    /// The members of the result of a query in key order; another text unchanged.
    static func inKeyOrder(_ text: [UInt8]) -> [UInt8] {
        let bytes = text.span
        var scanner = JSONTextScanner()
        guard scanner.nextByte(bytes) == UInt8(ascii: "{"), let members = JSONTextScanner.members(bytes) else {
            return text
        }
        // A quote before the name, so that it is read as a string.
        let keys = members.map { JSONTextScanner.string(bytes, $0.name.lowerBound - 1..<$0.name.upperBound + 1) ?? "" }
        let order = members.indices.sorted { KeyOrder.precedes(keys[$0], keys[$1]) }
        guard order != Array(members.indices) else { return text }
        var writer = JSONWriter(capacity: text.count)
        writer.beginObject()
        for index in order {
            writer.write(
                encodedMembers: Array(text[members[index].name.lowerBound - 1..<members[index].value.upperBound]))
        }
        writer.endObject()
        return writer.bytes
    }
}

/// Prints one text token by token.
private struct PrettyPrinter {
    private(set) var printed: [UInt8] = []
    /// Open objects: arrays do not indent.
    private var level = 0
    /// Open containers: whether each is an object.
    private var open: [Bool] = []

    init(capacity: Int) { printed.reserveCapacity(capacity) }

    mutating func print(_ bytes: Span<UInt8>) {
        var scanner = JSONTextScanner()
        while true {
            let byte = scanner.nextByte(bytes)
            switch byte {
            case 0: return
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                _ = scanner.take(byte, bytes)
                begin(byte)
                let end = byte == UInt8(ascii: "{") ? UInt8(ascii: "}") : UInt8(ascii: "]")
                if scanner.take(end, bytes) { endEmpty(end) } else { separate() }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = scanner.take(byte, bytes)
                self.end(byte)
            case UInt8(ascii: ","):
                _ = scanner.take(byte, bytes)
                printed.append(byte)
                separate()
            case UInt8(ascii: ":"):
                _ = scanner.take(byte, bytes)
                append(" : ")
            default:
                guard let range = scanner.takeValue(bytes) else { return }
                for index in range { printed.append(bytes[index]) }
            }
        }
    }

    private mutating func begin(_ byte: UInt8) {
        let isObject = byte == UInt8(ascii: "{")
        open.append(isObject)
        if isObject { level += 1 }
        printed.append(byte)
    }

    private mutating func endEmpty(_ byte: UInt8) {
        if open.popLast() == true { level -= 1 }
        printed.append(UInt8(ascii: " "))
        printed.append(byte)
    }

    private mutating func end(_ byte: UInt8) {
        if open.popLast() == true {
            level -= 1
            newLine()
        } else {
            printed.append(UInt8(ascii: " "))
        }
        printed.append(byte)
    }

    /// Before an entry of the innermost container.
    private mutating func separate() {
        if open.last == true { newLine() } else { printed.append(UInt8(ascii: " ")) }
    }

    private mutating func newLine() {
        printed.append(UInt8(ascii: "\n"))
        for _ in 0..<max(0, level) { append("  ") }
    }

    private mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { printed.append(contentsOf: $0) }
    }
}
