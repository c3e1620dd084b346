import HatoModel
import Testing

@Suite struct DocumentTests {
    enum Color: String, FieldChoice { case red, green }

    struct Name: FieldText, Hashable {
        var description: String
        init(_ text: String) throws(ArgumentError) {
            guard !text.isEmpty else { throw ArgumentError(reason: "EMPTY", "Give a name") }
            description = text
        }
        init(door: Void) { description = "door" }
    }

    struct Limits: FieldObject, Hashable {
        static let fields = Fields<Self>(
            blank: Self(first: 0, names: []),
            .required("first", \.first),
            .required("names", \.names, "who paints"),
            .optional("table", \.table))
        var first: Int
        var names: [Name]
        var table: [String: Double]?
    }

    struct Paint: RPCRequest {
        static let method = "paint"
        static let summary = "Paints"
        static let access = Access.signedIn
        static let effect = Effect.write
        static let isSlow = true
        static let errors = [
            MethodError(.notFound, "NO_DOOR"),
            MethodError(.invalidArgument, "RUST"), MethodError(.notFound, "NO_WALL"),
            MethodError(.invalidArgument, "WET", data: ["surface"]),
        ]

        static let fields = Fields<Self>(
            blank: Self(name: Name(door: ()), color: .red),
            .required("name", \.name, "of the thing to paint"),
            .required("color", \.color),
            .optionalJSON("any", \.any),
            .optional("limits", \.limits),
            .optional("strong", \.strong),
            .optional("layers", \.layers, "Coats by colour", example: ["red": 3]))

        var name: Name
        var color: Color
        var any: JSONValue?
        var limits: Limits?
        var strong: Bool?
        var layers: [String: Int]?

        struct Result: FieldObject {
            static let fields = Fields<Self>(
                blank: Self(coats: 0, rows: []), .required("coats", \.coats), .required("rows", \.rows))
            var coats: UInt64
            var rows: [Limits]
        }

        static let example = RPCExample(
            Paint(name: Name(door: ()), color: .red), Result(coats: 2, rows: []))
    }

    struct Painted: RPCNotification {
        static let method = "painted"
        static let summary = "Something has been painted"
        static let example = Painted(name: "door")
        static let fields = Fields<Self>(blank: Self(name: ""), .required("name", \.name))
        var name: String
    }

    struct Shades: RPCRequest {
        static let method = "shades"
        static let summary = "Lists shades"
        static let access = Access.rules
        static let effect = Effect.read
        static let fields = Fields<Self>(blank: Self())
        static let example = RPCExample(Shades(), [])
        typealias Result = [Limits]
    }

    struct Dry: RPCRequest {
        static let method = "dry"
        static let summary = "Waits"
        static let access = Access.anyone
        static let effect = Effect.read
        static let fields = Fields<Self>(blank: Self())
        static let example = RPCExample(Dry(), Empty())
        typealias Result = Empty
    }

    struct Look: RPCRequest {
        static let method = "look"
        static let summary = "Looks"
        static let access = Access.anyone
        static let effect = Effect.read
        static let fields = Fields<Self>(blank: Self())
        static let example = RPCExample(Look(), Result(color: nil))

        struct Result: FieldObject {
            static let fields = Fields<Self>(blank: Self(color: nil), .nullable("color", \.color))
            var color: String?
        }
    }

    private let schema = Paint.schema

    @Test func schemaHasNamesTypesAndOptionality() {
        let properties = schema["properties"]?.object
        #expect(properties?.members.map(\.name) == ["name", "color", "any", "limits", "strong", "layers"])
        #expect(properties?["name"] == ["type": "string", "description": "of the thing to paint"])
        #expect(properties?["color"] == ["type": "string", "enum": ["red", "green"]])
        #expect(properties?["any"] == [:])
        #expect(properties?["strong"] == ["type": "boolean"])
        #expect(schema["required"] == ["name", "color"])
        #expect(schema["additionalProperties"] == false)
    }

    @Test func schemaIncludesFieldsThatTheExampleOmits() {
        let limits = schema["properties"]?["limits"]
        #expect(limits?["properties"]?["first"] == ["type": "integer"])
        #expect(limits?["properties"]?["names"]?["items"] == ["type": "string"])
        #expect(limits?["properties"]?["table"] == ["type": "object", "additionalProperties": ["type": "number"]])
        #expect(limits?["required"] == ["first", "names"])
        let result = Paint.Result.schema
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
        #expect(paint["params"]?.array?.compactMap { $0["name"]?.string }.suffix(3) == ["auth", "as", "from"])
        #expect(paint["params"]?.array?.dropLast().last?["schema"]?["type"] == ["object", "null"])
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
            "# Paint shop", "## paint", "Paints.", "Access: signed-in users and administrators · Effect: write · slow",
            "| `name` | string |  | of the thing to paint |", "| `color` | `red` or `green` |  |  |",
            "| `limits.names` | array of string |  | who paints |",
            "| `rows[].names` | array of string |  | who paints |", "| `strong` | boolean | optional |  |",
            "| `limits.table` | object of number | optional |  |",
            #"| `layers` | object of integer | optional | Coats by colour. Example: `{"red":3}` |"#,
            #"→ {"jsonrpc":"2.0","id":1,"method":"paint","params":{"name":"door","color":"red"}}"#,
            #"← {"jsonrpc":"2.0","id":1,"result":{"coats":2,"rows":[]}}"#,
            #"← {"jsonrpc":"2.0","method":"painted","params":{"name":"door"}}"#,
        ]
        for line in expected { #expect(page.contains(line), "\(line)\n\(page)") }
    }

