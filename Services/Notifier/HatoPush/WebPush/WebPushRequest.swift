import Crypto
public import HatoModel

/// What is sent to a push service for one delivery: the headers that say how to deliver it, and the text before its
/// encryption.
///
/// The text is one object for two readers. A browser that knows declarative Web Push (WebKit since 18.4) shows
/// `notification` by itself when it has a title and `navigate`; every other hands the object to the `push` event of the
/// app's service worker, which shows `notification`:
///
/// ```json
/// {"web_push":8030,"notification":{"title":"…","body":"…","navigate":"https://…","app_badge":"3","tag":"c1",
///   "image":"https://…","silent":true,"actions":[{"action":"yes","title":"はい"}],"data":{"chat":"c1"}},
///  "app_badge":3,"mutable":false}
/// ```
///
/// One that does not carry what it says has a neutral title, which the service worker replaces: browsers end the
/// subscriptions of pushes that show nothing. A silent push has `data`, `tag` and `app_badge` alone.
public struct WebPushRequest: Sendable, Hashable {
    /// `ttl`, `urgency` and `topic` (RFC 8030 §5.2 to §5.4).
    var headers: [String: String]
    /// JSON, at most 3,993 bytes.
    var plaintext: [UInt8]

    /// What a push service keeps a message for at most: four weeks.
    private static let ttlSecondsMax: Int64 = 2_419_200
    /// Of the actions of a category, browsers show two; the others are in the app, which a tap opens.
    private static let actionsMax = 2

    /// Nil when the text has too many bytes even without its image and its body. `now` in milliseconds since 1970.
    init?(_ delivery: Delivery, now: Int64) {
        let content = delivery.content
        let members = content.platforms?.webpush
        let fitted = PayloadFitting.fitted(content) { content in
            Self.plaintext(content, members).count <= WebPushEncryption.plaintextBytesMax
        }
        guard let fitted else { return nil }
        plaintext = Self.plaintext(fitted, members)
        headers = [
            "ttl": String(Self.ttlSeconds(until: delivery.expiresAt, now: now)),
            "urgency": content.appearance.priority == .high ? "high" : "normal",
            "topic": Self.topic(Self.tag(content)),
        ]
        for member in members?["headers"]?.object?.members ?? [] {
            headers[member.name.lowercased()] = member.value.string
        }
    }

    /// Whether a text with all of the content is within the limit.
    static func fits(_ content: DeliveryContent) -> Bool {
        plaintext(content, nil).count <= WebPushEncryption.plaintextBytesMax
    }

    /// From 0 to four weeks.
    static func ttlSeconds(until expiresAt: Int64, now: Int64) -> Int64 {
        let (left, isOver) = expiresAt.subtractingReportingOverflow(now)
        return isOver ? ttlSecondsMax : min(max(0, left / 1_000), ttlSecondsMax)
    }

    /// 32 characters, so that a push service learns no name and every name is short enough.
    static func topic(_ name: String) -> String {
        Base64.url.encode(SHA256.hash(data: Array(name.utf8)).prefix(24))
    }

    /// A newer notification with this tag takes the place of an older one that is shown.
    private static func tag(_ content: DeliveryContent) -> String {
        content.collapseKey ?? content.appearance.thread ?? content.notification
    }

    private static func plaintext(_ content: DeliveryContent, _ members: JSONValue?) -> [UInt8] {
        var message: JSONObject = [:]
        let made = notification(content, members?["notification"])
        var given = members?["notification"]?.object ?? [:]
        // A body without a title stands in its place.
        if made["title"] != nil, made["title"] == given["body"], given["title"] == nil, made["body"] == nil {
            given["body"] = nil
        }
        var notification = made.merging(given)
        if given["vibrate"] != nil && given["silent"] == nil {
            // Together with `vibrate`, browsers refuse it.
            notification["silent"] = nil
        }
        if let hato = content.hato.json {
            var data = notification["data"]?.object ?? [:]
            data[HatoMember.name] = hato
            notification["data"] = .object(data)
        }
        if notification["title"] != nil { message["web_push"] = 8030 }
        message["notification"] = .object(notification)
        if let badge = content.appearance.badge { message["app_badge"] = .number(Double(badge)) }
        if notification["title"] != nil {
            // With actions, a service worker that is there shows the notification: only it can report a choice.
            message["mutable"] = .bool(notification["actions"] != nil)
        }
        return JSONValue.object(message).encoded
    }

