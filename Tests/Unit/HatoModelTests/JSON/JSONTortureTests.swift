import HatoModel
import Testing

/// The case classes of the public JSON test suites as tables: what must be accepted, what must be refused and why, and
/// the choices where RFC 8259 leaves one.
@Suite struct JSONTortureTests {
    struct Accepted: Sendable, CustomTestStringConvertible {
        var text: [UInt8]
        var value: JSONValue
        init(_ text: String, _ value: JSONValue) {
            self.text = Array(text.utf8)
            self.value = value
        }
        init(bytes: [UInt8], _ value: JSONValue) {
            text = bytes
            self.value = value
        }
        var testDescription: String { String(decoding: text.prefix(60), as: UTF8.self) }
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        var text: [UInt8]
        var reason: JSONError.Reason
        var position: Int?
        init(_ text: String, _ reason: JSONError.Reason, at position: Int? = nil) {
            self.init(bytes: Array(text.utf8), reason, at: position)
        }
        init(bytes: [UInt8], _ reason: JSONError.Reason, at position: Int? = nil) {
            text = bytes
            self.reason = reason
            self.position = position
        }
        var testDescription: String { String(decoding: text.prefix(60), as: UTF8.self) }
    }

    private func refusal(_ text: [UInt8], depth: Int = JSONParser.depthDefault) -> JSONError? {
        do {
            _ = try JSONParser.parse(text, depth: depth)
            return nil
        } catch { return error }
    }

    // MARK: Structure

    static let structures: [Accepted] = [
        Accepted("null", nil), Accepted("true", true), Accepted("false", false), Accepted("0", 0), Accepted("\"\"", ""),
        Accepted("[]", []), Accepted("{}", [:]), Accepted(" \t\r\n[ \t\r\n] \t\r\n", []), Accepted("[[]]", [[]]),
        Accepted("[[[]],[[]]]", [[[]], [[]]]), Accepted("[null,1,\"1\",{}]", [nil, 1, "1", [:]]),
        Accepted("{\"a\":[{\"b\":{}}]}", ["a": [["b": [:]]]]), Accepted("{ \"a\" : 1 , \"b\" : 2 }", ["a": 1, "b": 2]),
        Accepted("{\"\":0}", ["": 0]), Accepted("{\"a\\u0000b\":1}", ["a\u{0}b": 1]),
        Accepted("[true,false]\n", [true, false]),
    ]

    @Test(arguments: structures) func structureIsRead(_ item: Accepted) throws {
        #expect(try JSONParser.parse(item.text) == item.value)
    }

