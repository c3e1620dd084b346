import HatoModel
import Testing

@testable import HatoPush

/// The member `hato` of a push, on each platform.
@Suite struct HatoMemberTests {
    private static let token = String(repeating: "0a", count: 32)

    private func delivery(_ hato: HatoMember, _ change: (inout DeliveryContent) -> Void = { _ in }) throws -> Delivery {
        var content = DeliveryContent(notification: "ntf_9", device: "dev_1", uid: "u2", text: .init())
        content.collapseKey = "hato"
        content.appearance.priority = .normal
        content.appearance.badge = hato.badge
        content.hato = hato
        change(&content)
        var delivery = Delivery(
            id: "ntf_9-0", address: .apns(try APNsDevice(token: Self.token, environment: .production)),
            content: content, createdAt: 1_795_000_000_000)
        delivery.expiresAt = 1_795_000_060_000
        return delivery
    }

    private static let expected: JSONValue = ["withdraw": ["ntf_1", "ntf_2"], "threads": ["c1"], "badge": 3]

    private var withdrawal: HatoMember {
        var hato = HatoMember()
        (hato.withdraw, hato.threads, hato.badge) = (["ntf_1", "ntf_2"], ["c1"], 3)
        return hato
    }

    private func apns(_ delivery: Delivery) throws -> APNsRequest {
        guard case .apns(let device) = delivery.address else { throw ArgumentError(reason: "test", "no token") }
        return try APNsRequest(delivery, to: device, topic: "com.example.chat", now: 1_795_000_000_000)
    }

    private func fcm(_ delivery: Delivery) throws -> JSONValue? {
        let request = try #require(FCMRequest(delivery, to: .token("t"), now: 1_795_000_000_000))
        return try JSONParser.parse(request.body)["message"]
    }

