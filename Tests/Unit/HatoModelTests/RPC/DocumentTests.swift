import HatoModel
import Testing

@Suite struct DocumentTests {
    enum Color: String, Codable, CaseIterable { case red, green }

    /// A value type that refuses what a recorder makes up.
    struct Name: Codable, Hashable {
        var text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self)
            guard !text.isEmpty else { throw ArgumentError(reason: "EMPTY", "Give a name") }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }

    struct Limits: Codable, Hashable {
        var first: Int
        var names: [Name]
        var table: [String: Double]?
    }

    struct Either: Codable, Hashable, JSONSchemaProviding {
        static let jsonSchema: JSONObject = ["type": ["string", "number"]]
    }

    struct Paint: RPCRequest {
        static let method = "paint"
        static let summary = "Paints"
        static let access = Access.signedIn
        static let effect = Effect.write
        static let isSlow = true
        static let parameterNotes = ["name": "of the thing to paint"]

        var name: Name
        var color: Color
        var any: JSONValue?
        var limits: Limits?
        var either: Either?
        var strong: Bool?

        struct Result: Codable, Sendable {
            var coats: UInt64
            var rows: [Limits]
        }

        static let example = RPCExample(
            Paint(name: Name("door"), color: .red), Result(coats: 2, rows: []))
    }

    struct Painted: RPCNotification {
        static let method = "painted"
        static let summary = "Something has been painted"
        static let example = Painted(name: "door")
        var name: String
    }

    private let schema = JSONSchema.of(
        Paint.self, sample: (try? Paint.example.request.encodedParams()).map(JSONValue.object))

    @Test func schemaTellsNamesTypesAndWhatIsOptional() {
        let properties = schema["properties"]?.object
        #expect(properties?.members.map(\.name) == ["name", "color", "any", "limits", "either", "strong"])
        #expect(properties?["name"] == ["type": "string"])
        #expect(properties?["color"] == ["type": "string", "enum": ["red", "green"]])
        #expect(properties?["any"] == [:])
        #expect(properties?["either"] == ["type": ["string", "number"]])
        #expect(properties?["strong"] == ["type": "boolean"])
        #expect(schema["required"] == ["name", "color"])
        #expect(schema["additionalProperties"] == false)
    }

    @Test func schemaKnowsWhatTheExampleLeavesOut() {
        let limits = schema["properties"]?["limits"]
        #expect(limits?["properties"]?["first"] == ["type": "integer"])
        #expect(limits?["properties"]?["names"] == ["type": "array", "items": ["type": "string"]])
        #expect(limits?["properties"]?["table"] == ["type": "object", "additionalProperties": ["type": "number"]])
        #expect(limits?["required"] == ["first", "names"])
        let result = JSONSchema.of(Paint.Result.self, sample: ["coats": 2, "rows": []])
        #expect(result["properties"]?["rows"]?["items"]?["properties"]?["first"] == ["type": "integer"])
    }

    @Test func documentHoldsEveryMethodWithAnExample() throws {
        let document = OpenRPC.document(
            title: "Paint shop", version: "1", methods: [Paint.self, RPC.Discover.self], notifications: [Painted.self])
        #expect(document["openrpc"]?.string?.hasPrefix("1.3.") == true)
        #expect(document["info"]?["title"] == "Paint shop")
        let methods = try #require(document["methods"]?.array)
        #expect(methods.compactMap { $0["name"]?.string } == ["paint", "rpc.discover"])
        let paint = methods[0]
        #expect(paint["x-slow"] == true)
        #expect(paint["x-access"] == "signedIn")
        #expect(
            paint["params"]?.array?.first == [
                "name": "name", "summary": "of the thing to paint", "required": true, "schema": ["type": "string"],
            ])
        #expect(paint["params"]?.array?.compactMap { $0["name"]?.string }.suffix(2) == ["auth", "as"])
        #expect(paint["params"]?.array?.last?["schema"]?["type"] == ["object", "null"])
        #expect(!String(decoding: JSONValue.object(document).encoded, as: UTF8.self).contains("$ref"))
        #expect(
            paint["examples"]?.array?.first?["params"] == [
                ["name": "name", "value": "door"], ["name": "color", "value": "red"],
            ])
        #expect(paint["examples"]?.array?.first?["result"]?["value"] == ["coats": 2, "rows": []])
        #expect(document["x-notifications"]?.array?.first?["example"] == ["name": "door"])
        #expect(try JSONParser.parse(JSONValue.object(document).encoded) == .object(document))
    }

    @Test func pageShowsEveryMethod() {
        let page = MethodsPage.markdown(title: "Paint shop", methods: [Paint.self], notifications: [Painted.self])
        let expected = [
            "# Paint shop", "## paint", "Paints.", "Access: signed-in users · Effect: write · slow",
            "| `name` | string |  | of the thing to paint |", "| `color` | `red` or `green` |  |  |",
            "| `limits.names` | array of string |  |  |", "| `strong` | boolean | optional |  |",
            #"→ {"jsonrpc":"2.0","id":1,"method":"paint","params":{"name":"door","color":"red"}}"#,
            #"← {"jsonrpc":"2.0","id":1,"result":{"coats":2,"rows":[]}}"#,
            #"← {"jsonrpc":"2.0","method":"painted","params":{"name":"door"}}"#,
        ]
        for line in expected { #expect(page.contains(line), "\(line)\n\(page)") }
    }

    @Test func wireErrorsComeBackAsTheyWent() throws {
        let error = RPCError.invalidArgument("email", reason: "INVALID_EMAIL", "Give an address like a@b.c")
        var writer = JSONWriter()
        error.write(into: &writer)
        #expect(RPCError(json: try JSONParser.parse(writer.bytes)) == error)
        #expect(RPCError(json: error.json) == error)
        #expect(RPCError(json: ["code": -32601, "message": "x"])?.data == [:])
        #expect(RPCError(json: ["message": "no code"]) == nil)
        #expect(RPCError(json: 3) == nil)
    }

    @Test func onlyErrorsThatSayTheirWireFormShowIt() {
        struct Inside: Error {}
        struct Known: RPCErrorConvertible { var rpcError: RPCError { .notFound(reason: "gone", "Gone") } }
        #expect(RPCError(Inside()) == .internalError)
        #expect(RPCError(Known()).code == .notFound)
    }
}
