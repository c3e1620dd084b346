public import HatoModel

/// The body of a request of FCM HTTP v1 for one delivery: a message for one registration, with what Android, Apple's
/// devices and browsers need.
///
/// Android shows a message with `notification` by itself, without action buttons. So a message with actions has none:
/// the app gets `title`, `body`, `category` and `actions` (a JSON text) in `data`, with high priority, and shows it;
/// Apple's devices get their alert in `aps`.
public struct FCMRequest: Sendable, Hashable {
    /// JSON.
    var body: [UInt8]

    /// Of the message, without its target.
    static let messageBytesMax = 4_096

    /// Nil when the message has too many bytes even without its image and its body.
    ///
    /// - Parameters:
    ///   - registration: the target; nil: it is left out.
    ///   - now: milliseconds since 1970.
    ///   - validatesOnly: FCM checks the message and delivers nothing.
    init?(_ delivery: Delivery, to registration: FCMRegistration?, now: Int64, validatesOnly: Bool = false) {
        let times = Times(
            ttlSeconds: WebPushRequest.ttlSeconds(until: delivery.expiresAt, now: now), nowSeconds: now / 1_000)
        let fitted = PayloadFitting.fitted(delivery.content) { content in
            JSONValue.object(Self.message(content, times)).encoded.count <= Self.messageBytesMax
        }
        guard let fitted else { return nil }
        var message = Self.message(fitted, times)
        switch registration {
        case .token(let token): message["token"] = .string(token)
        case .installation(let fid): message["fid"] = .string(fid)
        case nil: break
        }
        var request: JSONObject = [:]
        if validatesOnly { request["validate_only"] = true }
        request["message"] = .object(message)
        body = JSONValue.object(request).encoded
    }

    /// Whether a message with all of the content is within the limit.
    static func fits(_ content: DeliveryContent) -> Bool {
        let times = Times(ttlSeconds: 2_419_200, nowSeconds: 1_795_000_000)
        return JSONValue.object(message(content, times)).encoded.count <= messageBytesMax
    }

    private struct Times {
        var ttlSeconds: Int64
        var nowSeconds: Int64
    }

    private static func message(_ content: DeliveryContent, _ times: Times) -> JSONObject {
        let isDataOnly = content.appearance.category?.actions.isEmpty == false
        let isSilent = content.text.title == nil && content.text.body == nil
        let urgent = content.appearance.priority == .high || isDataOnly && !isSilent
        var message: JSONObject = [:]
        if !isSilent && !isDataOnly { message["notification"] = .object(shown(content)) }
        let data = data(content, isDataOnly: isDataOnly && !isSilent)
        if !data.isEmpty { message["data"] = texts(data) }
        var android: JSONObject = ["priority": urgent ? "HIGH" : "NORMAL", "ttl": .string("\(times.ttlSeconds)s")]
        if let key = content.collapseKey { android["collapse_key"] = .string(key) }
        // What members show is removed by its tag, too.
        if !isSilent && !isDataOnly || ShownMembers.showOnAndroid(content.platforms?.fcm) {
            android["notification"] = .object(androidNotification(content))
        }
        message["android"] = .object(android)
        message["apns"] = .object(apns(content, times, isDataOnly: isDataOnly))
        message["webpush"] = .object(webpush(content, times, isShown: !isSilent && !isDataOnly))
        if let members = content.platforms?.fcm?.object { message = message.merging(members) }
        if let hato = content.hato.json {
            var data = message["data"]?.object ?? [:]
            data[HatoMember.name] = .string(String(decoding: hato.encoded, as: UTF8.self))
            message["data"] = .object(data)
        }
        return message
    }

    private static func shown(_ content: DeliveryContent) -> JSONObject {
        var object: JSONObject = [:]
        if let title = content.text.title { object["title"] = .string(title) }
        if let body = content.text.body { object["body"] = .string(body) }
        if let image = content.appearance.image { object["image"] = .string(image) }
        return object
    }

    /// The tag by which a newer notification takes the place of an older one that is shown.
    private static func tag(_ content: DeliveryContent) -> String {
        content.collapseKey ?? content.appearance.thread ?? content.notification
    }

    // MARK: Data

    private static func data(_ content: DeliveryContent, isDataOnly: Bool) -> [String: String] {
        var data = content.data
        func add(_ name: String, _ value: String?) { if let value, data[name] == nil { data[name] = value } }
        add("link", content.appearance.link)
        if content.neutralText != nil {
            // The app shows it, too.
            add("tag", tag(content))
            add("sound", content.appearance.sound)
            add("badge", content.appearance.badge.map { String($0) })
        }
        guard isDataOnly, let category = content.appearance.category else { return data }
        // These four take the place of the sender's own: without them, nothing is shown.
        data["title"] = content.text.title
        data["body"] = content.text.body
        data["category"] = category.id
        data["actions"] = actions(category.actions)
        add("tag", tag(content))
        add("thread", content.appearance.thread)
        add("image", content.appearance.image)
        add("sound", content.appearance.sound)
        add("badge", content.appearance.badge.map { String($0) })
        return data
    }