    @Test func applesDevicesGetAnObjectBesideAps() throws {
        let request = try apns(delivery(withdrawal))
        #expect(
            try JSONParser.parse(request.payload) == [
                "aps": ["badge": 3, "content-available": 1], "hato": Self.expected,
            ])
        // The system sets the badge only of a push of this type, without waking the app.
        #expect(request.headers["apns-push-type"] == "alert" && request.headers["apns-priority"] == "5")
        #expect(request.headers["apns-collapse-id"] == "hato")
    }

    @Test func messagesOfFCMCarryItAsText() throws {
        let message = try fcm(delivery(withdrawal))
        #expect(message?["data"] == ["hato": #"{"withdraw":["ntf_1","ntf_2"],"threads":["c1"],"badge":3}"#])
        #expect(message?["notification"] == nil)
        #expect(message?["android"] == ["priority": "NORMAL", "ttl": "60s", "collapse_key": "hato"])
    }

    @Test func serviceWorkersFindItInTheDataOfTheNotification() throws {
        let request = try #require(WebPushRequest(delivery(withdrawal) { $0.data = ["chat": "c1"] }, now: 0))
        #expect(
            try JSONParser.parse(request.plaintext)["notification"]?["data"]
                == ["chat": "c1", "hato": Self.expected])
    }

    @Test func webhooksHaveATypeOfTheirOwnForAWithdrawal() throws {
        let body = try JSONParser.parse(WebhookBody.bytes(delivery(withdrawal)))
        #expect(body["type"] == "notification.withdrawn")
        #expect(body["data"]?["hato"] == Self.expected)
        var badge = HatoMember()
        badge.badge = 0
        #expect(try JSONParser.parse(WebhookBody.bytes(delivery(badge)))["type"] == "notification")
    }

    @Test func withoutAnythingInItThereIsNone() throws {
        let delivery = try delivery(HatoMember()) { $0.text = .init(title: "t") }
        #expect(try JSONParser.parse(apns(delivery).payload) == ["aps": ["alert": ["title": "t"]]])
        #expect(try fcm(delivery)?["data"] == nil)
        #expect(try JSONParser.parse(WebhookBody.bytes(delivery))["data"]?["hato"] == nil)
        let web = try #require(WebPushRequest(delivery, now: 0))
        #expect(try JSONParser.parse(web.plaintext)["notification"]?["data"] == [:])
    }

    /// Data that fill a push arrive without it.
    @Test func aPushThatIsFullGoesWithoutAReplyToken() throws {
        var hato = HatoMember()
        (hato.id, hato.reply) = ("ntf_9", String(repeating: "r", count: 200))
        func delivery(_ bytes: Int) throws -> Delivery {
            try self.delivery(hato) { content in
                content.text = .init(title: "t")
                content.data = ["x": String(repeating: "x", count: bytes)]
            }
        }
        #expect(try fcm(delivery(3_000))?["data"]?["hato"] != nil)
        let full = try fcm(delivery(3_600))
        #expect(full?["data"]?["x"] != nil && full?["data"]?["hato"] == nil)
        #expect(try JSONParser.parse(apns(delivery(3_950)).payload)["hato"] == nil)
        #expect(try FCMRequest(delivery(4_100), to: .token("t"), now: 0) == nil)
        // Data of a trigger go first.
        var triggered = try delivery(4_100)
        triggered.content.trigger = "chat"
        let incomplete = try fcm(triggered)?["data"]
        #expect(incomplete?["x"] == nil && incomplete?["hato"]?.string?.contains(#""incomplete":true"#) == true)
        #expect(incomplete?["hato"]?.string?.contains(#""reply":"r"#) == true)
    }

    /// What the app acts on is never a sender's.
    @Test func itStandsInPlaceOfWhatASenderPutsThere() throws {
        let delivery = try delivery(withdrawal) { content in
            content.data = ["hato": "own"]
            content.platforms = Notifier.PlatformMembers()
            content.platforms?.apns = ["payload": ["hato": "own"]]
            content.platforms?.fcm = ["data": ["hato": "own"]]
            content.platforms?.webpush = ["notification": ["data": ["hato": "own"]]]
        }
        #expect(try JSONParser.parse(apns(delivery).payload)["hato"] == Self.expected)
        #expect(try fcm(delivery)?["data"]?["hato"] == #"{"withdraw":["ntf_1","ntf_2"],"threads":["c1"],"badge":3}"#)
        let web = try #require(WebPushRequest(delivery, now: 0))
        #expect(try JSONParser.parse(web.plaintext)["notification"]?["data"]?["hato"] == Self.expected)
    }

    @Test func sendersCannotUseItsName() throws {
        let error = #expect(throws: ArgumentError.self) { try HatoMember.check(data: ["chat": "c1", "hato": "x"]) }
        #expect(error?.message.hasPrefix("data.hato") == true)
        #expect(throws: ArgumentError.self) { try HatoMember.check(data: ["": "x"]) }
        #expect(throws: Never.self) { try HatoMember.check(data: ["Hato": "1", "hatoId": "2"]) }
        #expect(throws: ArgumentError.self) { try FCMRequest.check(platformMembers: ["data": ["hato": "x"]]) }
    }

    /// As many bytes of ids and threads as the notifier puts into one, with the longest escapes.
    @Test func aWithdrawalOfThreeThousandBytesFitsEverywhere() throws {
        var hato = HatoMember()
        // In FCM, each quote of a text in a text takes two bytes.
        hato.withdraw = (10..<91).map { "ntf_0123456789abcdef012345678\($0)" }
        (hato.threads, hato.badge) = (["c1"], 99_999)
        let push = try delivery(hato) { $0.collapseKey = "hato.withdrawal" }
        #expect(try JSONParser.parse(apns(push).payload)["hato"]?["withdraw"]?.array?.count == 81)
        #expect(try fcm(push)?["data"]?["hato"]?.string?.utf8.count ?? 0 > 2_700)
        #expect(WebPushRequest(push, now: 0) != nil)
    }
}
