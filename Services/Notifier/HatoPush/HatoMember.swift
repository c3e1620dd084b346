public import HatoModel

/// What a push carries for the app besides what its sender says: one member `hato`, under that name on all platforms.
///
/// - APNs: an object beside `aps`.
/// - FCM: `data.hato`, a JSON text, since all values of `data` are texts.
/// - Web Push: an object in `notification.data`.
/// - Webhooks: an object in `data`, beside the sender's own `data`.
///
/// ```json
/// {"withdraw":["ntf_…","ntf_…"],"threads":["c1"],"badge":2}
/// {"id":"ntf_…","reply":"…","path":"/chats/c1/messages/m1","thread":"c1","category":"REPLY"}
/// {"id":"ntf_…","reply":"…","incomplete":true}
/// ```
public struct HatoMember: Sendable, Hashable {
    /// The ids of shown notifications that the app removes; nil: the push withdraws nothing.
    public var withdraw: [String]?
    /// Threads of which the app removes all notifications; nil: there are none.
    public var threads: [String]?
    /// The number on the app's icon from now on; nil: it stays.
    public var badge: Int?
    /// The id of the notification, for `notifier.respond`; nil: the app has nothing to report.
    public var id: String?
    /// The reply token of the notification, its user and the device.
    public var reply: String?
    /// Whether the longest values of `data` are left out, since the push has too many bytes with them.
    public var isIncomplete = false
    /// Where it comes from, of a push that does not carry what it says: the app reads that by these.
    public var source: Source?

    /// What leads to the texts of a notification. Ids, no words.
    public struct Source: Sendable, Hashable {
        /// The path of the change that fired its trigger; nil: it has none.
        public var path: String?
        /// Its thread; nil: it has none.
        public var thread: String?
        /// The id of its category; nil: it has none.
        public var category: String?

        /// A source with these ids.
        public init(path: String?, thread: String?, category: String?) {
            (self.path, self.thread, self.category) = (path, thread, category)
        }
    }

    /// No member of an object has this name beside ours.
    static let name = "hato"

    /// Nothing, which is not sent.
    public init() {}

    /// Nil when there is nothing in it.
    var json: JSONValue? {
        var object: JSONObject = [:]
        if let withdraw { object["withdraw"] = .array(withdraw.map { .string($0) }) }
        if let threads { object["threads"] = .array(threads.map { .string($0) }) }
        if let badge { object["badge"] = .number(Double(badge)) }
        if let id { object["id"] = .string(id) }
        if let reply { object["reply"] = .string(reply) }
        if isIncomplete { object["incomplete"] = true }
        if let path = source?.path { object["path"] = .string(path) }
        if let thread = source?.thread { object["thread"] = .string(thread) }
        if let category = source?.category { object["category"] = .string(category) }
        return object.members.isEmpty ? nil : .object(object)
    }

    /// Checks the values for the receiving app. Throws `invalid_data` for the name `hato`, which is ours, and for an
    /// empty name.
    public static func check(data: [String: String]) throws(ArgumentError) {
        guard data[""] == nil else {
            throw ArgumentError(reason: "invalid_data", "A name of data is empty; give it one, e.g. {\"chat\": \"c1\"}")
        }
        guard data[name] == nil else {
            throw ArgumentError(
                reason: "invalid_data", "data.hato cannot be sent: the notifier keeps this name for its own member")
        }
    }
}
