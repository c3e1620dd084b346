import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import TestFirebase
import Testing

/// FCM's interfaces, and reports of users, over the built gateway (spec notifier §2).
@Suite(.timeLimit(.minutes(10)))
struct PushRequests {
    private static let bearer = ["Authorization: Bearer \(ServingProgram.administratorKey)"]

    /// Posts a body as JSON.
    private static func post(
        _ target: String, _ body: JSONValue, _ headers: [String] = bearer, on stack: GatewayStack
    ) throws -> HTTPResponseText {
        let socket = try PlainSocket(stack.gateway.address)
        return try HTTPResponseText.of("POST \(target)", headers, body: EncodedJSON(body).text, on: socket)
    }

    /// Looks again behind each of some requests, until something is true.
    private static func wait(_ what: String, on stack: GatewayStack, until isTrue: () -> Bool) throws {
        let (socket, deadline) = (try PlainSocket(stack.gateway.address), ContinuousClock.now + .seconds(240))
        while !isTrue() {
            guard ContinuousClock.now < deadline else { throw DeadlineExceeded(what) }
            _ = try HTTPResponseText.of("GET /healthz", on: socket)
        }
    }

    private func run(
        _ firebase: FCMStandIn, _ arguments: [String] = [],
        _ body: @Sendable @escaping (GatewayStack) throws -> Void
    ) async throws {
        let result: Result<Void, any Error>
        do {
            try await GatewayStack.run(
                rules: ["rules": [:]], .init(notifier: ["--apps-file", firebase.appsFile] + arguments), body)
            result = .success(())
        } catch { result = .failure(error) }
        await firebase.stop()
        try result.get()
    }

    @Test func messagesReachThePhone() async throws {
        let error: JSONValue = [
            "code": 404, "status": "NOT_FOUND", "message": "no",
            "details": [
                ["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"]
            ],
        ]
        let gone = HTTPResponse(status: 404, body: EncodedJSON(["error": error]).bytes)
        let kept = Kept()
        let firebase = try await FCMStandIn { message in
            if message["token"] == "gone" { return gone }
            kept.add(message)
            return nil
        }
        try await run(firebase) { stack in
            let v1 = "/v1/projects/hato/messages:send"
            let message: JSONValue = [
                "token": "phone", "notification": ["title": "サザエさん", "body": "今行きます👨‍👩‍👧"], "data": ["room": "r1"],
                "android": ["notification": ["channel_id": "messages"]],
            ]
            let sent = try Self.post(v1, ["message": message], on: stack)
            #expect(sent.status == 200 && sent.json?["name"]?.string?.hasPrefix("projects/hato/messages/ntf_") == true)
            let silent = try Self.post(v1, ["message": ["token": "phone", "data": ["a": "b"]]], on: stack)
            #expect(silent.status == 200)
            // Apple's devices show it with buttons, and Android's app shows something itself.
            let alert: JSONValue = [
                "token": "phone", "data": ["room": "r2"], "android": ["priority": "high"],
                "apns": ["payload": ["aps": Self.aps, "sender": ["name": "マスオ"]]],
            ]
            #expect(try Self.post(v1, ["message": alert], on: stack).status == 200)
            let refused = try Self.post(v1, ["message": ["token": "gone", "data": ["a": "b"]]], on: stack)
            #expect(refused.status == 404)
            #expect(refused.json?["error"]?["details"]?.array?.first?["errorCode"] == "UNREGISTERED")
            let legacy: JSONValue = [
                "registration_ids": ["phone", "gone"], "notification": ["title": "マスオさん", "badge": "1"],
            ]
            let key = ["Authorization: key=\(ServingProgram.administratorKey)"]
            let old = try Self.post("/fcm/send", legacy, key, on: stack)
            #expect(old.json?["success"] == 1 && old.json?["failure"] == 1)
            #expect(old.json?["results"]?.array?.last == ["error": "NotRegistered"])
            try Self.wait("all came", on: stack) { kept.messages.count == 4 }
        }
        let apple = kept.messages.first { $0["data"]?["room"] == "r2" }
        #expect(apple?["notification"] == nil && apple?["android"]?["notification"] == nil)
        #expect(apple?["android"]?["priority"] == "HIGH")
        #expect(apple?["apns"]?["payload"] == ["aps": Self.aps, "sender": ["name": "マスオ"]])
        #expect(apple?["apns"]?["headers"]?["apns-push-type"] == "alert")
        #expect(apple?["apns"]?["headers"]?["apns-priority"] == "10")
        let shown = kept.messages.first { $0["data"]?["room"] == "r1" }
        #expect(shown?["notification"]?["body"] == "今行きます👨‍👩‍👧")
        #expect(shown?["android"]?["notification"]?["channel_id"] == "messages")
    }

    private static let aps: JSONValue = [
        "alert": ["title": "マスオさん", "body": "ただいま"], "category": "REPLY", "mutable-content": 1,
    ]

    /// Senders do not know what the operator has set.
    @Test func messagesAreKeptForAsLongAsTheNotifierKeepsAny() async throws {
        let firebase = try await FCMStandIn()
        try await run(firebase, ["--ttl-seconds-max", "60"]) { stack in
            let ttls: [JSONValue?] = [nil, "3600s", "50s"]
            for (index, ttl) in ttls.enumerated() {
                var message: JSONObject = ["token": .string("t\(index)"), "notification": ["title": "x"]]
                if let ttl { message["android"] = ["ttl": ttl] }
                let v1 = "/v1/projects/hato/messages:send"
                #expect(try Self.post(v1, ["message": .object(message)], on: stack).status == 200)
                try Self.wait("it came", on: stack) { !firebase.messages(to: "t\(index)").isEmpty }
                let sent = firebase.messages(to: "t\(index)").first?["android"]?["ttl"]?.string
                let seconds = sent.flatMap { Int($0.dropLast()) }
                #expect(seconds.map { $0 <= (index == 2 ? 50 : 60) } == true, "\(sent ?? "none")")
            }
        }
    }

