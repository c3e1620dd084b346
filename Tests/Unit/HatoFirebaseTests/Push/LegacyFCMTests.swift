import HatoModel
import Testing

@testable import HatoFirebase

/// FCM's old HTTP interface (spec notifier §2).
@Suite struct LegacyFCMTests {
    private let sample: PushSample

    init() throws { sample = try PushSample(PushSample.legacy, credential: "key=k") }

    private func fault(_ body: JSONValue) -> PushFault? {
        do throws(PushFault) {
            _ = try sample.call(body)
            return nil
        } catch { return error }
    }

    @Test func theOldCallBecomesSendToDevice() throws {
        let call = try sample.call([
            "to": "t1", "priority": "high", "time_to_live": "60", "collapse_key": "k", "content_available": true,
            "notification": [
                "title": "マスオさん", "badge": 1, "click_action": "OPEN", "body_loc_args": ["a"],
                "android_channel_id": "messages",
            ],
            "data": ["n": 1, "s": "x", "o": ["a": true]], "unknown": 1,
        ])
        #expect(call.method == "notifier.sendToDevice")
        let expected: JSONObject = [
            "token": "t1",
            "payload": [
                "notification": ["title": "マスオさん", "badge": "1", "clickAction": "OPEN", "bodyLocArgs": "[\"a\"]"],
                "data": ["n": "1", "s": "x", "o": "{\"a\":true}"],
            ],
            "options": ["priority": "high", "timeToLive": 60, "collapseKey": "k", "contentAvailable": true],
        ]
        #expect(JSONValue.object(call.params) == .object(expected))
        let several = try sample.call(["registration_ids": ["a", "b"], "data": ["a": "b"], "dry_run": true])
        #expect(several.params["token"] == ["a", "b"] && several.params["options"] == ["dryRun": true])
    }

