import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// Bounds, repetitions and changed accounts of responses.
@Suite(.timeLimit(.minutes(10))) struct ResponseBoundTests {
    private let unavailable = RPCError.unavailable(reason: "stopping", "stopping")

    // MARK: Quick replies

    @Test func aNodeThatIsTooLargeOrDeniedHasTheDefaults() async throws {
        let world = try await RespondingWorld.start()
        let messages = world.notifier.messages
        let defaults = try #require(Notifier.QuickReplies.defaults["ja"])
        func texts() async throws -> [String] {
            try await world.notifier.call(Notifier.QuickReplies.Get(locale: "ja"), as: "u1").texts
        }
        messages.setNode("/users/u1/quickReplies", .array(Array(repeating: "はい", count: 20_000)))
        #expect(try await texts() == defaults)
        messages.setNode("/users/u1/quickReplies", .array(Array(repeating: "はい", count: 6)))
        #expect(try await texts() == Array(repeating: "はい", count: 6))
        messages.fail(with: .permissionDenied(path: "/users/u1/quickReplies"))
        #expect(try await texts() == defaults)
        let push = try await world.send()[0]
        #expect(try await world.respond(to: push, quickReply: 1) == .init(effect: .done))
        #expect(messages.writes.last?.value["text"]?.string == defaults[1])
        await world.stop()
    }

    // MARK: Accounts

    @Test func aDisabledUserRespondsNoMore() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send("MARRY_ME")
        // It is remembered as it was.
        let others = try await world.send("MARRY_ME")
        #expect(try await world.respond(to: others[0], "ACCEPT") == .init(effect: .none))
        world.auth.set("u1", name: "マスオ", disabled: true)
        try await world.auth.write(FakeEvent(.disabled, "u1"))
        try await eventually("refused") { await world.refusal(of: pushes[0], "ACCEPT", text: "x") == "user_disabled" }
        #expect(await world.refusal(of: pushes[0], "ACCEPT") == "user_disabled")
        world.auth.remove("u2")
        #expect(await world.refusal(of: pushes[2], "ACCEPT") == "user_not_found")
        // Reports say nothing in the name of the user.
        #expect(await world.refusal(of: pushes[0], "opened") == nil)
        #expect(try world.events().map(\.action) == ["ACCEPT", nil])
        await world.stop()
    }

    @Test func aResponseIsTakenWhileAuthIsAway() async throws {
        let world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 50 }
        let push = try await world.send()[0]
        await world.auth.stop()
        #expect(try await world.respond(to: push, "LIKE") == .init(effect: .pending))
        await world.notifier.stop()
    }

    // MARK: Further attempts

    @Test(arguments: ["LIKE", "READ"]) func whatStandsThereIsDone(_ action: String) async throws {
        var world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        let push = try await world.send()[0]
        let (messages, gate) = (world.notifier.messages, Gate())
        messages.holdWrites(until: gate)
        #expect(try await world.respond(to: push, action) == .init(effect: .pending))
        try await eventually("written") { messages.writes.count == 1 }
        messages.setNode("/chats/c1/unread/u1", 0)
        messages.setNode("/chats/c1/seen/m1", "{u1}")
        // Rules that allow an answer once deny the second.
        messages.failWrites(with: .permissionDenied(path: "/likes/c1/u1"))
        world = try await world.restarted()
        gate.open()
        try await eventually("recorded") { try world.effectRows() == 0 }
        #expect(try await world.respond(to: push, action) == .init(effect: .done))
        #expect(messages.writes.count == 1)
        await world.stop()
    }

    @Test func aPushThatIsThereIsDoneWhateverBecameOfTheUser() async throws {
        var world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        let push = try await world.send()[0]
        let (messages, gate) = (world.notifier.messages, Gate())
        messages.holdWrites(until: gate)
        #expect(try await world.respond(to: push, "REPLY", text: "あ") == .init(effect: .pending))
        try await eventually("written") { messages.writes.count == 1 }
        world.auth.set("u1", name: "マスオ", disabled: true)
        world = try await world.restarted()
        gate.open()
        try await eventually("recorded") { try world.effectRows() == 0 }
        #expect(try world.events().map(\.reason) == [nil])
        // Nothing of what is below is read.
        #expect(messages.shallowReads.count == 1)
        await world.stop()
    }

    @Test(
        arguments: [
            (["a": 1, "b": ["x", nil]], ["b": ["0": "x"], "a": 1], true),
            (["a": [".sv": "timestamp"], ".priority": 3], ["a": 1_795_000_000_000], true),
            (["a": [".value": "x", ".priority": 1]], ["a": "x"], true), (nil, nil, true), ([:], nil, true),
            // The time of an earlier one.
            (["a": [".sv": "timestamp"]], ["a": 1_794_999_000_000], false),
            (["a": 1], ["a": 1, "b": 2], false), (["a": 1], ["a": 2], false), (["a": [".sv": "timestamp"]], nil, false),
            (["a": 1], "a", false), ("a", ["a": 1], false), (["a": [".sv": "timestamp"]], ["a": "x"], false),
        ] as [(JSONValue, JSONValue, Bool)])
    func whatIsWrittenIsKnown(_ value: JSONValue, _ found: JSONValue, _ isWritten: Bool) {
        #expect(WrittenValue.isWritten(value, in: found, since: 1_795_000_000_000) == isWritten)
    }

    // MARK: Reading a thread

    @Test func anActionReadsItsThread() async throws {
        let world = try await RespondingWorld.start()
        var later = Notifier.CategoryAction(id: "SEEN", title: .init("既読"))
        later.effect = .read
        _ = try await world.notifier.client.call(Notifier.Categories.Set(.init(id: "SEEN", actions: [later])))
        func badge(_ uid: String) async throws -> Int {
            try await world.notifier.call(Notifier.Badges.Get(), as: uid).badge
        }
        let push = try await world.send("SEEN")[0]
        _ = try await world.send("SEEN", thread: "c2")
        #expect(try await badge("u1") == 2)
        #expect(try await world.respond(to: push, "SEEN") == .init(effect: .done))
        #expect(try await [badge("u1"), badge("u2")] == [1, 2])
        #expect(world.notifier.messages.writes.isEmpty)
        #expect(try world.effectRows() == 0)
        let none = try await world.send("SEEN", thread: nil)[0]
        #expect(try await world.respond(to: none, "SEEN") == .init(effect: .refused, reason: "no_thread"))
        #expect(try world.events().map(\.reason) == [nil, nil, "no_thread"])
        await world.stop()
    }

    @Test func readAndMuteStandAloneAndNeedNoKey() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        func refused(_ effect: JSONValue) async -> RPCError? {
            let action: JSONValue = ["id": "A", "title": "a", "effect": effect]
            do {
                _ = try await notifier.client.call(
                    method: Notifier.Categories.Set.method, params: ["id": "C", "actions": [action]])
                return nil
            } catch { return error as? RPCError }
        }
        func refusal(_ effect: JSONValue) async -> String? { await refused(effect)?.reason }
        #expect(await refusal(["read": true]) == nil)
        #expect(await refusal(["read": false]) == "invalid_effect")
        #expect(await refusal(["read": true, "set": ["path": "/a", "value": 1]]) == "invalid_effect")
        #expect(await refusal(["mute": 60]) == nil)
        #expect(await refused(["hide": 60])?.message.contains("hide") == true)
        await notifier.stop()
    }

    // MARK: Recipients

    /// The phone and the tablet of a user report at once.
    @Test func aUserIsLookedForOnceAtATimeAndOthersWait() async {
        let scans = RecipientScans()
        #expect(await scans.begin("u1"))
        #expect(await scans.begin("u2"))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<32 {
                group.addTask {
                    let hasTurn = await scans.begin("u1")
                    if hasTurn { scans.end("u1") }
                    return hasTurn
                }
            }
            scans.end("u1")
            for await hasTurn in group { #expect(hasTurn) }
        }
        #expect(await scans.begin("u1"))
    }

    @Test func reportsWithAnIDTokenCountOnce() async throws {
        let world = try await RespondingWorld.start()
        // Without a thread, it is looked for among the deliveries.
        let push = try await world.send("MARRY_ME", to: ["u1"], thread: nil)[0]
        for _ in 0..<2 {
            let opened = Notifier.Respond(notification: push.notification, action: "opened")
            _ = try await world.notifier.call(opened, as: "u1")
        }
        #expect(try world.events().map(\.type) == [.opened])
        #expect(try world.store.snapshot().keys(ResponseRecord.prefix(push.notification), limit: 9).count == 1)
        await world.stop()
    }

    @Test func reportsGoInPages() async throws {
        let outbox = try await Outbox.test(try MemoryStore(), TestClock())
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        for uid in ["u1", "u2", "u3"] {
            let responding = Responding(
                notification: id, choice: .report(.opened), text: nil, responder: Responder(uid: uid),
                limits: outbox.limits)
            _ = try await outbox.change { try responding.apply(to: &$0) }
        }
        #expect(try await !outbox.change { try ResponseRecord.forgetAll(of: id, limit: 2, in: &$0) })
        #expect(try await outbox.change { try ResponseRecord.forgetAll(of: id, limit: 2, in: &$0) })
        #expect(try await outbox.store.read { try $0.count(.response) } == 0)
    }

    // MARK: Texts that are cut

    @Test func whatIsCutFillsNoPlace() async throws {
        var set = Notifier.Triggers.Set(
            id: "t1", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u1"]),
            notification: .init(body: "{after.text}"))
        set.options = .init()
        set.options?.thread = "{chat}"
        set.data = ["long": "{after.text}", "short": "{id}"]
        let settings = CompiledTrigger.Settings(limits: NotifierLimits(), timeToLive: .seconds(60), now: 5_000)
        let trigger = try CompiledTrigger(set.trigger, limits: NotifierLimits())
        func cut(_ chat: String, _ text: String) throws -> [String]? {
            let change = FeedChange(
                pattern: "/chats/{chat}/messages/{id}", parameters: ["chat": chat, "id": "m1"],
                path: "/chats/\(chat)/messages/m1", type: .created, after: ["text": .string(text)])
            let commit = FeedCommit(version: 7, epoch: "e", time: 1_000, changes: [change])
            return try #require(trigger.notification(for: change, in: commit, settings: settings)).cut
        }
        #expect(try cut(String(repeating: "c", count: 256), "a") == nil)
        #expect(try cut(String(repeating: "c", count: 257), "a") == ["thread"])
        #expect(try cut("c1", String(repeating: "a", count: 5_000))?.contains("data.long") == true)

        var record = NotificationRecord.fields.blank
        record.cut = ["thread"]
        #expect(!record.isWhole(.thread) && record.isWhole(.data("thread")))
    }

    @Test func anEffectGetsNoPartOfAThread() async throws {
        let world = try await RespondingWorld.start()
        let push = try await world.send()[0]
        let key = NotificationRecord.key(push.notification)
        var record = try #require(try world.store.snapshot().readable(NotificationRecord.self, key))
        record.cut = ["thread"]
        let cut = record
        _ = try await world.store.write { transaction in
            var writes = RecordWrites()
            writes.put(key, cut)
            try writes.apply(to: transaction)
        }
        #expect(try await world.respond(to: push, "LIKE") == .init(effect: .refused, reason: "invalid_path"))
        await world.stop()
    }

    // MARK: Categories

    @Test func aCategoryFitsIntoAPushInEachLanguage() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        func category(_ title: Notifier.LocalizedText) -> Notifier.Category {
            .init(id: "BIG", actions: (0..<8).map { .init(id: "ACTION\($0)", title: title) })
        }
        func refusal(_ title: Notifier.LocalizedText) async -> [String?] {
            do {
                _ = try await notifier.client.call(Notifier.Categories.Set(category(title)))
                return []
            } catch { return [(error as? RPCError)?.reason, (error as? RPCError)?.data["parameter"]?.string] }
        }
        let long = String(repeating: "a", count: 256)
        #expect(await refusal(.init(long)) == ["too_big", "actions"])
        #expect(await refusal(.init(["en": "OK", "ja": long])) == ["too_big", "actions"])
        #expect(await refusal(.init(["en": "OK", "ja": String(repeating: "a", count: 64)])) == [])
        await notifier.stop()
    }

    @Test func aRepetitionIsKnownWhenItsCategoryIsGone() async throws {
        let world = try await RespondingWorld.start()
        var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(body: "a"))
        (send.category, send.idempotencyKey) = ("MARRY_ME", "k1")
        let first = try await world.notifier.client.call(send)
        _ = try await world.notifier.client.call(Notifier.Categories.Remove(id: "MARRY_ME"))
        #expect(try await world.notifier.client.call(send).notification == first.notification)
        send.idempotencyKey = "k2"
        let error = await #expect(throws: RPCError.self) { try await world.notifier.client.call(send) }
        #expect(error?.reason == "unknown_category")
        send.category = "QUICK6"
        let shipped = await #expect(throws: RPCError.self) { try await world.notifier.client.call(send) }
        #expect(shipped?.message.contains("--shipped quick-replies") == true)
        await world.stop()
    }

    // MARK: Rows

    @Test func anEffectThatCannotBeReadIsSetAside() async throws {
        let world = try await RespondingWorld.start {
            ($0.limits.effectWaitMsMax, $0.limits.effectsPerUserMax) = (0, 1)
        }
        world.notifier.messages.failWrites(with: unavailable)
        let pushes = try await world.send()
        #expect(try await world.respond(to: pushes[0], "LIKE") == .init(effect: .pending))
        let key = EffectRecord.key(pushes[0].notification, "u1")
        let unreadable = Notifier.Respond.Result(effect: .refused, reason: "unreadable")
        try await eventually("set aside") {
            // An attempt that was under way may have written it anew.
            _ = try await world.store.write { transaction in
                var writes = RecordWrites()
                writes.put(key, bytes: [0xFF])
                try writes.apply(to: transaction)
            }
            return try await world.respond(to: pushes[0], "LIKE") == unreadable
        }
        // It is not waited for.
        world.notifier.messages.failWrites(with: nil)
        let next = try await world.send()
        #expect(await world.refusal(of: next[0], "LIKE") == nil)
        try await eventually("done") { world.notifier.messages.writes.count == 1 }
        await world.stop()
    }

    @Test func aRefusedKeyIsShown() async throws {
        let world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 0 }
        func shown() async throws -> String? {
            try await world.notifier.client.call(method: "service.health")["checks"]?["effects"]?.string
        }
        #expect(try await shown() == nil)
        let push = try await world.send()[0]
        world.notifier.messages.failWrites(with: .permissionDenied("no such key"))
        #expect(try await world.respond(to: push, "LIKE") == .init(effect: .pending))
        try await eventually("shown") { try await shown()?.contains("refuses the notifier's key") == true }
        world.notifier.messages.failWrites(with: nil)
        try await eventually("done") { try await shown() == nil }
        await world.stop()
    }
}
