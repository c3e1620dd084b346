import Crypto
import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import TestFirebase
import Testing

/// What lets others push to a device, or respond in the name of its user, is in no log and on no page of the notifier,
/// also where a provider repeats it.
@Suite(.timeLimit(.minutes(5)))
struct DeviceSecrets {
    private static let phone = "fcm-token-of-masuo-Xq7Zk2Vb9Lw4"
    private static let repeated = "fcm-token-of-sazae-Hn5Rt8Yc1Md6"
    private static let installation = "fid-of-katsuo-Jp3Wf0Gs7Ke2"
    private static let apnsToken = String(repeating: "5f0c9d7be1a38246", count: 4)
    private static let taken = "subscription-taken-Ux4Bv6Nm1Qz8"
    private static let failing = "subscription-failing-Ty2Ol9Ia5Sc3"
    private static let point =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let subscriptionSecret = "BTBZMqHH6r4Tts7J_aSIgg"
    private static let mailbox = "wakame.namihei.isono"
    private static let uid = "fuguta"

    /// What the app of a push gets.
    private struct Reply {
        var notification: String
        var token: String
    }

    @Test func logsAndPagesHoldNoTokenOfADevice() async throws {
        let replies = Mutex<Reply?>(nil)
        let firebase = try await FCMStandIn { message in
            guard let token = message["token"]?.string, token == Self.repeated else {
                let hato = message["data"]?["hato"]?.string.flatMap { try? JSONParser.parse(Array($0.utf8)) }
                if let id = hato?["id"]?.string, let token = hato?["reply"]?.string {
                    replies.withLock { $0 = Reply(notification: id, token: token) }
                }
                return nil
            }
            let text = #"{"error":{"code":400,"message":"\#(token), ya29.stand-in","status":"INVALID_ARGUMENT"}}"#
            return HTTPResponse(status: 400, body: Array(text.utf8))
        }
        let browsers = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
            HTTPResponse(status: request.target.contains(Self.failing) ? 500 : 201)
        }
        let folder = try TemporaryFolder()
        var secrets = KnownSecrets()
        let arguments = [
            "--data", "\(folder.path)/data", "--prepared-log-bytes", "0", "--log-level", "trace", "--auth",
            "127.0.0.1:1", "--messages", "127.0.0.1:1", "--allow-private-webhooks", "true", "--digest-wait-seconds",
            "1", "--apps-file", try appsFile(firebase, &secrets),
        ]
        let notifier = try await ServingProgram("hato-notifier", arguments, in: folder)
        let client = try notifier.client()
        let count = try await registerDevices(client, browsers.port, &secrets)
        let stored = secrets.names.filter { $0.hasPrefix("kept: ") }
        let send = Notifier.Send(to: .init(uids: [Self.uid]), notification: .init(title: "ただいま"))
        let notification = try #require(try await client.call(send).notification)
        try await eventually("all were attempted") {
            let deliveries = try await client.call(Notifier.Status(notification: notification)).deliveries
            return deliveries.count == count && deliveries.allSatisfy { $0.lastAttempt != nil }
        }
        try await respond(client, to: try #require(replies.withLock { $0 }), &secrets)

        // The search finds what the store has to keep.
        let kept = Set(secrets.found(in: try SearchedServices.files(below: "\(folder.path)/data")).map(\.name))
        #expect(stored.count == 8 && stored.isSubset(of: kept), "\(stored.subtracting(kept))")
        let pages = try await pages(client, notification)
        check(secrets, pages + [("log", Data(notifier.log.utf8))])
        #expect(pages.filter { $0.bytes.range(of: Data(notification.utf8)) != nil }.count >= 3)
        await client.close()
        await notifier.stop()
        #expect(notifier.log.contains("trace") || notifier.log.contains("info"))
        check(secrets, [("log at the end", Data(notifier.log.utf8))])
        await browsers.stop()
        await firebase.stop()
    }

    private func check(_ secrets: KnownSecrets, _ texts: [SearchedServices.Text]) {
        for found in secrets.found(in: texts) { Issue.record("\(found.name) is in \(found.place)") }
    }