    static let brokenStructures: [Refused] = [
        Refused("", .endedEarly, at: 0), Refused(" ", .endedEarly, at: 1), Refused("[", .endedEarly),
        Refused("{", .endedEarly),
        Refused("[1", .endedEarly), Refused("[1,", .endedEarly), Refused("{\"a\"", .endedEarly),
        Refused("{\"a\":", .endedEarly), Refused("{\"a\":1", .endedEarly), Refused("{\"a\":1,", .endedEarly),
        Refused("[\"a", .endedEarly), Refused("[\"a\\", .endedEarly), Refused("[\"\\u00", .endedEarly),
        Refused("nul", .endedEarly), Refused("tru", .endedEarly), Refused("[fals", .endedEarly),
        Refused("]", .unexpectedByte, at: 0), Refused("}", .unexpectedByte), Refused("[1,]", .unexpectedByte, at: 3),
        Refused("[,1]", .unexpectedByte, at: 1), Refused("[,]", .unexpectedByte), Refused("[1,,2]", .unexpectedByte),
        Refused("[1 2]", .unexpectedByte), Refused("[1:2]", .unexpectedByte), Refused("[1}", .unexpectedByte),
        Refused("{\"a\":1]", .unexpectedByte), Refused("{\"a\":1,}", .unexpectedByte), Refused("{,}", .unexpectedByte),
        Refused("{\"a\" 1}", .unexpectedByte), Refused("{\"a\":}", .unexpectedByte),
        Refused("{\"a\",1}", .unexpectedByte),
        Refused("{:1}", .unexpectedByte), Refused("{a:1}", .unexpectedByte), Refused("{'a':1}", .unexpectedByte),
        Refused("{1:1}", .unexpectedByte), Refused("{null:1}", .unexpectedByte),
        Refused("{\"a\":1 \"b\":2}", .unexpectedByte),
        Refused("{\"a\"::1}", .unexpectedByte), Refused("{[]:1}", .unexpectedByte), Refused("'a'", .unexpectedByte),
        Refused("True", .unexpectedByte), Refused("nULL", .unexpectedByte), Refused("nan", .unexpectedByte),
        Refused("NaN", .unexpectedByte), Refused("Infinity", .unexpectedByte), Refused("undefined", .unexpectedByte),
        Refused("[1]]", .trailingBytes, at: 3), Refused("1 2", .trailingBytes), Refused("{}{}", .trailingBytes),
        Refused("nullx", .trailingBytes), Refused("[] //", .trailingBytes), Refused("[]\u{0}", .trailingBytes),
        Refused("\"\"\"", .trailingBytes), Refused("/* */ 1", .unexpectedByte),
        Refused("[1, /* */ 2]", .unexpectedByte),
        Refused("#\n1", .unexpectedByte), Refused("*", .unexpectedByte), Refused("<.>", .unexpectedByte),
        Refused("[\u{c}]", .unexpectedByte), Refused("[\u{b}]", .unexpectedByte), Refused("[\u{a0}]", .unexpectedByte),
        Refused("\u{feff}{}", .unexpectedByte, at: 0), Refused("[\u{2060}]", .unexpectedByte),
        Refused("\u{0}", .unexpectedByte),
        Refused("[\u{0}1]", .unexpectedByte), Refused("⍂", .unexpectedByte), Refused("[a", .unexpectedByte),
        Refused("<null>", .unexpectedByte), Refused("[\"a\"\u{0}]", .unexpectedByte),
        Refused("{\"a\":1}\u{1}", .trailingBytes),
        Refused(bytes: Array(repeating: 0x5B, count: 100_000), .tooDeep, at: 64),
        Refused(String(repeating: "{\"\":", count: 100_000), .tooDeep),
    ]

