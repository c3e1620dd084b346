import HatoModel
import Testing

@testable import HatoFirebase

/// FCM HTTP v1 (spec notifier §2).
@Suite struct FCMMessageTests {
    @Test func aTextForATokenIsSent() throws {
        let call = try PushSample.call(of: [
            "token": "t1", "notification": ["title": "サザエさん", "body": "今行きます", "image": "https://e.example/a.png"],
            "data": ["room": "r1"],
        ])
        #expect(call.method == "notifier.send")
        let expected: JSONObject = [
            "to": ["tokens": [["platform": "fcm", "token": "t1"]]],
            "notification": ["title": "サザエさん", "body": "今行きます"],
            "options": ["priority": "high", "ttlSeconds": 2_419_200, "image": "https://e.example/a.png"],
            "data": ["room": "r1"],
        ]
        #expect(JSONValue.object(call.params) == .object(expected))
    }

    @Test func membersOfPlatformsPassThrough() throws {
        let android: JSONValue = [
            "priority": "NORMAL", "ttl": "3600.5s", "collapseKey": "k", "restrictedPackageName": "com.example",
            "notification": ["channelId": "messages", "lightSettings": ["lightOnDuration": "1s"]],
            "data": ["camelCase": "x"],
        ]
        let apns: JSONValue = [
            "headers": ["apns-priority": "10"], "payload": ["aps": ["badge": 3], "roomId": "r1"],
            "fcmOptions": ["analyticsLabel": "l"],
        ]
        let message: JSONObject = ["token": "t1", "notification": ["body": "x"], "android": android, "apns": apns]
        let call = try PushSample.call(of: .object(message))
        #expect(call.params["options"] == ["priority": "normal", "ttlSeconds": 3_601, "collapseKey": "k"])
        let passed: JSONValue = [
            "apns": [
                "headers": ["apns-priority": "10"], "payload": ["aps": ["badge": 3], "roomId": "r1"],
                "fcm_options": ["analytics_label": "l"],
            ],
            "android": [
                "restricted_package_name": "com.example",
                "notification": ["channel_id": "messages", "light_settings": ["light_on_duration": "1s"]],
                "data": ["camelCase": "x"],
            ],
        ]
        #expect(call.params["platforms"] == ["fcm": passed])
    }

