import HatoModel
import HatoPush
import HatoRPC
import HatoTesting
import Testing

@testable import HatoNotifier

/// The old call of Firebase.
@Suite struct SendToDeviceTests {
    private func payload(_ change: (inout Notifier.LegacyPayload.Shown) -> Void) -> Notifier.LegacyPayload {
        var shown = Notifier.LegacyPayload.Shown()
        (shown.title, shown.body) = ("題", "文")
        change(&shown)
        return .init(notification: shown)
    }

    private func fcm(
        _ payload: Notifier.LegacyPayload, _ options: Notifier.LegacyOptions = .init()
    ) throws -> JSONValue? { try LegacyMessage(payload, options).platforms?.fcm }

    @Test func everyMemberHasItsPlace() throws {
        var options = Notifier.LegacyOptions()
        (options.priority, options.collapseKey, options.restrictedPackageName) = (.normal, "room", "com.example")
        (options.contentAvailable, options.mutableContent) = (true, true)
        let payload = payload { shown in
            (shown.badge, shown.sound, shown.icon, shown.color, shown.tag) = ("3", "default", "i", "#3366ff", "t")
            (shown.clickAction, shown.titleLocKey, shown.titleLocArgs) = ("https://example.com/r", "T", #"["マスオ"]"#)
            (shown.bodyLocKey, shown.bodyLocArgs) = ("B", #"["1","2"]"#)
        }
        let message = try LegacyMessage(payload, options)
        #expect(message.text == .init(title: "題", body: "文"))
        #expect(message.options.badge == 3 && message.options.sound == "default")
        #expect(message.options.priority == .normal && message.options.collapseKey == "room")
        #expect(message.options.link == "https://example.com/r")
        let android: JSONValue = [
            "restricted_package_name": "com.example",
            "notification": [
                "icon": "i", "color": "#3366ff", "tag": "t", "click_action": "https://example.com/r",
                "title_loc_key": "T", "title_loc_args": ["マスオ"], "body_loc_key": "B", "body_loc_args": ["1", "2"],
            ],
        ]
        let aps: JSONValue = [
            "category": "https://example.com/r", "content-available": 1, "mutable-content": 1,
            "alert": [
                "title": "題", "body": "文", "title-loc-key": "T", "title-loc-args": ["マスオ"], "loc-key": "B",
                "loc-args": ["1", "2"],
            ],
        ]
        #expect(message.platforms?.fcm?["android"] == android)
        #expect(message.platforms?.fcm?["apns"] == ["payload": ["aps": aps]])
        try FCMRequest.check(platformMembers: try #require(message.platforms?.fcm))
    }

    @Test func textsOfTheAppAloneAreShown() throws {
        let message = try fcm(
            payload { shown in
                (shown.title, shown.body, shown.bodyLocKey, shown.sound) = (nil, nil, "B", "default")
            })
        #expect(message?["android"]?["priority"] == "HIGH")
        #expect(message?["android"]?["notification"] == ["body_loc_key": "B", "sound": "default"])
        #expect(message?["apns"]?["headers"] == ["apns-push-type": "alert", "apns-priority": "10"])
        #expect(message?["apns"]?["payload"]?["aps"] == ["alert": ["loc-key": "B"], "sound": "default"])
    }

    @Test func plainPayloadsNeedNoMembersOfFCM() throws {
        let message = try LegacyMessage(payload { $0.badge = "1" }, .init())
        #expect(message.platforms == nil && message.options.priority == .high && message.options.link == nil)
        #expect(try fcm(payload { ($0.clickAction, $0.tag, $0.icon, $0.color) = ("", "", "", "") }) == nil)
        #expect(try LegacyMessage(.init(data: ["a": "b"]), .init()).options.priority == .normal)
    }

    @Test func wrongPayloadsAreRefusedByName() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel(.fcm)])
        let long = String(repeating: "x", count: 5_000)
        let wrong: [(Notifier.LegacyPayload, Int?, String)] = [
            (payload { $0.badge = "one" }, nil, "payload.notification.badge"),
            (payload { $0.badge = "-1" }, nil, "payload.notification.badge"),
            (.init(notification: .init()), nil, "payload"),
            (.init(data: ["from": "x"]), nil, "payload.data"), (.init(data: ["": "x"]), nil, "payload.data"),
            (payload { $0.badge = "100000" }, nil, "payload.notification.badge"),
            (payload { $0.titleLocArgs = "マスオ" }, nil, "payload.notification.titleLocArgs"),
            (payload { $0.bodyLocArgs = "[1]" }, nil, "payload.notification.bodyLocArgs"),
            (payload { $0.body = long }, nil, "payload.notification.body"),
            (payload { $0.color = "blue" }, nil, "payload.notification"),
            (.init(), nil, "payload"),
            (.init(data: ["gcm.x": "1"]), nil, "payload.data"),
            (payload { _ in }, -1, "options.timeToLive"), (payload { _ in }, 2_419_201, "options.timeToLive"),
        ]
        for (payload, seconds, parameter) in wrong {
            var options = Notifier.LegacyOptions()
            options.timeToLive = seconds
            let call = Notifier.SendToDevice(token: .init("tok-1"), payload: payload, options: options)
            let error = await #expect(throws: RPCError.self) { try await notifier.client.call(call) }
            #expect(error?.code == .invalidArgument && error?.data["parameter"] == .string(parameter), "\(parameter)")
        }
        let none = Notifier.SendToDevice(token: .init([String]()), payload: payload { _ in })
        let error = await #expect(throws: RPCError.self) { try await notifier.client.call(none) }
        #expect(error?.data["parameter"] == "token")
        await notifier.stop()
    }

