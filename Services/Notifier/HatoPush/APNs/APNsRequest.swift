import Crypto
import HatoModel

/// A request to Apple's push service for one delivery, without what authenticates it (Apple, "Sending notification
/// requests to APNs" and "Generating a remote notification").
///
/// A delivery without title and body is a push in the background. The members of `platforms.apns` take the place of
/// what is made; those that are not known are left out.
public struct APNsRequest: Sendable, Hashable {
    /// Why there is no request.
    enum Problem: Error, Hashable {
        /// The payload is too large even without its image, its link and its text.
        case payloadTooLarge
        /// `apns-topic` of `platforms.apns` belongs to another app.
        case otherTopic
    }

    /// The bundle id, maybe with a suffix: a connection is for one.
    var topic: String
    var path: String
    /// All but `authorization`, by name in lower case.
    var headers: [String: String]
    /// JSON.
    var payload: [UInt8]

    static let payloadBytesMax = 4_096
    /// Of pushes for calls.
    static let voIPPayloadBytesMax = 5_120
    static let collapseIDBytesMax = 64
    /// What each type of push has after the bundle id.
    static let topicSuffixes = [
        "alert": "", "background": "", "location": ".location-query", "voip": ".voip", "complication": ".complication",
        "fileprovider": ".pushkit.fileprovider", "mdm": "", "liveactivity": ".push-type.liveactivity",
        "pushtotalk": ".voip-ptt", "widgets": ".push-type.widgets", "controls": ".push-type.controls",
    ]
    /// APNs keeps no notification longer.
    private static let keptSecondsMax: Int64 = 30 * 24 * 3_600

    /// The topics of an app: its bundle id, also with each suffix.
    static func topics(of bundle: String) -> Set<String> { Set(topicSuffixes.values.map { bundle + $0 }) }

    /// `topic` is the bundle id; `now` in milliseconds since 1970.
    init(_ delivery: Delivery, to device: APNsDevice, topic: String, now: Int64) throws(Problem) {
        let members = delivery.content.platforms?.apns
        let headers = Self.headers(delivery, topic: topic, now: now)
        let used = headers["apns-topic"] ?? topic
        guard Self.topicSuffixes.contains(where: { used == topic + $0.value }) else { throw .otherTopic }
        let bytesMax = headers["apns-push-type"] == "voip" ? Self.voIPPayloadBytesMax : Self.payloadBytesMax
        let fitted = PayloadFitting.fitted(delivery.content) { Self.payload($0, members).count <= bytesMax }
        guard let content = fitted else { throw .payloadTooLarge }
        self.topic = used
        path = "/3/device/\(device.token)"
        self.headers = headers
        payload = Self.payload(content, members)
    }

    /// Whether a payload with all of the content is within the limit.
    static func fits(_ content: DeliveryContent) -> Bool { payload(content, nil).count <= payloadBytesMax }

    // MARK: Headers

    private static func headers(_ delivery: Delivery, topic: String, now: Int64) -> [String: String] {
        let content = delivery.content
        let isUrgent = content.appearance.priority == .high && !isSilent(content)
        let given = content.platforms?.apns?["headers"]?.object ?? [:]
        let type = given["apns-push-type"]?.string
        var headers = [
            "apns-topic": topic + (type.flatMap { topicSuffixes[$0] } ?? ""),
            "apns-push-type": isInBackground(content) ? "background" : "alert",
            "apns-priority": isUrgent ? "10" : "5",
            "apns-expiration": String(expiration(delivery.expiresAt, now: now)),
            "apns-id": identifier(of: delivery.id),
            "apns-collapse-id": collapseID(content),
        ]
        for member in given.members where headerKinds[member.name] != nil {
            if let value = member.value.string { headers[member.name] = value }
        }
        // Another priority is refused.
        if headers["apns-push-type"] == "background" { headers["apns-priority"] = "5" }
        return headers
    }

    /// In seconds since 1970; 0, which is to try once, when there is no whole second left.
    private static func expiration(_ expiresAt: Int64, now: Int64) -> Int64 {
        let (seconds, present) = (expiresAt / 1_000, now / 1_000)
        guard seconds > present else { return 0 }
        return seconds - present > keptSecondsMax ? present + keptSecondsMax : seconds
    }

    /// A UUID in lower case, the same for all attempts (RFC 9562 §5.8).
    static func identifier(of delivery: String) -> String {
        var bytes = Array(SHA256.hash(data: Array("apns-id \(delivery)".utf8)).prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The name of the notification on the device, by which a repetition takes its place, and by which the app removes
    /// it. One that is no header, or is too long, is hashed.
    static func collapseID(_ content: DeliveryContent) -> String {
        let name = content.collapseKey ?? content.notification
        let isHeader =
            (1...collapseIDBytesMax).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isHeader ? name : WebPushRequest.topic(name)
    }

    // MARK: Payload

    private static func isSilent(_ content: DeliveryContent) -> Bool {
        !content.isShown(on: .apns)
    }

    /// One with a badge is shown: APNs wants only `content-available` of a push in the background.
    private static func isInBackground(_ content: DeliveryContent) -> Bool {
        let given = content.platforms?.apns?["aps"]?.object ?? [:]
        return isSilent(content) && content.appearance.badge == nil
            && !["alert", "badge", "sound"].contains { given[$0] != nil }
    }

    private static func payload(_ content: DeliveryContent, _ members: JSONValue?) -> [UInt8] {
        var made = aps(content)
        let given = members?["aps"]?.object ?? [:]
        // An object in place of a text would take the text away.
        if let text = made["alert"]?.string, given["alert"]?.object != nil { made["alert"] = ["body": .string(text)] }
        var payload: JSONObject = ["aps": .object(made.merging(given))]
        // The name is Apple's.
        for (name, value) in content.data.sorted(by: { $0.key < $1.key }) where name != apsName {
            payload.append(name, .string(value))
        }
        if !isSilent(content) {
            if let link = content.appearance.link, payload["link"] == nil { payload["link"] = .string(link) }
            if let image = content.appearance.image, payload["image"] == nil { payload["image"] = .string(image) }
        }
        for member in members?["payload"]?.object?.members ?? [] where member.name != apsName {
            payload[member.name] = member.value
        }
        if let hato = content.hato.json { payload[HatoMember.name] = hato }
        return JSONValue.object(payload).encoded
    }

    private static func aps(_ content: DeliveryContent) -> JSONObject {
        let appearance = content.appearance
        let badge = appearance.badge.map { JSONValue.number(Double($0)) }
        var aps: JSONObject = [:]
        guard !isSilent(content) else {
            aps["badge"] = badge
            aps["content-available"] = 1
            return aps
        }
        aps["alert"] = content.neutralText.map { .string($0) } ?? alert(content.text)
        aps["badge"] = badge
        aps["sound"] = appearance.sound.map { .string($0) }
        aps["thread-id"] = appearance.thread.map { .string($0) }
        aps["category"] = appearance.category.map { .string($0.id) }
        // Lets the app's extension fetch the image, or what the notification says.
        if appearance.image != nil || content.neutralText != nil { aps["mutable-content"] = 1 }
        aps["interruption-level"] = appearance.interruptionLevel.map { .string($0.rawValue) }
        return aps
    }

    /// Nil: the alert is that of the platform's own members.
    private static func alert(_ text: Notifier.NotificationText) -> JSONValue? {
        guard let title = text.title else {
            guard let body = text.body else { return Optional.none }
            return .string(body)
        }
        var alert: JSONObject = ["title": .string(title)]
        if let body = text.body { alert["body"] = .string(body) }
        return .object(alert)
    }
}
