import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTBodyTests {
    private static func body(
        _ text: String, depth: Int = 0, isPatch: Bool = false, _ limits: RESTLimits = RESTLimits()
    ) throws(RESTError) -> RESTBody {
        try RESTBody(Array(text.utf8), depth: depth, isPatch: isPatch, limits)
    }

    private static func badKey(_ place: String, _ problem: String = "be empty or contain $ # [ ] / or .") -> RESTError {
        RESTError(400, "Invalid data; couldn't parse key beginning at \(place). Key value can't \(problem)")
    }

    @Test func valueIsCopiedAndItsLineEndsBecomeBlanks() throws {
        #expect(try Self.body("{\"a\":1}").text == Array("{\"a\":1}".utf8))
        let body = try Self.body("{\r\n\t\"a\" :\n [1.50, \"x\\n\"]\n}\n")
        #expect(String(decoding: body.text, as: UTF8.self) == "{  \t\"a\" :  [1.50, \"x\\n\"] } ")
        #expect(body.valueCount == 2)
        for text in ["null", "true", "-0", "1e5", "\"あ😀\"", "[]", "{}", " 1 ", "\"\"", "[[],{}]"] {
            #expect(try Self.body(text).text == Array(text.utf8))
        }
    }

    @Test(arguments: ["", " ", "\n\t\r "])
    func emptyBodyIsNoData(text: String) {
        #expect(throws: RESTError(400, "Error: No data supplied.")) { try Self.body(text) }
        #expect(throws: RESTError(400, "Error: No data supplied.")) { try Self.body(text, isPatch: true) }
    }

    @Test func aNULIsNoEmptyBody() {
        #expect(throws: RESTError(400, "Invalid data; couldn't parse JSON object, array, or value.")) {
            try Self.body("\u{0}")
        }
    }

    @Test(arguments: [
        "{", "}", "[1,]", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "tru", "NaN", "Infinity", "-", "01", "+1", ".5",
        "1.",
        "1e", "1e400", "-1e400", "\"", "\"\n\"", "\"\u{1}\"", "\"\\x\"", "\"\\ud800\"", "\"\\u12\"", "1 2",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "{\"x\":{\"a\":1,\"a\":2}}", "// x\n1", "undefined", "a=1&b=2",
        "\u{FEFF}1", "{\"a\" 1}", "[1 2]", "{\"\\ud800\":1}", "1\u{0}",
    ])
    func bodyThatIsNoJSONIsRefused(text: String) {
        #expect(throws: RESTError(400, "Invalid data; couldn't parse JSON object, array, or value.")) {
            try Self.body(text)
        }
        #expect(
            throws: RESTError(
                400, "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
        ) { try Self.body(text, isPatch: true) }
    }

    @Test func bodyThatIsNotUTF8IsRefused() {
        for bytes: [UInt8] in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xFF]] {
            #expect(throws: RESTErrors.invalidData) { try RESTBody(bytes, depth: 0, isPatch: false, RESTLimits()) }
        }
    }

    @Test(arguments: ["1", "null", "[]", "\"a\"", "true"])
    func patchIsAnObject(text: String) {
        #expect(throws: RESTErrors.invalidPatch) { try Self.body(text, isPatch: true) }
    }

    // MARK: Keys

    @Test(arguments: [
        ("{\"$a\":1}", "1:2"), ("{\"\":1}", "1:2"), ("{\"a.b\":1}", "1:2"), ("{\"a/b\":1}", "1:2"),
        ("{ \"#\":1}", "1:3"),
        ("{\"[\":1}", "1:2"), ("{\"]\":1}", "1:2"), ("{\"a\":1,\"b\":2, \"c$\":3}", "1:15"),
        ("{\"a\":{\"b\":{\"$\":1}}}", "1:12"),
        ("{\n  \"$a\": 1}", "2:3"), ("{\r\n  \"$a\": 1}", "2:3"), ("{\r  \"$a\": 1}", "2:3"),
        ("\n\n[[{\"$\":1}]]", "3:4"),
        ("{\"あ😀\":{\"$\":1}}", "1:9"), ("{\"\\u0024\":1}", "1:2"), ("{\"a\":1\n,\n\"$\":1}", "3:1"),
        ("{\".foo\":1}", "1:2"), ("{\".info\":1}", "1:2"), ("{\"a\":{\".settings\":1}}", "1:7"),
        ("{\"$a\":1,\"a\":2,\"a\":3}", "1:2"), ("{\"$\":", "1:2"),
    ])
    func firstBadKeyIsNamedByLineAndColumn(text: String, place: String) {
        #expect(throws: Self.badKey(place)) { try Self.body(text) }
    }

    @Test func longAndControlKeysAreBad() throws {
        let long = String(repeating: "k", count: 1_000)
        #expect(throws: Self.badKey("1:2", "be longer than 768 bytes.")) { try Self.body("{\"\(long)\":1}") }
        #expect(throws: Self.badKey("1:2", "be longer than 768 bytes.")) {
            try Self.body("{\"\(long)\":1}", isPatch: true)
        }
        #expect(throws: Self.badKey("1:2", "contain control characters.")) { try Self.body("{\"a\\n\":1}") }
        #expect(throws: Self.badKey("1:2", "contain control characters.")) { try Self.body("{\"\\u0000\":1}") }
        #expect(throws: Self.badKey("1:2", "contain control characters.")) { try Self.body("{\"\u{7F}\":1}") }
        _ = try Self.body("{\"\(String(repeating: "k", count: 768))\":1}")
        _ = try Self.body("{\" :@%~😀\":1}")
    }

    @Test(arguments: [
        "{\".value\":5,\".priority\":1}", "{\".sv\":\"timestamp\"}", "{\"n\":{\".sv\":{\"increment\":1}}}",
        "{\".priority\":{\".sv\":\"timestamp\"},\"a\":1}",
        "{\".value\":{\".sv\":{\"increment\":1}},\".priority\":\"x\"}",
    ])
    func reservedNamesAreLeftToTheService(text: String) throws {
        #expect(try Self.body(text).text == Array(text.utf8))
    }

    @Test(arguments: [
        "{\"a/b\":1}", "{\"/a/b/\":1}", "{\"a//b\":1}", "{\"a/.priority\":1}", "{\".priority\":null}", "{}",
        "{\"a\":{\"b\":1},\"c\":null}", "{\"a/b\":{\".value\":1,\".priority\":2}}",
        "{\".priority\":{\".sv\":\"timestamp\"}}",
    ])
    func namesOfAPatchArePaths(text: String) throws {
        #expect(try Self.body(text, isPatch: true).text == Array(text.utf8))
    }

    @Test(arguments: [
        ("{\"\":1}", "1:2"), ("{\"/\":1}", "1:2"), ("{\"a/$b\":1}", "1:2"), ("{\"a/.priority/b\":1}", "1:2"),
        ("{\".priority/b\":1}", "1:2"), ("{\".value\":1}", "1:2"), ("{\".sv\":\"timestamp\"}", "1:2"),
        ("{\"a\":{\"b/c\":1}}", "1:7"), ("{\"a.b\":1}", "1:2"), ("{\"a/.info\":1}", "1:2"),
    ])
    func wrongPathOfAPatchIsABadKey(text: String, place: String) {
        #expect(throws: Self.badKey(place)) { try Self.body(text, isPatch: true) }
    }

    // MARK: Limits

    private static func nested(_ count: Int) -> String {
        String(repeating: "{\"a\":", count: count) + "1" + String(repeating: "}", count: count)
    }

    @Test func depthCountsFromTheRoot() throws {
        _ = try Self.body(Self.nested(32))
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body(Self.nested(33)) }
        _ = try Self.body(Self.nested(2), depth: 30)
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body(Self.nested(3), depth: 30) }
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body("[1]", depth: 32) }
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body("{\"a/b\":1}", depth: 31, isPatch: true) }
        _ = try Self.body("{\"a/.priority\":1}", depth: 31, isPatch: true)
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body("{\"a/b\":[1]}", depth: 30, isPatch: true) }
        _ = try Self.body(
            String(repeating: "{\"a\":", count: 32) + "{\".sv\":{\"increment\":1}}" + String(repeating: "}", count: 32))
    }

    @Test(arguments: ["[", "{\"a\":", "{\".value\":", "{\".sv\":[", "[{\"a\":"])
    func endlessNestingIsRefused(piece: String) {
        #expect(throws: RESTErrors.dataTooDeep) { try Self.body(String(repeating: piece, count: 200_000)) }
    }

    @Test func sizesAreLimited() throws {
        var limits = RESTLimits()
        limits.bodyBytesMax = 10
        limits.valuesMax = 3
        _ = try Self.body("\"12345678\"", limits)
        #expect(throws: RESTErrors.writeTooBig) { try Self.body("\"123456789\"", limits) }
        _ = try Self.body("[1,2,3]", limits)
        #expect(throws: RESTErrors.writeTooBig) { try Self.body("[1,2,3,4]", limits) }
        #expect(RESTErrors.writeTooBig.status == 400)
    }

    @Test(arguments: [
        ("tiny", 10_000), ("small", 100_000), ("medium", 300_000), ("large", 600_000), ("unlimited", nil),
    ])
    func writeSizeLimitCountsValues(word: String, valuesMax: Int?) throws {
        let target = "/a.json?writeSizeLimit=\(word)"
        guard let valuesMax else {
            #expect(try RESTSamples.request("PUT", target).options.writeValuesMax == nil)
            return
        }
        let fitting = "[1" + String(repeating: ",1", count: valuesMax - 1)
        #expect(RESTSamples.error("PUT", target, body: fitting + "]") == nil)
        #expect(
            RESTSamples.error("PUT", target, body: fitting + ",1]")
                == RESTError(
                    400, "Data to write exceeds the maximum size that can be modified with a single request."))
    }

    @Test func writeSizeLimitFollowsTheSetting() throws {
        var limits = RESTLimits()
        for (perSecond, values) in [(3, 30), (Int.max / 2, Int.max)] {
            limits.valuesPerSecond = perSecond
            let head = RESTSamples.head("PUT", "/a.json?writeSizeLimit=small")
            #expect(try RESTRequest(head, RESTSamples.namespaces, limits).options.writeValuesMax == values)
        }
    }
}

extension RESTBodyTests {
    private static func body(_ text: String, _ limits: RESTLimits) throws(RESTError) -> RESTBody {
        try body(text, depth: 0, isPatch: false, limits)
    }
}
