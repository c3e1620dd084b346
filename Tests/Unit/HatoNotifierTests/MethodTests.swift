import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct MethodTests {
    private let channel = ScriptedChannel()

    private func error(_ body: () async throws -> Void) async -> RPCError? {
        do {
            try await body()
            return nil
        } catch { return error as? RPCError }
    }

    @Test func aSecretIsShownOnceAndRotates() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        let url = "https://example.com/hook"
        let first = try await notifier.call(Notifier.Devices.Register(url: url), as: "u1")
        #expect(first.secret != nil)
        let again = try await notifier.call(Notifier.Devices.Register(url: url), as: "u1")
        #expect(again == .init(device: first.device))
        let rotated = try await notifier.call(Notifier.Devices.RotateSecret(device: first.device), as: "u1")
        #expect(rotated.secret != first.secret && rotated.previousUntil > Int(WallClock.milliseconds()))
        _ = try await notifier.client.call(Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a")))
        try await eventually("delivered") { channel.deliveries.count == 1 }
        guard case .webhook(_, let secrets)? = channel.deliveries.first?.address else { return }
        #expect(secrets.map(\.text) == [rotated.secret, first.secret ?? ""])
        await notifier.stop()
    }

    /// The longest uid that auth makes: each of its code points takes four bytes.
    @Test func theUserWithTheLongestUIDHasDevices() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        let uid = String(repeating: "\u{1F54A}", count: UserIDLimits.codePointsMax)
        #expect(uid.utf8.count == UserIDLimits.bytesMax)
        let device = try await notifier.call(Notifier.Devices.Register(url: "https://example.com/hook"), as: uid).device
        #expect(try await notifier.call(Notifier.Devices.List(), as: uid).devices.map(\.device) == [device])
        let send = Notifier.Send(to: .init(uids: [uid]), notification: .init(title: "a"))
        #expect(try await notifier.client.call(send).recipients == 1)
        await notifier.stop()
    }

    /// A user who knows an address of another user takes nothing from them.
    @Test func usersShareAnAddress() async throws {
        let store = try MemoryStore()
        let notifier = try await TestNotifier.start(store: store, channels: [channel])
        let url = "https://example.com/hook"
        let first = try await notifier.call(Notifier.Devices.Register(url: url), as: "u1")
        let second = try await notifier.call(Notifier.Devices.Register(url: url), as: "u2")
        #expect(second.device != first.device && second.secret != nil && second.secret != first.secret)
        for (uid, device) in [("u1", first.device), ("u2", second.device)] {
            #expect(try await notifier.call(Notifier.Devices.List(), as: uid).devices.map(\.device) == [device])
            #expect(try await notifier.call(Notifier.Devices.Register(url: url), as: uid).device == device)
        }
        let both = Notifier.Send(to: .init(uids: ["u1", "u2"]), notification: .init(title: "a"))
        #expect(try await notifier.client.call(both).recipients == 2)
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        _ = try await notifier.call(Notifier.Devices.Unregister(device: second.device), as: "u2")
        #expect(try await notifier.call(Notifier.Devices.Register(url: url), as: "u1").device == first.device)
        await notifier.stop()
    }

    /// As earlier versions wrote it, the row of an address has no user.
    @Test func aDeviceOfAnEarlierVersionStaysTheSame() async throws {
        let store = try MemoryStore()
        let notifier = try await TestNotifier.start(store: store, channels: [channel])
        let url = "https://example.com/hook"
        let device = try await notifier.call(Notifier.Devices.Register(url: url), as: "u1").device
        _ = try await store.write { transaction in
            let key = DeviceRecord.webhookKey(url, app: nil).with("u1").bytes
            transaction.delete(key.span)
            let former = DeviceRecord.webhookKey(url, app: nil).bytes
            let name = Array(device.utf8)
            transaction.put(former.span, name.span)
        }
        #expect(try await notifier.call(Notifier.Devices.Register(url: url), as: "u2").device != device)
        #expect(try await notifier.call(Notifier.Devices.Register(url: url), as: "u1").device == device)
        await notifier.stop()
    }

    @Test func whatWaitsForADeviceIsDroppedWhenItIsUnregistered() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) {
            $0.delivery.backoff.first = .seconds(3_000)
            $0.delivery.backoff.longest = .seconds(3_000)
        }
        let device = try await notifier.addDevice(of: "u1", at: "https://example.com/1").device
        channel.respondNext([ScriptedChannel.busy])
        var sent: [String] = []
        for title in ["a", "b"] {
            let result = try await notifier.client.call(
                Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: title)))
            sent.append(try #require(result.notification))
            try await eventually("the first attempt") {
                let status = try await notifier.client.call(Notifier.Status(notification: sent[0])).deliveries.first
                return status?.state == .pending && status?.attempts == 1
            }
        }
        let subscription = try await notifier.client.subscribe(Notifier.Follow())
        _ = try await notifier.client.call(Notifier.Devices.Unregister(device: device))
        let stats = try await notifier.stats
        #expect(stats.pending == 0 && stats.dropped == 2 && stats.nextDueAt == nil)
        for notification in sent {
            let delivery = try await notifier.client.call(Notifier.Status(notification: notification)).deliveries.first
            #expect(delivery?.state == .dropped && delivery?.reason == "device_gone")
        }
        var events: [Notifier.Event] = []
        for try await event in subscription {
            events.append(try Notifier.Event.decode(event.params))
            if events.count == 2 { break }
        }
        #expect(Set(events.map(\.notification)) == Set(sent) && events.allSatisfy { $0.type == .dropped })
        await notifier.stop()
    }

    @Test func devicesBelongToTheirUser() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        let device = try await notifier.call(Notifier.Devices.Register(url: "https://example.com/1"), as: "u1").device
        for call in [
            { _ = try await notifier.call(Notifier.Devices.Unregister(device: device), as: "u2") },
            { _ = try await notifier.call(Notifier.Devices.RotateSecret(device: device), as: "u2") },
        ] {
            #expect(await error(call)?.code == .notFound)
        }
        #expect(
            await error { _ = try await notifier.call(Notifier.Devices.List(uid: "u1"), as: "u2") }?.code
                == .permissionDenied)
        #expect(
            await error {
                _ = try await notifier.call(
                    Notifier.Devices.Register(url: "https://example.com/2", uid: "u1"), as: "u2")
            }?
            .code == .permissionDenied)
        #expect(
            await error { _ = try await notifier.client.call(Notifier.Devices.Register(url: "https://example.com/3")) }?
                .data["parameter"] == "uid")
        let anonymous = notifier.anonymousClient()
        #expect(await error { _ = try await anonymous.call(Notifier.Devices.List()) }?.code == .unauthenticated)
        await anonymous.close()
        _ = try await notifier.call(Notifier.Devices.Unregister(device: device), as: "u1")
        #expect(try await notifier.client.call(Notifier.Devices.List()).devices.isEmpty)
        await notifier.stop()
    }

    @Test func eachPlatformTakesItsOwnMembersOnly() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        func refused(_ params: JSONObject) async -> RPCError? {
            var params = params
            params["uid"] = "u1"
            return await error {
                _ = try await notifier.client.call(method: "notifier.devices.register", params: params)
            }
        }
        let pigeon = await refused(["platform": "pigeon", "token": "t"])
        #expect(pigeon?.reason == "unsupported_platform" && pigeon?.message.contains("webpush") == true)
        let token = String(repeating: "0a", count: 32)
        let keys: JSONValue = [
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        ]
        let subscription: JSONValue = ["endpoint": "https://push.example.net/1", "keys": keys, "expirationTime": nil]
        let cases: [(JSONObject, parameter: JSONValue?, reason: String)] = [
            (["platform": "apns"], "token", "invalid_params"),
            (["platform": "apns", "token": "xyz"], "token", "invalid_token"),
            (["platform": "apns", "token": .string(token), "fid": "f"], "fid", "invalid_params"),
            (["platform": "apns", "token": .string(token)], nil, "app_not_configured"),
            (["platform": "fcm"], "token", "invalid_params"),
            (["platform": "fcm", "token": "a b"], "token", "invalid_token"),
            (["platform": "fcm", "token": "a", "fid": "b"], "token", "invalid_params"),
            (["platform": "fcm", "token": "a", "environment": "sandbox"], "environment", "invalid_params"),
            (["platform": "fcm", "fid": "f"], nil, "app_not_configured"),
            (["platform": "webpush", "url": "https://example.com/"], "url", "invalid_params"),
            (
                ["platform": "webpush", "subscription": ["endpoint": "https://e.example/", "keys": ["p256dh": "!"]]],
                "subscription.keys.auth", "missing_parameter"
            ),
            (
                [
                    "platform": "webpush",
                    "subscription": [
                        "endpoint": "https://e.example/", "keys": ["p256dh": "AAAA", "auth": "BTBZMqHH6r4Tts7J_aSIgg"],
                    ],
                ], "subscription.keys", "invalid_key"
            ),
            (["platform": "webpush", "subscription": subscription, "app": "other"], nil, "app_not_configured"),
            (["platform": "webhook"], "url", "invalid_params"),
            (["platform": "webhook", "token": "t", "url": "https://example.com/"], "token", "invalid_params"),
        ]
        for (params, parameter, reason) in cases {
            let refused = await refused(params)
            #expect(
                refused?.reason == reason && refused?.data["parameter"] == parameter,
                "\(params) \(String(describing: refused))")
        }
        await notifier.stop()
    }

    @Test func aUserHasALimitedNumberOfDevicesInPages() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.devicesPerUserMax = 3 }
        var devices: [String] = []
        for index in 1...4 {
            devices.append(try await notifier.addDevice(of: "u1", at: "https://example.com/\(index)").device)
        }
        // A new one is never refused: the one that was silent the longest went.
        let kept = try await notifier.client.call(Notifier.Devices.List(uid: "u1")).devices.map(\.device)
        #expect(Set(kept) == Set(devices.dropFirst()))
        try await notifier.addDevice(of: "u2", at: "https://example.com/5")
        for uid in [nil, "u1"] as [String?] {
            var seen: [String] = []
            var after: String?
            repeat {
                let page = try await notifier.client.call(Notifier.Devices.List(uid: uid, after: after, limit: 2))
                seen += page.devices.map(\.device)
                after = page.after
            } while after != nil
            #expect(Set(seen).count == (uid == nil ? 4 : 3) && seen.count == Set(seen).count)
            for nonsense in ["", "x", "dev_", "dev_ 1", "dev_" + String(repeating: "a", count: 65), "ntf_1"] {
                let refused = await error {
                    _ = try await notifier.client.call(Notifier.Devices.List(uid: uid, after: nonsense))
                }
                #expect(refused?.reason == "invalid_page" && refused?.data["parameter"] == "after", "\(nonsense)")
            }
        }
        await notifier.stop()
    }

    @Test func sendingIsDurableIdempotentAndCanBeTried() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        let device = try await notifier.addDevice(of: "u1", at: "https://example.com/1").device
        var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a"), idempotencyKey: "k")
        send.dryRun = true
        let version = notifier.store.version
        #expect(try await notifier.client.call(send) == .init(notification: nil, recipients: 1))
        #expect(notifier.store.version == version)
        send.dryRun = nil
        let first = try await notifier.client.call(send)
        #expect(try await notifier.client.call(send) == first)
        send.notification?.title = "b"
        #expect(await error { _ = try await notifier.client.call(send) }?.reason == "idempotency_key_reused")
        let direct = try await notifier.client.call(
            Notifier.Send(to: .init(devices: [device]), notification: .init(body: "direct")))
        #expect(direct.recipients == 1)
        let nobody = try await notifier.client.call(
            Notifier.Send(to: .init(uids: ["nobody"]), notification: .init(title: "x")))
        #expect(nobody.recipients == 0 && nobody.notification != nil)
        try await eventually("delivered") { channel.deliveries.count == 2 }
        await notifier.stop()
    }

    @Test func wrongSendsAreRefusedByParameter() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        func parameter(_ change: (inout Notifier.Send) -> Void) async -> String? {
            var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a"))
            change(&send)
            return await error { [send] in _ = try await notifier.client.call(send) }?.data["parameter"]?.string
        }
        #expect(await parameter { $0.to.devices = ["d"] } == "to")
        #expect(await parameter { $0.to.uids = [] } == "to.uids")
        #expect(await parameter { $0.to.uids = [String(repeating: "x", count: 600)] } == "to.uids")
        #expect(await parameter { $0.notification = .init() } == "notification")
        #expect(
            await parameter { $0.notification?.title = String(repeating: "x", count: 2_000) } == "notification.title")
        #expect(await parameter { $0.data = ["k": String(repeating: "x", count: 5_000)] } == "data")
        #expect(await parameter { $0.options = .init(ttlSeconds: 0) } == "options.ttlSeconds")
        #expect(await parameter { $0.options = .init(collapseKey: "") } == "options.collapseKey")
        #expect(await parameter { $0.idempotencyKey = "a\nb" } == "idempotencyKey")
        let unknown = await error {
            _ = try await notifier.client.call(
                Notifier.Send(to: .init(devices: ["dev_0"]), notification: .init(title: "a")))
        }
        #expect(unknown?.code == .notFound)
        #expect(
            await error {
                _ = try await notifier.call(
                    Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a")), as: "u1")
            }?
            .code == .permissionDenied)
        await notifier.stop()
    }

    @Test func deadLettersAreListedReplayedAndDropped() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u1", at: "https://example.com/1")
        channel.respondNext([ScriptedChannel.busy, ScriptedChannel.wrong])
        let sent = try await notifier.client.call(
            Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a")))
        try await eventually("dead") { try await notifier.client.call(Notifier.Dead.List()).dead.count == 1 }
        let letter = try #require(try await notifier.client.call(Notifier.Dead.List()).dead.first)
        #expect(letter.notification == sent.notification && letter.attempts == 2 && letter.lastAttempt?.status == 500)
        #expect(try await notifier.client.call(Notifier.Dead.Replay(deliveries: [letter.delivery])).replayed == 1)
        try await eventually("delivered") { try await notifier.stats.delivered == 1 }
        #expect(try await notifier.client.call(Notifier.Dead.Drop(all: true)).dropped == 0)
        // Named again it is no longer dead; named wrongly it is not there.
        #expect(try await notifier.client.call(Notifier.Dead.Replay(deliveries: [letter.delivery])).replayed == 0)
        for unknown in ["x", "ntf_0-0"] {
            let names = [letter.delivery, unknown]
            let replay = await error { _ = try await notifier.client.call(Notifier.Dead.Replay(deliveries: names)) }
            let drop = await error { _ = try await notifier.client.call(Notifier.Dead.Drop(deliveries: names)) }
            #expect(replay?.code == .notFound && replay?.reason == "delivery_not_found" && drop == replay)
        }
        #expect(await error { _ = try await notifier.client.call(Notifier.Dead.Drop()) }?.code == .invalidArgument)
        #expect(
            await error { _ = try await notifier.client.call(Notifier.Dead.List(after: "x")) }?.code == .invalidArgument
        )
        await notifier.stop()
    }

    @Test func followersSeeWhatBecomesOfNotificationsAndResume() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u1", at: "https://example.com/1")
        let subscription = try await notifier.client.subscribe(Notifier.Follow())
        let sent = try await notifier.client.call(
            Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a")))
        var events: [Notifier.Event] = []
        for try await event in subscription {
            events.append(try Notifier.Event.decode(event.params))
            if events.count == 2 {
                channel.respondNext([ScriptedChannel.wrong])
                _ = try await notifier.client.call(
                    Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "b")))
            }
            if events.count == 4 { break }
        }
        #expect(events.map(\.type) == [.accepted, .delivered, .accepted, .dead])
        #expect(events.first?.notification == sent.notification && events.first?.recipients == 1)
        #expect(events[1].delivery == "\(sent.notification ?? "")-0" && events[1].uid == "u1")
        #expect(events.map(\.position) == events.map(\.position).sorted() && Set(events.map(\.position)).count == 4)
        _ = try await notifier.client.call(Notifier.Unfollow(subscription: subscription.id))

        for (after, expected) in [(0, 4), (events[0].position, 3), (events[2].position, 1)] {
            let resumed = try await notifier.client.subscribe(Notifier.Follow(after: after, epoch: events[0].epoch))
            var positions: [Int] = []
            for try await event in resumed {
                positions.append(try Notifier.Event.decode(event.params).position)
                if positions.count == expected { break }
            }
            #expect(positions == events.suffix(expected).map(\.position))
        }
        let foreign = String(repeating: "0", count: 32)
        for wrong in [Notifier.Follow(after: 1 << 50), Notifier.Follow(after: 1, epoch: foreign)] {
            #expect(await error { _ = try await notifier.client.subscribe(wrong) }?.reason == "unknown_version")
        }
        for (wrong, parameter) in [
            (Notifier.Follow(after: -1), "after"), (Notifier.Follow(after: 1, epoch: "other"), "epoch"),
            (Notifier.Follow(epoch: ""), "epoch"),
        ] {
            let refused = await error { _ = try await notifier.client.subscribe(wrong) }
            #expect(refused?.code == .invalidArgument && refused?.data["parameter"]?.string == parameter)
        }
        await notifier.stop()
    }

    @Test func triggersAreListedAndWrongOnesRefused() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.triggersMax = 2 }
        try await notifier.setTrigger("b")
        try await notifier.setTrigger("a")
        #expect(try await notifier.client.call(Notifier.Triggers.List()).triggers.map(\.id) == ["a", "b"])
        #expect(await error { try await notifier.setTrigger("c") }?.reason == "too_many_triggers")
        #expect(await error { try await notifier.setTrigger("a", title: "{nothing}") }?.reason == "invalid_template")
        #expect(
            await error { _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "z")) }?.code == .notFound)
        func refusal(_ change: (inout Notifier.Triggers.Set) -> Void) async -> RPCError? {
            var set = Notifier.Triggers.Set(
                id: "a", pattern: "/a/{b}", recipients: .init(uids: ["u1"]), notification: .init(title: "x"))
            change(&set)
            return await error { [set] in _ = try await notifier.client.call(set) }
        }
        // What a trigger fills has the limits of `send`.
        let long = String(repeating: "x", count: 40_000)
        let tooLong: [(String, (inout Notifier.Triggers.Set) -> Void)] = [
            ("notification.title", { $0.notification?.title = long }),
            ("notification.body", { $0.notification?.body = long }), ("data", { $0.data = ["k": long] }),
            ("options.collapseKey", { $0.options = .init(collapseKey: long) }),
            ("recipients.uids", { $0.recipients = .init(uids: [long]) }),
            ("recipients.uidsAt", { $0.recipients = .init(uidsAt: "/" + long) }),
            ("recipients.uidField", { $0.recipients = .init(uidField: "after." + long) }),
        ]
        for (parameter, change) in tooLong {
            let refused = await refusal(change)
            #expect(refused?.code == .invalidArgument && refused?.data["parameter"]?.string == parameter)
        }
        let token = await refusal { $0.recipients = .init(tokenField: "after.token", platform: .webhook) }
        #expect(token?.reason == "unsupported_platform" && token?.data["parameter"] == "recipients.platform")
        let member = await refusal {
            $0.platforms = .init()
            $0.platforms?.fcm = ["token": "x"]
        }
        #expect(member?.reason == "invalid_platform_member" && member?.data["parameter"] == "platforms")
        let condition = await refusal { $0.when = "after.kind == 'x' && c" }
        #expect(condition?.code == .invalidArgument && condition?.reason == "invalid_condition")
        #expect(condition?.message.contains("line 1, column 22: Unknown variable 'c'") == true)
        let unknown = await error {
            _ = try await notifier.client.call(
                method: "notifier.triggers.set",
                params: [
                    "id": "x", "pattern": "/a", "on": ["created"], "recipients": ["uids": ["u1"]],
                    "notification": ["title": "x"], "categories": "REPLY",
                ])
        }
        #expect(unknown?.code == .invalidParams && unknown?.data["parameter"] == "categories")
        await notifier.stop()
    }

    @Test func everyDeclaredMethodHasAnExampleThatIsReadBack() throws {
        for method in Notifier.methods {
            func check<Request: RPCRequest>(_ type: Request.Type) throws {
                _ = try Request.decode(type.example.request.members)
            }
            try check(method)
        }
    }
}
