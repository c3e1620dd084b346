import HatoModel
import Testing

@testable import HatoPush

/// Pushes that carry the id of a notification in place of what it says.
@Suite struct NeutralTextTests {
    private static let now: Int64 = 1_795_000_000_000

    private func delivery() throws -> Delivery {
        let device = try APNsDevice(token: String(repeating: "0a", count: 32), environment: .production)
        var content = DeliveryContent(notification: "ntf_1", device: "dev_1", uid: "u1", text: .init())
        content.neutralText = "New message"
        content.hato.id = "ntf_1"
        content.appearance.sound = "default"
        content.appearance.badge = 3
        content.hato.source = .init(path: "/m/1", thread: nil, category: "C")
        var delivery = Delivery(id: "ntf_1-0", address: .apns(device), content: content, createdAt: Self.now)
        delivery.expiresAt = Self.now + 60_000
        return delivery
    }

    @Test func applesDevicesShowItUntilTheExtensionHasFetched() throws {
        let device = try APNsDevice(token: String(repeating: "0a", count: 32), environment: .production)
        let request = try APNsRequest(delivery(), to: device, topic: "com.example.chat", now: Self.now)
        #expect(
            try JSONParser.parse(request.payload) == [
                "aps": ["alert": "New message", "badge": 3, "sound": "default", "mutable-content": 1],
                "hato": ["id": "ntf_1", "path": "/m/1", "category": "C"],
            ])
        #expect(request.headers["apns-push-type"] == "alert" && request.headers["apns-priority"] == "10")
    }

    @Test func appsBehindFCMGetDataAlone() throws {
        let request = try #require(FCMRequest(delivery(), to: .token("t"), now: Self.now))
        let message = try JSONParser.parse(request.body)["message"]
        #expect(message?["notification"] == nil && message?["android"]?["notification"] == nil)
        #expect(
            message?["data"] == [
                "badge": "3", "sound": "default", "tag": "ntf_1",
                "hato": #"{"id":"ntf_1","path":"/m/1","category":"C"}"#,
            ])
        #expect(message?["android"]?["priority"] == "HIGH")
        #expect(
            message?["apns"]?["payload"] == [
                "aps": ["alert": "New message", "badge": 3, "sound": "default", "mutable-content": 1]
            ])
        #expect(message?["apns"]?["headers"]?["apns-push-type"] == "alert")
        #expect(message?["webpush"]?["notification"] == nil)
    }

    @Test func browsersShowItUntilTheServiceWorkerHasFetched() throws {
        let request = try #require(WebPushRequest(delivery(), now: Self.now))
        #expect(
            try JSONParser.parse(request.plaintext) == [
                "web_push": 8030,
                "notification": [
                    "title": "New message", "tag": "ntf_1", "app_badge": "3",
                    "data": ["hato": ["id": "ntf_1", "path": "/m/1", "category": "C"]],
                ],
                "app_badge": 3, "mutable": false,
            ])
    }
}
