import HatoModel
import Testing

@testable import HatoPush

@Suite struct WebhookResponseTests {
    private func outcome(_ status: Int, retryAfter: String? = nil) -> DeliveryOutcome {
        WebhookResponse(status: status, retryAfter: retryAfter, excerpt: "").outcome(now: 784_111_700)
    }

    private func delay(_ status: Int, _ retryAfter: String?) -> Duration? {
        guard case .failed(_, let delay) = outcome(status, retryAfter: retryAfter) else { return nil }
        return delay
    }

    @Test func onlyTwoHundredsAreDelivered() {
        for status in [200, 201, 202, 204, 299] {
            #expect(outcome(status) == .delivered(DeliveryResponse(status: status)))
        }
        for status in [301, 302, 307, 308, 400, 401, 404, 413, 500, 502, 503, 504, 101] {
            guard case .failed(let answer, nil) = outcome(status) else {
                Issue.record("\(status) is no failure")
                continue
            }
            #expect(answer.status == status)
        }
        guard case .deviceGone = outcome(410) else {
            Issue.record("410 is not gone")
            return
        }
    }

    @Test func retryAfterIsHonouredOfBusyReceiversOnly() {
        #expect(delay(429, "120") == .seconds(120))
        #expect(delay(503, "Sun, 06 Nov 1994 08:49:37 GMT") == .seconds(784_111_777 - 784_111_700))
        #expect(delay(503, "Sun, 06 Nov 1994 08:00:00 GMT") == .zero)
        #expect(delay(429, "-5") == .zero)
        #expect(delay(429, "999999999999") == .seconds(3_600))
        #expect(delay(500, "120") == nil)
        for nonsense in ["soon", "1.5", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37", ""] {
            #expect(delay(429, nonsense) == nil)
        }
    }

    @Test func timesAreWrittenAsISO() {
        #expect(ISOTime.text(0) == "1970-01-01T00:00:00.000Z")
        #expect(ISOTime.text(951_782_399_999) == "2000-02-28T23:59:59.999Z")
        #expect(ISOTime.text(951_782_400_000) == "2000-02-29T00:00:00.000Z")
        #expect(ISOTime.text(1_795_000_000_007) == "2026-11-18T11:06:40.007Z")
        #expect(ISOTime.text(-1) == "1969-12-31T23:59:59.999Z")
    }

    @Test func theBodyHoldsWhatThereIs() throws {
        var content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2",
            text: .init(title: "マスオさんからのメッセージ", body: "ただいま 🍶\n\"x\""))
        content.data = ["chat": "c1", "a": ""]
        content.trigger = "chat-message"
        let delivery = Delivery(
            id: "ntf_1-0", address: .webhook(url: "https://example.com/", secrets: []), content: content,
            createdAt: 1_795_000_000_000)
        let body = try JSONParser.parse(WebhookBody.bytes(delivery))
        #expect(
            body == [
                "type": "notification", "timestamp": "2026-11-18T11:06:40.000Z",
                "data": [
                    "notification": "ntf_1", "device": "dev_1", "uid": "u2", "title": "マスオさんからのメッセージ",
                    "body": "ただいま 🍶\n\"x\"", "data": ["a": "", "chat": "c1"], "trigger": "chat-message",
                ],
            ])
    }

    @Test func anActionIsReportedWithWhatThereIs() throws {
        var content = DeliveryContent(notification: "ntf_2", device: "dev_9", uid: "u2", text: .init())
        content.data = ["chat": "c1"]
        func body(_ choice: DeliveryContent.Choice) throws -> JSONValue {
            var content = content
            content.choice = choice
            let delivery = Delivery(
                id: "ntf_2-0", address: .webhook(url: "https://example.com/", secrets: []), content: content,
                createdAt: 1_795_000_000_007)
            return try JSONParser.parse(WebhookBody.bytes(delivery))
        }
        var choice = DeliveryContent.Choice(notification: "ntf_1", action: "REPLY", at: 1_795_000_000_000)
        let known: JSONObject = [
            "notification": "ntf_1", "uid": "u2", "action": "REPLY", "data": ["chat": "c1"], "at": 1_795_000_000_000,
        ]
        #expect(
            try body(choice) == [
                "type": "notification.action", "timestamp": "2026-11-18T11:06:40.007Z", "data": .object(known),
            ])
        (choice.device, choice.category, choice.text, choice.thread) = ("dev_1", "CHAT", "おかえり", "c1")
        let more: JSONObject = ["device": "dev_1", "category": "CHAT", "text": "おかえり", "thread": "c1"]
        var all = known
        for member in more.members { all[member.name] = member.value }
        #expect(try body(choice)["data"] == .object(all))
    }
}