    @Test(arguments: brokenStructures) func brokenStructureIsRefused(_ item: Refused) {
        let error = refusal(item.text)
        #expect(error?.reason == item.reason)
        if let position = item.position { #expect(error?.position == position) }
    }

    @Test func nestingIsBoundedByItsLimit() {
        let deep = { Array((String(repeating: "[", count: $0) + String(repeating: "]", count: $0)).utf8) }
        #expect(refusal(deep(64)) == nil)
        #expect(refusal(deep(65))?.reason == .tooDeep)
        #expect(refusal(deep(3), depth: 3) == nil)
        #expect(refusal(deep(4), depth: 3) == JSONError(.tooDeep, at: 3, limit: 3))
        #expect(refusal(Array("[[],[],[],[]]".utf8), depth: 2) == nil)
    }

    // MARK: Numbers

    static let numbers: [(String, Double)] = [
        ("0", 0), ("-0", 0), ("-0.0", 0), ("0e0", 0), ("0E+999999999999", 0), ("1", 1), ("-1", -1), ("42", 42),
        ("1.5", 1.5),
        ("-1.5", -1.5), ("0.1", 0.1), ("0.3", 0.3), ("1e0", 1), ("1E2", 100), ("1e+2", 100), ("1e-2", 0.01),
        ("1.5e3", 1500),
        ("0e1", 0), ("20e1", 200), ("123e65", 123e65), ("123.456e78", 123.456e78), ("123.456789", 123.456789),
        ("9007199254740991", 9007199254740991), ("9007199254740992", 9007199254740992),
        ("9007199254740993", 9007199254740992), ("-9007199254740993", -9007199254740992),
        ("9007199254740993.0000000000000000000000000000001", 9007199254740994),
        ("12345678901234567890", 12345678901234567890),
        ("100000000000000000000", 1e20), ("18446744073709551615", 18446744073709551616),
        ("1797693134862315708e290", 1.797693134862315708e308), ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1.7976931348623158e308", 1.7976931348623157e308), ("2.2250738585072011e-308", 2.2250738585072011e-308),
        ("2.2250738585072014e-308", 2.2250738585072014e-308), ("4.9e-324", 5e-324), ("5e-324", 5e-324),
        ("2.4703282292062328e-324", 5e-324), ("2.4703282292062327e-324", 0), ("1e-400", 0), ("-1e-400", 0),
        ("123e-10000000", 0), ("1e22", 1e22), ("1e23", 1e23), ("8.5e-23", 8.5e-23), ("0.000001", 1e-6), ("1e-7", 1e-7),
        ("0.5000000000000000000000000000000000000000000000", 0.5), ("6929495644600919.5", 6929495644600919.5),
        ("3.14159265358979323846264338327950288419716939937510", Double.pi),
        ("7.3177701707893310e+15", 7317770170789331),
        ("1.00000000000000011102230246251565404236316680908203125", 1),
        ("1.00000000000000011102230246251565404236316680908203126", 1.0000000000000002),
        ("1.00000000000000033306690738754696212708950042724609375", 1.0000000000000004),
    ]

    @Test(arguments: numbers) func numberIsReadWithCorrectRounding(text: String, expected: Double) throws {
        let number = try JSONParser.parse(text).number
        #expect(number == expected)
        #expect(number?.sign == expected.sign)
    }

    static let brokenNumbers: [Refused] = [
        Refused("-", .endedEarly), Refused("[-]", .badNumber), Refused("[+1]", .unexpectedByte),
        Refused("+1", .unexpectedByte),
        Refused("01", .badNumber, at: 1), Refused("-01", .badNumber), Refused("00", .badNumber),
        Refused("-00", .badNumber),
        Refused("[012]", .badNumber), Refused(".5", .unexpectedByte), Refused("-.5", .badNumber),
        Refused("1.", .endedEarly),
        Refused("[1.]", .badNumber), Refused("[1.e1]", .badNumber), Refused("[0.e1]", .badNumber),
        Refused("1e", .endedEarly),
        Refused("[1e]", .badNumber), Refused("[1e+]", .badNumber), Refused("[1eE2]", .badNumber),
        Refused("[1e+-2]", .badNumber),
        Refused("[1.2.3]", .unexpectedByte), Refused("[1e1.5]", .unexpectedByte), Refused("[0x1]", .unexpectedByte),
        Refused("[1_000]", .unexpectedByte), Refused("[1,000]", .badNumber), Refused("[--1]", .badNumber),
        Refused("[-x]", .badNumber), Refused("[- 1]", .badNumber), Refused("[1 000.0]", .unexpectedByte),
        Refused("[-Infinity]", .badNumber), Refused("[-NaN]", .badNumber), Refused("[１]", .unexpectedByte),
        Refused("[1\u{0}]", .unexpectedByte), Refused("[1f]", .unexpectedByte), Refused("[1d0]", .unexpectedByte),
        Refused("1e999", .numberTooLarge, at: 0), Refused("[-1e999]", .numberTooLarge, at: 1),
        Refused("1.8e308", .numberTooLarge),
        Refused("1.7976931348623159e308", .numberTooLarge), Refused("1e99999999999999999999", .numberTooLarge),
        Refused(String(repeating: "9", count: 400), .numberTooLarge),
    ]

    @Test(arguments: brokenNumbers) func brokenNumberIsRefused(_ item: Refused) {
        let error = refusal(item.text)
        #expect(error?.reason == item.reason)
        if let position = item.position { #expect(error?.position == position) }
    }

    // MARK: Strings

    static let strings: [Accepted] = [
        Accepted(#""a""#, "a"), Accepted(#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        Accepted(#""\u0041\u00e9\u9ce9""#, "Aé鳩"),
        Accepted(#""\uD83D\uDD4A""#, "🕊"), Accepted(#""\ud834\udd1e""#, "𝄞"), Accepted(#""\uD800\uDC00""#, "\u{10000}"),
        Accepted(#""\uDBFF\uDFFF""#, "\u{10ffff}"), Accepted(#""\u0000""#, "\u{0}"), Accepted(#""\u001f""#, "\u{1f}"),
        Accepted(#""\uFFFF\uFFFE""#, "\u{ffff}\u{fffe}"), Accepted(#""\u2028\u2029""#, "\u{2028}\u{2029}"),
        Accepted(#""\\u0041""#, "\\u0041"), Accepted(#""\u0022""#, "\""), Accepted(#""\u005C""#, "\\"),
        Accepted(#""a\u0300""#, "a\u{300}"),
        Accepted("\"\u{7f}\"", "\u{7f}"), Accepted("\"\u{80}\u{7ff}\u{800}\u{ffff}\"", "\u{80}\u{7ff}\u{800}\u{ffff}"),
        Accepted("\"\u{2028}\u{2029}\u{feff}\"", "\u{2028}\u{2029}\u{feff}"), Accepted("\"ただいま\"", "ただいま"),
        Accepted("\"\u{10ffff}\u{d7ff}\u{e000}\"", "\u{10ffff}\u{d7ff}\u{e000}"), Accepted("\"/*a*/ //\"", "/*a*/ //"),
        Accepted(
            #""long enough not to be a small string, with one \t in it, and 鳩 behind""#,
            "long enough not to be a small string, with one \t in it, and 鳩 behind"),
    ]

    @Test(arguments: strings) func stringIsRead(_ item: Accepted) throws {
        #expect(try JSONParser.parse(item.text) == item.value)
    }

    static let brokenStrings: [Refused] = [
        Refused(#""\x00""#, .badEscape, at: 1), Refused(#""\a""#, .badEscape), Refused(#""\'""#, .badEscape),
        Refused(#""\0""#, .badEscape),
        Refused(#""\U0041""#, .badEscape), Refused("\"\\\u{0}\"", .badEscape), Refused("\"\\é\"", .badEscape),
        Refused("\"\\\n\"", .badEscape),
        Refused(#""\u00A""#, .badEscape), Refused(#""\u00g0""#, .badEscape), Refused(#""\u{41}""#, .badEscape),
        Refused(#""\u 041""#, .badEscape),
        Refused(#""\u-041""#, .badEscape), Refused(#""\uD800""#, .unpairedSurrogate, at: 1),
        Refused(#""\uDC00""#, .unpairedSurrogate),
        Refused(#""\uD800a""#, .unpairedSurrogate), Refused(#""\uD800\n""#, .unpairedSurrogate),
        Refused(#""\uD800\u0041""#, .unpairedSurrogate),
        Refused(#""\uD800\uD800""#, .unpairedSurrogate), Refused(#""\uDC00\uD800""#, .unpairedSurrogate),
        Refused(#""\uD800\u""#, .badEscape),
        Refused(#""\uD83D\uDD4A\uDD4A""#, .unpairedSurrogate), Refused(#"{"\uDFFF":1}"#, .unpairedSurrogate),
        Refused(#""\uD800\"#, .unpairedSurrogate),
        Refused("\"a\u{0}b\"", .controlCharacter, at: 2), Refused("\"\n\"", .controlCharacter),
        Refused("\"\t\"", .controlCharacter),
        Refused("\"\u{1f}\"", .controlCharacter), Refused("{\"\r\":1}", .controlCharacter),
        Refused("\"\\n\n\"", .controlCharacter, at: 3),
        Refused("\"", .endedEarly), Refused("\"\\\"", .endedEarly), Refused("\"abc", .endedEarly),
        Refused("\"\\u", .endedEarly),
    ]

    @Test(arguments: brokenStrings) func brokenStringIsRefused(_ item: Refused) {
        let error = refusal(item.text)
        #expect(error?.reason == item.reason)
        if let position = item.position { #expect(error?.position == position) }
    }

    // MARK: UTF-8

    static let badSequences: [[UInt8]] = [
        [0x80], [0xBF], [0xC0, 0x80], [0xC0, 0xAF], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80],
        [0xE0, 0x80, 0xAF],
        [0xE0, 0x9F, 0xBF], [0xE0, 0xA0], [0xE0], [0xE9], [0xED, 0xA0, 0x80], [0xED, 0xAF, 0xBF], [0xED, 0xB0, 0x80],
        [0xED, 0xBF, 0xBF], [0xED, 0xA0, 0xBD, 0xED, 0xB5, 0x8A], [0xEF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
        [0xF0, 0x8F, 0xBF, 0xBF],
        [0xF0, 0x9F, 0x95], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF7, 0xBF, 0xBF, 0xBF],
        [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0xE3, 0x81, 0x80, 0x80],
        [0xC3, 0xA9, 0xE9], [0x9C, 0x80, 0x80],
    ]

    @Test(arguments: badSequences) func badUTF8IsRefusedEverywhere(_ bad: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        let long = Array("a text that is longer than a small string ".utf8)
        #expect(refusal([quote] + bad + [quote])?.reason == .badUTF8)
        #expect(refusal([quote] + long + bad + long + [quote])?.reason == .badUTF8)
        #expect(refusal([quote] + Array("\\n".utf8) + bad + [quote])?.reason == .badUTF8)
        #expect(refusal([quote] + bad + Array("\\n".utf8) + [quote])?.reason == .badUTF8)
        #expect(refusal(Array("{\"".utf8) + bad + Array("\":1}".utf8))?.reason == .badUTF8)
        #expect(refusal([UInt8(ascii: "[")] + bad + [UInt8(ascii: "]")]) != nil)
    }

    @Test func badUTF8IsReportedWithItsPosition() {
        #expect(refusal(Array("[\"ab".utf8) + [0xFF] + Array("\"]".utf8)) == JSONError(.badUTF8, at: 4))
    }

    @Test func everyScalarIsReadRawAndEscaped() throws {
        for value in stride(from: UInt32(0x20), through: 0x10FFFF, by: 37) {
            guard let scalar = Unicode.Scalar(value), scalar != "\"", scalar != "\\" else { continue }
            let text = String(Character(scalar))
            #expect(try JSONParser.parse("\"\(text)\"").string?.unicodeScalars.elementsEqual([scalar]) == true)
            let escaped = text.utf16.map { unit in
                "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
            }
            #expect(
                try JSONParser.parse("\"\(escaped.joined())\"").string?.unicodeScalars.elementsEqual([scalar]) == true)
        }
    }

    @Test func otherEncodingsAreRefused() {
        #expect(refusal([0xFF, 0xFE, 0x5B, 0x00, 0x5D, 0x00]) != nil)
        #expect(refusal([0xFE, 0xFF, 0x00, 0x5B, 0x00, 0x5D]) != nil)
        #expect(refusal([0x00, 0x5B, 0x00, 0x5D]) != nil)
        #expect(refusal([0x5B, 0x00, 0x5D, 0x00]) != nil)
        #expect(refusal([0xEF, 0xBB, 0xBF]) != nil)
    }

    // MARK: Duplicate members

    static let duplicates = [
        #"{"a":1,"a":1}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":1,"\u0061":2}"#, #"[{"x":{"a":1,"a":null}}]"#,
        #"{"":1,"":2}"#,
        #"{"é":1,"\u00e9":2}"#, #"{"a long name that is no small string":1,"a long name that is no small string":2}"#,
    ]

    @Test(arguments: duplicates) func duplicateMemberIsRefused(_ text: String) {
        #expect(refusal(Array(text.utf8))?.reason == .duplicateMember)
    }

    @Test(arguments: [15, 16, 17, 18, 100, 3000]) func duplicateIsFoundHoweverManyMembersThereAre(count: Int) throws {
        let members = (0..<count).map { "\"name\($0)\":\($0)" }
        #expect(try JSONParser.parse("{\(members.joined(separator: ","))}").object?.count == count)
        for again in [0, count / 2, count - 1] {
            let text = "{\((members + ["\"name\(again)\":0"]).joined(separator: ","))}"
            #expect(refusal(Array(text.utf8))?.reason == .duplicateMember)
        }
    }

    @Test func namesThatOnlyLookAlikeAreTwo() throws {
        let object = try JSONParser.parse("{\"\u{e9}\":1,\"e\u{301}\":2,\"E\":3,\"e\":4}").object
        #expect(object?.count == 4)
        #expect(object?["\u{e9}"] == 1)
        #expect(object?["e\u{301}"] == 2)
        let many = (0..<40).map { ",\"k\($0)\":0" }.joined()
        #expect(try JSONParser.parse("{\"\u{e9}\":1,\"e\u{301}\":2\(many)}").object?.count == 42)
        #expect(JSONValue.string("\u{e9}") != JSONValue.string("e\u{301}"))
    }

    @Test func everyPrefixOfAValidTextIsRefused() throws {
        let text = Array(#"{"a":[1.5e3,"x\u00e9\n",true,false,null,{"b":"鳩"}],"c":-0.25}"#.utf8)
        _ = try JSONParser.parse(text)
        for length in 0..<text.count { #expect(refusal(Array(text[..<length])) != nil) }
    }
}
