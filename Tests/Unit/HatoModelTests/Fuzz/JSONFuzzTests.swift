import HatoModel
import HatoTesting
import Testing

/// The JSON reader against a second implementation of the same rules, on texts that are nearly JSON.
@Suite struct JSONFuzzTests {
    @Test func textIsAcceptedWhenItIsValidAndWrittenTheSameEachTime() {
        let failures = FuzzInputs.failures(3_000) { random in
            let bytes = random.jsonText()
            let depth = random.one(of: [1, 3, 64])
            let verdict = NaiveJSON.verdict(bytes, depth: depth)
            guard let value = try? JSONParser.parse(bytes, depth: depth) else {
                return verdict == .valid ? "refused: \(Self.shown(bytes)) at depth \(depth)" : nil
            }
            guard verdict == .valid else { return "accepted: \(Self.shown(bytes)) at depth \(depth)" }
            let written = value.encoded
            guard let again = try? JSONParser.parse(written, depth: depth) else {
                return "not read back: \(Self.shown(bytes))"
            }
            return again == value && again.encoded == written ? nil : "another value: \(Self.shown(bytes))"
        }
        #expect(failures == [])
    }

    @Test func textInPiecesIsAcceptedAsTheWholeTextIs() {
        let failures = FuzzInputs.failures(2_000) { random in
            let bytes = random.jsonText()
            let verdict = NaiveJSON.verdict(bytes, depth: 64)
            let isAccepted = (try? Self.read(bytes, &random)) != nil
            // The token reader does not detect duplicate names.
            return isAccepted == (verdict != .invalid)
                ? nil : "\(verdict), accepted \(isAccepted): \(Self.shown(bytes))"
        }
        #expect(failures == [])
    }

    private static func read(_ bytes: [UInt8], _ random: inout SeededRandom) throws {
        var tokens = JSONTokenReader()
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = 1 + random.below(9)
            tokens.append(rest.prefix(count))
            rest = rest.dropFirst(count)
            // The reader may be called less often than pieces arrive.
            while random.once(in: 2), try tokens.next() != nil {}
        }
        tokens.finish()
        while try tokens.next() != nil {}
    }

    private static func shown(_ bytes: [UInt8]) -> String {
        "\(bytes.count) bytes \(String(decoding: bytes, as: UTF8.self).debugDescription)"
    }
}

extension SeededRandom {
    private static let tokens: [[UInt8]] =
        [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "\\udc00", "\\ud83d\\ude00", "\\u0000", "null",
            "true",
            "false", "nul", "-", "-0", "0", "00", "1e", "1e5", "1e309", "1e-400", "5e-324", ".5", "1.", "+1", "0x1",
            " ", "\t",
            "\n", "\r", "\u{B}", "\u{0}", "\u{FEFF}", "\u{2028}", "\u{10FFFF}", "é", "e\u{301}", "NaN", "Infinity",
            "//", "/**/",
            "{}", "[]", "\"\"", "\"a\":", "\"a\":1,", "[[[[", "]]]]",
        ].map { Array($0.utf8) } + [
            [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0x80], [0xE2, 0x82],
        ]

    /// A text that is JSON, nearly JSON, or made of pieces of JSON.
    mutating func jsonText() -> [UInt8] {
        var bytes: [UInt8] = []
        if once(in: 5) {
            for _ in 0..<below(12) { bytes += one(of: Self.tokens) }
            return bytes
        }
        if once(in: 20) { return (0..<below(40)).map { _ in UInt8(truncatingIfNeeded: next()) } }
        appendJSON(to: &bytes, depth: 4)
        if !once(in: 3) { mutate(&bytes, inserting: Self.tokens) }
        return bytes
    }

    private mutating func appendJSON(to bytes: inout [UInt8], depth: Int) {
        appendSpace(to: &bytes)
        switch below(depth > 0 ? 8 : 6) {
        case 0: bytes += Array(one(of: ["null", "true", "false"]).utf8)
        case 1, 2: bytes += Array(jsonNumber().utf8)
        case 3, 4, 5: appendJSONString(to: &bytes)
        case 6:
            bytes.append(UInt8(ascii: "["))
            for index in 0..<below(5) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                appendJSON(to: &bytes, depth: depth - 1)
            }
            bytes.append(UInt8(ascii: "]"))
        default:
            bytes.append(UInt8(ascii: "{"))
            // More than sixteen names are looked up by hash.
            for index in 0..<(once(in: 8) ? 14 + below(8) : below(5)) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                appendSpace(to: &bytes)
                if once(in: 3) { appendJSONString(to: &bytes) } else { bytes += Array("\"k\(index)\"".utf8) }
                appendSpace(to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                appendJSON(to: &bytes, depth: depth - 2)
            }
            bytes.append(UInt8(ascii: "}"))
        }
        appendSpace(to: &bytes)
    }

    private mutating func appendSpace(to bytes: inout [UInt8]) {
        guard once(in: 4) else { return }
        for _ in 0..<below(3) { bytes.append(one(of: [0x20, 0x09, 0x0A, 0x0D])) }
    }

    private mutating func appendJSONString(to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for _ in 0..<below(once(in: 10) ? 40 : 6) {
            switch below(8) {
            case 0: bytes += Array(one(of: ["\\n", "\\\\", "\\\"", "\\/", "\\b", "\\f", "\\r", "\\t"]).utf8)
            case 1:
                bytes += Array(one(of: ["\\u0041", "\\u00e9", "\\uD83D\\uDE00", "\\uFFFF", "\\u0000", "\\ud800"]).utf8)
            case 2: bytes += Array(one(of: ["é", "鳩", "😀", "\u{7F}", "\u{10FFFF}", "\u{2028}"]).utf8)
            default: bytes.append(UInt8(ascii: "a") + UInt8(below(4)))
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func jsonNumber() -> String {
        var text = once(in: 3) ? "-" : ""
        text +=
            once(in: 4)
            ? "0" : "\(1 + below(9))" + (once(in: 6) ? "\(next())" : once(in: 2) ? "\(below(1_000_000))" : "")
        if once(in: 3) { text += ".\(once(in: 6) ? next() : UInt64(below(10_000)))" }
        if once(in: 4) { text += one(of: ["e", "E", "e+", "e-", "E-"]) + "\(below(once(in: 4) ? 400 : 30))" }
        return text
    }
}
