import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTOperationTests {
    private static let hash = "eMfSk0nU+CieTkCbO5r7cKNp7qU="

    @Test(arguments: [
        ("GET", "/a/b.json", #"messages.get {"path":"/a/b"}"#), ("HEAD", "/.json", #"messages.get {"path":"/"}"#),
        ("GET", "/a.json?ns=other", #"messages.get {"database":"other","path":"/a"}"#),
        ("GET", "/a.json?shallow=true&print=pretty", #"messages.get {"path":"/a","shallow":true}"#),
        (
            "GET", "/a.json?shallow=true&limitToFirst=2&startAfter=%22&timeout=500ms",
            #"messages.get {"path":"/a","query":{"orderBy":"$key","startAfter":"\"","limitToFirst":2},"shallow":true}"#
        ),
        ("GET", "/a.json?format=export", #"messages.get {"path":"/a","export":true}"#),
        ("GET", "/a/.priority.json", #"messages.get {"path":"/a/.priority"}"#),
        (
            "GET", "/m.json?orderBy=%22date%22&limitToLast=1&auth=t.o.k",
            #"messages.get {"path":"/m","query":{"orderBy":"date","limitToLast":1},"auth":"t.o.k"}"#
        ),
        ("DELETE", "/a.json", #"messages.remove {"path":"/a"}"#),
        ("GET", "/.settings/rules.json", #"messages.rules.get {}"#),
        ("GET", "/.settings/rules.json?format=strict&auth=k", #"messages.rules.get {"strict":true,"auth":"k"}"#),
        (
            "GET", "/a.json?auth=k&auth_variable_override=%7B%22uid%22:%22u%22%7D",
            #"messages.get {"path":"/a","auth":"k","as":{"variable":{"uid":"u"}}}"#
        ),
        ("GET", "/a.json?auth=k&auth_variable_override=null", #"messages.get {"path":"/a","auth":"k","as":null}"#),
        ("GET", "/a%20%22b.json?auth=%0A%22", #"messages.get {"path":"/a \"b","auth":"\n\""}"#),
    ])
    func readIsACall(method: String, target: String, call: String) {
        #expect(RESTSamples.call(method, target) == call)
    }

    @Test(arguments: [
        ("PUT", "/a.json", "{\"b\":\n1}", #"messages.set {"path":"/a","value":{"b": 1},"echo":true}"#),
        ("PUT", "/a.json?print=silent", "1", #"messages.set {"path":"/a","value":1}"#),
        ("PUT", "/a.json", "null", #"messages.set {"path":"/a","value":null,"echo":true}"#),
        ("PUT", "/a/.priority.json", "3", #"messages.set {"path":"/a/.priority","value":3,"echo":true}"#),
        (
            "POST", "/a.json?auth=t", #"{"text":"ただいま"}"#,
            #"messages.push {"path":"/a","value":{"text":"ただいま"},"auth":"t"}"#
        ),
        ("PATCH", "/a.json", #"{"b/c":1}"#, #"messages.update {"path":"/a","values":{"b/c":1},"echo":true}"#),
        ("PATCH", "/a.json?print=silent", "{}", #"messages.update {"path":"/a","values":{}}"#),
        (
            "PUT", "/.settings/rules.json?dryRun=true", "{\n//\n}",
            #"messages.rules.set {"rules":"{\n//\n}","dryRun":true}"#
        ),
        ("PUT", "/.settings/rules.json?ns=other", "{}", #"messages.rules.set {"database":"other","rules":"{}"}"#),
        (
            "PUT", "/.json?ns=x&disableTriggers=true&writeSizeLimit=unlimited", "{}",
            #"messages.set {"database":"x","path":"/","value":{},"echo":true}"#
        ),
    ])
    func writeIsACall(method: String, target: String, body: String, call: String) {
        #expect(RESTSamples.call(method, target, body: body) == call)
    }

    @Test(
        arguments: [
            ("GET", "x-firebase-etag", "true", #"messages.get {"path":"/a","etag":true}"#),
            ("GET", "X-Firebase-ETag", "false", #"messages.get {"path":"/a"}"#),
            ("GET", "if-none-match", "null_etag", #"messages.get {"path":"/a","etag":true}"#),
            ("PUT", "X-Firebase-ETag", "true", #"messages.set {"path":"/a","value":1,"etag":true,"echo":true}"#),
            (
                "PUT", "if-match", "null_etag",
                #"messages.set {"path":"/a","value":1,"ifMatch":"null_etag","echo":true}"#
            ),
            ("PUT", "if-match", hash, #"messages.set {"path":"/a","value":1,"ifMatch":"\#(hash)","echo":true}"#),
            ("POST", "X-Firebase-ETag", "true", #"messages.push {"path":"/a","value":1,"etag":true}"#),
            ("DELETE", "If-Match", hash, #"messages.remove {"path":"/a","ifMatch":"\#(hash)"}"#),
            ("DELETE", "X-Firebase-ETag", "true", #"messages.remove {"path":"/a"}"#),
            ("PATCH", "X-Firebase-ETag", "true", nil),
        ] as [(String, String, String, String?)])
    func conditionIsAParameter(method: String, header: String, value: String, call: String?) {
        let body = method == "PATCH" ? "{}" : "1"
        let made = RESTSamples.call(method, "/a.json", [(header, value)], body: body)
        #expect(made == call ?? #"messages.update {"path":"/a","values":{},"echo":true}"#)
    }

    @Test(arguments: [
        "invalid-etag", "", "*", "\"\(hash)\"", "W/\"x\"", "あ", hash.lowercased() + "=", "\(hash), \(hash)",
    ])
    func impossibleEtagIsAMismatch(etag: String) {
        #expect(
            RESTSamples.call("DELETE", "/a.json", [("if-match", etag)])
                == #"messages.remove {"path":"/a","ifMatch":"AAAAAAAAAAAAAAAAAAAAAAAAAAA="}"#)
    }

    @Test func streamIsAListener() {
        let accept = [(name: "Accept", value: "text/event-stream")]
        #expect(RESTSamples.call("GET", "/a.json?format=export", accept) == #"messages.listen {"path":"/a"}"#)
        #expect(
            RESTSamples.call("GET", "/a.json?orderBy=%22$key%22&limitToLast=2&auth=t", accept)
                == #"messages.listen {"path":"/a","query":{"orderBy":"$key","limitToLast":2},"auth":"t"}"#)
    }

    @Test func identityOfTheGatewayIsUsed() throws {
        let request = try RESTSamples.request("GET", "/a.json?auth=unsigned")
        let identity = RESTIdentity(auth: "key", as: Array(#"{"uid":"u"}"#.utf8), from: "192.0.2.1")
        guard case .call(let operation) = try request.start([], as: identity) else {
            Issue.record("no call")
            return
        }
        #expect(operation.text == #"{"path":"/a","auth":"key","as":{"uid":"u"},"from":"192.0.2.1"}"#)
        #expect(request.identity(from: "192.0.2.1") == RESTIdentity(auth: "unsigned", from: "192.0.2.1"))
    }

    @Test func rulesAreText() {
        for (body, error): ([UInt8], RESTError) in [
            ([], RESTErrors.noData), ([0x20], RESTErrors.noData), ([0xFF], RESTErrors.invalidRules),
        ] {
            #expect(throws: error) {
                let request = try RESTSamples.request("PUT", "/.settings/rules.json")
                _ = try request.start(body, as: request.identity())
            }
        }
    }

    @Test func coverageIsEmpty() throws {
        let request = try RESTSamples.request("GET", "/.inspect/coverage.json")
        guard case .answer(let answer) = try request.start([], as: request.identity()) else {
            Issue.record("a call")
            return
        }
        #expect(answer.status == 200 && answer.text == "{}")
    }

    /// A line protocol is behind these calls: whatever a client sends, one call is one line.
    @Test func callHasNoLineEnd() throws {
        let target = "/a.json?auth=a%0Ab%0D&auth_variable_override=%7B%0A%22a%22:%22%5Cn%22%0D%7D"
        for body in ["{\n\"a\"\r\n:\"\\n\"}", "\r1\n"] {
            let operation = try RESTSamples.operation("PUT", target, body: body)
            #expect(!operation.params.contains(0x0A) && !operation.params.contains(0x0D))
            #expect(throws: Never.self) { try JSONParser.parse(operation.params) }
        }
        let rules = try RESTSamples.operation("PUT", "/.settings/rules.json", body: "{\r\n}")
        #expect(!rules.params.contains(0x0A) && !rules.params.contains(0x0D))
    }
}
