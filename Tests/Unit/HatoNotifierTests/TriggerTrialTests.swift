import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// `notifier.triggers.test`: what a trigger would send to whom, and why not.
@Suite(.timeLimit(.minutes(5))) struct TriggerTrialTests {
    private func test(_ path: String = "/chats/c1/messages/m1", by uid: String? = "u1") throws -> Notifier.Triggers.Test
    {
        var test = Notifier.Triggers.Test(id: "chat-message", path: try TreePath(path))
        test.uid = uid
        return test
    }

    /// The same with other ids, times and reply tokens.
    private func comparable(_ text: String) throws -> String {
        var body = try #require(try JSONParser.parse(Array(text.utf8)).object)
        body["timestamp"] = "t"
        var data = try #require(body["data"]?.object)
        data["notification"] = "n"
        data["hato"] = ["id": "n", "reply": "r"]
        data["path"] = "p"
        body["data"] = .object(data)
        return String(decoding: JSONValue.object(body).encoded, as: UTF8.self)
    }

    @Test func aPathAloneIsTheNodeThereByteForByteAsItIsSent() async throws {
        let notifier = try await TestNotifier.start()
        let receiver = try await TestReceiver()
        try await notifier.addDevice(of: "u2", at: receiver.url)
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true])
        notifier.messages.setNode("/chats/c1/messages/m1", ["senderName": "マスオ", "text": "ただいま"])
        var trigger = Notifier.Triggers.Set(
            id: "chat-message", pattern: "/chats/{chat}/messages/{id}",
            recipients: .init(uidsAt: "/chats/{chat}/members"),
            notification: .init(title: "{after.senderName}さんからのメッセージ", body: "{after.text}"))
        var options = Notifier.DeliveryOptions()
        (options.thread, options.sound) = ("{chat}", "default")
        (trigger.options, trigger.data) = (options, ["chat": "{chat}"])
        _ = try await notifier.client.call(trigger)
        let tried = try await notifier.client.call(try test())
        #expect(tried.matches && tried.reason == nil && tried.devices == 1 && tried.recipients == ["u2"])
        let deliveries = try #require(tried.deliveries)
        #expect(deliveries.map(\.uid) == ["u1", "u2"] && deliveries.map(\.skipped) == [.author, nil])
        let shown = try #require(deliveries.last)
        #expect(shown.platform == .webhook && shown.device != nil && shown.headers?["webhook-id"] != nil)
        try await eventually("it follows") { try await notifier.isFollowing() }
        #expect(try await notifier.stats.pending == 0 && receiver.received.isEmpty)
        notifier.messages.push("ただいま", by: "u1")
        try await eventually("it is sent") { receiver.received.count == 1 }
        let sent = String(decoding: try #require(receiver.received.first).body, as: UTF8.self)
        #expect(try comparable(shown.body ?? "") == comparable(sent))
        await notifier.stop()
        await receiver.stop()
    }

    @Test func eachRecipientThatGetsNothingSaysWhy() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel(), ScriptedChannel(.fcm)])
        for uid in ["u1", "u2", "u4"] { try await notifier.addDevice(of: uid, at: "https://example.com/\(uid)") }
        _ = try await notifier.store.write { transaction in
            let device = try #require(try transaction.devices(of: "u4").first)
            var disabled = device
            disabled.state = .disabled
            var writes = RecordWrites()
            writes.put(disabled.key, disabled)
            try writes.apply(to: transaction)
        }
        var other = Notifier.Devices.Register(platform: .fcm, uid: "u9")
        other.token = "tok-2"
        _ = try await notifier.client.call(other)
        notifier.messages.setNode("/users/u2/fcm_token", "tok-2")
        notifier.messages.setNode("/users/u3/fcm_token", "tok-3")
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true, "u3": true, "u4": true])
        var recipients = Notifier.Recipients(uidsAt: "/chats/{chat}/members")
        (recipients.tokenAt, recipients.platform) = ("/users/{uid}/fcm_token", .fcm)
        try await notifier.setTrigger(recipients: recipients)
        var test = try test()
        test.after = ["text": "x"]
        let deliveries = try #require(try await notifier.client.call(test).deliveries)
        let skips = deliveries.map { "\($0.uid ?? "-") \($0.platform?.rawValue ?? "-") \($0.skipped?.rawValue ?? "-")" }
        // Channels without previews send nothing that can be shown.
        #expect(
            skips.sorted() == [
                "- fcm not_sendable", "u1 - author", "u2 webhook not_sendable", "u3 - no_device", "u4 webhook disabled",
                "u9 fcm other_user",
            ])
        #expect(deliveries.first { $0.uid == nil }?.device == nil)
        await notifier.stop()
    }

    @Test func whatDoesNotFireSaysWhy() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        var trigger = Notifier.Triggers.Set(
            id: "chat-message", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]),
            notification: .init(body: "{after.text}"))
        trigger.when = "after.kind != 'quiet'"
        _ = try await notifier.client.call(trigger)
        func reason(_ change: (inout Notifier.Triggers.Test) -> Void) async throws -> Notifier.TrialReason? {
            var test = try test()
            change(&test)
            let result = try await notifier.client.call(test)
            #expect(result.matches == (result.reason == .empty || result.reason == nil))
            return result.reason
        }
        #expect(try await reason { $0.path = .root } == .pattern)
        #expect(try await reason { $0.type = .deleted } == .type)
        #expect(try await reason { _ in } == .noNode)
        #expect(try await reason { $0.after = ["kind": "quiet", "text": "x"] } == .condition)
        #expect(try await reason { $0.after = ["kind": "loud"] } == .empty)
        #expect(try await reason { $0.after = ["text": "x"] } == nil)
        notifier.messages.setNode("/chats/c1/messages/m1", ["text": "x"])
        #expect(try await reason { _ in } == nil)
        await notifier.stop()
    }
}