    @Test func pageShowsTheErrorsOfEachMethodAndOfAll() {
        let page = MethodsPage.markdown(title: "Paint shop", methods: [Paint.self])
        #expect(
            page.contains(
                "| not_found | `NO_DOOR`, `NO_WALL` |\n| invalid_argument | `RUST`; `WET` (with `data.surface`) |\n"),
            "\(page)")
        #expect(page.contains("| permission_denied | -32002 | `permission_denied` |\n"), "\(page)")
        for error in MethodError.general {
            for reason in error.reasons { #expect(page.contains("`\(reason)`")) }
        }
    }

    @Test func documentHasTheErrorsOfAMethodByCode() throws {
        let document = OpenRPC.document(title: "Paint shop", version: "1", methods: [Paint.self, Dry.self])
        let methods = try #require(document["methods"]?.array)
        #expect(
            methods[0]["errors"] == [
                ["code": -32003, "message": "not_found", "data": ["reasons": ["NO_DOOR", "NO_WALL"]]],
                ["code": -32008, "message": "invalid_argument", "data": ["reasons": ["RUST", "WET"]]],
            ])
        #expect(methods[1]["errors"] == nil)
        let general = document["components"]?["errors"]
        #expect(general?["permission_denied"]?["data"] == ["reasons": ["permission_denied"]])
        #expect(general?.object?.count == Set(MethodError.general.map(\.code)).count)
    }

    @Test func aMethodDeclaresItsErrorsAndThoseOfEveryMethod() {
        #expect(Paint.declares(.notFound(reason: "NO_WALL", "")))
        #expect(Paint.declares(.permissionDenied()))
        #expect(!Paint.declares(.notFound(reason: "WET", "")))
        #expect(Paint.declares(.invalidArgument("query", reason: "limitToLast must be positive", "")))
        #expect(!Paint.declares(.invalidArgument("color", reason: "must be red", "")))
    }

    @Test func pageShowsResultsThatAreArraysOrEmpty() {
        let page = MethodsPage.markdown(title: "Paint shop", methods: [Shades.self, Dry.self])
        #expect(page.contains("| `[].names` | array of string |  | who paints |"), "\(page)")
        #expect(page.contains("\nResult: `{}`\n"))
    }

    @Test func aMemberThatMayBeNullIsNotOptional() {
        let page = MethodsPage.markdown(title: "Paint shop", methods: [Look.self])
        #expect(page.contains("| `color` | string or null |  |  |"), "\(page)")
    }

    @Test func wireErrorsReadBackAsWritten() throws {
        let error = RPCError.invalidArgument("email", reason: "INVALID_EMAIL", "Give an address like a@b.c")
        var writer = JSONWriter()
        error.write(into: &writer)
        #expect(RPCError(json: try JSONParser.parse(writer.bytes)) == error)
        #expect(RPCError(json: error.json) == error)
        #expect(RPCError(json: ["code": -32601, "message": "x"])?.data == [:])
        #expect(RPCError(json: ["message": "no code"]) == nil)
        #expect(RPCError(json: 3) == nil)
    }

    @Test func onlyErrorsWithAWireFormShowIt() {
        struct Inside: Error {}
        struct Known: RPCErrorConvertible { var rpcError: RPCError { .notFound(reason: "gone", "Gone") } }
        #expect(RPCError(Inside()) == .internalError)
        #expect(RPCError(Known()).code == .notFound)
    }

    @Test func parametersOfEveryCallAreListedWhereTheyAreTaken() {
        let document = OpenRPC.document(title: "Service", version: "1", methods: Session.methods)
        let methods: [JSONValue] = document["methods"]?.array ?? []
        let names: [[String]] = methods.map { method in
            (method["params"]?.array ?? []).compactMap { $0["name"]?.string }
        }
        // session.authenticate, session.end, session.forward
        #expect(names == [["auth", "as", "from"], ["auth", "as", "from"], ["auth", "from", "clientLines"]])
    }
}
