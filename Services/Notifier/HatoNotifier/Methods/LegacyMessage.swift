import HatoModel

/// What a payload of Firebase's old `sendToDevice` comes to. The members that a notification has for itself become
/// that; the others become members of FCM HTTP v1.
struct LegacyMessage {
    let text: Notifier.NotificationText
    private(set) var options = Notifier.DeliveryOptions()
    private(set) var platforms: Notifier.PlatformMembers?

    /// 28 days, as Firebase has it.
    static let defaultSeconds = 28 * 24 * 3_600
    private static let badgeMax = 99_999

    /// Throws `RPCError` that names the parameter.
    init(_ payload: Notifier.LegacyPayload, _ given: Notifier.LegacyOptions) throws(RPCError) {
        let shown = Self.shown(payload.notification)
        guard shown != nil || payload.data?.isEmpty == false else {
            throw .invalidArgument(
                "payload", reason: "invalid_payload", "A payload has a notification, data or both")
        }
        text = .init(title: shown?.title, body: shown?.body)
        options.priority = given.priority ?? (shown == nil ? .normal : .high)
        options.collapseKey = given.collapseKey
        options.sound = shown?.sound
        options.badge = try shown?.badge.map { text throws(RPCError) in try Self.badge(text) }
        if let action = shown?.clickAction, RequestChecks.isLink(action) { options.link = action }
        let localized = try shown.map { shown throws(RPCError) in try Localized(shown) }
        var message: JSONObject = [:]
        let android = Self.android(shown, localized, given, isHigh: options.priority == .high)
        if !android.isEmpty { message["android"] = .object(android) }
        let apns = Self.apns(shown, localized, given, isHigh: options.priority == .high)
        if !apns.isEmpty { message["apns"] = .object(apns) }
        guard !message.isEmpty else { return }
        var members = Notifier.PlatformMembers()
        members.fcm = .object(message)
        platforms = members
    }

    /// Empty texts are none, and a notification without members shows nothing.
    private static func shown(_ given: Notifier.LegacyPayload.Shown?) -> Notifier.LegacyPayload.Shown? {
        guard var shown = given else { return nil }
        func filled(_ text: String?) -> String? { text?.isEmpty == true ? nil : text }
        (shown.icon, shown.color, shown.tag) = (filled(shown.icon), filled(shown.color), filled(shown.tag))
        shown.clickAction = filled(shown.clickAction)
        return shown == .init() ? nil : shown
    }

    private static func badge(_ text: String) throws(RPCError) -> Int {
        let isNumber = (1...5).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isNumber, let badge = Int(text), badge <= badgeMax else {
            throw .invalidArgument(
                "payload.notification.badge", reason: "invalid_badge",
                "badge is a text of digits from 0 to 99999, e.g. \"1\"")
        }
        return badge
    }

    private static func android(
        _ shown: Notifier.LegacyPayload.Shown?, _ localized: Localized?, _ given: Notifier.LegacyOptions, isHigh: Bool
    ) -> JSONObject {
        var object: JSONObject = [:]
        if let name = given.restrictedPackageName { object["restricted_package_name"] = .string(name) }
        var notification: JSONObject = [:]
        let texts = [
            ("icon", shown?.icon), ("color", shown?.color), ("tag", shown?.tag), ("click_action", shown?.clickAction),
        ]
        for (name, text) in texts { if let text { notification[name] = .string(text) } }
        for (name, value) in localized?.android ?? [] { notification[name] = value }
        if localized?.isAlone == true {
            // Without a title and a body the message counts as silent elsewhere.
            if let sound = shown?.sound { notification["sound"] = .string(sound) }
            if let badge = shown?.badge, let count = Double(badge) {
                notification["notification_count"] = .number(count)
            }
            if isHigh { object["priority"] = "HIGH" }
        }
        if !notification.isEmpty { object["notification"] = .object(notification) }
        return object
    }

    private static func apns(
        _ shown: Notifier.LegacyPayload.Shown?, _ localized: Localized?, _ given: Notifier.LegacyOptions, isHigh: Bool
    ) -> JSONObject {
        var (aps, object): (JSONObject, JSONObject) = ([:], [:])
        if let action = shown?.clickAction { aps["category"] = .string(action) }
        if given.contentAvailable == true { aps["content-available"] = 1 }
        if given.mutableContent == true { aps["mutable-content"] = 1 }
        if let localized, !localized.apple.isEmpty {
            var alert: JSONObject = [:]
            if let title = shown?.title { alert["title"] = .string(title) }
            if let body = shown?.body { alert["body"] = .string(body) }
            for (name, value) in localized.apple { alert[name] = value }
            aps["alert"] = .object(alert)
            if localized.isAlone {
                if let sound = shown?.sound { aps["sound"] = .string(sound) }
                object["headers"] = ["apns-push-type": "alert", "apns-priority": isHigh ? "10" : "5"]
            }
        }
        if !aps.isEmpty { object["payload"] = ["aps": .object(aps)] }
        return object
    }

    /// Texts that the app has itself.
    private struct Localized {
        private(set) var android: [(String, JSONValue)] = []
        private(set) var apple: [(String, JSONValue)] = []
        /// There is no title and no body beside them.
        let isAlone: Bool

        init(_ shown: Notifier.LegacyPayload.Shown) throws(RPCError) {
            isAlone = shown.title == nil && shown.body == nil && (shown.titleLocKey ?? shown.bodyLocKey) != nil
            if let key = shown.titleLocKey { add(.string(key), "title_loc_key", "title-loc-key") }
            if let args = try Self.list(shown.titleLocArgs, "titleLocArgs") {
                add(args, "title_loc_args", "title-loc-args")
            }
            if let key = shown.bodyLocKey { add(.string(key), "body_loc_key", "loc-key") }
            if let args = try Self.list(shown.bodyLocArgs, "bodyLocArgs") { add(args, "body_loc_args", "loc-args") }
        }

        private mutating func add(_ value: JSONValue, _ android: String, _ apple: String) {
            self.android.append((android, value))
            self.apple.append((apple, value))
        }

        private static func list(_ text: String?, _ member: String) throws(RPCError) -> JSONValue? {
            guard let text else { return nil }
            guard let list = try? JSONParser.parse(Array(text.utf8)), let values = list.array,
                values.allSatisfy({ $0.string != nil })
            else {
                throw .invalidArgument(
                    "payload.notification.\(member)", reason: "invalid_payload",
                    "\(member) is a JSON text, a list of strings, e.g. [\"マスオ\"]")
            }
            return list
        }
    }
}
