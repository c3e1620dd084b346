import HatoModel
import Testing

@Suite struct FieldTests {
    struct Sample: FieldObject, Equatable {
        enum Kind: String, FieldChoice { case small, large }
        struct Nested: FieldObject, Equatable {
            static let fields = Fields<Self>(
                blank: Self(limit: 0), .required("limit", \.limit, "A number"), .optional("names", \.names, "Words"))
            var limit: Int
            var names: [String]?
        }
        struct Color: FieldText, Equatable {
            var description: String
            init(_ text: String) throws(ArgumentError) {
                guard text.hasPrefix("#") else { throw ArgumentError(reason: "NO_COLOR", "Must start with #") }
                description = text
            }
        }

        static let fields = Fields<Self>(
            blank: Self(name: ""),
            .required("name", \.name, "The name"),
            .optional("kind", \.kind, "The kind"),
            .optional("nested", \.nested, "An object"),
            .optional("color", \.color, "A text"),
            .optionalJSON("any", \.any, "Anything"),
            .optional("table", \.table, "Numbers by name"),
            .optional("version", \.version, "A version"),
            .nullable("until", \.until, "A time"))

        var name: String
        var kind: Kind?
        var nested: Nested?
        var color: Color?
        var any: JSONValue?
        var table: [String: Int]?
        var version: UInt64?
        var until: Int64?
    }

    private func error(of params: JSONObject) -> RPCError? {
        do {
            _ = try Sample(json: .object(params), unknown: .rejected)
            return nil
        } catch { return error.rpcError }
    }

    @Test func aFullValueComesBack() throws {
        let sample = Sample(
            name: "a", kind: .large, nested: .init(limit: 3, names: ["x", "y"]), color: try .init("#123"),
            any: ["deep": [1, nil, true]], table: ["b": 2, "a": 1], version: 17)
        let json = sample.json
        #expect(json["nested"] == ["limit": 3, "names": ["x", "y"]])
        #expect(json["table"]?.object?.members.map(\.name) == ["a", "b"])
        #expect(json["until"] == .some(.null))
        #expect(try Sample(json: json, unknown: .rejected) == sample)
        var writer = JSONWriter()
        sample.write(into: &writer)
        #expect(writer.bytes == json.encoded)
    }

    @Test func missingParameterIsNamed() {
        let error = error(of: [:])
        #expect(error?.code == .invalidParams)
        #expect(error?.data["parameter"] == "name")
    }

    /// Both say é: strings of Swift with these names are equal.
    @Test func namesThatAreEqualThoughTheirCodePointsDifferAreRefused() {
        let table = JSONObject(uniqueMembers: [.init("e\u{301}", 1), .init("\u{e9}", 2)])
        let error = error(of: ["name": "a", "table": .object(table)])
        #expect(error?.code == .invalidParams)
        #expect(error?.data["parameter"] == "table.\u{e9}")
    }

    @Test func unknownParameterIsNamedAtAnyLevel() {
        #expect(error(of: ["name": "a", "nmae": 1])?.data["parameter"] == "nmae")
        let nested = error(of: ["name": "a", "nested": ["limit": 1, "limits": 2]])
        #expect(nested?.code == .invalidParams)
        #expect(nested?.data["parameter"] == "nested.limits")
    }

    @Test func wrongTypeIsNamedByItsPath() {
        #expect(error(of: ["name": 1])?.data["parameter"] == "name")
        #expect(
            error(of: ["name": "a", "nested": ["limit": 1, "names": ["x", 2]]])?.data["parameter"] == "nested.names.1")
        #expect(error(of: ["name": "a", "nested": 1])?.data["parameter"] == "nested")
    }

    @Test func unknownEnumCaseListsTheKnownOnes() {
        let error = error(of: ["name": "a", "kind": "huge"])
        #expect(error?.code == .invalidParams)
        #expect(error?.data["parameter"] == "kind")
        #expect(error?.message.contains("small, large") == true)
    }

    @Test func refusedContentIsAnInvalidArgument() {
        let error = error(of: ["name": "a", "color": "red"])
        #expect(error?.code == .invalidArgument)
        #expect(error?.reason == "NO_COLOR")
        #expect(error?.data["parameter"] == "color")
    }

    @Test(arguments: [1.5, 9007199254740992, -9007199254740992, 1e300])
    func numbersThatAreNoExactIntegersAreRefused(number: Double) {
        #expect(error(of: ["name": "a", "version": .number(number)])?.data["parameter"] == "version")
    }

    @Test func integersOutsideTheTypeAreRefused() {
        #expect(error(of: ["name": "a", "version": -1])?.code == .invalidParams)
        #expect(error(of: ["name": "a", "version": 9007199254740991]) == nil)
    }

    @Test func unknownNamesOfResultsAreIgnored() throws {
        let result = try Sample(json: ["name": "a", "later": 1], unknown: .ignored)
        #expect(result.name == "a")
    }

    @Test func nullIsAbsentExceptWhereAnyValueIsMeant() throws {
        let sample = try Sample(json: ["name": "a", "kind": nil, "any": nil], unknown: .rejected)
        #expect(sample.kind == nil)
        #expect(sample.any == .some(.null))
    }

    @Test func anUnknownParameterComesWithTheKnownOnes() {
        #expect(
            error(of: ["name": "a", "nested": ["limits": 2]])?.message
                == "'nested.limits' is no known parameter; known are limit, names")
    }

    /// A peer chooses it, and could have 16 MiB repeated.
    @Test func aLongNameOfAnUnknownParameterIsShortened() {
        let error = error(of: ["name": "a", String(repeating: "é", count: 10_000): 1])
        let shown = String(repeating: "é", count: 200) + "…"
        #expect(error?.data["parameter"] == .string(shown))
        #expect(error?.message.hasPrefix("'\(shown)' is no known parameter; known are any, color, kind, ") == true)
    }

    @Test func schemaSaysKindsMeaningsAndWhatIsRequired() {
        let schema = Sample.schema
        #expect(schema["required"] == ["name"])
        #expect(schema["additionalProperties"] == false)
        #expect(schema["properties"]?["name"] == ["type": "string", "description": "The name"])
        #expect(schema["properties"]?["kind"]?["enum"] == ["small", "large"])
        #expect(schema["properties"]?["nested"]?["properties"]?["names"]?["items"] == ["type": "string"])
        #expect(schema["properties"]?["any"] == ["description": "Anything"])
        #expect(schema["properties"]?["until"]?["type"] == ["integer", "null"])
    }

    @Test func emptyIsTheEmptyObject() {
        #expect(Empty().json == [:])
    }
}
