import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// What actions do in the tree.
@Suite(.timeLimit(.minutes(10))) struct EffectTests {
    @Test func aReplyIsPushedAsTheUser() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send()
        #expect(try await world.respond(to: pushes[0], "REPLY", text: "おかえり {name}") == .init(effect: .done))
        let write = try #require(world.notifier.messages.writes.first)
        #expect(write.method == Messages.Push.method && write.path == "/chats/c1/messages" && write.uid == "u1")
        #expect(write.claims["name"] == "マスオ" && write.claims["sub"] == "u1")
        #expect(
            write.value == [
                "date": [".sv": "timestamp"], "senderId": "u1", "senderName": "マスオ", "text": "おかえり {name}",
            ])
        let key = try PushKey(#require(write.key))
        #expect(abs(key.milliseconds - WallClock.milliseconds()) < 600_000)
        // Again, and from the other device, it changes nothing.
        #expect(try await world.respond(to: pushes[1], "REPLY", text: "おかえり {name}") == .init(effect: .done))
        #expect(await world.refusal(of: pushes[1], "REPLY", text: "いいえ") == "already_responded")
        #expect(try world.effectRows() == 0 && world.notifier.messages.writes.count == 1)
        await world.stop()
    }

    @Test func nodesAreSetAndUpdatedAsTheUser() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send()
        #expect(try await world.respond(to: pushes[0], "LIKE") == .init(effect: .done))
        #expect(try await world.respond(to: pushes[2], "READ") == .init(effect: .done))
        let writes = world.notifier.messages.writes
        #expect(writes.map(\.method) == [Messages.Set.method, Messages.Update.method])
        #expect(writes.map(\.path) == ["/likes/c1/u1", "/chats/c1"] && writes.map(\.uid) == ["u1", "u2"])
        #expect(writes.first?.value == ["by": "マスオ", "id": "m1"])
        #expect(writes.last?.value == ["unread/u2": 0, "seen/m1": "{u2}"])
        await world.stop()
    }

    @Test func whatTheRulesDenyIsReported() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send()
        world.notifier.messages.failWrites(with: .permissionDenied(path: "/chats/c1/messages"))
        let denied = Notifier.Respond.Result(effect: .refused, reason: "permission_denied")
        #expect(try await world.respond(to: pushes[0], "REPLY", text: "あ") == denied)
        world.notifier.messages.failWrites(with: nil)
        #expect(try await world.respond(to: pushes[1], "REPLY", text: "あ") == denied)
        let events = try world.events()
        #expect(events.map(\.type) == [.action, .action] && events.map(\.reason) == [nil, "permission_denied"])
        #expect(events.map(\.action) == ["REPLY", "REPLY"] && events.map(\.uid) == ["u1", "u1"])
        #expect(try world.effectRows() == 0 && world.notifier.messages.writes.isEmpty)
        await world.stop()
    }

    @Test func effectsOfDisabledAndDeletedUsersAreRefused() async throws {
        let world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        let pushes = try await world.send()
        world.notifier.messages.failWrites(with: .unavailable(reason: "stopping", "stopping"))
        for push in [pushes[0], pushes[2]] {
            #expect(try await world.respond(to: push, "LIKE") == .init(effect: .pending))
        }
        world.auth.set("u1", name: "マスオ", disabled: true)
        world.auth.remove("u2")
        try await world.auth.write(FakeEvent(.disabled, "u1"), FakeEvent(.deleted, "u2"))
        try await eventually("refused") { try world.effectRows() == 0 }
        #expect(try Set(world.events().compactMap(\.reason)) == ["user_disabled", "user_not_found"])
        #expect(world.notifier.messages.writes.isEmpty)
        await world.stop()
    }

    @Test func whatFillsAPathIsOneKey() async throws {
        let world = try await RespondingWorld.start()
        for data in [["message": "a/b"], ["message": "."], [:]] {
            let push = try await world.send(data: data)[0]
            #expect(
                try await world.respond(to: push, "READ") == .init(effect: .refused, reason: "invalid_path"), "\(data)")
        }
        let push = try await world.send(thread: nil)[0]
        #expect(try await world.respond(to: push, "READ") == .init(effect: .refused, reason: "invalid_path"))
        #expect(world.notifier.messages.writes.isEmpty)
        #expect(try world.events().count { $0.reason == "invalid_path" } == 4)
        await world.stop()
    }

    @Test(arguments: [
        RPCError.unavailable(reason: "stopping", "stopping"), .permissionDenied("no such key"),
        .unauthenticated(reason: "INVALID_ID_TOKEN", "no such key"),
    ])
    func anEffectIsTriedUntilMessagesTakesIt(_ failure: RPCError) async throws {
        let world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 50 }
        let push = try await world.send()[0]
        world.notifier.messages.failWrites(with: failure)
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .pending))
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .pending))
        world.notifier.messages.failWrites(with: nil)
        try await eventually("done") {
            try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .done)
        }
        #expect(try world.effectRows() == 0 && world.notifier.messages.writes.count == 1)
        await world.stop()
    }

    @Test func anEffectOfAProcessBeforeIsDoneOnce() async throws {
        var world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        let push = try await world.send()[0]
        world.notifier.messages.failWrites(with: .unavailable(reason: "stopping", "stopping"))
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .pending))
        world = try await world.restarted()
        world.notifier.messages.failWrites(with: nil)
        let messages = world.notifier.messages
        try await eventually("written") { messages.writes.count == 1 }
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .done))
        #expect(messages.writes.count == 1 && messages.nodeCount(below: "/chats/c1/messages") == 1)
        await world.stop()
    }

    @Test(arguments: [false, true])
    func anEffectThatWasDoneButNotRecordedIsDoneOnce(rulesDenyTheSecond: Bool) async throws {
        var world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        let push = try await world.send()[0]
        let (messages, gate) = (world.notifier.messages, Gate())
        messages.holdWrites(until: gate)
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .pending))
        try await eventually("written") { messages.writes.count == 1 }
        messages.refuseSecondPushes(byRules: rulesDenyTheSecond)
        // The response to the write never comes to the process that made it.
        world = try await world.restarted()
        gate.open()
        try await eventually("recorded") { try world.effectRows() == 0 }
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .done))
        #expect(messages.nodeCount(below: "/chats/c1/messages") == 1)
        #expect(try world.events().map(\.reason) == [nil])
        await world.stop()
    }

    @Test func fewEffectsOfAUserWait() async throws {
        let world = try await RespondingWorld.start {
            ($0.limits.effectWaitMsMax, $0.limits.effectsPerUserMax) = (0, 2)
        }
        world.notifier.messages.failWrites(with: .unavailable(reason: "stopping", "stopping"))
        for _ in 0..<2 {
            let push = try await world.send()[0]
            #expect(try await world.respond(to: push, "LIKE") == .init(effect: .pending))
        }
        let pushes = try await world.send()
        #expect(await world.refusal(of: pushes[0], "LIKE") == "too_many_effects")
        #expect(try await world.respond(to: pushes[2], "LIKE") == .init(effect: .pending))
        world.notifier.messages.failWrites(with: nil)
        try await eventually("done") { try world.effectRows() == 0 }
        // What was refused was not taken.
        #expect(try await world.respond(to: pushes[0], "REPLY", text: "あ").effect != .refused)
        await world.stop()
    }

    @Test func aValueThatGrowsTooLongIsRefused() async throws {
        let world = try await RespondingWorld.start { $0.limits.effectBytesMax = 256 }
        let push = try await world.send()[0]
        let long = String(repeating: "あ", count: 100)
        #expect(
            try await world.respond(to: push, "REPLY", text: long) == .init(effect: .refused, reason: "too_big"))
        await world.stop()
    }

    // MARK: Quick replies

    @Test func quickRepliesAreThoseOfTheTreeAndDefaults() async throws {
        let world = try await RespondingWorld.start()
        let messages = world.notifier.messages
        func texts(_ locale: String?) async throws -> [String] {
            try await world.notifier.call(Notifier.QuickReplies.Get(locale: locale), as: "u1").texts
        }
        let defaults = Notifier.QuickReplies.defaults
        #expect(try await texts("ja-JP") == defaults["ja"] && defaults["ja"]?.count == 6)
        #expect(try await texts(nil) == defaults["en"] && defaults["en"]?.count == 6)
        #expect(try await texts("de") == defaults["en"])
        messages.setNode("/users/u1/quickReplies", ["はい", nil, 3, ""])
        #expect(try await texts("ja") == ["はい"] + (defaults["ja"]?.dropFirst() ?? []))
        messages.setNode("/users/u1/quickReplies", ["5": "いま行く"])
        #expect(try await texts("ja") == (defaults["ja"]?.dropLast() ?? []) + ["いま行く"])
        #expect(messages.reads.last == "/users/u1/quickReplies")
        await world.stop()
    }

    @Test func quickRepliesAreSetAsTheUser() async throws {
        let world = try await RespondingWorld.start()
        let messages = world.notifier.messages
        func refusal(_ texts: [String]) async -> String? {
            do {
                _ = try await world.notifier.call(Notifier.QuickReplies.Set(texts: texts), as: "u1")
                return nil
            } catch { return (error as? RPCError)?.reason }
        }
        #expect(await refusal(["はい", "いいえ"]) == nil)
        #expect(await refusal([]) == nil)
        #expect(messages.writes.map(\.value) == [["はい", "いいえ"], nil])
        #expect(messages.writes.map(\.path) == ["/users/u1/quickReplies", "/users/u1/quickReplies"])
        #expect(messages.writes.map(\.uid) == ["u1", "u1"])
        #expect(await refusal(Array(repeating: "a", count: 7)) == "invalid_quick_reply")
        #expect(await refusal([""]) == "invalid_quick_reply")
        #expect(await refusal([String(repeating: "a", count: 201)]) == "invalid_quick_reply")
        #expect(await refusal([String(repeating: "a", count: 200)]) == nil)
        messages.failWrites(with: .permissionDenied(path: "/users/u1/quickReplies"))
        #expect(await refusal(["a"]) == "permission_denied")
        messages.failWrites(with: .permissionDenied("no as"))
        #expect(await refusal(["a"]) == "messages_refuses_notifier")
        await #expect(throws: RPCError.self) { try await world.notifier.client.call(Notifier.QuickReplies.Get()) }
        await world.stop()
    }

    @Test func aQuickReplyIsSentByItsIndex() async throws {
        let world = try await RespondingWorld.start()
        let messages = world.notifier.messages
        messages.setNode("/users/u1/quickReplies", ["0": "すぐ行く", "5": "あとで"])
        let pushes = try await world.send()
        #expect(try await world.respond(to: pushes[0], "QUICK0") == .init(effect: .done))
        #expect(try await world.respond(to: pushes[1], quickReply: 0) == .init(effect: .done))
        #expect(await world.refusal(of: pushes[1], quickReply: 5) == "already_responded")
        #expect(messages.writes.map { $0.value["text"] } == ["すぐ行く"])
        // Its device speaks English.
        #expect(try await world.respond(to: pushes[2], quickReply: 5) == .init(effect: .done))
        #expect(messages.writes.last?.value["text"]?.string == Notifier.QuickReplies.defaults["en"]?.last)
        let others = try await world.send()
        #expect(try await world.respond(to: others[0], quickReply: 5) == .init(effect: .done))
        #expect(messages.writes.last?.value["text"] == "あとで")
        let events = try world.events()
        #expect(events.map(\.action) == ["QUICK0", "REPLY", "REPLY"] && events.map(\.quickReply) == [0, 5, 5])
        await world.stop()
    }
}
