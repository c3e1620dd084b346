import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTStepTests {
    private static let hash = "eMfSk0nU+CieTkCbO5r7cKNp7qU="

    @Test(arguments: [
        ("GET", "/a.json", "", #"{"value":{"b":[1,null]},"version":17}"#, #"{"b":[1,null]}"#),
        ("GET", "/a.json", "", #"{"value":null,"version":17}"#, "null"),
        ("GET", "/a.json", "", #" { "value" : "a}\\\" ,\"" , "version":17}"#, #""a}\\\" ,\"""#),
        ("GET", "/a.json?shallow=true", "", #"{"value":{"b":true},"version":17}"#, #"{"b":true}"#),
        ("GET", "/a.json?print=pretty", "", #"{"value":{"b":1},"version":17}"#, "{\n  \"b\" : 1\n}\n"),
        ("GET", "/a.json?print=pretty", "", #"{"value":null,"version":17}"#, "null\n"),
        (
            "PUT", "/a.json", "{\"t\":{\".sv\":\"timestamp\"}}", #"{"value":{"t":1795000000000},"version":17}"#,
            #"{"t":1795000000000}"#
        ),
        ("PUT", "/a.json", "null", #"{"value":null,"version":17}"#, "null"),
        ("POST", "/a.json", "1", #"{"key":"-P6iK_s-------------","version":17}"#, #"{"name":"-P6iK_s-------------"}"#),
        ("POST", "/a.json?print=pretty", "1", #"{"key":"-P","version":17}"#, "{\n  \"name\" : \"-P\"\n}\n"),
        ("PATCH", "/a.json", "{\"b/c\":1}", #"{"values":{"b/c":1},"version":17}"#, #"{"b/c":1}"#),
        ("DELETE", "/a.json", "", #"{"version":18}"#, "null"),
        ("PUT", "/.settings/rules.json", "{}", #"{"version":18}"#, #"{"status":"ok"}"#),
        (
            "GET", "/.settings/rules.json", "", #"{"rules":"{\n  // all\n  \"rules\": {}\n}"}"#,
            "{\n  // all\n  \"rules\": {}\n}"
        ),
        (
            "GET", "/a.json?orderBy=%22n%22", "",
            #"{"value":{"b":1,"10":2,"a":{"z":1,"y":2},"2":3},"keys":["b","10","a","2"],"version":1}"#,
            #"{"2":3,"10":2,"a":{"z":1,"y":2},"b":1}"#
        ),
        ("GET", "/a.json?orderBy=%22n%22", "", #"{"value":{},"keys":[],"version":1}"#, "{}"),
    ])
    func resultIsTheBody(method: String, target: String, body: String, result: String, text: String) throws {
        let answer = try RESTSamples.response(method, target, body: body, result: result)
        #expect(answer.status == 200)
        #expect(answer.text == text)
        #expect(answer.header("content-type") == "application/json; charset=utf-8")
        #expect(answer.header("access-control-allow-origin") == "*")
        #expect(answer.header("cache-control") == "no-cache")
        #expect(answer.header("etag") == nil)
        #expect(!answer.omitsBody)
    }

    @Test(arguments: [
        ("GET", "", #"{"value":1,"version":17}"#), ("PUT", "1", #"{"version":17}"#),
        ("PATCH", "{}", #"{"version":17}"#),
        ("POST", "1", #"{"key":"k","version":17}"#), ("DELETE", "", #"{"version":17}"#),
    ])
    func silentResponseHasNoBody(method: String, body: String, result: String) throws {
        let answer = try RESTSamples.response(method, "/a.json?print=silent", body: body, result: result)
        #expect(answer.status == 204 && answer.body.isEmpty)
        #expect(answer.header("content-type") == nil && answer.header("access-control-allow-origin") == "*")
    }

    @Test func headHasNoBody() throws {
        let answer = try RESTSamples.response("HEAD", "/a.json", result: #"{"value":"abc","version":17}"#)
        #expect(answer.status == 200 && answer.text == #""abc""# && answer.omitsBody)
        let request = try RESTSamples.request("HEAD", "/a.json")
        #expect(request.error(RESTErrors.denied).omitsBody)
    }

    @Test func responseOfAnotherServiceIsAnError() throws {
        for result in [
            "", "{", "[]", "null", "{}", #"{"value":}"#, #"{"value":1"#, #"{"value":"1}"#, #"{"value" 1}"#, "{\"\\",
        ] {
            let answer = try RESTSamples.response("GET", "/a.json", result: result)
            #expect(answer.status == 500, "\(result)")
            #expect(answer.text == "{\n  \"error\" : \"Internal server error.\"\n}\n")
        }
        for (method, body) in [("PUT", "1"), ("POST", "1"), ("PATCH", "{}")] {
            #expect(try RESTSamples.response(method, "/a.json", body: body, result: "{}").status == 500)
        }
    }

    // MARK: Forms

    @Test func callbackMakesAScript() throws {
        let result = "{\"value\":\"a\u{2028}b\u{2029}cあ\",\"version\":17}"
        let answer = try RESTSamples.response("GET", "/a.json?callback=app.got", result: result)
        #expect(answer.text == #"app.got("a\u2028b\u2029cあ");"#)
        #expect(answer.header("content-type") == "application/javascript; charset=utf-8")
        #expect(answer.header("x-content-type-options") == "nosniff")
        let pretty = try RESTSamples.response(
            "GET", "/a.json?callback=f&print=pretty", result: #"{"value":[1],"version":1}"#)
        #expect(pretty.text == "f([ 1 ]);")
        #expect(try RESTSamples.response("GET", "/a.json?callback=f&print=silent", result: result).status == 204)
    }

    @Test(arguments: [
        ("a.json", #"attachment; filename="a.json""#), ("a%20b.json", #"attachment; filename="a b.json""#),
        ("a%22%0D%0Ab", #"attachment; filename="a___b"; filename*=UTF-8''a%22%0D%0Ab"#),
        ("%E9%B3%A9.json", #"attachment; filename="_.json"; filename*=UTF-8''%E9%B3%A9.json"#),
        ("a%5Cb", #"attachment; filename="a_b"; filename*=UTF-8''a%5Cb"#),
    ])
    func downloadHasAName(name: String, header: String) throws {
        let answer = try RESTSamples.response("GET", "/a.json?download=\(name)", result: #"{"value":1,"version":1}"#)
        #expect(answer.header("content-disposition") == header)
        #expect(answer.text == "1")
    }

    // MARK: Etags

    @Test func etagIsAHeader() throws {
        let wants = [(name: "X-Firebase-ETag", value: "true")]
        let read = try RESTSamples.response(
            "GET", "/a.json", wants, result: #"{"value":1,"etag":"\#(Self.hash)","version":1}"#)
        #expect(read.header("etag") == Self.hash && read.header("access-control-expose-headers") == "ETag")
        let set = try RESTSamples.response(
            "PUT", "/a.json", wants, body: "1", result: #"{"etag":"\#(Self.hash)","value":1,"version":1}"#)
        #expect(set.status == 200 && set.header("etag") == Self.hash)
        let push = try RESTSamples.response(
            "POST", "/a.json", wants, body: "1", result: #"{"key":"k","etag":"\#(Self.hash)","version":1}"#)
        #expect(push.header("etag") == Self.hash)
        let removed = try RESTSamples.response("DELETE", "/a.json", wants, result: #"{"version":1}"#)
        #expect(removed.header("etag") == "null_etag" && removed.text == "null")
        let conditional = try RESTSamples.response(
            "DELETE", "/a.json", [("if-match", Self.hash)], result: #"{"version":1}"#)
        #expect(conditional.header("etag") == "null_etag")
        let silent = try RESTSamples.response(
            "GET", "/a.json?print=silent", wants, result: #"{"value":1,"etag":"\#(Self.hash)","version":1}"#)
        #expect(silent.status == 204 && silent.header("etag") == Self.hash)
    }

    @Test func unchangedValueIsNotSent() throws {
        let result = #"{"value":1,"etag":"\#(Self.hash)","version":1}"#
        let same = try RESTSamples.response("GET", "/a.json", [("If-None-Match", Self.hash)], result: result)
        #expect(same.status == 304 && same.body.isEmpty && same.header("etag") == Self.hash)
        #expect(same.header("content-type") == nil)
        for other in ["null_etag", "\"\(Self.hash)\"", "*", ""] {
            let answer = try RESTSamples.response("GET", "/a.json", [("if-none-match", other)], result: result)
            #expect(answer.status == 200 && answer.text == "1" && answer.header("etag") == Self.hash)
        }
        let nothing = #"{"value":null,"etag":"null_etag","version":1}"#
        #expect(
            try RESTSamples.response("GET", "/a.json", [("if-none-match", "null_etag")], result: nothing).status == 304)
    }

    private static func mismatch(_ value: JSONValue?) -> RPCError {
        var data: JSONObject = ["etag": .string(hash)]
        data["value"] = value
        return .failedPrecondition(reason: "etag_mismatch", "The node has changed", data: data)
    }

    @Test(arguments: [("PUT", "1"), ("DELETE", "")])
    func mismatchBringsTheValue(method: String, body: String) throws {
        for (value, text): (JSONValue, String) in [(.null, "null"), (["a": [1, "あ"]], #"{"a":[1,"あ"]}"#)] {
            let request = try RESTSamples.request(method, "/a.json", [("if-match", "null_etag")])
            let operation = try RESTSamples.operation(method, "/a.json", [("if-match", "null_etag")], body: body)
            let step = request.step(after: operation, error: Self.mismatch(value), as: request.identity())
            guard case .answer(let answer) = step else {
                Issue.record("\(step)")
                continue
            }
            #expect(answer.status == 412 && answer.text == text && answer.header("etag") == Self.hash)
        }
    }

    @Test func valueOfAMismatchIsReadWhereItIsMissing() throws {
        let target = "/a.json?auth=t&ns=other"
        let request = try RESTSamples.request("PUT", target, [("if-match", "null_etag")])
        let operation = try RESTSamples.operation("PUT", target, [("if-match", "null_etag")], body: "1")
        let identity = RESTIdentity(auth: "t", from: "192.0.2.1")
        guard case .call(let read) = request.step(after: operation, error: Self.mismatch(nil), as: identity) else {
            Issue.record("no call")
            return
        }
        #expect(read.method == "messages.get")
        #expect(read.text == #"{"database":"other","path":"/a","etag":true,"auth":"t","from":"192.0.2.1"}"#)
        let result = Array(#"{"value":{"b":1},"etag":"other","version":18}"#.utf8)
        guard case .answer(let answer) = request.step(after: read, result: result) else {
            Issue.record("no response")
            return
        }
        #expect(answer.status == 412 && answer.text == #"{"b":1}"# && answer.header("etag") == "other")
        // A 412 without the value would make clients write what they make of nothing.
        let tooBig = RPCError.resourceExhausted(reason: "too_big", "The node is too large")
        guard case .answer(let failed) = request.step(after: read, error: tooBig, as: identity) else {
            Issue.record("no response")
            return
        }
        #expect(failed.status == 400)
    }

    @Test func requestWithoutATokenHasNoWrongOne() throws {
        let refusal = RPCError(.unauthenticated, reason: "INVALID_ID_TOKEN", "It is so")
        for (target, text) in [
            ("/.settings/rules.json", "Unauthorized request."), ("/.settings/rules.json?auth=x", "Could not parse"),
        ] {
            let request = try RESTSamples.request("GET", target)
            let operation = try RESTSamples.operation("GET", target)
            let step = request.step(after: operation, error: refusal, as: request.identity())
            guard case .answer(let answer) = step else { throw RESTSamples.UnexpectedAnswer(status: 0) }
            #expect(answer.status == 401 && answer.text.contains(text))
        }
    }

    @Test func indexThatIsBeingBuiltIsAskedForAgain() throws {
        let request = try RESTSamples.request("GET", "/a.json?orderBy=%22n%22")
        let operation = try RESTSamples.operation("GET", "/a.json?orderBy=%22n%22")
        let error = RPCError(.failedPrecondition, reason: "index_building", "The index is being built", retryable: true)
        let step = request.step(after: operation, error: error, as: request.identity())
        #expect(step == .again(otherwise: RESTErrors.unavailable.response()))
    }

    // MARK: Preflight

    @Test func preflightAllowsWhatIsAsked() {
        let head = RESTSamples.head("OPTIONS", "/a.json", [("Access-Control-Request-Headers", "if-match, x-other")])
        let answer = RESTAnswer.preflight(head)
        #expect(answer.status == 204 && answer.body.isEmpty)
        #expect(answer.header("access-control-allow-headers") == "if-match, x-other")
        #expect(answer.header("access-control-allow-methods") == "GET, PUT, POST, PATCH, DELETE, HEAD, OPTIONS")
        #expect(answer.header("access-control-allow-origin") == "*")
        #expect(answer.header("access-control-allow-private-network") == nil)
        let local = RESTSamples.head("OPTIONS", "/a.json", [("Access-Control-Request-Private-Network", "true")])
        #expect(RESTAnswer.preflight(local).header("access-control-allow-private-network") == "true")
        let wrong = RESTSamples.head("OPTIONS", "/a.json", [("Access-Control-Request-Headers", "a\r\nSet-Cookie: x")])
        #expect(RESTAnswer.preflight(wrong).header("access-control-allow-headers")?.contains("if-match") == true)
        #expect(RESTAnswer.preflight(wrong).header("access-control-allow-headers")?.contains("Cookie") == false)
    }
}
