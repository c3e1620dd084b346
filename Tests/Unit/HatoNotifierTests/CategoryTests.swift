import HatoModel
import HatoPush
import HatoRPC
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct CategoryTests {
    private let channel = ScriptedChannel()

    private static let marryMe: Notifier.Category = {
        var accept = Notifier.CategoryAction(id: "ACCEPT", title: .init(["ja": "承認", "en": "Accept"]))
        accept.activation = .background
        var refuse = Notifier.CategoryAction(id: "REFUSE", title: .init("拒否"))
        (refuse.activation, refuse.destructive, refuse.authenticationRequired) = (.foreground, true, true)
        var reply = Notifier.CategoryAction.reply(id: "REPLY", title: .init("返信"), effect: nil)
        reply.input = .init(button: .init(["ja": "送信", "en": "Send"]), placeholder: .init("…"))
        return .init(id: "MARRY_ME", actions: [accept, refuse, reply])
    }()

    private func refusal(_ body: () async throws -> Void) async -> RPCError? {
        do {
            try await body()
            return nil
        } catch { return error as? RPCError }
    }

    private func send(_ category: String?, to uids: [String] = ["u1"], dryRun: Bool? = nil) -> Notifier.Send {
        var send = Notifier.Send(to: .init(uids: uids), notification: .init(body: "ぼくと結婚してください!"))
        (send.category, send.dryRun) = (category, dryRun)
        return send
    }

    @Test func categoriesAreSetListedFetchedAndRemoved() async throws {
        let auth = try await RespondingWorld.startAuth()
        let notifier = try await RespondingWorld.start(auth, channels: [channel]) { $0.limits.categoriesMax = 2 }
        var category = Self.marryMe
        category.actions[2].effect = .init(push: .init(path: "/answers", value: ["text": "{text}"]))
        #expect(try await notifier.client.call(Notifier.Categories.Set(category)).created)
        #expect(try await !notifier.client.call(Notifier.Categories.Set(category)).created)
        #expect(try await notifier.client.call(Notifier.Categories.List()).categories == [category.normalised])
        // Apps need no credential, and learn no paths.
        let app = notifier.anonymousClient()
        let fetched = try await app.call(Notifier.Categories.Get())
        #expect(fetched.categories == [Self.marryMe.normalised])
        let same = try await app.call(Notifier.Categories.Get(etag: fetched.etag))
        #expect(same == .init(etag: fetched.etag))
        let other = Notifier.Category(id: "A", actions: [.init(id: "OK", title: .init("OK"))])
        _ = try await notifier.client.call(Notifier.Categories.Set(other))
        let changed = try await app.call(Notifier.Categories.Get(etag: fetched.etag))
        #expect(changed.etag != fetched.etag && changed.categories?.map(\.id) == ["A", "MARRY_ME"])
        let full = await refusal {
            _ = try await notifier.client.call(Notifier.Categories.Set(.init(id: "B", actions: other.actions)))
        }
        #expect(full?.code == .resourceExhausted && full?.reason == "too_many_categories")
        _ = try await notifier.client.call(Notifier.Categories.Remove(id: "A"))
        #expect(try await app.call(Notifier.Categories.Get()).etag == fetched.etag)
        let gone = await refusal { _ = try await notifier.client.call(Notifier.Categories.Remove(id: "A")) }
        #expect(gone?.reason == "category_not_found")
        let user = await refusal { _ = try await notifier.call(Notifier.Categories.List(), as: "u1") }
        #expect(user?.code == .permissionDenied)
        await app.close()
        await notifier.stop()
        await auth.stop()
    }

    @Test func wrongCategoriesAreRefusedByName() async throws {
        let auth = try await RespondingWorld.startAuth()
        let notifier = try await RespondingWorld.start(auth, channels: [channel]) {
            ($0.limits.categoryActionsMax, $0.limits.localesMax, $0.limits.categoryBytesMax) = (3, 2, 2_000)
        }
        func refused(_ change: (inout Notifier.Category) -> Void) async -> [String?] {
            var category = Self.marryMe
            change(&category)
            let error = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(category)) }
            return [error?.reason, error?.data["parameter"]?.string]
        }
        #expect(await refused { $0.id = "" } == ["invalid_key", "id"])
        #expect(await refused { $0.actions = [] } == ["invalid_action", "actions"])
        #expect(
            await refused { $0.actions.append(.init(id: "X", title: .init("x"))) } == ["invalid_action", "actions"])
        #expect(await refused { $0.actions[0].id = "" } == ["invalid_key", "actions.0.id"])
        #expect(await refused { $0.actions[0].id = "opened" } == ["invalid_action", "actions.0.id"])
        #expect(await refused { $0.actions[1].id = "ACCEPT" } == ["invalid_action", "actions.1.id"])
        #expect(await refused { $0.actions[0].title = .init("") } == ["invalid_key", "actions.0.title"])
        #expect(await refused { $0.actions[0].title = .init(["ja": ""]) } == ["invalid_key", "actions.0.title.ja"])
        let three = Notifier.LocalizedText(["ja": "a", "en": "b", "de": "c"])
        #expect(await refused { $0.actions[0].title = three } == ["invalid_localized", "actions.0.title"])
        #expect(
            await refused { $0.actions[2].input?.button = .init(String(repeating: "a", count: 257)) }
                == ["invalid_key", "actions.2.input.button"])
        #expect(await refused { $0.actions[0].quickReply = 6 } == ["invalid_quick_reply", "actions.0.quickReply"])
        #expect(await refused { $0.actions[2].quickReply = 0 } == ["invalid_quick_reply", "actions.2.quickReply"])
        #expect(
            await refused { ($0.actions[0].quickReply, $0.actions[2].input) = (0, nil) }
                == ["invalid_quick_reply", "actions.0.quickReply"])
        #expect(
            await refused { ($0.actions[0].quickReply, $0.actions[1].quickReply) = (0, 0) }
                == ["invalid_quick_reply", "actions.1.quickReply"])
        #expect(try await notifier.client.call(Notifier.Categories.List()).categories.isEmpty)
        await notifier.stop()
        await auth.stop()
    }

    @Test func wrongEffectsAreRefusedByName() async throws {
        let auth = try await RespondingWorld.startAuth()
        let notifier = try await RespondingWorld.start(auth, channels: [channel]) {
            $0.limits.categoryBytesMax = 2_000
        }
        func refusedEffect(_ effect: Notifier.ActionEffect, at index: Int = 2) async -> [String?] {
            var category = Self.marryMe
            category.actions[index].effect = effect
            let error = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(category)) }
            return [error?.reason, error?.data["parameter"]?.string]
        }
        let long = JSONValue.string(String(repeating: "a", count: 2_000))
        #expect(await refusedEffect(.init(set: .init(path: "/a", value: long))) == ["too_big", "actions"])
        var both = Notifier.ActionEffect(set: .init(path: "/a", value: 1))
        both.push = both.set
        #expect(await refusedEffect(both) == ["invalid_effect", "actions.2.effect"])
        func place(_ name: String, _ member: String) -> String { "actions.2.effect.\(name).\(member)" }
        for (path, reason) in [
            ("/a/{text}", "invalid_template"), ("/a/{name}", "invalid_template"), ("/a/{other}", "invalid_template"),
            ("/a/{uid", "invalid_template"), ("/a/b#c", "invalid_key"), ("/a/.priority", "invalid_path"),
        ] {
            #expect(
                await refusedEffect(.init(set: .init(path: path, value: 1))) == [reason, place("set", "path")],
                "\(path)")
        }
        let values: [(JSONValue, String)] = [
            ("{other}", "invalid_template"), (["a": ["{b": "c"]], "invalid_template"), (["a/b": 1], "invalid_key"),
            ([".sv": ["increment": 1]], "invalid_server_value"), (["a": "}"], "invalid_template"),
            (.null, "invalid_value"),
        ]
        for (value, reason) in values {
            #expect(
                await refusedEffect(.init(push: .init(path: "/a", value: value))) == [reason, place("push", "value")],
                "\(value)")
        }
        let updates: [(JSONValue, String)] = [
            (1, "invalid_value"), ([:], "invalid_value"), (["a/{text}": 1], "invalid_template"),
            (["b": 1, "b/c": 2], "conflicting_paths"), (["a/{uid}/c": 1, "a/{uid}": 2], "conflicting_paths"),
            (["b": 1, "/b/": 2], "conflicting_paths"),
            (["/": 1], "invalid_path"), (["a": [".sv": ["increment": 1]]], "invalid_server_value"),
        ]
        for (value, reason) in updates {
            #expect(
                await refusedEffect(.init(update: .init(path: "/a", value: value))) == [
                    reason, place("update", "value"),
                ],
                "\(value)")
        }
        // Different places may be different keys.
        let name = String(repeating: "あ", count: 64)
        let places: JSONValue = [
            "{uid}": 1, "{thread}/x": 2, "{data.x}": 3, "x": 4, "{{0}}": 5, "{data.\(name)}": 6,
        ]
        try EffectTemplate(.init(update: .init(path: "/a", value: places)), at: "effect", hasText: false)
            .requireSense(at: "effect")
        let database = Notifier.EffectWrite(path: "/a", value: 1, database: "A b")
        #expect(await refusedEffect(.init(set: database)) == ["invalid_database", place("set", "database")])
        // Without input there is no text.
        #expect(
            await refusedEffect(.init(set: .init(path: "/a", value: "{text}")), at: 0)
                == ["invalid_template", "actions.0.effect.set.value"])
        #expect(try await notifier.client.call(Notifier.Categories.List()).categories.isEmpty)
        await notifier.stop()
        await auth.stop()
    }

    @Test func effectsNeedAKeyForMessages() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        var category = Self.marryMe
        category.actions[0].effect = .init(set: .init(path: "/a", value: 1))
        let error = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(category)) }
        #expect(error?.reason == "no_service_key")
        _ = try await notifier.client.call(Notifier.Categories.Set(Self.marryMe))
        await notifier.stop()
    }

    @Test func actionsNeverChangeOnceANotificationHadThem() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u1", at: "https://example.com/u1")
        var other = Self.marryMe
        other.actions.removeLast()
        _ = try await notifier.client.call(Notifier.Categories.Set(other))
        _ = try await notifier.client.call(send("MARRY_ME", dryRun: true))
        #expect(try await !notifier.client.call(Notifier.Categories.Set(Self.marryMe)).created)
        _ = try await notifier.client.call(send("MARRY_ME"))
        let changed = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(other)) }
        #expect(changed?.code == .failedPrecondition && changed?.reason == "category_used")
        #expect(changed?.message.contains("new id") == true)
        // Absent members mean the same.
        _ = try await notifier.client.call(Notifier.Categories.Set(Self.marryMe.normalised))
        _ = try await notifier.client.call(Notifier.Categories.Remove(id: "MARRY_ME"))
        #expect(try await notifier.client.call(Notifier.Categories.List()).categories.isEmpty)
        let unknown = await refusal { _ = try await notifier.client.call(send("MARRY_ME")) }
        #expect(unknown?.reason == "unknown_category")
        let again = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(other)) }
        #expect(again?.reason == "category_used")
        #expect(try await notifier.client.call(Notifier.Categories.Set(Self.marryMe)).created)
        await notifier.stop()
    }

    @Test func whatNamesAnUnknownCategoryIsRefusedAndWhatNamesOneKeepsIt() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        var trigger = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]),
            notification: .init(body: "a"))
        trigger.category = "MARRY_ME"
        var type = Notifier.PayloadType(type: "proposal")
        type.category = "MARRY_ME"
        let (set, setType) = (trigger, Notifier.Types.Set(type))
        for error in [
            await refusal { _ = try await notifier.client.call(send("MARRY_ME")) },
            await refusal { _ = try await notifier.client.call(set) },
            await refusal { _ = try await notifier.client.call(setType) },
        ] {
            #expect(error?.code == .invalidArgument && error?.reason == "unknown_category")
            #expect(error?.data["parameter"] == "category")
        }
        _ = try await notifier.client.call(Notifier.Categories.Set(Self.marryMe))
        _ = try await notifier.client.call(set)
        _ = try await notifier.client.call(setType)
        #expect(try await notifier.client.call(Notifier.Triggers.List()).triggers.first?.category == "MARRY_ME")
        func removal() async -> RPCError? {
            await refusal { _ = try await notifier.client.call(Notifier.Categories.Remove(id: "MARRY_ME")) }
        }
        #expect(await removal()?.reason == "category_in_use")
        _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "t"))
        #expect(await removal()?.message.contains("proposal") == true)
        _ = try await notifier.client.call(Notifier.Types.Remove(type: "proposal"))
        #expect(await removal() == nil)
        await notifier.stop()
    }

    @Test func eachDeviceGetsTheActionsInItsLanguage() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        for (uid, locale) in [("u1", "ja-JP"), ("u2", "en-GB"), ("u3", nil)] {
            var device = Notifier.Devices.Register(url: "https://example.com/\(uid)", uid: uid)
            device.locale = locale
            _ = try await notifier.client.call(device)
        }
        _ = try await notifier.client.call(Notifier.Categories.Set(Self.marryMe))
        var type = Notifier.PayloadType(type: "proposal")
        (type.template, type.category) = (.init(body: "結婚"), "MARRY_ME")
        _ = try await notifier.client.call(Notifier.Types.Set(type))
        _ = try await notifier.client.call(send("MARRY_ME", to: ["u1", "u2"]))
        _ = try await notifier.client.call(Notifier.Send(to: .init(uids: ["u3"]), type: "proposal", data: [:]))
        try await eventually("three deliveries") { channel.deliveries.count == 3 }
        let sent = Dictionary(
            uniqueKeysWithValues: channel.deliveries.map { ($0.content.uid, $0.content.appearance.category) })
        for (uid, titles) in [("u1", ["承認", "拒否", "返信"]), ("u2", ["Accept", "拒否", "返信"])] {
            #expect(sent[uid]??.id == "MARRY_ME" && sent[uid]??.actions.map(\.title) == titles, "\(uid)")
        }
        #expect(sent["u3"]??.actions.map(\.id) == ["ACCEPT", "REFUSE", "REPLY"])
        #expect(sent["u1"]??.actions.map(\.opensApp) == [false, true, false])
        #expect(sent["u1"]??.actions.map(\.isDestructive) == [false, true, false])
        #expect(sent["u1"]??.actions.map(\.requiresAuthentication) == [false, true, false])
        #expect(sent["u1"]??.actions[2].input == .init(button: "送信", placeholder: "…"))
        #expect(sent["u2"]??.actions[2].input?.button == "Send")
        await notifier.stop()
    }

    @Test func aTriggersNotificationsHaveItsCategory() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u2", at: "https://example.com/u2")
        _ = try await notifier.client.call(Notifier.Categories.Set(Self.marryMe))
        var trigger = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]),
            notification: .init(body: "{after.text}"))
        trigger.category = "MARRY_ME"
        _ = try await notifier.client.call(trigger)
        try await eventually("followed") { try await notifier.isFollowing() }
        _ = notifier.messages.push("ただいま")
        try await eventually("delivered") { channel.deliveries.count == 1 }
        #expect(channel.deliveries.first?.content.appearance.category?.id == "MARRY_ME")
        var other = Self.marryMe
        other.actions.removeLast()
        let used = other
        let changed = await refusal { _ = try await notifier.client.call(Notifier.Categories.Set(used)) }
        #expect(changed?.reason == "category_used")
        await notifier.stop()
    }
}
