import HatoModel
import HatoTesting
import Testing

@Suite struct JSONWriterTests {
    private func text(_ value: JSONValue) -> String { String(decoding: value.encoded, as: UTF8.self) }

    @Test(
        arguments: [
            (0, "0"), (-0.0, "0"), (1, "1"), (-1, "-1"), (9, "9"), (10, "10"), (1_234_567_890, "1234567890"),
            (1_795_000_000_000, "1795000000000"), (9_007_199_254_740_991, "9007199254740991"),
            (-9_007_199_254_740_991, "-9007199254740991"), (9_007_199_254_740_992, "9007199254740992"), (0.1, "0.1"),
            (-2.5, "-2.5"), (1e300, "1e+300"), (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e+308"),
        ] as [(Double, String)])
    func numbersHaveOneForm(number: Double, expected: String) {
        #expect(text(.number(number)) == expected)
    }

    /// The result of `String(number)` in JavaScript.
    @Test(
        arguments: [
            (9_007_199_254_740_993, "9007199254740992"), (1e16, "10000000000000000"),
            (12_345_678_901_234_567, "12345678901234568"), (18_014_398_509_481_984, "18014398509481984"),
            (1.8446744073709552e19, "18446744073709552000"), (1e17, "100000000000000000"),
            (-1.5e17, "-150000000000000000"), (123456789012345680000, "123456789012345680000"),
            (1e20, "100000000000000000000"), (999999999999999900000, "999999999999999900000"), (1e21, "1e+21"),
            (-1e21, "-1e+21"), (1.5e21, "1.5e+21"), (1e22, "1e+22"), (1e100, "1e+100"), (0.001, "0.001"),
            (0.0001, "0.0001"), (0.00001, "0.00001"), (0.000001, "0.000001"), (0.0000015, "0.0000015"),
            (-0.00001234, "-0.00001234"), (1e-7, "1e-7"), (-1.5e-7, "-1.5e-7"), (1e-10, "1e-10"),
            (1.23e-100, "1.23e-100"), (0.1 + 0.2, "0.30000000000000004"), (123.456, "123.456"),
            (1.0 / 3, "0.3333333333333333"),
            (100.5, "100.5"), (2251799813685248.5, "2251799813685248.5"),
            (2.2250738585072014e-308, "2.2250738585072014e-308"),
        ] as [(Double, String)])
    func numbersLookAsInJavaScript(number: Double, expected: String) {
        #expect(text(.number(number)) == expected)
    }

    @Test func everyNumberReadsBackAsItself() throws {
        var random = SeededRandom(seed: SeededRandom.seed())
        for _ in 0..<20_000 {
            let number = Double(bitPattern: random.next())
            guard number.isFinite, !number.isZero else { continue }
            try #require(JSONParser.parse(JSONValue.number(number).encoded).number == number)
            // Most random bits make huge or tiny numbers; these are where the form changes.
            let exponent = Int.random(in: -30...80, using: &random)
            let common = number.significand * Double(sign: .plus, exponent: exponent, significand: 1)
            try #require(JSONParser.parse(JSONValue.number(common).encoded).number == common)
        }
    }

    @Test func onlyWhatMustBeEscapedIs() {
        #expect(text("a\"b\\c/d") == #""a\"b\\c/d""#)
        #expect(text("\u{8}\u{c}\n\r\t\u{0}\u{1f}") == #""\b\f\n\r\t\u0000\u001f""#)
        #expect(text("鳩 \u{2028}\u{7f} 🕊") == "\"鳩 \u{2028}\u{7f} 🕊\"")
    }

    @Test func commasSeparateValuesOnly() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("a")
        writer.beginArray()
        writer.write(1)
        writer.beginObject()
        writer.endObject()
        writer.beginArray()
        writer.endArray()
        writer.writeNull()
        writer.endArray()
        writer.member("b")
        writer.write(true)
        writer.write(encodedMembers: Array(#""c":1,"d":2"#.utf8))
        writer.member("e")
        writer.write(encoded: Array(#"["x"]"#.utf8))
        writer.endObject()
        #expect(
            String(decoding: writer.bytes, as: UTF8.self) == #"{"a":[1,{},[],null],"b":true,"c":1,"d":2,"e":["x"]}"#)
    }

    @Test func removeAllKeepsTheWritersCapacity() {
        var writer = JSONWriter(capacity: 64)
        writer.write(1)
        writer.removeAll()
        writer.write("x")
        #expect(writer.bytes == Array(#""x""#.utf8))
    }

    @Test func truncatedValueLeavesNoComma() {
        var writer = JSONWriter()
        writer.beginArray()
        let mark = writer.count
        writer.write(1)
        writer.truncate(to: mark, valueFollows: true)
        writer.write(2)
        writer.endArray()
        #expect(writer.bytes == Array("[2]".utf8))
    }
}
