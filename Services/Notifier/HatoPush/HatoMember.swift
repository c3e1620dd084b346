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
        return object.members.isEmpty ? nil : .object(object)
    }

    /// Checks the values for the receiving app. Throws `invalid_data` for the name `hato`, which is ours.
    public static func check(data: [String: String]) throws(ArgumentError) {
        guard data[name] == nil else {
            throw ArgumentError(
                reason: "invalid_data", "data.hato cannot be sent: the notifier keeps this name for its own member")
        }
    }
}
