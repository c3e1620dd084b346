import HatoModel
import HatoTesting
import Testing

/// Paths, keys and their order against simple implementations of the specification (realtime-database §1, §3.1).
@Suite struct PathFuzzTests {
    @Test func pathIsItsKeysAndItsTextReadsBack() {
        let failures = FuzzInputs.failures(3_000) { random in
            let text = random.pathText()
            let expected = Self.naive(text)
            guard let path = try? TreePath(text) else {
                return expected == nil ? nil : "refused: \(text.debugDescription)"
            }
            guard let expected else { return "accepted: \(text.debugDescription.prefix(400))" }
            let keys = path.keys.map { Array($0.text.utf8) }
            guard keys == expected.keys, path.isPriority == expected.isPriority else {
                return "read wrongly: \(text.debugDescription)"
            }
            guard let again = try? TreePath(path.text), again == path, again.text.utf8.elementsEqual(path.text.utf8)
            else {
                return "not read back: \(text.debugDescription)"
            }
            return nil
        }
        #expect(failures == [])
    }

    @Test func everyNameIsAKeyWhenItIsEscapedAndComesBack() {
        let failures = FuzzInputs.failures(3_000) { random in
            let name = random.pathText()
            let key = KeyEscaping.escape(name)
            guard KeyEscaping.unescape(key).utf8.elementsEqual(name.utf8) else {
                return "not the same: \(name.debugDescription)"
            }
            let isKey = !name.isEmpty && key.utf8.count <= TreeLimits.keyBytesMax
            guard (TreeKey.problem(key) == nil) == isKey else { return "no key: \(name.debugDescription)" }
            // Any key may be unescaped, also one that `escape` did not make.
            let shown = KeyEscaping.unescape(name)
            return KeyEscaping.unescape(KeyEscaping.escape(shown)).utf8.elementsEqual(shown.utf8)
                ? nil : "shown: \(name.debugDescription)"
        }
        #expect(failures == [])
    }

    @Test func orderOfKeysIsThatOfIntegersAndThenOfUTF16Units() {
        let failures = FuzzInputs.failures(3_000) { random in
            let keys = (0..<3).map { _ in random.keyText() }
            for left in keys {
                for right in keys {
                    let order = KeyOrder.compare(left, right).signum()
                    guard order == Self.naiveOrder(left, right) else {
                        return "\(left.debugDescription) and \(right.debugDescription): \(order)"
                    }
                }
            }
            return nil
        }
        #expect(failures == [])
    }

    // MARK: Plain readings

    private static func naive(_ text: String) -> (keys: [[UInt8]], isPriority: Bool)? {
        guard text.utf8.count <= 32 * 1024 else { return nil }
        var keys = text.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
        let isPriority = keys.last == Array(".priority".utf8)
        if isPriority { keys.removeLast() }
        let forbidden = Set(".#$[]".utf8)
        let areKeys = keys.allSatisfy { key in
            key.count <= 768 && key.allSatisfy { !forbidden.contains($0) && $0 >= 0x20 && $0 != 0x7F }
        }
        return areKeys && keys.count <= 32 ? (keys, isPriority) : nil
    }

    private static func naiveOrder(_ left: String, _ right: String) -> Int {
        let ranks = [rank(left), rank(right)]
        if ranks[0] != ranks[1] { return ranks[0] < ranks[1] ? -1 : 1 }
        if ranks[0] == 1, let one = integer(left), let other = integer(right) {
            if one != other { return one < other ? -1 : 1 }
            if left.utf8.count != right.utf8.count { return left.utf8.count < right.utf8.count ? -1 : 1 }
        }
        if Array(left.utf16) == Array(right.utf16) { return 0 }
        return left.utf16.lexicographicallyPrecedes(right.utf16) ? -1 : 1
    }

    private static func rank(_ key: String) -> Int {
        switch key {
        case "[MIN_NAME]": 0
        case "[MAX_NAME]": 3
        default: integer(key) != nil ? 1 : 2
        }
    }

    private static func integer(_ key: String) -> Int32? {
        var digits = key.utf8[...]
        let isNegative = digits.first == UInt8(ascii: "-")
        if isNegative { digits.removeFirst() }
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let significant = String(decoding: digits.drop { $0 == 0x30 }, as: UTF8.self)
        guard significant.utf8.count <= 10 else { return nil }
        let value = Int64(significant) ?? 0
        return Int32(exactly: isNegative ? -value : value)
    }
}

extension SeededRandom {
    private static let pieces = [
        "/", "//", "a", "b1", ".priority", ".priority/", ".", "..", "#", "$", "[", "]", "%", "%2F", "%2f", "%2", "%25",
        "\u{0}",
        "\u{1F}", "\u{7F}", " ", "é", "e\u{301}", "😀", "\u{FFFF}", "\u{10FFFF}", "-1", "007", "2147483648", ":", "@",
        "~", ".info",
        "/.sv", "{a}", "\\", "\"", "\n",
    ]

    /// A text that is a path or nearly one.
    mutating func pathText() -> String {
        var text = ""
        for _ in 0..<below(once(in: 20) ? 80 : 8) { text += once(in: 3) ? "/" : one(of: Self.pieces) }
        if once(in: 40) {
            text +=
                "/"
                + String(
                    repeating: one(of: ["a", "é", "😀", "/", "/b"]),
                    count: one(of: [31, 32, 33, 191, 192, 193, 383, 384, 385, 767, 768, 769]))
        }
        if once(in: 400) { text += String(repeating: "/", count: 32 * 1024 - text.utf8.count + below(3) - 1) }
        return text
    }

    /// A key, or a name that only queries accept.
    mutating func keyText() -> String {
        switch below(6) {
        case 0: one(of: ["[MIN_NAME]", "[MAX_NAME]", "", "[MIN_NAME", "[MAX_NAME]]", "-", "--1", "+1", "٣"])
        case 1: one(of: ["-", ""]) + String(repeating: "0", count: below(4)) + "\(below(3) * 715_827_882 + below(3))"
        case 2:
            one(of: [
                "2147483647", "2147483648", "-2147483648", "-2147483649", "00", "-0", "-00", "0", "9999999999",
                "99999999999",
            ])
        case 3: "\(below(12))" + one(of: ["", "a", " "])
        default:
            (0..<below(4)).map { _ in
                one(of: [
                    "a", "b", "Z", "é", "e\u{301}", "\u{D7FF}", "\u{E000}", "\u{FFFF}", "😀", "\u{10FFFF}", "~", "-",
                ])
            }.joined()
        }
    }
}