    /// The credentials of every platform, of which only FCM is reached.
    private func appsFile(_ firebase: FCMStandIn, _ secrets: inout KnownSecrets) throws -> String {
        secrets.add("access token", "ya29.stand-in")
        for name in ["apns", "webpush"] {
            let key = P256.Signing.PrivateKey().pemRepresentation
            secrets.add("key of \(name)", try #require(key.split(separator: "\n").dropFirst().first.map(String.init)))
            try firebase.write("\(name).pem", key)
        }
        let account = try JSONParser.parse(Array(firebase.read("service-account.json").utf8))
        let lines = try #require(account["private_key"]?.string?.split(separator: "\n"))
        secrets.add("key of FCM", String(try #require(lines.dropFirst().first)))
        secrets.add("password of the mail server", "password-of-the-mail-server-0123456789")
        try firebase.write("mail-password", "password-of-the-mail-server-0123456789")
        try firebase.write(
            "apps.yaml",
            try firebase.read("apps.yaml") + """
                  apns: {key-file: apns.pem, key-id: ABC1234567, team-id: DEF1234567, topic: com.example.chat,
                    url: "https://127.0.0.1:9"}
                  webpush: {key-file: webpush.pem, subject: "mailto:admin@example.com"}
                  mail: {url: "smtp://hato@127.0.0.1:9", password-file: mail-password, from: hato@example.com}

                """)
        return firebase.appsFile
    }

    /// Registers devices of every platform. Returns how many.
    private func registerDevices(
        _ client: RPCClient, _ port: Int, _ secrets: inout KnownSecrets
    ) async throws -> Int {
        func subscription(_ name: String) -> JSONValue {
            [
                "endpoint": .string("http://127.0.0.1:\(port)/\(name)"),
                "keys": ["p256dh": .string(Self.point), "auth": .string(Self.subscriptionSecret)],
            ]
        }
        let forms: [JSONObject] = [
            ["platform": "fcm", "token": .string(Self.phone)], ["platform": "fcm", "token": .string(Self.repeated)],
            ["platform": "fcm", "fid": .string(Self.installation)],
            ["platform": "apns", "token": .string(Self.apnsToken)],
            ["platform": "webpush", "subscription": subscription(Self.taken)],
            ["platform": "webpush", "subscription": subscription(Self.failing)],
            ["platform": "webhook", "url": .string("http://127.0.0.1:\(port)/hook")],
        ]
        for (name, text) in [
            ("token of FCM", Self.phone), ("repeated token", Self.repeated), ("installation id", Self.installation),
            ("token of APNs", Self.apnsToken), ("endpoint", Self.taken), ("failing endpoint", Self.failing),
            ("secret of subscriptions", Self.subscriptionSecret), ("mailbox", Self.mailbox),
        ] { secrets.add("kept: \(name)", text) }
        secrets.add("key of subscriptions", Self.point)
        for form in forms {
            var params = form
            params["uid"] = .string(Self.uid)
            let result = try await client.call(method: "notifier.devices.register", params: params)
            guard let secret = result["secret"]?.string, let device = result["device"] else { continue }
            secrets.add("secret of the webhook", secret)
            let rotated = try await client.call(method: "notifier.devices.rotateSecret", params: ["device": device])
            secrets.add("new secret of the webhook", try #require(rotated["secret"]?.string))
        }
        let claims: JSONValue = ["email": .string("\(Self.mailbox)@example.com"), "email_verified": true]
        _ = try await client.call(
            method: "notifier.devices.register",
            params: ["platform": "email", "as": ["uid": .string(Self.uid), "token": claims]])
        return forms.count + 1
    }

    /// Reports with a reply token, a wrong one first.
    private func respond(_ client: RPCClient, to reply: Reply, _ secrets: inout KnownSecrets) async throws {
        let forged = String(reply.token.dropLast(8)) + "AAAAAAAA"
        secrets.add("reply token", encoded: reply.token, secretBytes: 16)
        secrets.add("forged reply token", forged)
        for token in [forged, reply.token] {
            let request = Notifier.Respond(notification: reply.notification, action: "opened", replyToken: token)
            do { _ = try await client.call(request) } catch let error as RPCError {
                #expect(token == forged && error.code == .unauthenticated, "\(error)")
            }
        }
    }

    /// What administrators see.
    private func pages(_ client: RPCClient, _ notification: String) async throws -> [SearchedServices.Text] {
        let calls: [(String, JSONObject)] = [
            ("service.metrics", [:]), ("service.config", [:]), ("service.health", [:]), ("notifier.stats", [:]),
            ("notifier.apps.list", [:]), ("notifier.apps.check", [:]), ("notifier.dead.list", [:]),
            ("notifier.devices.list", ["uid": .string(Self.uid)]), ("notifier.outbox.list", [:]),
            ("notifier.outbox.list", ["uid": .string(Self.uid)]),
            ("notifier.status", ["notification": .string(notification)]),
        ]
        var texts: [SearchedServices.Text] = []
        for (method, params) in calls {
            texts.append((method, Data(try await client.call(method: method, params: params).encoded)))
        }
        return texts
    }
}