    /// What waits for one service takes nothing from the calls of another one.
    @Test func aNotifierThatDoesNotRespondHoldsUpNoOtherService() async throws {
        let options = GatewayStack.Options(
            gateway: ["--event-loops", "1", "--call-bytes-max", "1048576", "--metrics-port", "0"], notifier: [])
        try await GatewayStack.run(rules: ["rules": [".write": true]], options) { stack in
            stack.notifier?.send(SIGSTOP)
            defer { stack.notifier?.send(SIGCONT) }
            // A quarter of the bytes is the notifier's.
            let report = EncodedJSON(["notification": .string(String(repeating: "x", count: 60_000))]).text
            let head = "POST /respond HTTP/1.1\r\nHost: l\r\nContent-Length: \(report.utf8.count)\r\n\r\n"
            let waiting = try (0..<4).map { _ in try PlainSocket(stack.gateway.address) }
            for socket in waiting { try socket.send(Array((head + report).utf8)) }
            try stack.waitForMetrics("all wait for the notifier") { page in
                page.contains("\nhato_gateway_requests_under_way{kind=\"other\"} 4\n")
                    && page.contains("\nhato_gateway_held_bytes 0\n")
            }
            let refused = try PlainSocket(stack.gateway.address)
            try refused.send(Array((head + report).utf8))
            #expect(try HTTPResponseText(next: refused).status == 429)
            let value = EncodedJSON(.string(String(repeating: "x", count: 400_000))).text
            let put = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("PUT /a.json?print=silent", body: value, on: put).status == 204)
            for socket in waiting { socket.end() }
        }
    }

    @Test func wrongRequestsAreRefused() async throws {
        try await run(FCMStandIn()) { stack in
            let v1 = "/v1/projects/hato/messages:send"
            let message: JSONValue = ["message": ["token": "t", "notification": ["title": "x"]]]
            let user = try stack.newToken()
            #expect(try Self.post(v1, message, [], on: stack).status == 401)
            #expect(try Self.post(v1, message, ["Authorization: Bearer wrong"], on: stack).status == 401)
            let denied = try Self.post(v1, message, ["Authorization: Bearer \(user.token)"], on: stack)
            #expect(denied.status == 403 && denied.json?["error"]?["status"] == "PERMISSION_DENIED")
            let badge: JSONValue = [
                "message": [
                    "token": "t", "notification": ["title": "x"], "android": ["notification": ["badge": "1"]],
                ]
            ]
            let unknown = try Self.post(v1, badge, on: stack)
            #expect(unknown.status == 400 && unknown.json?["error"]?["status"] == "INVALID_ARGUMENT")
            #expect(
                unknown.json?["error"]?["message"]?.string?.contains(
                    "Unknown name \"badge\" at 'message.android.notification'") == true)
            // The head is enough: nothing of the body is waited for.
            let waiting = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("POST \(v1)", ["Content-Length: 9000000"], on: waiting).status == 401)
            // Anyone may report: bodies are small.
            let text = JSONValue.string(String(repeating: "x", count: 70_000))
            let large = try Self.post("/respond", ["notification": text], [], on: stack)
            #expect(large.status == 400 && large.json?["error"]?["data"]?["reason"] == "line_too_long")
            let socket = try PlainSocket(stack.gateway.address)
            #expect(try HTTPResponseText.of("GET \(v1)", Self.bearer, on: socket).status == 405)
            let report: JSONValue = ["notification": "ntf_1", "action": "opened", "replyToken": "AAAA"]
            let foreign = try Self.post("/respond", report, [], on: stack)
            #expect(foreign.status == 401)
            #expect(foreign.json?["error"]?["data"]?["reason"] == "invalid_reply_token")
        }
    }
}

extension PushRequests {
    /// A service worker reports with the token of the push alone.
    @Test func anActionIsReported() async throws {
        let firebase = try await FCMStandIn()
        try await run(firebase) { stack in
            let user = try stack.newToken()
            let native = try FirebaseSocket(stack, target: "/rpc/notifier")
            func call(_ method: String, _ params: JSONObject) throws -> JSONValue? {
                let request: JSONValue = [
                    "jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .object(params),
                ]
                try native.send(EncodedJSON(request).text)
                return try native.value()
            }
            let registered = try call(
                "notifier.devices.register", ["auth": .string(user.token), "platform": "fcm", "token": "phone"])
            #expect(registered?["result"]?["device"] != nil)
            let sent = try call(
                "notifier.send",
                [
                    "auth": .string(ServingProgram.administratorKey), "to": ["uids": [.string(user.uid)]],
                    "notification": ["title": "お知らせ"],
                ])
            #expect(sent?["result"]?["recipients"] == 1)
            try Self.wait("it came", on: stack) { !firebase.messages(to: "phone").isEmpty }
            let hato = try JSONParser.parse(firebase.messages(to: "phone").first?["data"]?["hato"]?.string ?? "{}")
            let report: JSONObject = [
                "notification": hato["id"] ?? "", "action": "opened", "replyToken": hato["reply"] ?? "",
            ]
            let response = try Self.post("/respond", .object(report), [], on: stack)
            #expect(response.status == 200 && response.json == ["effect": "none"])
            #expect(response.headers["access-control-allow-origin"] == "*")
        }
    }
}

/// The messages that a stand-in has accepted.
private final class Kept: Sendable {
    private let list = Mutex<[JSONValue]>([])

    var messages: [JSONValue] { list.withLock { $0 } }
    func add(_ message: JSONValue) { list.withLock { $0.append(message) } }
}