    /// As categories declare them.
    private static func actions(_ actions: [DeliveryContent.Action]) -> String {
        let values = actions.map { action in
            var object: JSONObject = [
                "id": .string(action.id), "title": .string(action.title),
                "activation": action.opensApp ? "foreground" : "background",
                "destructive": .bool(action.isDestructive),
                "authenticationRequired": .bool(action.requiresAuthentication),
            ]
            if let input = action.input {
                var field: JSONObject = [:]
                if let button = input.button { field["button"] = .string(button) }
                if let placeholder = input.placeholder { field["placeholder"] = .string(placeholder) }
                object["input"] = .object(field)
            }
            // The app shows the user's own text.
            if let index = action.quickReply { object["quickReply"] = .number(Double(index)) }
            return JSONValue.object(object)
        }
        return String(decoding: JSONValue.array(values).encoded, as: UTF8.self)
    }

    private static func texts(_ texts: [String: String]) -> JSONValue {
        .object(
            JSONObject(uniqueMembers: texts.sorted { $0.key < $1.key }.map { JSONObject.Member($0, .string($1)) }))
    }

    // MARK: The platforms behind FCM

    private static func androidNotification(_ content: DeliveryContent) -> JSONObject {
        let appearance = content.appearance
        var object: JSONObject = ["tag": .string(tag(content))]
        if let sound = appearance.sound, appearance.interruptionLevel != .passive { object["sound"] = .string(sound) }
        if let badge = appearance.badge { object["notification_count"] = .number(Double(badge)) }
        return object
    }

    private static func apns(_ content: DeliveryContent, _ times: Times, isDataOnly: Bool) -> JSONObject {
        let appearance = content.appearance
        let given = content.platforms?.fcm?["apns"]?["payload"]?["aps"]
        let hasText = content.text.title != nil || content.text.body != nil
        let isSilent = !hasText && content.neutralText == nil && !ShownMembers.showAlert(aps: given)
        var aps: JSONObject = [:]
        if hasText && isDataOnly { aps["alert"] = alert(content.text) }
        if let text = content.neutralText { aps["alert"] = .string(text) }
        if let badge = appearance.badge { aps["badge"] = .number(Double(badge)) }
        if isSilent {
            aps["content-available"] = 1
        } else {
            if let sound = appearance.sound { aps["sound"] = .string(sound) }
            if let category = appearance.category { aps["category"] = .string(category.id) }
            if let thread = appearance.thread { aps["thread-id"] = .string(thread) }
            if let level = appearance.interruptionLevel { aps["interruption-level"] = .string(level.rawValue) }
            // Lets the app's extension fetch the image, or what the notification says.
            if appearance.image != nil || content.neutralText != nil { aps["mutable-content"] = 1 }
        }
        let ends = times.ttlSeconds == 0 ? 0 : times.nowSeconds + times.ttlSeconds
        let headers: JSONObject = [
            // A background push of another priority is refused; one with a badge is no background push.
            "apns-push-type": isSilent && appearance.badge == nil && given?["badge"] == nil ? "background" : "alert",
            "apns-priority": !isSilent && appearance.priority == .high ? "10" : "5",
            "apns-expiration": .string(String(ends)),
            "apns-collapse-id": .string(collapseID(content)),
        ]
        var object: JSONObject = ["headers": .object(headers), "payload": ["aps": .object(aps)]]
        if let image = appearance.image, !isSilent { object["fcm_options"] = ["image": .string(image)] }
        return object
    }

    private static func alert(_ text: Notifier.NotificationText) -> JSONValue {
        guard let title = text.title else { return .string(text.body ?? "") }
        var object: JSONObject = ["title": .string(title)]
        if let body = text.body { object["body"] = .string(body) }
        return .object(object)
    }

    /// The name of the notification on the device, by which a repetition takes its place: at most 64 bytes.
    private static func collapseID(_ content: DeliveryContent) -> String {
        let name = content.collapseKey ?? content.notification
        let isHeader = name.utf8.count <= 64 && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isHeader ? name : WebPushRequest.topic(name)
    }

    private static func webpush(_ content: DeliveryContent, _ times: Times, isShown: Bool) -> JSONObject {
        let appearance = content.appearance
        var object: JSONObject = [
            "headers": [
                "TTL": .string(String(times.ttlSeconds)),
                "Urgency": appearance.priority == .high ? "high" : "normal",
                "Topic": .string(WebPushRequest.topic(tag(content))),
            ]
        ]
        guard isShown else { return object }
        var notification: JSONObject = ["tag": .string(tag(content))]
        if appearance.sound == nil || appearance.interruptionLevel == .passive { notification["silent"] = true }
        object["notification"] = .object(notification)
        if let link = appearance.link { object["fcm_options"] = ["link": .string(link)] }
        return object
    }
}
