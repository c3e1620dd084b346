import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct PushRequestTests {
    @Test(arguments: [
        ("/v1/projects/hato/messages:send", true), ("/fcm.googleapis.com/v1/projects/hato/messages:send", true),
        ("/v1/projects/demo-1:a.b/messages:send?alt=json", true), ("/fcm/send", true), ("/respond", true),
        ("/v1/projects//messages:send", false), ("/v1/projects/a/b/messages:send", false),
        ("/v1/projects/a%22/messages:send", false), ("/v1/projects/hato/accounts", false), ("/fcm/send/", false),
        ("/respond.json", false), ("/fcm.googleapis.com", false),
    ])
    func pathsAreKnown(_ target: String, _ isKnown: Bool) {
        #expect((PushRequest(RESTHead(method: "POST", target: target)) != nil) == isKnown, "\(target)")
    }

    @Test func theCallerAndTheAddressAreThoseOfTheRequest() throws {
        let sample = try PushSample(PushSample.v1)
        let call = try sample.call(["message": ["token": "t", "notification": ["title": "x"]]])
        let params = try JSONParser.parse(sample.request.params(of: call, from: "203.0.113.7"))
        #expect(params["auth"] == "key" && params["from"] == "203.0.113.7" && params["as"] == nil)
        let report = try PushSample("/respond", credential: nil)
        let given: JSONValue = ["notification": "n", "auth": "token"]
        let own = try JSONParser.parse(report.request.params(of: report.call(given), from: "203.0.113.7"))
        #expect(own == ["notification": "n", "auth": "token", "from": "203.0.113.7"])
    }

    /// They would count for another client, or for another user, than the one that the caller means.
    @Test func reportsNameNoOther() throws {
        let report = try PushSample("/respond", credential: nil)
        for name in ["from", "as"] {
            let fault = #expect(throws: PushFault.unknown(name, in: "body")) {
                try report.call(.object(["notification": "n", name: "x"]))
            }
            #expect(report.request.response(to: try #require(fault)).status == 400)
        }
        let both = try PushSample("/respond", credential: "Bearer k")
        #expect(throws: PushFault.self) { try both.call(["notification": "n", "auth": "token"]) }
    }

    /// A body of a request that nothing can come of is not read.
    @Test func theHeadRefusesWhatTheBodyCannotMend() throws {
        for target in [PushSample.v1, PushSample.legacy] {
            #expect(try PushSample(target, credential: nil).request.headFault == .noCredential)
            #expect(try PushSample(target, method: "PUT").request.headFault == .method)
        }
        let report = try PushSample("/respond", credential: nil).request
        #expect(report.headFault == nil && report.isReport)
        #expect(try PushSample(PushSample.v1).request.headFault == nil)
    }

    @Test func schemesOfCredentials() throws {
        for (target, header, credential) in [
            (PushSample.v1, "bearer  k ", "k"), (PushSample.legacy, "key=k", "k"), (PushSample.legacy, "Bearer k", "k"),
            ("/respond", "Bearer k", "k"),
        ] {
            let request = try PushSample(target, credential: header).request
            let params = request.params(of: .init(method: "m", params: [:]), from: "::1")
            #expect(try JSONParser.parse(params)["auth"]?.string == credential, "\(header)")
        }
        for (target, header) in [(PushSample.v1, "key=k"), (PushSample.v1, "Basic k"), (PushSample.legacy, "k")] {
            #expect(throws: PushFault.noCredential) { try PushSample(target, credential: header).call([:]) }
        }
    }

    @Test func wrongRequestsHaveTheirResponses() throws {
        for target in [PushSample.v1, PushSample.legacy, "/respond"] {
            let wrong = try PushSample(target, method: "GET")
            #expect(throws: PushFault.method) { try wrong.call([:]) }
            let response = wrong.request.response(to: PushFault.method)
            #expect(response.status == 405 && response.header("allow") == "POST, OPTIONS")
            let request = try PushSample(target).request
            for body in ["", "[]", "{", "{\"a\":1,\"a\":2}", "\"\u{0}\"", "nul"] {
                let fault = #expect(throws: PushFault.self) { try request.call(Array(body.utf8), memoryMax: 1_000) }
                #expect(request.response(to: try #require(fault)).status == 400, "\(body)")
            }
            let many = "{\"message\":[" + String(repeating: "[],", count: 1_000) + "1]}"
            #expect(throws: PushFault.tooLarge) { try request.call(Array(many.utf8), memoryMax: 1_000) }
            #expect(request.response(to: PushFault.tooLarge).status == 400)
            let busy = request.response(to: PushFault.busy)
            #expect(busy.status == (target == "/respond" ? 429 : 503) && busy.header("retry-after") == "1")
        }
        #expect(try PushSample(PushSample.v1).request.response(to: PushFault.noCredential).status == 401)
        #expect(try PushSample(PushSample.legacy).request.response(to: PushFault.noCredential).status == 401)
    }

    @Test func errorsOfReportsAreThoseOfTheService() throws {
        let request = try PushSample("/respond", credential: nil).request
        let report = PushRequest.Call(method: "notifier.respond", params: [:])
        func response(to error: RPCError) -> RESTAnswer { request.response(to: error, of: report) }
        let rows: [(RPCError, Int)] = [
            (.unauthenticated(reason: "invalid_reply_token", "no"), 401), (.permissionDenied("no"), 403),
            (.notFound(reason: "notification_not_found", "no"), 404),
            (.failedPrecondition(reason: "already_responded", "no", data: ["action": "YES"]), 409),
            (.invalidArgument("action", reason: "unknown_action", "no"), 400),
            (.resourceExhausted(reason: "too_many_reports", "no", retryAfterMs: 1_001), 429),
            (.unavailable(reason: "stopping", "no"), 503), (.internalError, 500),
        ]
        for (error, status) in rows {
            let response = response(to: error)
            #expect(response.status == status, "\(error)")
            #expect(response.json["error"]?["data"]?["reason"]?.string == error.reason)
            #expect(response.json["error"]?["code"]?.integer == Int64(error.code.rawValue))
        }
        let wait = response(to: RPCError.resourceExhausted(reason: "r", "no", retryAfterMs: 1_001))
        #expect(wait.header("retry-after") == "2")
        let lost = response(to: RPCError.unavailable(reason: "cannot_connect", "127.0.0.1:7703 refuses"))
        #expect(!String(decoding: lost.body, as: UTF8.self).contains("7703"))
        let refused = response(to: RPCError.unavailable(reason: "forward_refused", "the key is unknown"))
        #expect(refused.status == 503 && !String(decoding: refused.body, as: UTF8.self).contains("key"))
        let done = request.response(to: report, result: Array("{}".utf8))
        #expect(done.status == 200 && done.json == [:] && done.header("access-control-allow-origin") == "*")
    }
}
