import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// Whose tokens and subscriptions are, and what becomes of those without a user.
@Suite struct TokenOwnerTests {
    private let clock = TestClock()
    private let channel = ScriptedChannel(.fcm)

    /// Endpoints of UnifiedPush are known to others.
    @Test func aSubscriptionMovesOnlyToAUserThatHasItsSecret() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel(.webpush)])
        func register(auth: String, as uid: String) async throws -> String {
            let keys: JSONValue = [
                "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                "auth": .string(auth),
            ]
            let result = try await notifier.client.call(
                method: "notifier.devices.register",
                params: [
                    "platform": "webpush", "uid": .string(uid),
                    "subscription": ["endpoint": "https://push.example.net/1", "keys": keys],
                ])
            return try #require(result["device"]?.string)
        }
        let device = try await register(auth: "BTBZMqHH6r4Tts7J_aSIgg", as: "u1")
        #expect(try await register(auth: "AAAAAAAAAAAAAAAAAAAAAA", as: "u2") != device)
        #expect(try await notifier.client.call(Notifier.Devices.List(uid: "u1")).devices.map(\.device) == [device])
        _ = try await register(auth: "BTBZMqHH6r4Tts7J_aSIgg", as: "u3")
        #expect(try await notifier.client.call(Notifier.Devices.List(uid: "u1")).devices.isEmpty)
        await notifier.stop()
    }

    private func form(_ token: String, _ outbox: Outbox, _ platform: Notifier.Platform = .fcm) throws -> DeviceRecord {
        try #require(TokenApp(platform, app: nil)).device(outbox.newID("dev_"), with: token, at: clock.now)
    }

    private func send(_ forms: [DeviceRecord], _ outbox: Outbox) async throws -> AcceptedNotification {
        var new = outbox.notification("a")
        new.recipients = .tokens(forms)
        return try await outbox.accept(new)
    }

    @Test func aTokenOfAppleIsTriedInBothEnvironmentsOnce() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let refused = DeliveryOutcome.tokenRefused(DeliveryResponse(status: 400, error: "BadDeviceToken"))
        let accepted = try await send([try form(String(repeating: "0a", count: 32), outbox, .apns)], outbox)
        let queue = try #require(ProviderQueue(.apns, app: "default"))
        var environments: [Notifier.APNsEnvironment] = []
        for _ in 0..<2 {
            let round = try await ProviderQueues(outbox).lease(from: queue, limit: 10)
            let lease = try #require(round.leases.first)
            if case .apns(let device) = lease.delivery.address { environments.append(device.environment) }
            try await outbox.record(refused, of: lease)
        }
        #expect(environments == [.production, .sandbox])
        #expect(try await outbox.states(of: try #require(accepted.notification)) == [.dropped])
    }

    @Test func tokensThatAreGoneGoFirstAndNoneForWhichDeliveriesWait() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        func tidy() async throws {
            let small = try await Outbox.test(store, clock) { $0.limits.tokenDevicesMax = 3 }
            await TokenDevices(outbox: small).used(3)
        }
        let queue = try #require(ProviderQueue(.fcm, app: "default"))
        let gone = DeliveryOutcome.deviceGone(DeliveryResponse(status: 404, error: "UNREGISTERED"), since: nil)
        func settle(_ outcome: DeliveryOutcome) async throws {
            for lease in try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases {
                try await outbox.record(outcome, of: lease)
            }
        }
        let waiting = try form("waiting", outbox)
        _ = try await send([waiting], outbox)
        let used = try ["a", "b"].map { try form($0, outbox) }
        // What waits stays leased, thus waiting, while the others are delivered.
        _ = try await ProviderQueues(outbox).lease(from: queue, limit: 1)
        clock.advance(by: .seconds(1))
        _ = try await send(used, outbox)
        try await settle(.delivered(DeliveryResponse(status: 200)))
        clock.advance(by: .seconds(1))
        _ = try await send([try form("x", outbox)], outbox)
        try await settle(gone)
        try await tidy()
        let tokens = { @Sendable in
            try await outbox.store.read { snapshot in
                try snapshot.rows(RecordKey(.device)).compactMap {
                    try RecordCodec.decode(DeviceRecord.self, $0.value, key: $0.key.bytes).token
                }.sorted()
            }
        }
        #expect(try await tokens() == ["a", "b", "waiting"])
        clock.advance(by: .seconds(1))
        _ = try await send([try form("c", outbox)], outbox)
        let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
        let leases = try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases
        for lease in leases where lease.delivery.content.device != waiting.device {
            try await outbox.record(delivered, of: lease)
        }
        try await tidy()
        #expect(try await tokens().count == 3)
        #expect(try await Set(["c", "waiting"]).isSubset(of: tokens()))
    }

    @Test func aTextThatIsNoTokenIsNotKeptAndAGoneOneIsTriedAgainAfterADay() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let queue = try #require(ProviderQueue(.fcm, app: "default"))
        for (status, isKept) in [(400, false), (404, true)] {
            _ = try await send([try form("t\(status)", outbox)], outbox)
            let lease = try #require(try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases.first)
            try await outbox.record(.deviceGone(DeliveryResponse(status: status, error: "no"), since: nil), of: lease)
            #expect(try await outbox.store.read { try $0.count(.tokenDevice) } == (isKept ? 1 : 0))
        }
        #expect(try await send([try form("t404", outbox)], outbox).recipients == 0)
        clock.advance(by: .seconds(25 * 3_600))
        #expect(try await send([try form("t404", outbox)], outbox).recipients == 1)
        #expect(try await outbox.store.read { try $0.count(.tokenDevice) } == 1)
    }

    /// A phone on which another user has signed in since.
    @Test func aTokenInTheTreeDoesNotReachTheDeviceOfAnotherUser() async throws {
        let notifier = try await TestNotifier.start(channels: [channel, ScriptedChannel()])
        for uid in ["u2", "u3"] {
            _ = try await notifier.client.call(
                method: "notifier.devices.register",
                params: ["platform": "fcm", "uid": .string(uid), "token": .string("tok-\(uid)")])
        }
        notifier.messages.setNode("/chats/c1/ids", ["first": "u1", "second": "u2", "third": "u4"])
        notifier.messages.setNode("/users/u2/fcm_token", "tok-u3")
        notifier.messages.setNode("/users/u4/fcm_token", "tok-u4")
        var recipients = Notifier.Recipients(uidsIn: "/chats/{chat}/ids")
        (recipients.tokenAt, recipients.platform) = ("/users/{uid}/fcm_token", .fcm)
        try await notifier.setTrigger(recipients: recipients)
        notifier.messages.push("a", by: "u1")
        try await eventually("both arrive") { channel.deliveries.count >= 2 }
        try await eventually("settled") { try await notifier.stats.pending == 0 }
        let tokens = channel.deliveries.map { delivery in
            if case .fcm(.token(let token)) = delivery.address { token } else { "" }
        }
        #expect(tokens.sorted() == ["tok-u2", "tok-u4"])
        await notifier.stop()
    }

    @Test func tokensOfAnAppWithoutCredentialsAreRefused() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        var call = Notifier.SendToDevice(token: .init("tok-1"), payload: .init(data: ["a": "b"]))
        call.app = "defualt"
        let old = await #expect(throws: RPCError.self) { try await notifier.client.call(call) }
        let send = Notifier.Send(
            to: .init(tokens: [.init(platform: .apns, token: String(repeating: "0", count: 64))]),
            notification: .init(title: "a"))
        let new = await #expect(throws: RPCError.self) { try await notifier.client.call(send) }
        #expect(old?.reason == "app_not_configured" && new?.reason == "app_not_configured")
        await notifier.stop()
    }

    @Test func theOldCallChecksTheTypeOfItsData() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        _ = try await notifier.client.call(
            Notifier.Types.Set(.init(type: "product_detail", required: ["product_id": .id])))
        func reason(_ data: [String: String]) async -> String? {
            let call = Notifier.SendToDevice(token: .init("tok-1"), payload: .init(data: data))
            do { _ = try await notifier.client.call(call) } catch { return (error as? RPCError)?.reason }
            return nil
        }
        #expect(await reason(["transition_type": "cart"]) == "invalidType")
        #expect(await reason(["transition_type": "product_detail"]) == "invalidData")
        #expect(channel.deliveries.isEmpty)
        #expect(await reason(["transition_type": "product_detail", "product_id": "p1"]) == nil)
        #expect(channel.deliveries.first?.content.data == ["transition_type": "product_detail", "product_id": "p1"])
        await notifier.stop()
    }
}
