import HatoModel
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

    @Test func onlyWhatMustBeEscapedIs() {
        #expect(text("a\"b\\c/d") == #""a\"b\\c/d""#)
        #expect(text("\u{8}\u{c}\n\r\t\u{0}\u{1f}") == #""\b\f\n\r\t\u0000\u001f""#)
        #expect(text("鳩 \u{2028}\u{7f} 🕊") == "\"鳩 \u{2028}\u{7f} 🕊\"")
    }

    @Test func commasStandBetweenAndNowhereElse() {
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

    @Test func aWriterBeginsAnewInTheSameMemory() {
        var writer = JSONWriter(capacity: 64)
        writer.write(1)
        writer.removeAll()
        writer.write("x")
        #expect(writer.bytes == Array(#""x""#.utf8))
    }

    @Test func whatWasTakenBackLeavesNoComma() {
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