    /// - Parameter given: members of the notification, whose title is shown where the content has no text.
    private static func notification(_ content: DeliveryContent, _ given: JSONValue?) -> JSONObject {
        let appearance = content.appearance
        var object: JSONObject = [:]
        // A title is required: a body without one takes its place.
        let title =
            content.text.title ?? content.text.body ?? content.neutralText
            ?? ShownMembers.title(ofBrowser: given)
        if let title {
            object["title"] = .string(title)
            if content.text.title != nil, let body = content.text.body { object["body"] = .string(body) }
            if let link = appearance.link { object["navigate"] = .string(link) }
            if let image = appearance.image { object["image"] = .string(image) }
            if appearance.sound == nil || appearance.interruptionLevel == .passive { object["silent"] = true }
            if let category = appearance.category, !category.actions.isEmpty {
                object["actions"] = .array(
                    category.actions.prefix(actionsMax).map { action($0, link: appearance.link) })
            }
        }
        object["tag"] = .string(tag(content))
        // WebKit reads the badge here, the Push API's draft beside the notification.
        if let badge = appearance.badge { object["app_badge"] = .string(String(badge)) }
        object["data"] = .object(
            JSONObject(
                uniqueMembers: content.data.sorted { $0.key < $1.key }.map { JSONObject.Member($0, .string($1)) }))
        return object
    }

    private static func action(_ action: DeliveryContent.Action, link: String?) -> JSONValue {
        var object: JSONObject = ["action": .string(action.id), "title": .string(action.title)]
        if let input = action.input {
            object["type"] = "text"
            if let placeholder = input.placeholder { object["placeholder"] = .string(placeholder) }
        }
        if action.opensApp, let link { object["navigate"] = .string(link) }
        return .object(object)
    }
}

extension WebPushRequest {
    /// Checks `platforms.webpush`, which takes the place of what is made. Throws `invalid_platform_member` for a member
    /// that is not known or of the wrong kind, with its path.
    public static func check(platformMembers: JSONValue) throws(ArgumentError) {
        guard platformMembers.encoded.count <= membersBytesMax else {
            throw MemberKind.error("platforms.webpush should have at most \(membersBytesMax) bytes as JSON")
        }
        try MemberKind.object(["headers": headerKinds, "notification": notificationKinds])
            .check(platformMembers, at: "platforms.webpush")
    }

    /// They have to fit into a push with its text.
    private static let membersBytesMax = 3_072

    private static let ttl = MemberKind.checked(
        "a number of seconds from 0 to \(ttlSecondsMax), as a string",
        { text in
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } && Int64(text).map { $0 <= ttlSecondsMax } ?? false
        })
    private static let urgency = MemberKind.choice(["very-low", "low", "normal", "high"])
    private static let topic = MemberKind.checked(
        "1 to 32 characters of base64url",
        { text in
            (1...32).contains(text.utf8.count)
                && text.utf8.allSatisfy { byte in
                    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                        || byte == 0x2D || byte == 0x5F
                }
        })

    private static let headerKinds = MemberKind.object([
        "TTL": ttl, "Urgency": urgency, "Topic": topic, "ttl": ttl, "urgency": urgency, "topic": topic,
    ])

    /// Those of the Notifications API and of declarative Web Push.
    private static let notificationKinds = MemberKind.object([
        "title": .text, "body": .text, "navigate": .link, "lang": .text, "dir": .choice(["auto", "ltr", "rtl"]),
        "tag": .text, "image": .text, "icon": .text, "badge": .text,
        "vibrate": .list(of: .integer(0...10_000)), "timestamp": .integer(0...(1 << 53 - 1)), "renotify": .flag,
        "silent": .flag, "requireInteraction": .flag, "data": .any, "app_badge": .textOrCount,
        "actions": .list(
            of: .object([
                "action": .text, "title": .text, "icon": .text, "navigate": .link, "type": .choice(["button", "text"]),
                "placeholder": .text,
            ])),
    ])
}
