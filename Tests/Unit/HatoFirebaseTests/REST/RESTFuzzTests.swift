import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTFuzzTests {
    private static let targetPieces = [
        "/", "a", "b", ".json", ".priority", ".settings", "rules", "%2F", "%00", "%", "%FF", "%E3%81%82", "あ", "?", "&",
        "=",
        "orderBy", "%22n%22", "%22$key%22", "startAt", "endAt", "equalTo", "limitToLast", "1", "-1", "1e999", "NaN",
        "null",
        ",", "print", "pretty", "silent", "shallow", "true", "format", "export", "ns", "auth", "callback", "f",
        "timeout", "3s",
        "auth_variable_override", "%7B%22uid%22:1%7D", "+", "#", "$", "[", "\u{FFFD}", "\0", "http://h", "..",
        "99999999999999999999",
    ]

    private static let parameters = [
        "print=pretty", "print=silent", "shallow=true", "format=export", "format=strict", "ns=tests", "auth=t",
        "orderBy=%22n%22", "orderBy=%22$key%22", "limitToLast=1", "equalTo=1", "startAt=%22a%22", "timeout=3s",
        "callback=f", "download=x", "writeSizeLimit=tiny", "dryRun=true", "x-http-method-override=PUT",
        "auth_variable_override=%7B%22uid%22:%22u%22%7D",
    ]

    private static func target(_ random: inout SeededInputs) -> String {
        var target = random.one(of: [
            "", "/a.json?", "/a/b.json?", "/.json?", "/a/.priority.json?", "/.settings/rules.json?",
        ])
        if random.once(in: 2) {
            for _ in 0..<random.below(14) { target += random.one(of: Self.targetPieces) }
        } else {
            target += (0..<random.below(4)).map { _ in random.one(of: Self.parameters) }.joined(separator: "&")
        }
        return target
    }

    private static func body(_ random: inout SeededInputs) -> [UInt8] {
        var body = value(&random, depth: 4).encoded
        if random.once(in: 2) { random.damage(&body, inserting: bodyTokens) }
        return body
    }

    /// Whatever the target and the body are, the request is refused, or becomes one call on one line that the service
    /// reads, with the value of the body.
    @Test func anyTargetWithAnyBodyIsRefusedOrBecomesOneCall() {
        var methods: Set<String> = []
        let failures = SeededInputs.failures(6_000) { random in
            let target = Self.target(&random)
            let method = random.one(of: ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
            let names = ["if-match", "if-none-match", "x-firebase-etag", "accept", "host", "authorization"]
            let headers = (0..<random.below(3)).map { _ in
                (
                    name: random.one(of: names),
                    value: random.one(of: ["true", "null_etag", "text/event-stream", "Bearer x", "\r\n"])
                )
            }
            let body = Self.body(&random)
            do {
                let request = try RESTSamples.request(method, target, headers)
                guard case .call(let operation) = try request.start(body, as: request.identity()) else { return nil }
                methods.insert(operation.method)
                return try Self.problem(operation, body).map {
                    "\(method) \(target) \(String(decoding: body, as: UTF8.self)): \($0)"
                }
            } catch let error as RESTError {
                return 400...405 ~= error.status ? nil : "\(method) \(target): \(error)"
            }
        }
        #expect(failures.isEmpty, "\(failures)")
        // A run in which everything is refused would show nothing.
        if SeededInputs.count(6_000) >= 6_000 { #expect(methods.count == 8, "\(methods)") }
    }

    /// What is wrong with a call that a request with this body became.
    private static func problem(_ operation: RESTOperation, _ body: [UInt8]) throws -> String? {
        guard !operation.params.contains(0x0A), !operation.params.contains(0x0D) else { return "a line end" }
        // A request is an object around its params.
        let params = try JSONParser.parse(operation.params, depth: JSONParser.depthDefault - 1)
        if let path = params["path"]?.string { _ = try TreePath(path) }
        if let query = params["query"] { _ = try TreeQuery(query) }
        let written: JSONValue
        switch operation.method {
        case "messages.set", "messages.push": written = params["value"] ?? .null
        case "messages.update": written = params["values"] ?? .null
        case "messages.rules.set":
            return params["rules"]?.string?.utf8.elementsEqual(body) == true ? nil : "other rules"
        default: return params["value"] == .none && params["values"] == .none ? nil : "a read that writes"
        }
        guard let parsed = try? JSONParser.parse(body) else { return "a body that is no JSON is taken" }
        return written == parsed ? nil : "the body is changed"
    }

    private static let bodyTokens = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\n", "\r\n", "\\u0061", "\\ud800", "\"a\"", "\"a\":1", ".priority",
        ".sv", "null",
        "1e400", "-", "/", "$", "\u{0}", "あ",
    ]

    /// A body is at most what the service's own parser takes, and has the same value.
    @Test func anyBodyIsRefusedOrReadAsTheSameValue() {
        let failures = SeededInputs.failures(3_000) { random in
            let body = Self.body(&random)
            let text = String(decoding: body, as: UTF8.self)
            do {
                let request = try RESTSamples.request(random.once(in: 2) ? "PATCH" : "PUT", "/x.json")
                guard case .call(let operation) = try request.start(body, as: request.identity()) else {
                    return "no call"
                }
                return try Self.problem(operation, body).map { "\(text): \($0)" }
            } catch let error as RESTError {
                return error.status == 400 ? nil : "\(text): \(error)"
            }
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    private static func value(_ random: inout SeededInputs, depth: Int) -> JSONValue {
        switch random.below(depth > 0 ? 8 : 5) {
        case 0: return .null
        case 1: return .bool(random.once(in: 2))
        case 2: return .number(Double(random.below(2_000) - 1_000) / random.one(of: [1, 8, 1e-30]))
        case 3, 4: return .string(random.one(of: ["", "a", "あ\n", "\"\\", "{\"a\":[1]}", "\u{2028}", "/"]))
        case 5: return .array((0..<random.below(4)).map { _ in value(&random, depth: depth - 1) })
        default:
            var object = JSONObject()
            for _ in 0..<random.below(5) {
                let name = random.one(of: [
                    "a", "b", "0", "1", "2", "5", "01", "-1", "é", "~", "a b", ".priority", "12",
                ])
                object[name] = name == ".priority" ? .number(Double(random.below(3))) : value(&random, depth: depth - 1)
            }
            return .object(object)
        }
    }

    /// Printing changes white space and order only, and plain form is that of the model.
    @Test func printedValuesStayTheSame() {
        let failures = SeededInputs.failures(2_000) { random in
            let value = Self.value(&random, depth: 5)
            let text = value.encoded
            let shown = String(decoding: text, as: UTF8.self)
            guard try JSONParser.parse(ValuePrinting.pretty(text)) == value else { return "pretty \(shown)" }
            guard try JSONParser.parse(ValuePrinting.script(text)) == value else { return "script \(shown)" }
            let sorted = try JSONParser.parse(ValuePrinting.inKeyOrder(text))
            guard sorted == value else { return "sorted \(shown)" }
            if let members = sorted.object?.members.map(\.name) {
                guard members == members.sorted(by: KeyOrder.precedes) else { return "order of \(shown)" }
            }
            let node = try TreeNode(json: value)
            let export = node.export.encoded
            guard PlainForm.plain(export.span, in: 0..<export.count) == node.plain.encoded else {
                return "plain \(shown)"
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    /// Texts of a service that are none never trap.
    @Test func anyResultAndEventIsRead() {
        let seeds = [
            #"{"value":{"0":1,"b":[{"c":"\""}]},"keys":["a"],"etag":"x","version":1}"#, #"{"rules":"{\n}"}"#,
            #"{"key":"-P"}"#,
            #"{"events":[{"type":"patch","path":"/","data":{"b/c":{".value":1,".priority":2},"b/d":{"0":1}}}]}"#,
            #""version":1,"events":[{"type":"put","path":"/b","data":{".priority":1,"1":{"0":2}}}]"#,
        ].map { Array($0.utf8) }
        let requests = [
            "/a.json?print=pretty", "/a.json?orderBy=%22n%22", "/a.json?callback=f", "/.settings/rules.json",
        ]
        let failures = SeededInputs.failures(3_000) { random in
            var bytes = random.one(of: seeds)
            random.damage(&bytes, inserting: Self.bodyTokens)
            let target = random.one(of: requests)
            let request = try RESTSamples.request("GET", target)
            _ = request.step(after: try RESTSamples.operation("GET", target), result: bytes)
            let streamed = try RESTSamples.request("GET", target, [("accept", "text/event-stream")])
            var machine = EventStreamStateMachine(streamed, as: RESTIdentity())
            for action in machine.eventsArrived(bytes) {
                guard case .send(let text) = action else { continue }
                // The end of a block is nowhere else.
                let blocks = String(decoding: text, as: UTF8.self).split(
                    separator: "\n\n", omittingEmptySubsequences: true)
                for block in blocks where !block.hasPrefix("event: ") { return "\(block)" }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
