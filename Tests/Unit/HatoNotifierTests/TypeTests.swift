import HatoModel
import HatoPush
import HatoRPC
import HatoTesting
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct TypeTests {
    private let channel = ScriptedChannel()

    private static let product: Notifier.PayloadType = {
        var type = Notifier.PayloadType(type: "product", required: ["id": .id], optional: ["name": .string])
        type.template = .init(title: "新着商品", body: "{name} {{{id}}}")
        type.localized = ["en": .init(title: "New", body: "{name}")]
        type.timeSensitive = true
        return type
    }()

    private func refusal(_ body: () async throws -> Void) async -> RPCError? {
        do {
            try await body()
            return nil
        } catch { return error as? RPCError }
    }

    @Test func typesAreSetListedAndRemoved() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.typesMax = 2 }
        #expect(try await notifier.client.call(Notifier.Types.Set(Self.product)).created)
        #expect(try await !notifier.client.call(Notifier.Types.Set(Self.product)).created)
        _ = try await notifier.client.call(Notifier.Types.Set(.init(type: "a")))
        #expect(try await notifier.client.call(Notifier.Types.List()).types == [.init(type: "a"), Self.product])
        let full = await refusal { _ = try await notifier.client.call(Notifier.Types.Set(.init(type: "b"))) }
        #expect(full?.code == .resourceExhausted && full?.reason == "too_many_types")
        _ = try await notifier.client.call(Notifier.Types.Remove(type: "a"))
        let gone = await refusal { _ = try await notifier.client.call(Notifier.Types.Remove(type: "a")) }
        #expect(gone?.reason == "type_not_found")
        let user = await refusal { _ = try await notifier.call(Notifier.Types.List(), as: "u1") }
        #expect(user?.code == .permissionDenied)
        await notifier.stop()
    }

    @Test func wrongTypesAreRefusedByName() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.typeFieldsMax = 2 }
        func refused(_ change: (inout Notifier.PayloadType) -> Void) async -> [String?] {
            var type = Self.product
            change(&type)
            let error = await refusal { _ = try await notifier.client.call(Notifier.Types.Set(type)) }
            return [error?.reason, error?.data["parameter"]?.string]
        }
        #expect(await refused { $0.type = "" } == ["invalid_key", "type"])
        #expect(await refused { $0.category = "" } == ["invalid_key", "category"])
        #expect(await refused { $0.optional?["more"] = .int } == ["invalid_field", "required"])
        #expect(await refused { $0.optional = ["id": .int] } == ["invalid_field", "optional"])
        #expect(await refused { $0.optional = ["a b": .int] } == ["invalid_field", "optional.a b"])
        #expect(
            await refused { $0.required = ["transition_type": .int] } == ["invalid_field", "required.transition_type"])
        #expect(await refused { $0.required = ["from": .int] } == ["invalid_data", "required"])
        #expect(await refused { $0.template = .init(title: "{other}") } == ["invalid_template", "template"])
        #expect(await refused { $0.template = .init(title: "{id") } == ["invalid_template", "template"])
        #expect(await refused { $0.template = .init() } == ["empty_notification", "template"])
        #expect(await refused { $0.localized = ["ja": .init(body: "}")] } == ["invalid_template", "localized.ja"])
        #expect(await refused { $0.template = nil } == ["invalid_localized", "localized"])
        #expect(try await notifier.client.call(Notifier.Types.List()).types.isEmpty)
        await notifier.stop()
    }

    @Test func sendChecksItsDataAndTakesTheTextOfItsType() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        for (uid, locale) in [("u1", "ja-JP"), ("u2", "en-GB"), ("u3", nil)] {
            var device = Notifier.Devices.Register(url: "https://example.com/\(uid)", uid: uid)
            device.locale = locale
            _ = try await notifier.client.call(device)
        }
        _ = try await notifier.client.call(Notifier.Types.Set(Self.product))
        func refused(_ type: String?, _ data: [String: String]) async -> RPCError? {
            await refusal {
                var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a"))
                send.type = type
                send.data = data
                _ = try await notifier.client.call(send)
            }
        }
        let unknown = await refused("cart", ["id": "p"])
        #expect(unknown?.code == .invalidArgument && unknown?.reason == "invalidType")
        for data in [[:], ["id": ""], ["id": "a/b"]] {
            let error = await refused("product", data)
            #expect(error?.code == .invalidArgument && error?.reason == "invalidData", "\(data)")
            #expect(error?.data["field"] == "id" && error?.data["parameter"] == "data", "\(data)")
        }
        #expect(await refused("product", ["id": "p", "name": ""])?.data["field"] == "name")
        #expect(await refused(nil, ["transition_type": "product"])?.reason == "invalid_data")
        let empty = await refusal {
            var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init())
            send.notification = nil
            _ = try await notifier.client.call(send)
        }
        #expect(empty?.reason == "empty_notification")
        #expect(try await notifier.stats.pending == 0 && channel.deliveries.isEmpty)

        _ = try await notifier.client.call(
            Notifier.Send(
                to: .init(uids: ["u1", "u2", "u3"]), type: "product", data: ["id": "p", "name": "傘", "more": ""]))
        try await eventually("three deliveries") { channel.deliveries.count == 3 }
        let sent = Dictionary(uniqueKeysWithValues: channel.deliveries.map { ($0.content.uid, $0.content) })
        #expect(sent["u1"]?.text == .init(title: "新着商品", body: "傘 {p}"))
        #expect(sent["u2"]?.text == .init(title: "New", body: "傘"))
        #expect(sent["u3"]?.text == sent["u1"]?.text)
        #expect(
            sent["u1"]?.data == ["transition_type": "product", "id": "p", "name": "傘", "more": ""])
        #expect(sent["u1"]?.appearance.interruptionLevel == .timeSensitive)
        await notifier.stop()
    }

    @Test func eachDeviceGetsTheTextOfItsLocale() {
        var record = NotificationRecord.fields.blank
        record.text = .init(title: "-")
        record.localized = ["ja": .init(title: "ja"), "pt-BR": .init(title: "pt-BR"), "zh_Hant": .init(title: "hant")]
        for (locale, title) in [
            ("ja", "ja"), ("ja-JP", "ja"), ("JA_jp", "ja"), ("pt-br", "pt-BR"), ("pt", "-"), ("zh-Hant-TW", "hant"),
            ("jam", "-"), ("en", "-"), (nil, "-"),
        ] {
            #expect(record.text(for: locale).title == title, "\(locale ?? "none")")
        }
    }

    @Test func localizedTextsAreRefusedByName() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.localesMax = 2 }
        func refused(_ localized: [String: Notifier.NotificationText]) async -> [String?] {
            let error = await refusal {
                var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a"))
                send.localized = localized
                _ = try await notifier.client.call(send)
            }
            return [error?.reason, error?.data["parameter"]?.string]
        }
        #expect(await refused(["ja": .init()]) == ["empty_notification", "localized.ja"])
        #expect(await refused(["": .init(title: "a")]) == ["invalid_key", "localized"])
        let text = Notifier.NotificationText(title: "a")
        #expect(await refused(["a": text, "b": text, "c": text]) == ["invalid_localized", "localized"])
        #expect(await refused(["a": text, "b": text]) == [nil, nil])
        await notifier.stop()
    }

    // MARK: Triggers

    private func trigger(_ change: (inout Notifier.Triggers.Set) -> Void = { _ in }) -> Notifier.Triggers.Set {
        var set = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u2"]), type: "product")
        set.data = ["id": "{after.text}", "name": "{after.name}"]
        change(&set)
        return set
    }

    @Test func triggersThatCannotFitTheirTypeAreRefusedAndKeepIt() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        func refused(_ change: (inout Notifier.Triggers.Set) -> Void) async -> [String?] {
            let error = await refusal { _ = try await notifier.client.call(trigger(change)) }
            return [error?.reason, error?.data["field"]?.string]
        }
        #expect(await refused { _ in } == ["invalidType", nil])
        _ = try await notifier.client.call(Notifier.Types.Set(Self.product))
        #expect(await refused { $0.data = ["name": "a"] } == ["invalidData", "id"])
        #expect(await refused { $0.data = ["id": "a/b"] } == ["invalidData", "id"])
        #expect(await refused { $0.data?["transition_type"] = "product" } == ["invalid_data", nil])
        #expect(await refused { $0.localized = ["en": .init(title: "{nothing}")] } == ["invalid_template", nil])
        #expect(await refused { _ in } == [nil, nil])
        let used = await refusal { _ = try await notifier.client.call(Notifier.Types.Remove(type: "product")) }
        #expect(used?.code == .failedPrecondition && used?.reason == "type_in_use")
        var other = Self.product
        other.required?["more"] = .int
        let changed = await refusal { _ = try await notifier.client.call(Notifier.Types.Set(other)) }
        #expect(changed?.reason == "type_in_use" && changed?.message.contains("data.more") == true)
        other = Self.product
        (other.template, other.localized) = (nil, nil)
        #expect(
            await refusal { _ = try await notifier.client.call(Notifier.Types.Set(other)) }?.reason == "type_in_use")
        _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "t"))
        _ = try await notifier.client.call(Notifier.Types.Remove(type: "product"))
        await notifier.stop()
    }

    @Test func aTriggerSendsNothingWhileItsDataAreWrong() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u2", at: "https://example.com/hook")
        _ = try await notifier.client.call(Notifier.Types.Set(Self.product))
        _ = try await notifier.client.call(trigger())
        try await eventually("followed") { try await notifier.isFollowing() }
        _ = notifier.messages.push("a/b")
        _ = notifier.messages.push("p1")
        try await eventually("one delivery") { channel.deliveries.count == 1 }
        #expect(channel.deliveries.first?.content.text == .init(title: "新着商品", body: " {p1}"))
        #expect(channel.deliveries.first?.content.data == ["transition_type": "product", "id": "p1"])
        // A type that changes counts at once.
        var strict = Self.product
        strict.required = ["id": .int]
        _ = try await notifier.client.call(Notifier.Types.Set(strict))
        try await eventually("followed") { try await notifier.isFollowing() }
        _ = notifier.messages.push("p2")
        _ = notifier.messages.push("3")
        try await eventually("one more") { channel.deliveries.count == 2 }
        #expect(channel.deliveries.last?.content.data["id"] == "3")
        let tested = await refusal {
            var test = Notifier.Triggers.Test(id: "t", path: try TreePath("/chats/c1/messages/m1"))
            test.after = ["text": "x"]
            _ = try await notifier.client.call(test)
        }
        #expect(tested?.reason == "invalidData" && tested?.data["field"] == "id")
        await notifier.stop()
    }

    @Test func aTriggersTextsByLocaleAreTemplates() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        var device = Notifier.Devices.Register(url: "https://example.com/hook", uid: "u2")
        device.locale = "en-US"
        _ = try await notifier.client.call(device)
        _ = try await notifier.client.call(
            trigger {
                ($0.type, $0.data) = (nil, nil)
                $0.notification = .init(body: "{after.text}")
                $0.localized = ["en": .init(title: "From {after.senderName}", body: "{after.text}!")]
            })
        try await eventually("followed") { try await notifier.isFollowing() }
        _ = notifier.messages.push("ただいま")
        try await eventually("delivered") { channel.deliveries.count == 1 }
        #expect(channel.deliveries.first?.content.text == .init(title: "From マスオ", body: "ただいま!"))
        await notifier.stop()
    }
}
