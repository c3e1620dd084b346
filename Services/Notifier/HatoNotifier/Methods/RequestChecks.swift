import HatoFetch
import HatoModel
import HatoPush
import HatoStorage

/// Checks of what requests hold, each with the name of its parameter.
struct RequestChecks: Sendable {
    let limits: NotifierLimits

    /// A text of 1 to `bytesMax` bytes without control characters.
    func key(_ text: String?, _ parameter: String, bytesMax: Int? = nil) throws(RPCError) {
        guard let text else { return }
        let bytesMax = bytesMax ?? limits.keyBytesMax
        guard !text.isEmpty, text.utf8.count <= bytesMax, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalidArgument(
                parameter, reason: "invalid_key", "\(parameter) has 1 to \(bytesMax) bytes and no control characters")
        }
    }

    func uids(_ uids: [String], _ parameter: String) throws(RPCError) {
        guard !uids.isEmpty, uids.count <= limits.recipientsMax else {
            throw .invalidArgument(
                parameter, reason: "invalid_recipients", "\(parameter) names 1 to \(limits.recipientsMax)")
        }
        for uid in uids { try key(uid, parameter, bytesMax: limits.uidBytesMax) }
    }

    /// Devices without users for these tokens, in their order.
    func tokens(
        _ tokens: [Notifier.NamedToken], _ outbox: Outbox
    ) throws(RPCError) -> [DeviceRecord] {
        guard !tokens.isEmpty, tokens.count <= limits.recipientsMax else {
            throw .invalidArgument(
                "to.tokens", reason: "invalid_recipients", "to.tokens names 1 to \(limits.recipientsMax)")
        }
        var devices: [DeviceRecord] = []
        for (index, named) in tokens.enumerated() {
            let parameter = "to.tokens.\(index)"
            try key(named.app, "\(parameter).app")
            guard let app = TokenApp(named.platform, app: named.app) else {
                throw .invalidArgument(
                    "\(parameter).platform", reason: "unsupported_platform", "Tokens are those of apns and fcm")
            }
            do { devices.append(try app.device(outbox.newID("dev_"), with: named.token, at: outbox.time.now())) } catch
            {
                throw .invalidArgument("\(parameter).token", reason: error.reason, error.message)
            }
        }
        return devices
    }

    func text(_ text: Notifier.NotificationText, _ parameter: String = "notification") throws(RPCError) {
        guard text.title?.isEmpty == false || text.body?.isEmpty == false else {
            throw .invalidArgument(
                parameter, reason: "empty_notification", "A notification has a title, a body or both")
        }
        try size(text.title, "\(parameter).title", limits.titleBytesMax)
        try size(text.body, "\(parameter).body", limits.bodyBytesMax)
    }

    /// What a trigger fills is as long as what `send` is given, before it is filled as after. Says nothing of what is
    /// in it: that is read by `CompiledTrigger`.
    func trigger(_ trigger: Notifier.Trigger) throws(RPCError) {
        try key(trigger.id, "id")
        try size(trigger.notification?.title, "notification.title", limits.titleBytesMax)
        try size(trigger.notification?.body, "notification.body", limits.bodyBytesMax)
        try localized(trigger.localized)
        try data(trigger.data, type: trigger.type)
        try options(trigger.options)
        try size(trigger.options?.image, "options.image", Self.linkBytesMax)
        try size(trigger.options?.link, "options.link", Self.linkBytesMax)
        try platforms(trigger.platforms)
        if let uids = trigger.recipients.uids { try self.uids(uids, "recipients.uids") }
        try size(trigger.recipients.uidsAt, "recipients.uidsAt", TreeLimits.pathBytesMax)
        try size(trigger.recipients.uidsIn, "recipients.uidsIn", TreeLimits.pathBytesMax)
        try size(trigger.recipients.uidField, "recipients.uidField", TreeLimits.pathBytesMax)
        try size(trigger.recipients.tokenField, "recipients.tokenField", TreeLimits.pathBytesMax)
        try size(trigger.recipients.tokenAt, "recipients.tokenAt", TreeLimits.pathBytesMax)
        try key(trigger.recipients.app, "recipients.app")
        try size(trigger.presenceAt, "presenceAt", TreeLimits.pathBytesMax)
        try key(trigger.category, "category")
        try content(trigger.content, trigger.platforms)
    }

    func data(_ data: [String: String]?, _ parameter: String = "data") throws(RPCError) {
        let bytes = (data ?? [:]).reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        guard bytes <= limits.dataBytesMax else {
            throw .invalidArgument(
                parameter, reason: "too_big",
                "\(parameter) has \(bytes) bytes in names and values, at most \(limits.dataBytesMax) are allowed")
        }
        // Whatever platform the recipients have: a device of another may come later.
        do {
            try FCMRequest.check(data: data ?? [:])
            try APNsRequest.check(data: data ?? [:])
            try HatoMember.check(data: data ?? [:])
        } catch {
            throw .invalidArgument(parameter, reason: error.reason, error.message)
        }
    }

    /// The longest time to live that may be given; it is cut to `ttl-seconds-max`. A smaller setting refuses nothing:
    /// no platform keeps a push for longer than its own limit, whatever it is given.
    var givenSecondsMax: Int { max(limits.timeToLiveSecondsMax, LegacyMessage.defaultSeconds) }

    /// How long a notification is delivered, in milliseconds.
    ///
    /// - Parameter seconds: as they were given, and checked; nil: as long as the service has it.
    func timeToLive(_ seconds: Int?, otherwise standard: Duration) -> Int64 {
        limits.timeToLive(seconds.map { Int64($0) * 1_000 } ?? standard.milliseconds)
    }

    func options(_ options: Notifier.DeliveryOptions?) throws(RPCError) {
        if let seconds = options?.ttlSeconds {
            guard (1...givenSecondsMax).contains(seconds) else {
                throw .invalidArgument(
                    "options.ttlSeconds", reason: "invalid_ttl",
                    "ttlSeconds is from 1 to \(givenSecondsMax), e.g. 3600")
            }
        }
        try key(options?.collapseKey, "options.collapseKey")
        try key(options?.thread, "options.thread")
        try key(options?.sound, "options.sound")
        if let badge = options?.badge, !(0...99_999).contains(badge) {
            throw .invalidArgument("options.badge", reason: "invalid_badge", "badge is from 0 to 99,999")
        }
        try key(options?.summary, "options.summary")
        if let summary = options?.summary, !summary.contains(MergeSummary.mark) {
            throw .invalidArgument(
                "options.summary", reason: "invalid_summary",
                "summary has the count in it, e.g. \(MergeSummary.mark) new messages")
        }
    }

    /// Members that no platform has are refused, so that a mistake is known before a push is lost.
    func platforms(_ members: Notifier.PlatformMembers?) throws(RPCError) {
        do {
            if let apns = members?.apns { try APNsRequest.check(platformMembers: apns) }
            if let fcm = members?.fcm { try FCMRequest.check(platformMembers: fcm) }
            if let webpush = members?.webpush { try WebPushRequest.check(platformMembers: webpush) }
        } catch {
            throw .invalidArgument("platforms", reason: error.reason, error.message)
        }
    }

    /// An absolute https URL of at most 2,048 bytes.
    func link(_ text: String?, _ parameter: String) throws(RPCError) {
        if let text, !Self.isLink(text) { throw Self.noLink(parameter) }
    }

    static let linkBytesMax = 2_048

    static func isLink(_ text: String) -> Bool {
        text.utf8.count <= linkBytesMax && (try? StrictURL(text))?.scheme == "https"
    }

    static func noLink(_ parameter: String) -> RPCError {
        .invalidArgument(
            parameter, reason: "invalid_url",
            "\(parameter) is an https URL of at most 2,048 bytes, e.g. https://example.com/chats/c1")
    }

    func page(_ limit: Int?) throws(RPCError) -> Int {
        guard let limit else { return min(100, limits.pageMax) }
        guard (1...limits.pageMax).contains(limit) else {
            throw .invalidArgument("limit", reason: "invalid_limit", "limit is from 1 to \(limits.pageMax)")
        }
        return limit
    }

    /// A device that ended a page: it may be gone since, but it was one.
    func devicePage(_ after: String?) throws(RPCError) {
        guard let after else { return }
        let name = after.dropFirst("dev_".count)
        let isName = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            default: false
            }
        }
        guard after.hasPrefix("dev_"), (1...64).contains(name.utf8.count), isName else {
            throw .invalidArgument(
                "after", reason: "invalid_page",
                "'after' must be the last device of the previous page, e.g. \"dev_8s2k1c9d0f4g7h3j\"")
        }
    }

    func size(_ text: String?, _ parameter: String, _ bytesMax: Int) throws(RPCError) {
        guard let text, text.utf8.count > bytesMax else { return }
        throw .invalidArgument(parameter, reason: "too_big", "\(parameter) has at most \(bytesMax) bytes")
    }
}