    /// Callers of the old function forget the tokens that are gone.
    @Test func theResultSaysWhatBecameOfTheFirstAttempts() async throws {
        let gone = DeliveryOutcome.deviceGone(DeliveryResponse(status: 404, error: "UNREGISTERED"), since: nil)
        let none = DeliveryOutcome.deviceGone(DeliveryResponse(status: 400, error: "not a token"), since: nil)
        let wrong = DeliveryOutcome.rejected(DeliveryResponse(status: 400, error: "FCM refuses the message"))
        let large = DeliveryOutcome.rejected(DeliveryResponse(error: "the message is too large"))
        let busy = DeliveryOutcome.failed(DeliveryResponse(status: 503), retryAfter: .seconds(3_600))
        let other = DeliveryOutcome.tokenRefused(DeliveryResponse(status: 403, error: "SENDER_ID_MISMATCH"))
        for (outcome, code) in [
            (gone, "registration-token-not-registered"), (none, "invalid-registration-token"),
            (wrong, "invalid-argument"), (large, "payload-size-limit-exceeded"), (busy, nil),
            (other, "mismatched-credential"),
        ] {
            let notifier = try await TestNotifier.start(channels: [ScriptedChannel(.fcm, script: [outcome])]) {
                $0.delivery.firstAttempt = .seconds(600)
            }
            let call = Notifier.SendToDevice(token: .init("tok-1"), payload: payload { _ in })
            let result = try #require(try await notifier.client.call(call).results.first)
            #expect(result.error?.code.rawValue == code.map { "messaging/\($0)" })
            #expect((result.messageId == nil) == (code != nil))
            await notifier.stop()
        }
    }

    @Test func aReceiverThatDoesNotRespondIsNotWaitedForLong() async throws {
        let gate = Gate()
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel(.fcm, gate: gate)]) {
            $0.delivery.firstAttempt = .milliseconds(20)
        }
        let call = Notifier.SendToDevice(token: .init(["tok-1", "tok-2"]), payload: payload { _ in })
        #expect(try await notifier.client.call(call).successCount == 2)
        gate.open()
        await notifier.stop()
    }

    @Test func aDryRunSendsNothing() async throws {
        let channel = ScriptedChannel(.fcm)
        let notifier = try await TestNotifier.start(channels: [channel])
        var options = Notifier.LegacyOptions()
        options.dryRun = true
        let result = try await notifier.client.call(
            Notifier.SendToDevice(token: .init("tok-1"), payload: payload { _ in }, options: options))
        #expect(result.results == [.init(messageId: "dry_run")] && result.successCount == 1)
        #expect(try await notifier.client.call(Notifier.Devices.List()).devices.isEmpty)
        #expect(try await notifier.stats.pending == 0 && channel.deliveries.isEmpty)
        await notifier.stop()
    }
}
