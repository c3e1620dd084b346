import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// Actions that call a URL of the administrator's.
@Suite(.timeLimit(.minutes(10))) struct WebhookEffectTests {
    private static let url = "https://example.com/actions"

    private static func category(_ id: String = "CALLS", at url: String = url) -> Notifier.Category {
        var accept = Notifier.CategoryAction(id: "ACCEPT", title: .init("承認"))
        accept.effect = .webhook(url)
        return .init(id: id, actions: [accept, .reply(id: "LETTER", title: .init("手紙"), effect: .webhook(url))])
    }

    private func running(
        _ change: (inout NotifierConfiguration) -> Void = { _ in },
        _ body: (RespondingWorld, Notifier.ActionReceiver) async throws -> Void
    ) async throws {
        let world = try await RespondingWorld.start(change)
        do {
            try await body(world, try await set(Self.category(), world.notifier))
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    @discardableResult
    private func set(_ category: Notifier.Category, _ notifier: TestNotifier) async throws -> Notifier.ActionReceiver {
        let receivers = try await notifier.client.call(Notifier.Categories.Set(category)).webhooks
        #expect(receivers?.count == 1)
        return try #require(receivers?.first)
    }

    private func reports(_ world: RespondingWorld) -> [Delivery] {
        world.channel.deliveries.filter { $0.content.choice != nil }
    }

    /// With one report, once it is delivered.
    private func deliveries(
        _ world: RespondingWorld, to device: String, _ count: Int = 1
    ) async throws -> [Notifier.DeliveryStatus] {
        var list = Notifier.Outbox.List()
        list.device = device
        let request = list
        try await eventually("\(count) delivered") {
            try await world.notifier.client.call(request).deliveries.map(\.state)
                == Array(repeating: .delivered, count: count)
        }
        return try await world.notifier.client.call(request).deliveries
    }

    // MARK: What is sent

    @Test func theReceiverGetsWhatWasChosenOnce() async throws {
        try await running { world, receiver in
            let pushes = try await world.send("CALLS")
            #expect(try await world.respond(to: pushes[0], "LETTER", text: "はい") == .init(effect: .done))
            // Again, and from the other device, nothing more is sent.
            #expect(try await world.respond(to: pushes[0], "LETTER", text: "はい") == .init(effect: .done))
            #expect(try await world.respond(to: pushes[1], "LETTER", text: "はい") == .init(effect: .done))
            #expect(await world.refusal(of: pushes[1], "ACCEPT") == "already_responded")
            let delivery = try #require(try await deliveries(world, to: receiver.device).first)
            #expect(delivery.uid == "u1" && delivery.attempts == 1)
            let report = try #require(reports(world).first)
            #expect(reports(world).count == 1 && report.id == delivery.delivery && report.id.hasPrefix("ntf_"))
            let choice = try #require(report.content.choice)
            #expect(choice.notification == pushes[0].notification && choice.device == pushes[0].device)
            #expect(choice.category == "CALLS" && choice.action == "LETTER" && choice.text == "はい")
            #expect(choice.thread == "c1" && report.content.data == ["message": "m1"] && report.content.uid == "u1")
            #expect(report.content.hato.reply == nil && report.expiresAt - report.createdAt == 86_400_000)
            #expect(try world.effectRows() == 0 && world.events().map(\.action) == ["LETTER"])
            // The texts go with the delivery.
            let key = NotificationRecord.key(report.content.notification)
            let record = try #require(try world.store.snapshot().record(NotificationRecord.self, key))
            #expect(record.choice?.action == "LETTER" && record.choice?.text == nil && record.data.isEmpty)
        }
    }

    @Test func itIsSignedAndRetriedUnderOneIdentifier() async throws {
        let auth = try await RespondingWorld.startAuth()
        let notifier = try await TestNotifier.start { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
            configuration.limits.effectWaitMsMax = 600_000
        }
        let (phone, receiver) = (try await TestReceiver(), try await TestReceiver())
        let device = try await notifier.addDevice(of: "u1", at: phone.url).device
        let shown = try await set(Self.category(at: receiver.url), notifier)
        #expect(shown.url == receiver.url)
        let secret = try WebhookSecret(try #require(shown.secret))
        func accept() async throws -> String {
            var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(body: "ただいま"))
            send.category = "CALLS"
            let count = phone.received.count
            let id = try #require(try await notifier.client.call(send).notification)
            try await eventually("the push") { phone.received.count == count + 1 }
            let hato = try JSONParser.parse(try #require(phone.received.last).body)["data"]?["hato"]
            let respond = Notifier.Respond(notification: id, action: "ACCEPT", replyToken: hato?["reply"]?.string)
            for _ in 0..<2 { #expect(try await notifier.client.call(respond) == .init(effect: .done)) }
            return id
        }
        receiver.failNext(2)
        let id = try await accept()
        try await eventually("three attempts") { receiver.received.count == 3 }
        try await eventually("recorded") { try await notifier.stats.pending == 0 }
        #expect(Set(receiver.received.map(\.headers.id)).count == 1 && Set(receiver.received.map(\.body)).count == 1)
        let report = try #require(receiver.received.last)
        try WebhookSignature.verify(
            report.headers, body: report.body, secrets: [secret], now: WallClock.milliseconds() / 1_000)
        let body = try JSONParser.parse(report.body)
        #expect(body["type"] == "notification.action" && body["data"]?["at"]?.integer != nil)
        #expect(body["data"]?["notification"] == .string(id) && body["data"]?["device"] == .string(device))
        #expect(body["data"]?["uid"] == "u1" && body["data"]?["action"] == "ACCEPT" && body["data"]?["data"] == [:])
        #expect(body["data"]?["text"] == nil && body["data"]?["thread"] == nil)
        // Another secret, which signs beside the former one.
        let rotated = try await notifier.client.call(Notifier.Devices.RotateSecret(device: shown.device)).secret
        _ = try await accept()
        try await eventually("the second report") { receiver.received.count == 4 }
        let second = try #require(receiver.received.last)
        #expect(second.headers.id != report.headers.id)
        for secret in [secret, try WebhookSecret(rotated)] {
            try WebhookSignature.verify(
                second.headers, body: second.body, secrets: [secret], now: WallClock.milliseconds() / 1_000)
        }
        await notifier.stop()
        for receiver in [phone, receiver] { await receiver.stop() }
        await auth.stop()
    }

    @Test func aQuickReplyIsReportedAsItsText() async throws {
        try await running { world, receiver in
            world.notifier.messages.setNode("/users/u1/quickReplies", ["0": "すぐ行く"])
            let push = try await world.send("CALLS")[0]
            #expect(try await world.respond(to: push, quickReply: 0) == .init(effect: .done))
            _ = try await deliveries(world, to: receiver.device)
            #expect(reports(world).map { $0.content.choice?.text } == ["すぐ行く"])
        }
    }

    @Test func aReportThatFailsDelaysNoOther() async throws {
        let clock = TestClock()
        try await running({ $0.time = clock.source }) { world, _ in
            let (first, second) = (try await world.send("CALLS")[0], try await world.send("CALLS")[0])
            world.channel.respondNext([ScriptedChannel.busy])
            #expect(try await world.respond(to: first, "ACCEPT") == .init(effect: .done))
            try await eventually("the first attempt") { reports(world).count == 1 }
            #expect(try await world.respond(to: second, "ACCEPT") == .init(effect: .done))
            try await eventually("the other report") { reports(world).count == 2 }
            #expect(Set(reports(world).map(\.id)).count == 2)
            try await eventually("the second attempt") {
                clock.advance(by: .seconds(1))
                return reports(world).count == 3
            }
            #expect(reports(world).last?.id == reports(world).first?.id)
        }
    }

    @Test func whatTheUserWantsShownConcernsNoReport() async throws {
        try await running { world, receiver in
            let push = try await world.send("CALLS")[0]
            var preferences = Notifier.Preferences.Set(uid: "u1")
            (preferences.off, preferences.mutes) = (.value([.webhook]), .value(["c1": .never]))
            _ = try await world.notifier.client.call(preferences)
            #expect(try await world.respond(to: push, "ACCEPT") == .init(effect: .done))
            _ = try await deliveries(world, to: receiver.device)
        }
    }

    // MARK: Users and restarts

    @Test func usersThatAreDisabledOrDeletedAreRefused() async throws {
        try await running { world, receiver in
            let pushes = try await world.send("CALLS")
            world.auth.set("u1", name: "マスオ", disabled: true)
            world.auth.remove("u2")
            #expect(await world.refusal(of: pushes[0], "ACCEPT") == "user_disabled")
            #expect(await world.refusal(of: pushes[2], "ACCEPT") == "user_not_found")
            #expect(reports(world).isEmpty && receiver.secret != nil)
        }
    }

    @Test func itWaitsForAuthOverARestartAndIsSentOnce() async throws {
        var world = try await RespondingWorld.start { $0.limits.effectWaitMsMax = 50 }
        let receiver = try await set(Self.category(), world.notifier)
        let pushes = try await world.send("CALLS")
        await world.auth.stop()
        for push in [pushes[0], pushes[2]] {
            #expect(try await world.respond(to: push, "ACCEPT") == .init(effect: .pending))
        }
        await world.notifier.stop(keepingMessages: true)
        // One of them was disabled meanwhile.
        let auth = try await FakeAuth.start(port: world.auth.port)
        auth.set("u1", name: "マスオ")
        auth.set("u2", name: "サザエ", disabled: true)
        let notifier = try await RespondingWorld.start(
            auth, messages: world.notifier.messages, store: StayingOpen(world.store), channels: [world.channel])
        world = RespondingWorld(auth: auth, notifier: notifier, channel: world.channel, store: world.store)
        #expect(try await deliveries(world, to: receiver.device).map(\.uid) == ["u1"])
        try await eventually("all have ended") { try world.effectRows() == 0 }
        #expect(reports(world).count == 1)
        #expect(try world.events().compactMap(\.reason) == ["user_disabled"])
        await world.stop()
    }

    @Test func fewReportsOfAUserWaitForAuth() async throws {
        let world = try await RespondingWorld.start {
            ($0.limits.effectWaitMsMax, $0.limits.effectsPerUserMax) = (0, 1)
        }
        try await set(Self.category(), world.notifier)
        let (first, second) = (try await world.send("CALLS"), try await world.send("CALLS"))
        await world.auth.stop()
        #expect(try await world.respond(to: first[0], "ACCEPT") == .init(effect: .pending))
        #expect(await world.refusal(of: second[0], "ACCEPT") == "too_many_effects")
        #expect(try await world.respond(to: second[2], "ACCEPT") == .init(effect: .pending))
        await world.notifier.stop()
    }

    /// Each is a lane of its own, and is retried for a day.
    @Test func fewReportsOfAUserWaitForAReceiver() async throws {
        let clock = TestClock()
        try await running({ ($0.time, $0.limits.reportsPerUserMax) = (clock.source, 2) }) { world, receiver in
            var pushes: [[RespondingWorld.Push]] = []
            for _ in 0..<3 { pushes.append(try await world.send("CALLS")) }
            world.channel.respondNext([ScriptedChannel.busy, ScriptedChannel.busy])
            for push in pushes[..<2] {
                #expect(try await world.respond(to: push[0], "ACCEPT") == .init(effect: .done))
            }
            try await eventually("both were attempted") { reports(world).count == 2 }
            #expect(await world.refusal(of: pushes[2][0], "ACCEPT") == "too_many_reports")
            // Another user is no matter.
            #expect(try await world.respond(to: pushes[2][2], "ACCEPT") == .init(effect: .done))
            try await eventually("they arrive") {
                clock.advance(by: .seconds(1))
                return try await world.notifier.stats.pending == 0
            }
            #expect(try await world.respond(to: pushes[2][0], "ACCEPT") == .init(effect: .done))
            #expect(try await deliveries(world, to: receiver.device, 4).count == 4)
        }
    }

    // MARK: Receivers

    /// Its user got `done`: an operator can send it again.
    @Test func aReportWhoseReceiverIsGoneIsADeadLetter() async throws {
        let clock = TestClock()
        try await running({ $0.time = clock.source }) { world, receiver in
            let push = try await world.send("CALLS")[0]
            world.channel.respondNext([ScriptedChannel.busy])
            #expect(try await world.respond(to: push, "LETTER", text: "はい") == .init(effect: .done))
            try await eventually("it was attempted") { reports(world).count == 1 }
            let client = world.notifier.client
            _ = try await client.call(Notifier.Devices.Unregister(device: receiver.device))
            try await eventually("it is dead") { try await client.call(Notifier.Stats()).dead == 1 }
            let letters = try await client.call(Notifier.Dead.List()).dead
            #expect(letters.map(\.reason) == ["device_gone"] && letters.map(\.uid) == ["u1"])
            // Without a receiver it is dead again.
            #expect(try await client.call(Notifier.Dead.Replay(all: true)).replayed == 1)
            try await eventually("it is dead again") {
                let stats = try await client.call(Notifier.Stats())
                return stats.dead == 1 && stats.pending == 0
            }
            let other = try await set(Self.category(), world.notifier)
            #expect(try await client.call(Notifier.Dead.Replay(all: true)).replayed == 1)
            #expect(try await deliveries(world, to: other.device).map(\.delivery) == letters.map(\.delivery))
            #expect(reports(world).map { $0.content.choice?.text } == ["はい", "はい"])
        }
    }

    @Test func theURLOfAUsedCategoryCanChange() async throws {
        let clock = TestClock()
        try await running({ $0.time = clock.source }) { world, receiver in
            let (first, second) = (try await world.send("CALLS")[0], try await world.send("CALLS")[0])
            world.channel.respondNext([ScriptedChannel.busy])
            #expect(try await world.respond(to: first, "ACCEPT") == .init(effect: .done))
            try await eventually("it was attempted") { reports(world).count == 1 }
            let moved = "https://example.com/moved"
            var other = Self.category(at: moved)
            other.actions.removeLast()
            let changed = other
            let error = await #expect(throws: RPCError.self) {
                try await world.notifier.client.call(Notifier.Categories.Set(changed))
            }
            #expect(error?.reason == "category_used")
            let new = try await set(Self.category(at: moved), world.notifier)
            #expect(new.url == moved && new.secret != nil && new.device != receiver.device)
            // What devices show already reports there, too.
            #expect(try await world.respond(to: second, "ACCEPT") == .init(effect: .done))
            _ = try await deliveries(world, to: new.device)
            clock.advance(by: .seconds(2))
            _ = try await deliveries(world, to: receiver.device)
            func receivers() async throws -> [String] {
                try await world.notifier.client.call(Notifier.Devices.List()).devices.filter(\.uid.isEmpty)
                    .map(\.device)
            }
            #expect(try await receivers().contains(receiver.device))
            try await eventually("the former one is removed within a day") {
                clock.advance(by: .seconds(3_600))
                return try await receivers() == [new.device]
            }
        }
    }

    @Test func aReceiverThatIsGoneRefusesEffectsUntilItsCategoryIsSetAgain() async throws {
        try await running { world, receiver in
            func respond() async throws -> Notifier.Respond.Result {
                try await world.respond(to: try await world.send("CALLS", to: ["u1"])[0], "ACCEPT")
            }
            let push = try await world.send("CALLS", to: ["u1"])[0]
            world.channel.respondNext([.deviceGone(DeliveryResponse(status: 410), since: nil)])
            #expect(try await world.respond(to: push, "ACCEPT") == .init(effect: .done))
            try await eventually("disabled") {
                try await world.notifier.client.call(Notifier.Devices.List()).devices.contains {
                    $0.device == receiver.device && $0.state == .disabled && $0.uid.isEmpty
                }
            }
            #expect(try await respond() == .init(effect: .refused, reason: "webhook_disabled"))
            #expect(try world.events().compactMap(\.reason) == ["webhook_disabled"])
            // The same one is active again, and its secret is known already.
            let same = Notifier.ActionReceiver(url: Self.url, device: receiver.device)
            #expect(try await set(Self.category(), world.notifier) == same)
            #expect(try await respond() == .init(effect: .done))
            _ = try await world.notifier.client.call(Notifier.Devices.Unregister(device: receiver.device))
            #expect(try await respond() == .init(effect: .refused, reason: "webhook_removed"))
            let other = try await set(Self.category(), world.notifier)
            #expect(other.device != receiver.device && other.secret != nil && other.secret != receiver.secret)
            #expect(try await respond() == .init(effect: .done))
        }
    }

    @Test func aReceiverGoesWithTheLastCategoryThatNamesIt() async throws {
        try await running { world, receiver in
            func urls() async throws -> [String] {
                try await world.notifier.client.call(Notifier.Devices.List()).devices.filter(\.uid.isEmpty)
                    .compactMap(\.url).sorted()
            }
            #expect(try await set(Self.category("OTHER"), world.notifier).secret == nil)
            _ = try await world.notifier.client.call(Notifier.Categories.Remove(id: "CALLS"))
            #expect(try await urls() == [Self.url])
            let (second, third) = ("https://example.com/second", "https://example.com/third")
            // Another spelling is the same URL.
            let spelled = Self.category("OTHER", at: "HTTPS://Example.com:443/second")
            #expect(try await set(spelled, world.notifier).url == second)
            #expect(try await urls() == [second])
            // Once a notification had it, a category and its receiver stay.
            let push = try await world.send("OTHER")[0]
            _ = try await world.notifier.client.call(Notifier.Categories.Remove(id: "OTHER"))
            try await set(Self.category("THIRD", at: third), world.notifier)
            _ = try await world.notifier.client.call(Notifier.Categories.Remove(id: "THIRD"))
            #expect(try await urls() == [second])
            #expect(try await world.respond(to: push, "ACCEPT") == .init(effect: .done))
            #expect(receiver.secret != nil)
            // No place for tokens without users makes it go.
            #expect(try world.store.snapshot().count(.tokenDevice) == 0)
        }
    }

    @Test func appsLearnNoURL() async throws {
        try await running { world, _ in
            let categories = try await world.notifier.client.call(Notifier.Categories.Get()).categories ?? []
            #expect(categories.count == 3 && categories.flatMap(\.actions).allSatisfy { $0.effect == nil })
        }
    }

    // MARK: Refusals

    @Test func whatMayNotBeCalledIsRefusedByName() async throws {
        let auth = try await RespondingWorld.startAuth()
        let notifier = try await TestNotifier.start { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
            configuration.addresses.allowsPrivate = false
        }
        func refusal(_ effect: JSONValue) async -> [String?] {
            let action: JSONValue = ["id": "B", "title": "b", "effect": effect]
            let first: JSONValue = ["id": "A", "title": "a"]
            do {
                _ = try await notifier.client.call(
                    method: "notifier.categories.set", params: ["id": "X", "actions": [first, action]])
                return []
            } catch {
                let error = error as? RPCError
                return [error?.reason, error?.data["parameter"]?.string]
            }
        }
        let place = "actions.1.effect"
        for (url, reason) in [
            ("http://8.8.8.8/", "plain_http"), ("https://127.0.0.1/", "private_address"),
            ("https://localhost/", "private_address"), ("https://8.8.8.8:22/", "port_not_allowed"),
            ("example.com", "invalid_url"), ("https://user@example.com/", "invalid_url"), ("", "invalid_url"),
        ] {
            #expect(await refusal(["webhook": .string(url)]) == [reason, "\(place).webhook"], "\(url)")
        }
        let (url, write): (JSONValue, JSONValue) = ("https://8.8.8.8/", ["path": "/a", "value": 1])
        let several: [JSONValue] = [
            ["webhook": url, "read": true], ["webhook": url, "mute": 1], ["webhook": url, "push": write],
            ["webhook": url, "update": ["path": "/a", "value": ["b": 1]]],
        ]
        for effect in several { #expect(await refusal(effect) == ["invalid_effect", place], "\(effect)") }
        #expect(await refusal(["webhook": true]).first == "invalid_params")
        #expect(await refusal(["webhook": ["url": url]]).first == "invalid_params")
        #expect(await refusal(["webhok": url]).first == "unknown_parameter")
        #expect(try await notifier.client.call(Notifier.Categories.List()).categories.isEmpty)
        #expect(try await notifier.client.call(Notifier.Devices.List()).devices.isEmpty)
        #expect(await refusal(["webhook": url]).isEmpty)
        await notifier.stop()
        await auth.stop()
    }

    @Test func itNeedsTheKeysOfTheNotifier() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        let error = await #expect(throws: RPCError.self) { try await set(Self.category(), notifier) }
        #expect(error?.reason == "no_service_key")
        #expect(try await notifier.client.call(Notifier.Devices.List()).devices.isEmpty)
        await notifier.stop()
    }
}