    /// A topic has devices that are reached without FCM.
    @Test func topicsReachAllPlatforms() throws {
        let call = try PushSample.call(of: [
            "topic": "/topics/news", "notification": ["title": "x"],
            "apns": ["headers": ["apns-priority": "5"], "payload": ["aps": ["badge": 1], "a": "b"]],
            "webpush": ["notification": ["icon": "i"], "fcm_options": ["link": "https://e.example/"]],
        ])
        #expect(call.params["to"] == ["topic": "news"])
        #expect(call.params["options"]?["link"] == "https://e.example/")
        #expect(
            call.params["platforms"]?["apns"]
                == ["headers": ["apns-priority": "5"], "aps": ["badge": 1], "payload": ["a": "b"]])
        #expect(call.params["platforms"]?["webpush"] == ["notification": ["icon": "i"]])
    }

    @Test func typedDataNamesItsType() throws {
        let call = try PushSample.call(of: [
            "token": "t", "notification": ["title": "x"], "data": ["transition_type": "room", "room_id": "1"],
        ])
        #expect(call.params["type"] == "room" && call.params["data"] == ["room_id": "1"])
    }

    @Test func dataAloneIsSentToTheToken() throws {
        let call = try PushSample.call(
            of: [
                "token": "t", "data": ["a": "b"], "android": ["priority": "high", "ttl": "0s"],
                "apns": [
                    "headers": ["apns-priority": "5", "apns-push-type": "background"],
                    "payload": ["aps": ["content-available": 1]],
                ],
            ], validatesOnly: true)
        #expect(call.method == "notifier.sendToDevice")
        let expected: JSONObject = [
            "token": "t", "payload": ["data": ["a": "b"]],
            "options": ["priority": "high", "timeToLive": 0, "contentAvailable": true, "dryRun": true],
        ]
        #expect(JSONValue.object(call.params) == .object(expected))
    }

    /// Apple's devices show an alert with buttons, and the app shows something itself on Android.
    @Test func anAlertOfApplePassesThroughWithItsData() throws {
        let call = try PushSample.call(of: [
            "token": "t", "data": ["room": "r1"], "android": ["priority": "high"],
            "apns": [
                "headers": ["apns-collapse-id": "r1"],
                "payload": [
                    "aps": ["alert": ["title": "マスオさん", "body": "ただいま"], "category": "REPLY", "mutable-content": 1],
                    "sender": ["name": "マスオ"],
                ],
            ],
        ])
        #expect(call.method == "notifier.send")
        let apns: JSONValue = [
            "headers": ["apns-collapse-id": "r1", "apns-priority": "10"],
            "payload": [
                "aps": ["alert": ["title": "マスオさん", "body": "ただいま"], "category": "REPLY", "mutable-content": 1],
                "sender": ["name": "マスオ"],
            ],
        ]
        let expected: JSONObject = [
            "to": ["tokens": [["platform": "fcm", "token": "t"]]],
            "options": ["priority": "high", "ttlSeconds": 2_419_200], "platforms": ["fcm": ["apns": apns]],
            "data": ["room": "r1"],
        ]
        #expect(JSONValue.object(call.params) == .object(expected))
    }

    /// Each of them as it came, and urgent when Android shows something.
    @Test func whatStandsWithAPlatformPassesThrough() throws {
        let rows: [(JSONValue, String)] = [
            (["android": ["notification": ["title": "x", "channel_id": "c"]]], "high"),
            (["webpush": ["notification": ["title": "x"], "headers": ["Urgency": "high"]]], "normal"),
            (["apns": ["payload": ["aps": ["content-available": 1], "room": "r1"]]], "normal"),
            (["apns": ["headers": ["apns-priority": "10"]]], "normal"),
            (["apns": ["payload": ["aps": ["badge": 3]]]], "normal"),
            (["android": ["data": ["a": "c"], "direct_boot_ok": true]], "normal"),
            (["fcm_options": ["analytics_label": "l"]], "normal"),
            (["notification": ["image": "https://e.example/a.png"]], "high"),
        ]
        for (members, priority) in rows {
            var message: JSONObject = ["token": "t", "data": ["a": "b"]]
            for member in members.object?.members ?? [] { message[member.name] = member.value }
            let call = try PushSample.call(of: .object(message))
            #expect(call.method == "notifier.send" && call.params["notification"] == nil, "\(members)")
            #expect(call.params["platforms"] == ["fcm": members], "\(members)")
            #expect(call.params["options"]?["priority"]?.string == priority, "\(members)")
            #expect(call.params["data"] == ["a": "b"])
        }
        let silent = try PushSample.call(of: ["token": "t", "apns": ["payload": ["aps": ["content-available": 1]]]])
        #expect(silent.method == "notifier.send" && silent.params["data"] == nil)
        let kept: JSONValue = ["token": "t", "data": ["a": "b"], "webpush": [:], "fcm_options": nil]
        #expect(try PushSample.call(of: kept).method == "notifier.sendToDevice")
    }

    @Test func topicsNeedAText() throws {
        let texts: [JSONValue] = [
            ["apns": ["payload": ["aps": ["alert": "x"]]]], ["android": ["notification": ["body_loc_key": "k"]]],
            ["webpush": ["notification": ["title": "x"]]],
        ]
        for members in texts {
            var message: JSONObject = ["topic": "news"]
            for member in members.object?.members ?? [] { message[member.name] = member.value }
            #expect(try PushSample.call(of: .object(message)).params["to"] == ["topic": "news"], "\(members)")
        }
        let call = try PushSample.call(of: ["topic": "news", "apns": ["payload": ["aps": ["alert": "x"]]]])
        #expect(call.params["platforms"]?["apns"] == ["headers": ["apns-priority": "10"], "aps": ["alert": "x"]])
        let others: [JSONValue] = [
            ["data": ["a": "b"]], ["data": ["a": "b"], "android": ["notification": ["channel_id": "c"]]],
        ]
        for members in others {
            var message: JSONObject = ["topic": "news"]
            for member in members.object?.members ?? [] { message[member.name] = member.value }
            let fault = try PushSample.fault(of: .object(message))
            #expect(fault.map { "\($0)".hasPrefix("unsupported(\"message.notification\"") } == true, "\(members)")
        }
        #expect(try PushSample.fault(of: ["token": "t"]) != nil)
    }

    @Test func wrongMessagesAreRefusedByName() throws {
        let shown: JSONValue = ["title": "x"]
        let rows: [(JSONValue, PushFault)] = [
            (["notification": shown], .wrong("message", "Recipient of the message is not set.")),
            (
                ["token": "t", "topic": "n", "notification": shown],
                .wrong("message", "oneof field 'target' is already set. Cannot set 'topic'")
            ),
            (
                ["token": 5, "notification": shown],
                .wrong("message.token", "Invalid value at 'message.token': a string is expected")
            ),
            (
                ["topic": "a b", "notification": shown],
                .wrong(
                    "message.topic",
                    "'message.topic' has letters, digits and the characters -_.~% alone, e.g. news_en")
            ),
            (["token": "t", "foo": 1, "notification": shown], .unknown("foo", in: "message")),
            (["token": "t", "notification": ["badge": "1"]], .unknown("badge", in: "message.notification")),
            (
                ["token": "t", "notification": shown, "data": ["a": 1]],
                .wrong("message.data.a", "Invalid value at 'message.data.a': a string is expected")
            ),
            (
                ["token": "t", "notification": shown, "android": ["priority": "urgent"]],
                .wrong("message.android.priority", "'message.android.priority' is HIGH or NORMAL")
            ),
            (
                ["token": "t", "notification": shown, "android": ["collapseKey": "a", "collapse_key": "b"]],
                .wrong("message.android.collapse_key", "'message.android.collapse_key' is there twice")
            ),
        ]
        for (message, fault) in rows { #expect(try PushSample.fault(of: message) == fault, "\(message)") }
        for ttl in ["", "5", "s", "-1s", "1e3s", "2419201s", "1.s.s", "99999999999999999999999s"] {
            let message: JSONValue = ["token": "t", "notification": shown, "android": ["ttl": .string(ttl)]]
            #expect((try PushSample.fault(of: message) == nil) == ttl.isEmpty, "\(ttl)")
        }
        for name in ["condition", "fid"] {
            let fault = try PushSample.fault(of: .object([name: "x", "notification": shown]))
            #expect(fault.map { "\($0)".hasPrefix("unsupported(\"message.\(name)\"") } == true)
        }
        for body: JSONValue in [[:], ["message": []], ["message": nil], ["message": [:], "x": 1]] {
            #expect(throws: PushFault.self) { try PushSample(PushSample.v1).call(body) }
        }
    }

    // MARK: Responses

    private let request: PushRequest
    private let send: PushRequest.Call

    init() throws {
        request = try PushSample(PushSample.v1).request
        send = try PushSample.call(of: ["token": "t", "notification": ["title": "x"]])
    }

    private func response(to call: PushRequest.Call, _ result: JSONValue) -> RESTAnswer {
        request.response(to: call, result: result.encoded)
    }

    @Test func namesAreTheIdsOfNotifications() throws {
        let sent = response(to: send, ["notification": "ntf_1", "recipients": 1])
        #expect(sent.status == 200 && sent.json == ["name": "projects/hato/messages/ntf_1"])
        let topic = try PushSample.call(of: ["topic": "t", "notification": ["title": "x"]])
        #expect(response(to: topic, ["notification": "ntf_1", "recipients": 0]).status == 200)
        let gone = response(to: send, ["notification": "ntf_1", "recipients": 0])
        #expect(gone.status == 404 && gone.json["error"]?["details"]?.array?.first?["errorCode"] == "UNREGISTERED")
        #expect(response(to: send, ["recipients": 1]).json == ["name": "projects/hato/messages/fake_message_id"])
        let silent = try PushSample.call(of: ["token": "t", "data": ["a": "b"]])
        let delivered = response(to: silent, ["results": [["messageId": "ntf_1-0"]]])
        #expect(delivered.json == ["name": "projects/hato/messages/ntf_1-0"])
    }

    @Test(arguments: [
        ("registration-token-not-registered", 404, "UNREGISTERED"),
        ("invalid-registration-token", 400, "INVALID_ARGUMENT"),
        ("mismatched-credential", 403, "SENDER_ID_MISMATCH"), ("server-unavailable", 503, "UNAVAILABLE"),
        ("payload-size-limit-exceeded", 400, "INVALID_ARGUMENT"),
    ])
    func refusedTokensHaveTheCodesOfFCM(_ code: String, _ status: Int, _ errorCode: String?) throws {
        let silent = try PushSample.call(of: ["token": "t", "data": ["a": "b"]])
        let error: JSONValue = ["code": .string("messaging/\(code)"), "message": "no"]
        let refused = response(to: silent, ["results": [["error": error]]])
        #expect(refused.status == status)
        #expect(refused.json["error"]?["details"]?.array?.first?["errorCode"]?.string == errorCode)
    }

    @Test func errorsHaveTheFormOfGoogle() {
        let rows: [(RPCError, Int, String, String?)] = [
            (.unauthenticated(reason: "INVALID_ID_TOKEN", "no"), 401, "UNAUTHENTICATED", nil),
            (.permissionDenied("no"), 403, "PERMISSION_DENIED", nil),
            (
                .invalidArgument("to.tokens.0.token", reason: "invalid_token", "no"), 400, "INVALID_ARGUMENT",
                "INVALID_ARGUMENT"
            ),
            (.invalidArgument("data", reason: "too_big", "no"), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            // With 404, SDKs would forget the token.
            (.notFound(reason: "device_not_found", "no"), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            (.failedPrecondition(reason: "app_not_configured", "no"), 400, "FAILED_PRECONDITION", nil),
            (.resourceExhausted(reason: "busy", "no", retryAfterMs: 1), 503, "UNAVAILABLE", "UNAVAILABLE"),
            (.resourceExhausted(reason: "too_many_fan_outs", "no", retryAfterMs: 1), 503, "UNAVAILABLE", "UNAVAILABLE"),
            (
                .resourceExhausted(reason: "too_many_attempts", "no", retryAfterMs: 1), 429, "RESOURCE_EXHAUSTED",
                "QUOTA_EXCEEDED"
            ),
            (.unavailable(reason: "cannot_connect", "no"), 503, "UNAVAILABLE", "UNAVAILABLE"),
            // SDKs would send again.
            (.unavailable(reason: "connection_lost", "no"), 504, "DEADLINE_EXCEEDED", nil),
            (RPCError(.unavailable, reason: "outcome_unknown", "no"), 504, "DEADLINE_EXCEEDED", nil),
            (.internalError, 500, "INTERNAL", "INTERNAL"),
        ]
        for (error, status, name, errorCode) in rows {
            let shown = request.response(to: error, of: send)
            #expect(shown.status == status && shown.json["error"]?["status"]?.string == name, "\(error)")
            #expect(shown.json["error"]?["code"]?.integer == Int64(status))
            #expect(shown.json["error"]?["details"]?.array?.first?["errorCode"]?.string == errorCode, "\(error)")
        }
        let busy = request.response(to: PushFault.busy)
        #expect(busy.status == 503 && busy.header("retry-after") == "1")
    }

    /// The details name the member as the message has it.
    @Test func wrongMembersHaveTheirPaths() throws {
        let rows: [(String, String, String, String?)] = [
            (
                "platforms", "platforms.fcm.android.notification.badge is not known; it has others",
                "message.android.notification",
                FCMFields.unknown("badge", in: "message.android.notification")
            ),
            (
                "platforms", "platforms.fcm.android.notification.color should be a colour",
                "message.android.notification.color", "message.android.notification.color should be a colour"
            ),
            ("options.ttlSeconds", "no", "message.android.ttl", nil), ("payload.data", "no", "message.data", nil),
            ("notification.title", "no", "message.notification.title", nil),
            ("platforms", "platforms.apns.aps is wrong", "message", nil),
        ]
        for (parameter, words, field, shown) in rows {
            let error = RPCError.invalidArgument(parameter, reason: "r", words)
            let response = request.response(to: error, of: send).json["error"]
            let violation = response?["details"]?.array?.last?["fieldViolations"]?.array?.first
            #expect(violation?["field"]?.string == field)
            #expect(response?["message"]?.string == shown ?? words)
            #expect(violation?["description"] == response?["message"])
        }
        let token = RPCError.invalidArgument("to.tokens.0.token", reason: "invalid_token", "no")
        let details = request.response(to: token, of: send).json["error"]?["details"]?.array
        #expect(details?.first?["errorCode"] == "INVALID_ARGUMENT")
        // A violation of a field would say that the token may be right.
        #expect(details?.contains { $0["fieldViolations"] != nil } == false)
    }

    @Test func unknownNamesAreSaidAsGoogleDoes() {
        let shown = request.response(to: PushFault.unknown("badge", in: "message.android.notification")).json["error"]
        #expect(
            shown?["message"]
                == .string(
                    "Invalid JSON payload received. Unknown name \"badge\" at 'message.android.notification': "
                        + "Cannot find field."))
        #expect(shown?["details"]?.array?.last?["@type"] == "type.googleapis.com/google.rpc.BadRequest")
    }
}
