import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import TestFirebase
import Testing

extension NotifierCommands {
    /// A stack, a user with one phone, and the pushes to it.
    private struct World {
        let stack: TestStack
        let shell: CommandShell
        let pushes: Pushes
        let uid: String

        /// The result of a line that must succeed.
        @discardableResult
        func output(_ line: String) async throws -> JSONValue {
            let ended = try await shell.run(line.replacing("UID", with: uid))
            #expect(ended.code == 0 && ended.error.isEmpty, "\(line): \(ended.error)")
            NotifierCommands().expectNoSecret(ended, line)
            return ended.output
        }

        func file(_ name: String, _ text: String) throws { _ = try shell.folder.write(name, text) }

        func node(_ path: String) async throws -> JSONValue {
            try await stack.call(Messages.Get(path: TreePath(path)), of: .messages, as: .administrator).value
        }
    }

    /// What FCM has got. It refuses the messages to one token.
    private final class Pushes: Sendable {
        private let messages = Mutex<[JSONValue]>([])

        func take(_ message: JSONValue) -> HTTPResponse? {
            if message["token"] == "5ecret-refused" { return HTTPResponse(status: 400) }
            messages.withLock { $0.append(message) }
            return nil
        }

        /// The first message to a token that has the member of `data`; waits for it.
        func first(to token: JSONValue, _ name: String, _ value: JSONValue? = nil) async throws -> JSONValue {
            var found: JSONValue?
            try await eventually("a push with \(name)") {
                found = messages.withLock { messages in
                    messages.first {
                        let member = $0["data"]?[name]
                        return $0["token"] == token && member != nil && (value == nil || member == value)
                    }
                }
                return found != nil
            }
            return try #require(found)
        }
    }

    @Test func commandsDoWhatTheySayInAStack() async throws {
        let (pushes, folder) = (Pushes(), try folder())
        let firebase = try await FCMStandIn { pushes.take($0) }
        let result: Result<Void, any Error>
        do {
            let arguments = ["--apps-file", firebase.appsFile, "--backup-dir", "\(folder.path)/backups"]
            try await TestStack.run(arguments) { stack in
                let masuo = try #require(try await stack.call(Auth.SignUp(displayName: "マスオ"), of: .auth).session)
                let world = World(
                    stack: stack, shell: try shell(of: stack, in: folder), pushes: pushes, uid: masuo.uid)
                try world.file("id-token", masuo.idToken)
                try await registerDevices(world)
                try await keepRegistries(world)
                let notification = try await sendAndRespond(world)
                try await lookAtTheOutbox(world, notification)
                try await buryTheDead(world)
            }
            result = .success(())
        } catch { result = .failure(error) }
        await firebase.stop()
        try result.get()
    }

