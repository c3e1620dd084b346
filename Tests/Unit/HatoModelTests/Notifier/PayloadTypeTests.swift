import HatoModel
import Testing

@Suite struct PayloadTypeTests {
    private static let long = String(repeating: "鳩", count: 1_000)

    @Test(arguments: [
        (Notifier.PayloadKind.string, ["a", "鳩", "0", " ", Self.long], ["", Self.long + "a"]),
        (
            .int, ["0", "-0", "7", "-12", "9007199254740991", "-9007199254740991"],
            ["", "-", "+1", "01", "-01", "1.0", "1e3", " 1", "9007199254740992", "-9007199254740992", "１"]
        ),
        (.bool, ["true", "false"], ["", "True", "1", "0", "yes", "true "]),
        (
            .id, ["p-1", "鳩", "-Kx_9", " ", String(repeating: "a", count: 768)],
            ["", "a/b", "a.b", "a#", "$a", "[", "]", "a\u{7F}", String(repeating: "a", count: 769)]
        ),
        (
            .url,
            [
                "https://example.com", "HTTPS://example.com/a?b=c#d", "https://[2001:db8::1]:8443/", "https://a:1?x",
                "https://example.com/" + String(repeating: "a", count: 2_028),
            ],
            [
                "", "http://example.com", "example.com", "/a", "https://", "https:///a", "https://a..b", "https://a b/",
                "https://u@example.com", "https://例.com", "https://example.com:0", "https://example.com:65536",
                "https://example.com:", "https://[a", "javascript:alert(1)",
                "https://example.com/" + String(repeating: "a", count: 2_029),
            ]
        ),
        (
            .date, ["0", "1795000000000", "9007199254740991"],
            ["", "-1", "01", "1.5", "2026-11-27", "9007199254740992", "99999999999999999999"]
        ),
    ])
    func eachKindAcceptsItsTextsAndNoOther(_ kind: Notifier.PayloadKind, _ right: [String], _ wrong: [String]) {
        for text in right { #expect(kind.accepts(text), "\(kind): \(text.prefix(40))") }
        for text in wrong { #expect(!kind.accepts(text), "\(kind): \(text.prefix(40))") }
    }

    @Test func fieldsAreCheckedByTheTypeAndOthersIgnored() throws {
        let type = Notifier.PayloadType(
            type: "t", required: ["b": .int, "a": .string], optional: ["c": .bool])
        try type.check(["a": "x", "b": "1", "other": ""])
        try type.check(["a": "x", "b": "1", "c": "true"])
        func field(_ data: [String: String]) -> String? {
            do { try type.check(data) } catch { return error.field }
            return nil
        }
        #expect(field([:]) == "a")
        #expect(field(["a": "x"]) == "b")
        #expect(field(["a": "x", "b": ""]) == "b")
        #expect(field(["a": "x", "b": "1", "c": ""]) == "c")
    }

    @Test func valuesAreReadAsTheirKinds() throws {
        let type = Notifier.PayloadType(type: "t", required: ["n": .int, "on": .bool, "at": .date, "s": .string])
        let values = try type.values(in: ["n": "-5", "on": "false", "at": "17", "s": "x", "other": 1])
        #expect(try values.number("n") == -5 && values.number("at") == 17)
        #expect(try values.flag("on") == false && values.text("s") == "x")
        #expect(values.optionalText("other") == nil)
        #expect(throws: PayloadError.invalidData(field: "s")) { try values.number("s") }
        #expect(throws: PayloadError.invalidData(field: "none")) { try values.text("none") }
    }

    private struct Opened: PushTransition {
        static let payloadType = Notifier.PayloadType(type: "open", required: ["id": .id], optional: ["n": .int])
        var id: String
        var number: Int64?

        init(_ values: PayloadValues) throws(PayloadError) {
            id = try values.text("id")
            number = values.optionalText("n") == nil ? nil : try values.number("n")
        }
    }

    @Test func aPayloadBecomesTheStructOfItsTypeOrNothing() throws {
        let transitions = PushTransitions([Opened.self])
        let opened = try #require(
            try transitions.decode(["transition_type": "open", "id": "p", "n": "3"] as [String: String]) as? Opened)
        #expect(opened.id == "p" && opened.number == 3)
        #expect(throws: PayloadError.invalidType) { try transitions.decode(["id": "p"] as JSONObject) }
        #expect(throws: PayloadError.invalidData(field: "n")) {
            try transitions.decode(["transition_type": "open", "id": "p", "n": 3] as JSONObject)
        }
    }
}
