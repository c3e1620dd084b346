import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// Tokens that are named in place of devices: in a change, in the tree, in `send`.
@Suite struct TokenTests {
    private let channel = ScriptedChannel(.fcm)

    private func running(
        _ change: (inout NotifierConfiguration) -> Void = { _ in }, _ body: (TestNotifier) async throws -> Void
    ) async throws {
        let notifier = try await TestNotifier.start(channels: [channel, ScriptedChannel()], change)
        do { try await body(notifier) } catch {
            await notifier.stop()
            throw error
        }
        await notifier.stop()
    }

    private var tokens: [String] {
        channel.deliveries.compactMap { delivery in
            if case .fcm(.token(let token)) = delivery.address { token } else { nil }
        }
    }

    private func latest(
        _ notifier: TestNotifier, _ value: JSONValue, _ type: Messages.Change.EntryType = .created,
        by uid: String? = "u1"
    ) {
        notifier.messages.commit { _ in
            var entry = Messages.Change.Entry(path: "/latest_message", type: type)
            (entry.pattern, entry.params, entry.uid) = ("/latest_message", [:], uid)
            (entry.before, entry.after) = type == .deleted ? (value, .null) : (.null, value)
            return [entry]
        }
    }

    private func message(_ token: String, _ text: String) -> JSONValue {
        ["receiver_fcm_token": .string(token), "sender_name": "マスオ", "message": .string(text)]
    }

    private func addPhone(_ name: String, of uid: String, _ token: String, _ notifier: TestNotifier) async throws {
        var new = DeviceRecord(device: name, uid: uid, platform: .fcm, createdAt: TimeSource().now())
        new.token = token
        let device = new
        _ = try await notifier.store.write { transaction in
            var writes = RecordWrites()
            writes.put(device.key, device)
            writes.put(device.userKey)
            writes.put(device.addressKey, bytes: Array(name.utf8))
            try writes.apply(to: transaction)
        }
    }

    private func tokenDevices(_ notifier: TestNotifier) async throws -> Int {
        try await notifier.store.read { try $0.count(.tokenDevice) }
    }

    @Test func theTokenInTheChangeNeedsNoDevice() async throws {
        try await running { notifier in
            _ = try await notifier.client.call(ShippedTriggers.latestMessage.request())
            latest(notifier, message("tok-1", "ただいま"))
            latest(notifier, message("no token", "x"))
            latest(notifier, ["sender_name": "マスオ", "message": "y"])
            latest(notifier, message("tok-1", "z"), .deleted)
            latest(notifier, message("tok-1", "おかえり"), by: nil)
            try await eventually("two arrive") { channel.deliveries.count == 2 }
            #expect(tokens == ["tok-1", "tok-1"])
            let contents = channel.deliveries.map(\.content)
            #expect(contents.map(\.text.title) == ["マスオさんからのメッセージ", "マスオさんからのメッセージ"])
            #expect(Set(contents.map(\.text.body)) == ["ただいま", "おかえり"])
            #expect(Set(contents.map(\.device)).count == 1 && contents.first?.uid.isEmpty == true)
            #expect(contents.first?.appearance.badge == 1 && contents.first?.appearance.sound == "default")
            #expect(contents.first?.appearance.priority == .high)
            #expect(try await tokenDevices(notifier) == 1)
            try await eventually("settled") { try await notifier.stats.pending == 0 }
            #expect(channel.deliveries.count == 2)
        }
    }

    @Test func aTokenOfADeviceIsThatDeviceAndNeverTheAuthors() async throws {
        try await running { notifier in
            try await addPhone("dev_author", of: "u1", "tok-1", notifier)
            try await addPhone("dev_other", of: "u2", "tok-2", notifier)
            _ = try await notifier.client.call(ShippedTriggers.latestMessage.request())
            latest(notifier, message("tok-1", "to myself"))
            latest(notifier, message("tok-2", "ただいま"))
            try await eventually("one arrives") { channel.deliveries.count == 1 }
            #expect(channel.deliveries.first?.content.device == "dev_other")
            #expect(channel.deliveries.first?.content.uid == "u2")
            #expect(try await tokenDevices(notifier) == 0)
        }
    }