    private func registerDevices(_ world: World) async throws {
        let phone = try await world.output(
            """
            devices register --fcm-token-file @fcm --locale ja-JP --time-zone Asia/Tokyo --token-file @id-token
            """)
        let hook = try await world.output("devices register http://127.0.0.1:9/ --app hooks --uid UID")
        let (device, secret) = (try #require(hook["device"]?.string), try #require(hook["secret"]?.string))
        #expect(secret.hasPrefix("whsec_"))
        let rotated = try await world.output("devices rotate-secret \(device)")
        #expect(rotated["secret"]?.string?.hasPrefix("whsec_") == true && rotated["secret"] != hook["secret"])
        try await world.output("devices unregister \(device)")
        let devices = try await world.stack.notify(Notifier.Devices.List(uid: world.uid)).devices
        #expect(devices.map(\.device) == [phone["device"]?.string])
        #expect(devices.map(\.platform) == [.fcm] && devices.map(\.locale) == ["ja-JP"])
        #expect(devices.map(\.timeZone) == ["Asia/Tokyo"])
        #expect(try await world.output("devices list --uid UID")["devices"]?.array?.count == 1)
        #expect(try await world.output("apps list")["apps"]?.array?.map { $0["app"] } == ["default"])
        #expect(try await world.output("apps reload")["apps"]?.array?.count == 1)
        try await world.output("apps resume default --platform fcm")
        #expect(try await world.output("apps webpush-key")["key"]?.string?.utf8.count == 87)
    }

    private func keepRegistries(_ world: World) async throws {
        #expect(try await world.output("categories set --shipped quick-replies")["created"] == true)
        #expect(try await world.output("categories set @category.json")["created"] == true)
        try await world.output("categories remove MARRY_ME")
        let categories = try await world.output("categories list")["categories"]?.array
        #expect(categories?.map { $0["id"] } == ["QUICK6"])
        let etag = try #require(try await world.output("categories get")["etag"]?.string)
        #expect(try await world.output("categories get --etag \(etag)") == ["etag": .string(etag)])
        try world.file(
            "product.json",
            #"{"type":"product_detail","required":{"product_id":"id"},"template":{"title":"新着","body":"{product_id}"}}"#
        )
        #expect(try await world.output("types set @product.json")["created"] == true)
        #expect(try await world.output("types list")["types"]?.array?.map { $0["type"] } == ["product_detail"])
        #expect(try await world.output("triggers set --shipped latest-message")["created"] == true)
        #expect(try await world.output("triggers list")["triggers"]?.array?.map { $0["id"] } == ["latest-message"])
        try world.file(
            "message.json", #"{"sender_name":"マスオ","message":"ただいま","receiver_fcm_token":"5ecret-1"}"#)
        let trial = try await world.output("triggers test latest-message /latest_message --after @@message.json")
        #expect(trial["matches"] == true && trial["notification"]?["title"] == "マスオさんからのメッセージ")
        try await world.output("triggers remove latest-message")
        try await world.output("topics subscribe news --token-file @id-token")
        #expect(try await world.output("topics list --topic news")["uids"] == [.string(world.uid)])
        let preferences = try await world.output(
            "preferences set --uid UID --time-zone Asia/Tokyo --mute c9 --off webpush")
        #expect(preferences == ["timeZone": "Asia/Tokyo", "mutes": ["c9": true], "off": ["webpush"]])
        #expect(try await world.output("preferences set --uid UID --delete off")["off"] == nil)
        #expect(try await world.stack.notify(Notifier.Preferences.Get(uid: world.uid)).timeZone == "Asia/Tokyo")
        try await world.output("quick-replies set 了解 'すぐ 行く' --token-file @id-token")
        #expect(try await world.node("/users/\(world.uid)/quickReplies").array == ["了解", "すぐ 行く"])
        let texts = try await world.output("quick-replies get --token-file @id-token")["texts"]?.array
        #expect(texts?.prefix(2) == ["了解", "すぐ 行く"] && texts?.count == 6)
    }

    private func sendAndRespond(_ world: World) async throws -> String {
        let dry = try await world.output("send --to UID --title t --dry-run")
        #expect(dry == ["recipients": 1])
        let sent = try await world.output(
            "send --to UID --title お知らせ --body 明日です --category QUICK6 --thread c1 --ttl 3600 --priority high")
        let notification = try #require(sent["notification"]?.string)
        let push = try await world.pushes.first(to: "5ecret-fcm", "title", "お知らせ")
        #expect(push["data"]?["body"] == "明日です" && push["data"]?["category"] == "QUICK6")
        let hato = try JSONParser.parse(Array(#require(push["data"]?["hato"]?.string).utf8))
        #expect(hato["id"]?.string == notification)
        try world.file("reply-token", try #require(hato["reply"]?.string) + "\n")
        #expect(try await world.output("badges get --uid UID") == ["badge": 1, "threads": ["c1": 1]])
        #expect(try await world.output("badges set 5 --thread c2 --uid UID") == ["badge": 6])
        let respond = "respond \(notification)"
        #expect(
            try await world.output("\(respond) displayed --reply-token-file @reply-token") == ["effect": "none"])
        let done = try await world.output("\(respond) --quick-reply 1 --reply-token-file @reply-token")
        #expect(done == ["effect": "done"])
        let messages = try await world.node("/chats/c1/messages").object?.members.map(\.value["text"])
        #expect(messages == ["すぐ 行く"])
        let second = try await world.shell.run("\(respond) REPLY --text いいえ --token-file @id-token")
        #expect(second.code == 1 && second.error.contains("already_responded"), "\(second.error)")
        let topic = try await world.output("send --topic news --type product_detail --data product_id=p1")
        #expect(topic["fanOut"] == true)
        _ = try await world.pushes.first(to: "5ecret-fcm", "transition_type", "product_detail")
        let old = try await world.output("send-to-device @payload.json --device-tokens-file @tokens --priority high")
        #expect(old["successCount"] == 2 && old["failureCount"] == 0)
        for token in ["5ecret-1", "5ecret-2"] { _ = try await world.pushes.first(to: .string(token), "r", "1") }
        try await world.output("topics unsubscribe news --uid UID")
        try await world.output("types remove product_detail")
        return notification
    }

    private func lookAtTheOutbox(_ world: World, _ notification: String) async throws {
        try await world.stack.settled()
        for line in ["outbox status \(notification)", "outbox show \(notification)"] {
            let status = try await world.output(line)
            #expect(status["deliveries"]?.array?.map { $0["state"] } == ["delivered"], "\(line)")
        }
        let list = try await world.output("outbox list --uid UID --state delivered")
        let deliveries = list["deliveries"]?.array?.compactMap { $0["delivery"]?.string } ?? []
        #expect(deliveries.contains { $0.hasPrefix(notification) })
        #expect(try await world.output("outbox")["pending"] == 0)
        for line in ["follow --after 0 --max-events 1", "outbox follow --after 0 --max-events 1"] {
            #expect(try await world.output(line)["params"]?["type"] == "accepted", "\(line)")
        }
        #expect(try await world.output("withdraw \(notification)")["dropped"] == 0)
        #expect(try await world.output("withdraw --uid UID --thread c2")["dropped"] == 0)
        try await world.output("backup monday")
        #expect(FileManager.default.fileExists(atPath: "\(world.shell.folder.path)/backups"))
    }

    private func buryTheDead(_ world: World) async throws {
        try world.file("refused", "5ecret-refused\n")
        try await world.output("send --device-tokens-file @refused --platform fcm --title t")
        func dead() async throws -> [String] {
            let list = try await world.output("dead list")["dead"]?.array ?? []
            return list.compactMap { $0["delivery"]?.string }
        }
        try await eventually("it is dead") { try await world.stack.notify(Notifier.Stats()).dead == 1 }
        let delivery = try #require(try await dead().first)
        #expect(try await world.output("dead replay \(delivery)")["replayed"] == 1)
        try await eventually("it is dead again") { try await world.stack.notify(Notifier.Stats()).dead == 1 }
        #expect(try await world.output("dead drop --all")["dropped"] == 1)
        #expect(try await dead().isEmpty)
    }
}