    @Test func topicsAreSent() throws {
        let call = try sample.call([
            "to": "/topics/news", "notification": ["title": "t", "sound": "default", "badge": "2"],
            "data": ["transition_type": "room", "a": "b"], "priority": 5,
        ])
        #expect(call.method == "notifier.send" && call.params["to"] == ["topic": "news"])
        #expect(
            call.params["options"]
                == ["priority": "normal", "ttlSeconds": 2_419_200, "sound": "default", "badge": 2])
        #expect(call.params["type"] == "room" && call.params["data"] == ["a": "b"])
        let sent = sample.request.response(to: call, result: Array(#"{"notification":"ntf_1","recipients":2}"#.utf8))
        let id = sent.json["message_id"]?.integer
        #expect(sent.status == 200 && id.map { $0 > 0 } == true)
    }

    @Test func wrongMessagesAreRefused() {
        let data: JSONValue = ["a": "b"]
        #expect(fault(["data": data]) == .refused("MissingRegistration", tokens: 1))
        let rows: [JSONValue] = [
            ["to": "t", "registration_ids": ["a"]], ["registration_ids": []], ["registration_ids": [1]],
            ["registration_ids": "a"], ["condition": "'a' in topics"], ["to": 5], ["to": "t", "data": 5],
            ["to": "t", "priority": "urgent"], ["to": "t", "dry_run": "true"], ["to": "/topics/n", "data": data],
        ]
        for row in rows {
            let fault = fault(row)
            #expect(fault != nil, "\(row)")
            if let fault { #expect(sample.request.response(to: fault).status == 400, "\(row)") }
        }
    }

    /// The response has a result for each token, before any key is checked.
    @Test func aMessageHasAThousandTokensAtMost() throws {
        func message(_ count: Int) -> JSONValue {
            ["registration_ids": .array(Array(repeating: "", count: count)), "time_to_live": -1]
        }
        #expect(fault(message(1_000)) == .refused("InvalidTtl", tokens: 1_000))
        let response = sample.request.response(to: try #require(fault(message(1_001))))
        #expect(response.status == 400)
        #expect(response.json == ["error": "\"registration_ids\" is a list of 1 to 1000 strings"])
    }

    @Test(arguments: ["", "news/家族", "a b", "家族", "a/b", "/topics/a", "a\n"])
    func namesOfTopicsAreThoseOfFCM(_ name: String) throws {
        let shown: JSONValue = ["title": "x"]
        let refused = try #require(fault(["to": .string("/topics/\(name)"), "notification": shown]))
        #expect(sample.request.response(to: refused).status == 400)
        let known = try sample.call(["to": "/topics/aZ09-_.~%", "notification": shown])
        #expect(known.params["to"] == ["topic": "aZ09-_.~%"])
    }

    /// Libraries read the results, and take another status for a failure of their own.
    @Test func someErrorsStandAmongTheResults() throws {
        let topic: JSONValue = "/topics/n"
        let rows: [(body: JSONValue, name: String, count: Int?)] = [
            (["data": ["a": "b"]], "MissingRegistration", 1), (["to": "t", "time_to_live": -1], "InvalidTtl", 1),
            (["to": "t", "time_to_live": "x"], "InvalidTtl", 1), (["to": "t", "time_to_live": 1e300], "InvalidTtl", 1),
            (["registration_ids": ["a", "b", "c"], "time_to_live": -1], "InvalidTtl", 3),
            (["to": topic, "notification": ["title": "x"], "time_to_live": -1], "InvalidTtl", nil),
        ]
        for (body, name, count) in rows {
            let response = sample.request.response(to: try #require(fault(body)))
            #expect(response.status == 200 && response.json == Self.refused(name, count), "\(body)")
        }
        let one = try sample.call(["to": "t", "data": ["a": "b"]])
        let several = try sample.call(["registration_ids": ["a", "b", "c"], "data": ["a": "b"]])
        let ofTopic = try sample.call(["to": topic, "notification": ["title": "x"]])
        for (reason, name) in [
            ("too_big", "MessageTooBig"), ("invalid_ttl", "InvalidTtl"), ("invalid_data", "InvalidDataKey"),
        ] {
            let refused = RPCError.invalidArgument("payload.data", reason: reason, "no")
            for (call, count) in [(one, 1), (several, 3), (ofTopic, nil)] as [(PushRequest.Call, Int?)] {
                let response = sample.request.response(to: refused, of: call)
                #expect(response.status == 200 && response.json == Self.refused(name, count), "\(call)")
            }
        }
        // Which tokens it names is not known.
        let large = sample.request.response(to: PushFault.tooLarge)
        #expect(large.status == 400 && large.json == ["error": "MessageTooBig"])
        let empty = try sample.call(["to": "t", "notification": ["title": "x", "sound": "", "badge": ""]])
        #expect(empty.params["payload"] == ["notification": ["title": "x"]])
    }

    /// - Parameter count: results; nil: those of a topic, which has none.
    private static func refused(_ name: String, _ count: Int?) -> JSONValue {
        let error: JSONValue = ["error": .string(name)]
        guard let count else { return error }
        return [
            "multicast_id": 0, "success": 0, "failure": .number(Double(count)), "canonical_ids": 0,
            "results": .array(Array(repeating: error, count: count)),
        ]
    }

    @Test func resultsHaveTheWordsOfFCM() throws {
        let call = try sample.call(["registration_ids": ["a", "b", "c"], "data": ["a": "b"]])
        let result: JSONValue = [
            "results": [
                ["messageId": "ntf_1-0"],
                ["error": ["code": "messaging/registration-token-not-registered", "message": "no"]],
                ["error": ["code": "messaging/other", "message": "no"]],
            ], "successCount": 1, "failureCount": 2, "multicastId": 7,
        ]
        let shown = sample.request.response(to: call, result: result.encoded)
        #expect(
            shown.json == [
                "multicast_id": 7, "success": 1, "failure": 2, "canonical_ids": 0,
                "results": [["message_id": "ntf_1-0"], ["error": "NotRegistered"], ["error": "Unavailable"]],
            ])
    }

    @Test func errorsHaveTheStatusOfFCM() throws {
        let call = try sample.call(["to": "t", "data": ["a": "b"]])
        let rows: [(RPCError, Int)] = [
            (.unauthenticated(reason: "INVALID_ID_TOKEN", "no"), 401), (.permissionDenied("no"), 401),
            (.invalidArgument("payload", reason: "invalid_badge", "no"), 400),
            (.unavailable(reason: "stopping", "no"), 503),
            (.resourceExhausted(reason: "busy", "no", retryAfterMs: 1), 503),
            (.unavailable(reason: "connection_lost", "no"), 504), (.internalError, 500),
        ]
        for (error, status) in rows {
            #expect(sample.request.response(to: error, of: call).status == status, "\(error)")
        }
        let unavailable = RPCError.unavailable(reason: "r", "no")
        #expect(sample.request.response(to: unavailable, of: call).header("retry-after") == "1")
    }
}
