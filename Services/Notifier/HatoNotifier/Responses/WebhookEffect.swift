import HatoFetch
import HatoModel
import HatoPush
import HatoStorage

/// An effect that calls a URL of the administrator's.
struct WebhookEffect: Sendable, Hashable {
    /// In its normal spelling.
    let url: String

    /// Nil for another effect. Throws `RPCError` for one that does several things, or whose URL is none.
    init?(_ effect: Notifier.ActionEffect, at parameter: String) throws(RPCError) {
        guard let url = effect.webhook else { return nil }
        guard !effect.writesToTree, effect.needsKeys else { throw .notOneEffect(parameter) }
        do { self.url = try StrictURL(url).text } catch {
            throw .invalidArgument("\(parameter).webhook", reason: error.reason, error.message)
        }
    }

    /// The normal spelling of a URL; a text that is none stays as it is.
    static func normalised(_ url: String) -> String { (try? StrictURL(url).text) ?? url }

    /// What a report says of the response and its notification.
    static func places(of notification: NotificationRecord) -> [PlaceText.Place] {
        [.text, .thread] + notification.data.keys.map { .data($0) }
    }
}

/// What was chosen, in the notification that reports it.
struct ChoiceRecord: FieldObject, Hashable {
    var notification: String
    var device: String?
    var category: String?
    var action: String
    var text: String?
    var thread: String?
    var at: Int64

    static let fields = Fields<Self>(
        blank: Self(notification: "", action: "", at: 0),
        .required("notification", \.notification),
        .optional("device", \.device),
        .optional("category", \.category),
        .required("action", \.action),
        .optional("text", \.text),
        .optional("thread", \.thread),
        .required("at", \.at))

    var content: DeliveryContent.Choice {
        var content = DeliveryContent.Choice(notification: notification, action: action, at: at)
        (content.device, content.category, content.text, content.thread) = (device, category, text, thread)
        return content
    }
}

/// The webhook of an effect: a notification of its own, with one delivery to the receiver. It counts as one of the user
/// that chose the action, so that no user fills the outbox, or the slots at the receiver, for others.
struct ActionReport: Sendable, Hashable {
    private let id: String
    private let uid: String
    private let url: String
    private let choice: ChoiceRecord
    private let data: [String: String]

    /// `effect` is one of the kind `webhook`. The id is made of its notification, user and action: receivers recognise
    /// a repetition by it.
    init(_ effect: EffectRecord, with fills: [String: String], _ key: ReplyKey) {
        (id, uid, url) = (key.reportID(of: effect), effect.uid, effect.value.string ?? "")
        var choice = ChoiceRecord(notification: effect.notification, action: effect.action, at: effect.respondedAt)
        (choice.device, choice.category) = (effect.device, effect.category)
        (choice.text, choice.thread) = (fills[PlaceText.Place.text.name], fills[PlaceText.Place.thread.name])
        self.choice = choice
        var data: [String: String] = [:]
        for (name, value) in fills {
            if case .data(let field)? = PlaceText.Place(name) { data[field] = value }
        }
        self.data = data
    }

    /// Accepts its delivery. Throws `EffectRefusal` when there is no receiver that gets deliveries.
    func accept(for timeToLive: Duration, in draft: inout OutboxDraft) throws {
        guard let receiver = try draft.transaction.device(at: DeviceRecord.receiverKey(url)) else {
            throw EffectRefusal(reason: "webhook_removed")
        }
        guard receiver.state == .active else { throw EffectRefusal(reason: "webhook_disabled") }
        var notification = NotificationRecord(
            id: id, createdAt: draft.now, expiresAt: draft.now + timeToLive.milliseconds, text: .init(), data: data,
            recipients: 1)
        notification.choice = choice
        notification.begin(in: &draft)
        // A lane of its own: one that the receiver does not take delays no other.
        try draft.enqueue(
            DeliveryRecord(
                notification: id, index: 0, device: receiver.device, uid: uid,
                collapseKey: Self.collapseKey(of: uid) + id, sequenceVersion: 0, sequenceIndex: 0,
                createdAt: draft.now,
                machine: DeliveryStateMachine(dueAt: draft.now, expiresAt: notification.expiresAt, isKept: true)))
    }

    /// How the collapse keys of a user's reports begin: their lanes at a receiver lie side by side.
    private static func collapseKey(of uid: String) -> String {
        let digest = String(UserDigest(uid: uid).value, radix: 16)
        return "\(SilentPushes.reserved)\(String(repeating: "0", count: 16 - digest.count))\(digest)"
    }

    /// How many reports of a user wait at the receiver of a URL; those beyond `limit` are not counted.
    static func waiting(of uid: String, at url: String, upTo limit: Int, in rows: some StoreReading) throws -> Int {
        guard let receiver = try rows.device(at: DeviceRecord.receiverKey(url)) else { return 0 }
        let lane = Lane(device: receiver.device, collapseKey: collapseKey(of: uid)).prefix
        // Without the end of the text.
        return try rows.keys(RecordKey(bytes: lane.bytes.dropLast(2)), limit: limit).count
    }
}

extension DeliveryRecord {
    /// The same, where it is a report whose receiver is gone, or takes nothing: to the receiver that its action has
    /// now. Nil without such a receiver.
    func atReceiverOfAction(in rows: some StoreReading) throws -> DeliveryRecord? {
        let notification = try rows.readable(NotificationRecord.self, NotificationRecord.key(notification))
        guard let choice = notification?.choice, let id = choice.category,
            let url = try rows.category(id)?.category.effect(of: choice.action)?.webhook,
            let receiver = try rows.device(at: DeviceRecord.receiverKey(url)), receiver.state == .active
        else { return nil }
        var delivery = self
        delivery.device = receiver.device
        return delivery
    }
}

extension Notifier.Category {
    /// The effect of an action: of one that stands for a quick reply, that of the action that takes the text.
    fileprivate func effect(of id: String) -> Notifier.ActionEffect? {
        guard let action = actions.first(where: { $0.id == id }), action.quickReply != nil else {
            return actions.first { $0.id == id }?.effect
        }
        return actions.first { $0.input != nil }?.effect
    }
}
