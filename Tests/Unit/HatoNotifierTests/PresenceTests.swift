import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// Recipients that look at what a notification is about, and are shown none.
@Suite(.timeLimit(.minutes(10))) struct PresenceTests {
    private let channel = ScriptedChannel()

    private func running(_ body: (TestNotifier) async throws -> Void) async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        do {
            for uid in ["u2", "u3", "u4", "u5"] {
                try await notifier.addDevice(of: uid, at: "https://example.com/\(uid)")
            }
            for chat in ["c1", "c2"] {
                notifier.messages.setNode(
                    "/chats/\(chat)/members", ["u1": "admin", "u2": "member", "u3": "member", "u4": "member"])
            }
            try await body(notifier)
        } catch {
            await notifier.stop()
            throw error
        }
        await notifier.stop()
    }

    private func setTrigger(
        _ notifier: TestNotifier, _ recipients: Notifier.Recipients = .init(uidsAt: "/chats/{chat}/members"),
        at path: String = "/chats/{chat}/viewing/{uid}", thread: String? = nil
    ) async throws {
        var trigger = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: recipients,
            notification: .init(title: "{after.text}"))
        trigger.presenceAt = path
        trigger.options = .init()
        trigger.options?.thread = thread
        _ = try await notifier.client.call(trigger)
    }

    private func sent(_ text: String) -> [String] {
        channel.deliveries.filter { $0.content.text.title == text }.map(\.content.uid).sorted()
    }

    @Test func aUserThatLooksAtTheChatGetsNone() async throws {
        try await running { notifier in
            try await setTrigger(notifier)
            // Something is there, whatever it is, except false.
            notifier.messages.setNode("/chats/c1/viewing", ["u2": true, "u3": false, "u5": true])
            notifier.messages.push("a")
            try await eventually("two get it") { channel.deliveries.count == 2 }
            #expect(sent("a") == ["u3", "u4"])
            notifier.messages.setNode(
                "/chats/c1/viewing",
                ["u4": ["since": 1], "u3": [".value": 9_000_000_000_000_000, ".priority": 1], "u2": 1_000])
            // A number is a time until which it counts.
            notifier.messages.push("b")
            try await eventually("one more does") { channel.deliveries.count == 3 }
            #expect(sent("b") == ["u2"])
            // No user is there, as before.
            notifier.messages.setNode("/chats/c1/viewing", .null)
            notifier.messages.push("c")
            try await eventually("all three do") { channel.deliveries.count == 6 }
            // Nor in another chat.
            notifier.messages.push("d", in: "c2")
            try await eventually("all three do there") { channel.deliveries.count == 9 }
        }
    }

    @Test func aUserThatLooksAtTheChatGetsItsBadgeOnly() async throws {
        try await running { notifier in
            try await setTrigger(notifier, thread: "{chat}")
            notifier.messages.setNode("/chats/c1/viewing", ["u2": true])
            notifier.messages.push("a")
            try await eventually("two get it, one its badge") { channel.deliveries.count == 3 }
            #expect(sent("a") == ["u3", "u4"])
            let silent = try #require(channel.deliveries.first { $0.content.text.isEmpty }?.content)
            #expect(silent.uid == "u2" && silent.hato.badge == 1 && silent.hato.withdraw?.isEmpty != false)
            // Its app says that it was read.
            _ = try await notifier.client.call(Notifier.Badges.Set(thread: "c1", count: 0, uid: "u2"))
            try await eventually("the count falls") { channel.deliveries.last?.content.hato.badge == 0 }
            let id = try #require(channel.deliveries.first { $0.content.text.title == "a" }?.content.notification)
            let ended = try await notifier.client.call(Notifier.Status(notification: id)).deliveries
                .first { $0.uid == "u2" }
            #expect(ended?.state == .dropped && ended?.reason == "present" && ended?.attempts == 0)
        }
    }

    @Test func whatIsTakenBackCountsNoMoreForOneThatWasThere() async throws {
        try await running { notifier in
            try await setTrigger(notifier, .init(uids: ["u2"]), thread: "{chat}")
            notifier.messages.setNode("/chats/c1/viewing", ["u2": true])
            notifier.messages.push("a")
            try await eventually("it gets the badge") { channel.deliveries.map(\.content.hato.badge) == [1] }
            let rows = try notifier.store.snapshot()
            let delivery = try rows.rows(RecordKey(.delivery)).compactMap { row in
                try rows.readable(DeliveryRecord.self, row.key)
            }.first { $0.machine.state == .dropped }
            let id = try #require(delivery?.notification)
            _ = try await notifier.client.call(Notifier.Withdraw(notification: id))
            try await eventually("the badge falls") { channel.deliveries.last?.content.hato.badge == 0 }
        }
    }

    @Test func aPathWithTheUserInItsMiddleIsReadForEach() async throws {
        try await running { notifier in
            try await setTrigger(notifier, .init(uids: ["u2", "u3", "u1"]), at: "/status/{uid}/{chat}")
            notifier.messages.setNode("/status/u2/c1", true)
            notifier.messages.setNode("/status/u3/c1", false)
            notifier.messages.push("a")
            try await eventually("one gets it") { channel.deliveries.count == 1 }
            #expect(sent("a") == ["u3"])
            #expect(Set(notifier.messages.reads) == ["/status/u2/c1", "/status/u3/c1"])
        }
    }

    @Test func aTestShowsWhichRecipientsAreThere() async throws {
        try await running { notifier in
            try await setTrigger(notifier)
            notifier.messages.setNode("/chats/c1/viewing", ["u2": true, "u9": true])
            var request = Notifier.Triggers.Test(
                id: "t", path: try TreePath("/chats/c1/messages/m1"), after: ["text": "a"])
            request.uid = "u1"
            let result = try await notifier.client.call(request)
            #expect(result.recipients?.sorted() == ["u2", "u3", "u4"])
            let present = result.deliveries?.filter { $0.skipped == .present }.map(\.uid)
            #expect(present == ["u2"] && result.devices == 2)
        }
    }

    @Test func othersDoNotWaitWhileItIsRead() async throws {
        try await running { notifier in
            try await setTrigger(notifier, .init(uids: ["u2"]))
            try await notifier.setTrigger("other", recipients: .init(uids: ["u5"]), title: "other")
            let gate = Gate()
            notifier.messages.holdReads(of: "/chats/c1/viewing", until: gate)
            for text in ["a", "b"] { notifier.messages.push(text) }
            let result: Result<Void, any Error>
            do {
                try await eventually("those of the other trigger arrive") { sent("other") == ["u5", "u5"] }
                result = .success(())
            } catch { result = .failure(error) }
            #expect(sent("a").isEmpty)
            gate.open()
            try result.get()
            try await eventually("its own arrive, too") { sent("a") == ["u2"] && sent("b") == ["u2"] }
        }
    }

    @Test func whatCannotBeReadLeavesNoUserOut() async throws {
        try await running { notifier in
            try await setTrigger(notifier, .init(uids: ["u2", "u3"]))
            notifier.messages.fail(with: RPCError(.permissionDenied, reason: "permission_denied", "no"))
            notifier.messages.push("a")
            try await eventually("both get it") { channel.deliveries.count == 2 }
        }
    }
}
