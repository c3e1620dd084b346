import HatoModel

/// The body of a webhook, the same bytes in every attempt:
///
/// ```json
/// {"type":"notification","timestamp":"2026-11-21T07:00:00.000Z","data":{
///   "notification":"ntf_…","device":"dev_…","uid":"u2","title":"…","body":"…",
///   "data":{"chat":"c1"},"collapseKey":"…","trigger":"chat-message","path":"/chats/c1/messages/m1"}}
/// ```
///
/// `title`, `body`, `collapseKey`, `trigger` and `path` are absent when there is none; `data` is always an object of
/// texts. A push that only withdraws what was sent before has the type `notification.withdrawn`, and what it withdraws
/// in `hato`:
///
/// ```json
/// {"type":"notification.withdrawn","timestamp":"2026-11-21T07:05:00.000Z","data":{
///   "notification":"ntf_…","device":"dev_…","uid":"u2","data":{},"collapseKey":"hato.withdrawal",
///   "hato":{"withdraw":["ntf_…"],"threads":["c1"],"badge":2}}}
/// ```
///
/// The effect of an action has the type `notification.action`; `device`, `category`, `text` and `thread` are absent
/// when there is none, `at` is in milliseconds since 1970:
///
/// ```json
/// {"type":"notification.action","timestamp":"2026-11-21T07:01:00.000Z","data":{
///   "notification":"ntf_…","uid":"u2","device":"dev_…","category":"CHAT","action":"REPLY","text":"…","thread":"c1",
///   "data":{"chat":"c1"},"at":1795244460000}}
/// ```
enum WebhookBody {
    static func bytes(_ delivery: Delivery) -> [UInt8] {
        let content = delivery.content
        if let choice = content.choice { return bytes(choice, delivery) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.write("type", content.hato.withdraw == nil ? "notification" : "notification.withdrawn")
        writer.write("timestamp", ISOTime.text(delivery.createdAt))
        writer.member("data")
        writer.beginObject()
        writer.write("notification", content.notification)
        writer.write("device", content.device)
        writer.write("uid", content.uid)
        writer.write("title", content.text.title)
        writer.write("body", content.text.body)
        writer.writeData(of: content)
        writer.write("collapseKey", content.collapseKey)
        writer.write("trigger", content.trigger)
        writer.write("path", content.path)
        if let hato = content.hato.json {
            writer.member(HatoMember.name)
            writer.write(hato)
        }
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }

    private static func bytes(_ choice: DeliveryContent.Choice, _ delivery: Delivery) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.write("type", "notification.action")
        writer.write("timestamp", ISOTime.text(delivery.createdAt))
        writer.member("data")
        writer.beginObject()
        writer.write("notification", choice.notification)
        writer.write("uid", delivery.content.uid)
        writer.write("device", choice.device)
        writer.write("category", choice.category)
        writer.write("action", choice.action)
        writer.write("text", choice.text)
        writer.write("thread", choice.thread)
        writer.writeData(of: delivery.content)
        writer.member("at")
        writer.write(choice.at)
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }
}

extension JSONWriter {
    fileprivate mutating func writeData(of content: DeliveryContent) {
        member("data")
        beginObject()
        for (name, value) in content.data.sorted(by: { $0.key < $1.key }) { write(name, value) }
        endObject()
    }

    fileprivate mutating func write(_ name: String, _ value: String?) {
        guard let value else { return }
        member(name)
        write(value)
    }
}

/// Times as ISO 8601 in UTC, with milliseconds.
enum ISOTime {
    static func text(_ milliseconds: Int64) -> String {
        let (days, rest) = milliseconds.flooredDivision(by: 86_400_000)
        let (year, month, day) = civil(days)
        let seconds = rest / 1_000
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(seconds / 3_600, 2)):"
            + "\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2)).\(padded(rest % 1_000, 3))Z"
    }

    /// Days since 1970 to the proleptic Gregorian calendar, by eras of 400 years that begin on the 1st of March.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let remainder = ((self % divisor) + divisor) % divisor
        return ((self - remainder) / divisor, remainder)
    }
}
