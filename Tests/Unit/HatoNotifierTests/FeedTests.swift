import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// How triggers follow the feed of messages.
@Suite(.timeLimit(.minutes(10))) struct FeedTests {
    private let channel = ScriptedChannel()

    private func started(
        messages: FakeMessages? = nil, store: (any Store)? = nil
    ) async throws -> TestNotifier {
        let notifier = try await TestNotifier.start(messages: messages, store: store, channels: [channel])
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true])
        if store == nil { try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2") }
        return notifier
    }

    private var bodies: [String] { channel.deliveries.compactMap(\.content.text.body) }

    @Test func aNewTriggerStartsAtNow() async throws {
        let notifier = try await started()
        notifier.messages.push("before")
        try await notifier.setTrigger()
        notifier.messages.push("after")
        try await eventually("the change after it") { bodies == ["after"] }
        // A second one on the same pattern does not see what the first has seen.
        try await notifier.setTrigger("second", title: "second")
        notifier.messages.push("later")
        try await eventually("both fired") { channel.titles.count == 3 }
        #expect(bodies.filter { $0 == "after" }.count == 1 && Set(channel.titles.suffix(2)).count == 2)
        await notifier.stop()
    }

    @Test func oneSubscriptionServesAllTriggersOfADatabase() async throws {
        let notifier = try await started()
        try await notifier.setTrigger("a", title: "a")
        try await notifier.setTrigger("b", title: "b")
        try await notifier.setTrigger("c", recipients: .init(uids: ["u2"]), title: "c")
        try await eventually("following") { try await notifier.isFollowing() }
        try await eventually("one follower") { notifier.messages.followerCount == 1 }
        notifier.messages.push("x")
        try await eventually("three notifications") { Set(channel.titles) == ["a", "b", "c"] }
        await notifier.stop()
    }

    @Test func aReplacedTriggerMissesNothingAndARemovedOneFiresNoMore() async throws {
        let notifier = try await started()
        try await notifier.setTrigger(title: "old")
        notifier.messages.push("1")
        #expect(try await notifier.setTrigger(title: "new") == false)
        notifier.messages.push("2")
        try await eventually("both changes") { bodies == ["1", "2"] }
        #expect(channel.titles.last == "new")
        _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "chat-message"))
        notifier.messages.push("3")
        #expect(try await notifier.stats.cursors.isEmpty)
        try await notifier.setTrigger(title: "again")
        notifier.messages.push("4")
        try await eventually("the last change") { bodies.last == "4" }
        #expect(bodies == ["1", "2", "4"])
        await notifier.stop()
    }

    @Test func aLostConnectionIsMadeAgainWithoutLossOrRepetition() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        for index in 1...3 {
            notifier.messages.push("\(index)")
            notifier.messages.disconnect()
        }
        notifier.messages.push("4")
        try await eventually("all of them") { bodies.count >= 4 }
        #expect(bodies == ["1", "2", "3", "4"])
        await notifier.stop()
    }

    /// A message database of an earlier version does not understand how recipients are read.
    @Test(arguments: [
        RPCError.unavailable(reason: "down", "down"),
        RPCError.invalidArgument("shallow", reason: "shallow_alone", "not with a query"),
    ])
    func whileRecipientsCannotBeReadTheCursorStays(_ error: RPCError) async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        notifier.messages.fail(with: error)
        notifier.messages.push("1")
        try await eventually("the feed waits") { try await notifier.stats.cursors.first?.error != nil }
        #expect(try await notifier.stats.cursors.first?.version == 0)
        notifier.messages.fail(with: nil)
        try await eventually("delivered") { bodies == ["1"] }
        await notifier.stop()
    }

    /// A path can come from data.
    @Test func whatCanNeverBeReadStopsNoTrigger() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        notifier.messages.fail(with: RPCError.invalidArgument("path", reason: "invalid_path", "no such path"))
        notifier.messages.push("1")
        try await eventually("the cursor moves") { try await notifier.stats.cursors.first?.version ?? 0 > 0 }
        notifier.messages.fail(with: nil)
        notifier.messages.push("2")
        try await eventually("delivered") { bodies == ["2"] }
        await notifier.stop()
    }

    @Test func theCursorMovesThoughNothingMatches() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        try await eventually("following") { try await notifier.isFollowing() }
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let version = notifier.messages.commitElsewhere()
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        await notifier.stop()
    }

    @Test func aTruncatedChangeIsCompletedFromTheDatabase() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        try await eventually("following") { try await notifier.isFollowing() }
        notifier.messages.setNode("/chats/c1/messages/big", ["senderName": "サザエ", "text": "long"])
        notifier.messages.commit { _ in
            var entry = Messages.Change.Entry(path: "/chats/c1/messages/big", type: .created)
            entry.pattern = "/chats/{chat}/messages/{id}"
            entry.params = ["chat": "c1", "id": "big"]
            entry.before = .null
            entry.truncated = true
            entry.uid = "u1"
            return [entry]
        }
        try await eventually("completed") { bodies == ["long"] }
        await notifier.stop()
    }

    /// What is read and gathered for one commit, however many changes it has, is bounded; what was accepted before the
    /// cursor moved is not accepted again.
    @Test func aCommitThatNeedsMuchIsHandledInParts() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) {
            $0.limits.triggerBytesMax = 1
            $0.limits.recipientKeysMax = 2
        }
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true, "u3": true])
        for uid in ["u1", "u2", "u3"] { try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/\(uid)") }
        try await notifier.setTrigger()
        try await eventually("following") { try await notifier.isFollowing() }
        for index in 0..<20 {
            notifier.messages.setNode(
                "/chats/c1/messages/m\(index)", ["senderName": "サザエ", "text": .string("\(index)")])
        }
        notifier.messages.commit { _ in
            (0..<20).map { index in
                var entry = Messages.Change.Entry(path: "/chats/c1/messages/m\(index)", type: .created)
                entry.pattern = "/chats/{chat}/messages/{id}"
                entry.params = ["chat": "c1", "id": "m\(index)"]
                entry.truncated = true
                entry.uid = "u1"
                return entry
            }
        }
        try await eventually("all delivered") { bodies.count >= 20 }
        // Of three members two are read, and one of these is the author.
        #expect(bodies == (0..<20).map(String.init))
        try await eventually("the cursor moves") { try await notifier.stats.cursors.first?.version == 1 }
        await notifier.stop()
    }

    @Test func changesLeftOutOfATooBigCommitLoseNoMessage() async throws {
        let notifier = try await started()
        var trigger = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]),
            notification: .init(title: "{before.text}", body: "{after.text}"))
        trigger.on = [.created, .updated, .deleted]
        trigger.when = "after.kind != 'draft' && before.kind == 'draft'"
        trigger.options = .init(collapseKey: "{before.room}")
        _ = try await notifier.client.call(trigger)
        try await eventually("following") { try await notifier.isFollowing() }
        notifier.messages.setNode("/chats/c1/messages/big", ["kind": "text", "text": "long"])
        notifier.messages.setNode("/chats/c1/messages/draft", ["kind": "draft", "text": "not yet"])
        func commit(_ id: String, _ type: Messages.Change.EntryType) {
            notifier.messages.commit { _ in
                var entry = Messages.Change.Entry(path: "/chats/c1/messages/\(id)", type: type)
                entry.pattern = "/chats/{chat}/messages/{id}"
                entry.params = ["chat": "c1", "id": id]
                if type == .created { entry.before = .null }
                if type == .deleted { entry.after = .null }
                entry.truncated = true
                entry.uid = "u1"
                return [entry]
            }
        }
        // Whatever was before, a draft now does not fire; and before what came now, nothing was.
        commit("draft", .updated)
        commit("big", .created)
        commit("big", .updated)
        commit("gone", .deleted)
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        #expect(bodies == ["long", ""])
        #expect(channel.deliveries.allSatisfy { $0.content.text.title == "" && $0.content.collapseKey == nil })
        #expect(try await notifier.stats.incomplete == 2)
        await notifier.stop()
    }

    @Test func afterCompactionItGoesOnAtTheOldestAndSaysSo() async throws {
        let messages = try await FakeMessages.start()
        let store = try MemoryStore()
        var notifier = try await started(messages: messages, store: nil)
        await notifier.stop(keepingMessages: true)
        notifier = try await TestNotifier.start(messages: messages, store: StayingOpen(store), channels: [channel])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger()
        messages.push("1")
        try await eventually("the first") { bodies == ["1"] }
        await notifier.stop(keepingMessages: true)
        for index in 2...5 { messages.push("\(index)") }
        messages.compact(before: 4)
        notifier = try await started(messages: messages, store: StayingOpen(store))
        try await eventually("what is kept") { bodies == ["1", "4", "5"] }
        #expect(try await notifier.stats.cursors.first?.gaps == 1)
        let health = try await notifier.client.call(method: "service.health")
        #expect(health["checks"]?["feeds"]?["default"]?["gaps"] == 1)
        await notifier.stop()
    }

    @Test func anotherHistoryIsTakenUpWithoutRepeatingWhatWasHandled() async throws {
        let messages = try await FakeMessages.start()
        let store = try MemoryStore()
        var notifier = try await TestNotifier.start(messages: messages, store: StayingOpen(store), channels: [channel])
        messages.setNode("/chats/c1/members", ["u1": true, "u2": true])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger()
        let now = WallClock.milliseconds()
        for index in 1...4 { messages.push("\(index)", at: now + Int64(index)) }
        try await eventually("all four") { bodies.count == 4 }
        await notifier.stop(keepingMessages: true)
        messages.restore(through: 2)
        // Same versions, another history.
        messages.push("5", at: now + 1_000)
        notifier = try await TestNotifier.start(messages: messages, store: StayingOpen(store), channels: [channel])
        try await eventually("what is new in it") { bodies.contains("5") }
        messages.push("6", at: now + 1_001)
        try await eventually("and what follows") { bodies.last == "6" }
        #expect(bodies == ["1", "2", "3", "4", "5", "6"])
        await notifier.stop()
    }

    @Test func aWriteBelowTheMatchIsCompletedFromTheDatabase() async throws {
        let notifier = try await started()
        _ = try await notifier.client.call(
            {
                var set = Notifier.Triggers.Set(
                    id: "edited", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uidField: "after.to"),
                    notification: .init(title: "{after.senderName}", body: "{before.text}→{after.text}"))
                set.on = [.updated]
                return set
            }())
        notifier.messages.setNode("/chats/c1/messages/m9", ["senderName": "サザエ", "text": "new", "to": "u2"])
        notifier.messages.commit { _ in
            var entry = Messages.Change.Entry(path: "/chats/c1/messages/m9", type: .updated)
            entry.pattern = "/chats/{chat}/messages/{id}"
            entry.params = ["chat": "c1", "id": "m9"]
            entry.before = ["text": "old"]
            entry.after = ["text": "new"]
            entry.partial = true
            entry.uid = "u1"
            return [entry]
        }
        try await eventually("completed") { bodies == ["old→new"] }
        #expect(channel.titles == ["サザエ"])
        await notifier.stop()
    }

    @Test func aTriggerFiresOnlyWhereItsConditionHolds() async throws {
        let notifier = try await started()
        notifier.messages.setNode("/chats/c1/messages/m9", ["text": "2", "kind": "text"])
        var trigger = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]),
            notification: .init(body: "{after.text}"))
        trigger.on = [.created, .updated]
        trigger.when = "type == 'created' ? after.text.contains('!') : before.kind == after.kind"
        _ = try await notifier.client.call(trigger)
        notifier.messages.push("quiet")
        notifier.messages.push("1!")
        for (before, after) in [("text", "text"), ("image", "text")] as [(JSONValue, JSONValue)] {
            notifier.messages.commit { _ in
                var entry = Messages.Change.Entry(path: "/chats/c1/messages/m9", type: .updated)
                entry.pattern = "/chats/{chat}/messages/{id}"
                entry.params = ["chat": "c1", "id": "m9"]
                // The first holds only the text: the kind that it does not hold has not changed.
                entry.before = before == after ? ["text": "1"] : ["kind": before]
                entry.after = before == after ? ["text": "2"] : ["kind": after]
                entry.partial = true
                entry.uid = "u1"
                return [entry]
            }
        }
        notifier.messages.push("3!")
        try await eventually("the last one") { bodies.last == "3!" }
        #expect(bodies == ["1!", "2", "3!"])
        let tried = try await notifier.client.call(
            Notifier.Triggers.Test(id: "t", path: try TreePath("/chats/c1/messages/m1"), after: ["text": "quiet"]))
        #expect(!tried.matches && tried.notification == nil)
        await notifier.stop()
    }

    @Test func thousandsOfChangesAreAllAcceptedInOrder() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        for index in 1...2_000 { notifier.messages.push("\(index)") }
        try await eventually("all delivered", within: .seconds(400)) { channel.deliveries.count >= 2_000 }
        #expect(bodies == (1...2_000).map(String.init))
        try await eventually("cursor") { try await notifier.stats.cursors.first?.version == 2_000 }
        await notifier.stop()
    }

    @Test func aTriggerCanBeTriedWithoutSendingAnything() async throws {
        let notifier = try await started()
        try await notifier.setTrigger()
        var test = Notifier.Triggers.Test(
            id: "chat-message", path: try TreePath("/chats/c1/messages/m1"),
            after: ["senderName": "マスオ", "text": "ただいま"])
        test.uid = "u1"
        let result = try await notifier.client.call(test)
        #expect(result.matches && result.params == ["chat": "c1", "id": "m1"])
        #expect(result.recipients == ["u2"] && result.devices == 1)
        #expect(result.notification == .init(title: "マスオさんからのメッセージ", body: "ただいま"))
        test.path = try TreePath("/chats/c1")
        #expect(try await notifier.client.call(test).matches == false)
        #expect(channel.deliveries.isEmpty)
        await notifier.stop()
    }
}