    @Test func aChatOfTwoNotifiesTheOtherByTheTokenInTheTree() async throws {
        try await running { notifier in
            notifier.messages.setNode("/chats/c1/ids", ["first_user_id": "u1", "second_user_id": "u2"])
            notifier.messages.setNode("/users/u1/fcm_token", "tok-1")
            notifier.messages.setNode("/users/u2/fcm_token", "tok-2")
            notifier.messages.setNode("/users/u1/name", "マスオさん")
            var recipients = Notifier.Recipients(uidsIn: "/chats/{chat}/ids")
            (recipients.tokenAt, recipients.platform) = ("/users/{uid}/fcm_token", .fcm)
            try await notifier.setTrigger(recipients: recipients, title: "{author.name}より")
            notifier.messages.push("a", by: "u1")
            notifier.messages.push("b", by: "u2")
            try await eventually("both arrive") { channel.deliveries.count == 2 }
            #expect(Set(tokens) == ["tok-1", "tok-2"])
            let texts = Dictionary(uniqueKeysWithValues: zip(tokens, channel.deliveries.map(\.content.text)))
            #expect(texts["tok-2"]?.title == "マスオさんより" && texts["tok-2"]?.body == "a")
            #expect(texts["tok-1"]?.title == "より" && texts["tok-1"]?.body == "b")
            // Both use one phone: it shows nothing of what is written on it.
            notifier.messages.setNode("/users/u2/fcm_token", "tok-1")
            notifier.messages.push("c", by: "u1")
            notifier.messages.setNode("/users/u2/fcm_token", "tok-3")
            notifier.messages.push("d", by: "u1")
            try await eventually("the last arrives") { channel.deliveries.last?.content.text.body == "d" }
            try await eventually("settled") { try await notifier.stats.pending == 0 }
            #expect(!tokens.dropFirst(2).contains("tok-1"))
        }
    }

    @Test func severalKindsOfRecipientsAreUnitedAndADeviceIsCalledOnce() async throws {
        try await running { notifier in
            for (uid, number) in [("u1", 1), ("u2", 2), ("u3", 3)] {
                try await addPhone("dev_\(number)", of: uid, "tok-\(number)", notifier)
                notifier.messages.setNode("/users/\(uid)/fcm_token", .string("tok-\(number)"))
            }
            notifier.messages.setNode("/users/u4/fcm_token", "tok-4")
            notifier.messages.setNode("/chats/c1/members", ["u1": "admin", "u2": "member", "u4": "member"])
            notifier.messages.setNode("/chats/c1/ids", ["first": "u2", "second": "u3", "no": ["text": 1]])
            var recipients = Notifier.Recipients(uidsAt: "/chats/{chat}/members")
            (recipients.uidsIn, recipients.uids) = ("/chats/{chat}/ids", ["u3"])
            (recipients.tokenAt, recipients.platform) = ("/users/{uid}/fcm_token", .fcm)
            try await notifier.setTrigger(recipients: recipients)
            notifier.messages.push("a", by: "u1")
            try await eventually("all arrive") { channel.deliveries.count >= 3 }
            try await eventually("settled") { try await notifier.stats.pending == 0 }
            #expect(tokens.sorted() == ["tok-2", "tok-3", "tok-4"])
            var test = Notifier.Triggers.Test(
                id: "chat-message", path: try TreePath("/chats/c1/messages/m1"), after: ["text": "x"])
            test.uid = "u1"
            let tested = try await notifier.client.call(test)
            #expect(tested.devices == 3 && tested.recipients?.sorted() == ["u2", "u3", "u4"])
        }
    }

