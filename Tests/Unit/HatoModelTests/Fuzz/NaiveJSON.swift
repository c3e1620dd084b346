/// Decides whether a text is valid: a second implementation of RFC 8259 with the choices of `JSONParser`.
struct NaiveJSON {
    private let units: [Unicode.Scalar]
    private var place = 0
    private let depthMax: Int
    private var hasDuplicates = false

    enum Verdict {
        case valid, invalid
        /// Valid except for a duplicate name in an object.
        case duplicate
    }

    static func verdict(_ bytes: [UInt8], depth: Int) -> Verdict {
        guard let units = scalars(bytes) else { return .invalid }
        var reader = NaiveJSON(units: units, depthMax: depth)
        reader.passSpace()
        guard reader.value(depth: 0) else { return .invalid }
        reader.passSpace()
        guard reader.place == units.count else { return .invalid }
        return reader.hasDuplicates ? .duplicate : .valid
    }

    private init(units: [Unicode.Scalar], depthMax: Int) { (self.units, self.depthMax) = (units, depthMax) }

    /// The characters of a text in UTF-8; nil when it is not UTF-8.
    private static func scalars(_ bytes: [UInt8]) -> [Unicode.Scalar]? {
        var units: [Unicode.Scalar] = []
        var index = 0
        while index < bytes.count {
            let lead = UInt32(bytes[index])
            let (count, least): (Int, UInt32) =
                switch lead {
                case 0..<0x80: (0, 0)
                case 0xC0..<0xE0: (1, 0x80)
                case 0xE0..<0xF0: (2, 0x800)
                case 0xF0..<0xF8: (3, 0x10000)
                default: (-1, 0)
                }
            guard count >= 0, index + count < bytes.count else { return nil }
            var value = count == 0 ? lead : lead & (0x3F >> UInt32(count))
            for next in bytes[(index + 1)..<(index + 1 + count)] {
                guard next & 0xC0 == 0x80 else { return nil }
                value = value * 64 + UInt32(next & 0x3F)
            }
            guard value >= least, let unit = Unicode.Scalar(value) else { return nil }
            units.append(unit)
            index += 1 + count
        }
        return units
    }

    private var next: Unicode.Scalar? { place < units.count ? units[place] : nil }

    private mutating func passSpace() {
        while let unit = next, unit == " " || unit == "\t" || unit == "\n" || unit == "\r" { place += 1 }
    }

    private mutating func pass(_ unit: Unicode.Scalar) -> Bool {
        guard next == unit else { return false }
        place += 1
        return true
    }

    private mutating func value(depth: Int) -> Bool {
        switch next {
        case "{": return object(depth: depth + 1)
        case "[": return array(depth: depth + 1)
        case "\"": return string() != nil
        case "t": return word("true")
        case "f": return word("false")
        case "n": return word("null")
        default: return number()
        }
    }

    private mutating func word(_ word: String) -> Bool { word.unicodeScalars.allSatisfy { pass($0) } }

    private mutating func object(depth: Int) -> Bool {
        guard depth <= depthMax, pass("{") else { return false }
        var names: Set<[UInt16]> = []
        passSpace()
        if pass("}") { return true }
        repeat {
            passSpace()
            guard let name = string() else { return false }
            if !names.insert(name).inserted { hasDuplicates = true }
            passSpace()
            guard pass(":") else { return false }
            passSpace()
            guard value(depth: depth) else { return false }
            passSpace()
        } while pass(",")
        return pass("}")
    }

    private mutating func array(depth: Int) -> Bool {
        guard depth <= depthMax, pass("[") else { return false }
        passSpace()
        if pass("]") { return true }
        repeat {
            passSpace()
            guard value(depth: depth) else { return false }
            passSpace()
        } while pass(",")
        return pass("]")
    }

    /// The UTF-16 units of a string, which must be paired.
    private mutating func string() -> [UInt16]? {
        guard pass("\"") else { return nil }
        var text: [UInt16] = []
        var escaped: [Bool] = []
        while let unit = next {
            place += 1
            if unit == "\"" { return Self.isPaired(text, escaped) ? text : nil }
            guard unit.value >= 0x20 else { return nil }
            guard unit == "\\" else {
                let units = Array(String(unit).utf16)
                text += units
                escaped += units.map { _ in false }
                continue
            }
            guard let unit = escape() else { return nil }
            text.append(unit)
            escaped.append(true)
        }
        return nil
    }

    private mutating func escape() -> UInt16? {
        guard let letter = next else { return nil }
        place += 1
        if letter == "u" {
            guard place + 4 <= units.count else { return nil }
            let digits = String(String.UnicodeScalarView(units[place..<place + 4]))
            place += 4
            guard digits.utf8.count == 4, digits.utf8.first != UInt8(ascii: "+"), digits.utf8.first != UInt8(ascii: "-")
            else { return nil }
            return UInt16(digits, radix: 16)
        }
        let letters: [Unicode.Scalar: UInt16] = [
            "\"": 0x22, "\\": 0x5C, "/": 0x2F, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9,
        ]
        return letters[letter]
    }

    /// Whether each escaped high half of a surrogate pair is followed by an escaped low half.
    private static func isPaired(_ text: [UInt16], _ escaped: [Bool]) -> Bool {
        var index = 0
        while index < text.count {
            switch text[index] {
            case 0xD800..<0xDC00:
                guard index + 1 < text.count, (0xDC00..<0xE000).contains(text[index + 1]),
                    escaped[index] == escaped[index + 1]
                else { return false }
                index += 2
            case 0xDC00..<0xE000: return false
            default: index += 1
            }
        }
        return true
    }

    private mutating func number() -> Bool {
        let start = place
        _ = pass("-")
        if !pass("0") { guard digits() else { return false } }
        if pass(".") { guard digits() else { return false } }
        if pass("e") || pass("E") {
            _ = pass("+") || pass("-")
            guard digits() else { return false }
        }
        let text = String(String.UnicodeScalarView(units[start..<place]))
        return Double(text)?.isFinite == true
    }

    private mutating func digits() -> Bool {
        let start = place
        while let unit = next, ("0"..."9").contains(unit) { place += 1 }
        return place > start
    }
}
