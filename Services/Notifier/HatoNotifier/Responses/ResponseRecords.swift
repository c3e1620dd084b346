import HatoModel
import HatoStorage

/// The action of a notification that a user has chosen: the first one that was reported.
struct ResponseRecord: FieldObject, Hashable {
    var action: String
    /// What the user wrote.
    var text: String?
    /// The quick reply that stands for the text.
    var quickReply: Int?
    /// Nil when the report was made with an ID token of a session without a device.
    var device: String?
    var at: Int64
    var effect: Notifier.EffectState
    var reason: String?

    static let fields = Fields<Self>(
        blank: Self(action: "", at: 0, effect: .none),
        .required("action", \.action),
        .optional("text", \.text),
        .optional("quickReply", \.quickReply),
        .optional("device", \.device),
        .required("at", \.at),
        .required("effect", \.effect),
        .optional("reason", \.reason))

    static func prefix(_ notification: String) -> RecordKey { RecordKey(.response).with(notification) }
    static func key(_ notification: String, _ uid: String) -> RecordKey {
        prefix(notification).with(uid).with(nil as String?)
    }
}

/// What a device reported of a notification, each once: when.
struct ReportRecord: FieldObject, Hashable {
    var displayed: Int64?
    var opened: Int64?
    var dismissed: Int64?

    static let fields = Fields<Self>(
        blank: Self(),
        .optional("displayed", \.displayed),
        .optional("opened", \.opened),
        .optional("dismissed", \.dismissed))

    /// Beside the response. All devices that are not known count as one.
    static func key(_ notification: String, _ uid: String, device: String?) -> RecordKey {
        ResponseRecord.prefix(notification).with(uid).with(.some(device ?? ""))
    }

    /// Returns whether it is the first such report.
    mutating func add(_ report: Notifier.Respond.Report, at now: Int64) -> Bool {
        let place: WritableKeyPath<Self, Int64?> =
            switch report {
            case .displayed: \.displayed
            case .opened: \.opened
            case .dismissed: \.dismissed
            }
        guard self[keyPath: place] == nil else { return false }
        self[keyPath: place] = now
        return true
    }
}

/// An effect that is not done yet, with all that it needs, whatever becomes of its notification and category.
struct EffectRecord: FieldObject, Hashable {
    var notification: String
    var uid: String
    var action: String
    var device: String?
    /// Of the device, for quick replies.
    var locale: String?
    var quickReply: Int?
    var kind: EffectKind
    var database: String?
    var path: TreePath
    /// With its places.
    var value: JSONValue
    /// What fills them, by name; the user's name is looked up.
    var fills: [String: String]
    var respondedAt: Int64
    var attempts = 0
    var dueAt: Int64
    /// Of a webhook, whose `value` is the URL: the category of the action.
    var category: String?

    static let fields = Fields<Self>(
        blank: Self(
            notification: "", uid: "", action: "", kind: .set, path: .root, value: .null, fills: [:], respondedAt: 0,
            dueAt: 0),
        .required("notification", \.notification),
        .required("uid", \.uid),
        .required("action", \.action),
        .optional("device", \.device),
        .optional("locale", \.locale),
        .optional("quickReply", \.quickReply),
        .required("kind", \.kind),
        .optional("database", \.database),
        .required("path", \.path),
        .required("value", \.value),
        .required("fills", \.fills),
        .required("respondedAt", \.respondedAt),
        .required("attempts", \.attempts),
        .required("dueAt", \.dueAt),
        .optional("category", \.category))

    static func prefix(ofUser uid: String) -> RecordKey { RecordKey(.effect).with(uid) }
    static func key(_ notification: String, _ uid: String) -> RecordKey { prefix(ofUser: uid).with(notification) }
    var key: RecordKey { Self.key(notification, uid) }
    /// Its tail is that of `key`.
    var dueKey: RecordKey { RecordKey(.effectDue).with(time: dueAt).with(key.tail) }
    static let dueTimeBytes = 8
}

extension ResponseRecord {
    /// Forgets what users reported of a notification that goes, a page of it. Returns whether that was all.
    static func forgetAll(of notification: String, limit: Int, in draft: inout OutboxDraft) throws -> Bool {
        let keys = try draft.transaction.keys(prefix(notification), limit: limit)
        for key in keys { draft.writes.delete(key) }
        return keys.count < limit
    }
}