    @Test func aTokenThatIsGoneStaysKnown() async throws {
        let refused = DeliveryResponse(status: 403, error: "SENDER_ID_MISMATCH")
        let gone = DeliveryResponse(status: 404, error: "UNREGISTERED")
        channel.respondNext([.tokenRefused(refused), .deviceGone(gone, since: nil)])
        try await running { notifier in
            // It may be our mistake: the token is tried again.
            let first = Notifier.Send(
                to: .init(tokens: [.init(platform: .fcm, token: "tok-1")]), notification: .init(title: "a"))
            #expect(try await notifier.client.call(first).recipients == 1)
            try await eventually("refused") { try await notifier.stats.dropped == 1 }
            let send = Notifier.Send(
                to: .init(tokens: [.init(platform: .fcm, token: "tok-1"), .init(platform: .fcm, token: "tok-1")]),
                notification: .init(title: "a"))
            #expect(try await notifier.client.call(send).recipients == 1)
            try await eventually("gone") { try await notifier.stats.dropped == 2 }
            #expect(try await notifier.client.call(send).recipients == 0)
            let call = Notifier.SendToDevice(
                token: .init(["tok-1", "", "tok-2"]), payload: .init(data: ["room_id": "r1"]))
            let result = try await notifier.client.call(call)
            #expect(
                result.results.map { $0.error?.code } == [
                    .tokenGone, .invalidToken, nil,
                ])
            #expect(result.successCount == 1 && result.failureCount == 2)
            try await eventually("delivered") { tokens == ["tok-1", "tok-1", "tok-2"] }
            #expect(channel.deliveries.last?.id == result.results.last?.messageId)
        }
    }

    @Test func devicesWithoutUsersAreBounded() async throws {
        try await running({ $0.limits.tokenDevicesMax = 3 }) { notifier in
            for number in 0..<8 {
                let token = Notifier.NamedToken(platform: .fcm, token: "tok-\(number)")
                _ = try await notifier.client.call(
                    Notifier.Send(to: .init(tokens: [token]), notification: .init(title: "a")))
                #expect(try await tokenDevices(notifier) <= 3)
            }
            #expect(try await notifier.client.call(Notifier.Devices.List()).devices.count == 3)
            #expect(try await notifier.store.read { try $0.count(.deviceAtAddress) } == 3)
        }
    }

    /// Messages of FCM HTTP v1 may have their text with one platform alone.
    @Test func membersOfAPlatformStandForTheText() async throws {
        try await running { notifier in
            var send = Notifier.Send(
                to: .init(tokens: [.init(platform: .fcm, token: "tok-1")]), notification: .init(title: "a"))
            send.notification = nil
            send.data = ["room": "r1"]
            send.platforms = .init()
            for members: JSONObject in [[:], ["fcm": [:]]] {
                send.platforms?.fcm = members["fcm"]
                let alone = send
                let error = await #expect(throws: RPCError.self) { try await notifier.client.call(alone) }
                #expect(error?.reason == "empty_notification", "\(alone)")
            }
            send.platforms?.fcm = ["apns": ["payload": ["aps": ["alert": "x"]]]]
            #expect(try await notifier.client.call(send).recipients == 1)
            try await eventually("sent") { try await notifier.stats.delivered == 1 }
            let content = channel.deliveries.first?.content
            #expect(content?.text == .init() && content?.data == ["room": "r1"])
            #expect(content?.platforms?.fcm == send.platforms?.fcm)
        }
    }

    @Test func aUserThatRegistersATokenTakesIt() async throws {
        let clock = TestClock()
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let app = try #require(TokenApp(.fcm, app: nil))
        let form = try app.device("dev_t", with: "tok-1", at: clock.now)
        #expect(try await TokenDevices(outbox: outbox).devices(of: [form]).map(\.device) == ["dev_t"])
        #expect(try await outbox.store.read { try $0.count(.deviceOfUser) } == 0)
        // Used again on another day: it is not among the longest unused.
        clock.advance(by: .seconds(90_000))
        let other = try app.device("dev_u", with: "tok-1", at: clock.now)
        #expect(try await TokenDevices(outbox: outbox).devices(of: [other]).map(\.seenAt) == [clock.now])
        #expect(try await outbox.store.read { try $0.count(.tokenDevice) } == 1)
        var user = DeviceRecord(device: "", uid: "u1", platform: .fcm, createdAt: clock.now)
        user.token = "tok-1"
        let registration = Registration(
            form: user, id: "dev_v", given: nil, fresh: WebhookSecret { 1 }, environment: .production,
            devicesMax: 32, policy: DeliveryPolicy())
        let gone = try await outbox.store.write { transaction in
            var writes = RecordWrites()
            let outcome = try registration.apply(to: transaction, &writes, now: clock.now)
            try writes.apply(to: transaction)
            return outcome.gone
        }.outcome
        #expect(gone == ["dev_t"])
        #expect(try await outbox.store.read { try $0.count(.tokenDevice) } == 0)
        #expect(try await TokenDevices(outbox: outbox).devices(of: [form]).map(\.device) == ["dev_v"])
    }

    @Test func wrongTokensAreRefusedByName() async throws {
        try await running { notifier in
            let wrong: [(Notifier.NamedToken, String)] = [
                (.init(platform: .fcm, token: "a b"), "to.tokens.1.token"),
                (.init(platform: .apns, token: "xyz"), "to.tokens.1.token"),
                (.init(platform: .webpush, token: "a"), "to.tokens.1.platform"),
                (.init(platform: .fcm, token: "a", app: ""), "to.tokens.1.app"),
            ]
            for (token, parameter) in wrong {
                let error = await #expect(throws: RPCError.self) {
                    try await notifier.client.call(
                        Notifier.Send(
                            to: .init(tokens: [.init(platform: .fcm, token: "ok"), token]),
                            notification: .init(title: "a")))
                }
                #expect(error?.data["parameter"] == .string(parameter))
            }
            let none = await #expect(throws: RPCError.self) {
                try await notifier.client.call(Notifier.Send(to: .init(tokens: []), notification: .init(title: "a")))
            }
            #expect(none?.reason == "invalid_recipients")
        }
    }
}
