import HatoModel

/// What an effect does to the thread of its notification, in the transaction that takes the response: nothing is left
/// to be done.
enum ThreadEffect: Sendable, Hashable {
    case read
    case mute(Notifier.MuteDuration)

    /// Nil for an effect that writes to the tree or calls a URL. Throws `RPCError` for one that does several things.
    init?(_ effect: Notifier.ActionEffect, at parameter: String) throws(RPCError) {
        switch (effect.read, effect.mute) {
        case (nil, nil): return nil
        case (true?, nil): self = .read
        case (nil, let duration?): self = .mute(duration)
        default: throw .notOneEffect(parameter)
        }
        guard !effect.writesToTree, effect.webhook == nil else { throw .notOneEffect(parameter) }
    }

    /// Throws `ArgumentError` when the notification has no thread, or when its user mutes as many as may be.
    func apply(
        to notification: NotificationRecord, by responder: Responder, mutesMax: Int, in draft: inout OutboxDraft
    ) throws {
        guard let thread = notification.options?.thread else {
            throw ArgumentError(reason: "no_thread", "The notification has no thread")
        }
        switch self {
        case .read: try ThreadSteps.setCount(0, of: UserThread(uid: responder.uid, thread: thread), in: &draft)
        case .mute(let duration):
            let rows = PreferenceRows(uid: responder.uid, mutesMax: mutesMax, isOfAccount: responder.isOfAccount)
            do { try rows.mute(thread, until: duration.end(from: draft.now), in: &draft) } catch is NotifierError {
                throw ArgumentError(reason: "too_many_mutes", "A user mutes at most \(mutesMax) threads")
            }
        }
    }
}

extension Notifier.ActionEffect {
    /// Whether it needs the keys of the notifier.
    var needsKeys: Bool { read == nil && mute == nil }
    var writesToTree: Bool { push != nil || set != nil || update != nil }
}

extension Notifier.MuteDuration {
    /// In milliseconds since 1970; nil: never.
    fileprivate func end(from now: Int64) -> Int64? {
        switch self {
        case .forever: nil
        case .seconds(let seconds): now + Int64(seconds) * 1_000
        }
    }
}

extension RPCError {
    static func notOneEffect(_ parameter: String) -> RPCError {
        .invalidArgument(
            parameter, reason: "invalid_effect",
            "An effect has exactly one of push, set, update, read: true, mute and webhook, e.g. {\"mute\": 28800}")
    }
}
