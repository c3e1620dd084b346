import HatoModel
import HatoStorage

/// What a change of a feed means for threads, besides what it fires.
enum ThreadChange: Sendable, Hashable {
    /// The tree says the count of a thread.
    case counted(UserThread, Int)
    /// A node is gone that may have fired a trigger.
    case deleted(path: String, trigger: String)
    /// A count that the change does not hold, since its commit was too big.
    case unknown

    /// Such a change, and how many changes that fire a trigger came before it with the same transaction.
    struct Placed: Sendable {
        var change: ThreadChange
        var index: UInt32
    }
}

/// The pattern of a badge source.
struct BadgePattern: Sendable {
    /// As changes name it.
    let text: String
    private let limits: NotifierLimits

    /// Throws `RPCError` that names the parameter.
    init?(_ source: Notifier.BadgeSource?, _ limits: NotifierLimits) throws(RPCError) {
        guard let source else { return nil }
        let names = source.pattern.parameterNames
        for name in ["thread", "uid"] where !names.contains(name) {
            throw .invalidArgument(
                "badge.pattern", reason: "invalid_pattern",
                "badge.pattern has {thread} and {uid}, e.g. /chats/{thread}/unread/{uid}; {\(name)} is missing")
        }
        text = source.pattern.description
        self.limits = limits
    }

    /// What a change says of a count; nil when it says nothing.
    func change(for change: FeedChange) -> ThreadChange? {
        guard change.pattern == text, let thread = change.parameters["thread"], let uid = change.parameters["uid"],
            uid.utf8.count <= limits.uidBytesMax
        else { return nil }
        // As the thread of a notification is made of the same key.
        let place = UserThread(uid: uid, thread: thread.cut(toBytes: limits.keyBytesMax))
        let value = change.after?[".value"] ?? change.after
        if change.isTruncated, change.type != .deleted, value?.number == nil { return .unknown }
        let number = change.type == .deleted ? 0 : value?.number ?? 0
        // A number is a double: not a number, negative, with a fraction, or larger than any count.
        return .counted(place, number > 0 ? Int(min(number, Double(BadgeRecord.shownMax))) : 0)
    }
}

extension CompiledTrigger {
    /// Throws `RPCError` for an empty list, which is a mistake.
    static func check(_ events: [Notifier.WithdrawEvent]?) throws(RPCError) {
        guard events?.isEmpty == true else { return }
        throw .invalidArgument("withdrawOn", reason: "invalid_trigger", "withdrawOn is [\"deleted\"], or absent")
    }

    /// What a change means for threads.
    func threadChanges(for change: FeedChange) -> [ThreadChange] {
        guard !change.isMany else { return [] }
        var changes = [badge?.change(for: change)].compactMap(\.self)
        if change.type == .deleted, isWithdrawable, change.pattern == patternText {
            changes.append(.deleted(path: change.path, trigger: trigger.id))
        }
        return changes
    }

    /// The patterns that are followed besides its own.
    var badgePatterns: [FeedPattern] { [trigger.badge?.pattern].compactMap(\.self) }

    /// Whether its notifications are withdrawn when the node that fired it is deleted.
    var isWithdrawable: Bool { trigger.withdrawOn?.contains(.deleted) == true }
}

extension FeedTrigger {
    func threadChanges(for change: FeedChange, of commit: FeedCommit) -> [ThreadChange] {
        commit.epoch != record.epoch || commit.version > record.startsAfter ? compiled.threadChanges(for: change) : []
    }
}

extension OutboxDraft {
    /// Applies a change of a database that came with this transaction.
    ///
    /// - Parameter isBehind: whether changes wait that may still fire triggers.
    mutating func apply(_ placed: ThreadChange.Placed, isBehind: Bool) throws {
        switch placed.change {
        case .unknown: break
        case .counted(let place, let count): try setCount(count, of: place)
        case .deleted(let path, let trigger):
            let key = OriginRecord.key(trigger, path)
            var origin = try threads.origin(key, transaction) ?? OriginRecord.fields.blank
            guard isBehind || !origin.notifications.isEmpty else { return }
            for id in origin.notifications { try beginWithdrawal(of: id) }
            origin.deleted = ChangePosition(sequence: transaction.nextVersion, index: placed.index)
            threads.put(origin, at: key, &writes)
            // Where no notification comes, none is forgotten.
            let name = key.tail.map { String($0, radix: 36) }.joined(separator: ".")
            if origin.notifications.isEmpty {
                writes.put(RecordKey(.purge).with(time: now).with(name), bytes: key.bytes)
            }
        }
    }

    /// Sets the count of a thread, or of all threads of a user to 0. Where it falls, the user's devices get the badge;
    /// at 0, the thread was read.
    mutating func setCount(_ count: Int, of place: UserThread) throws {
        guard try threads.set(count, of: place, transaction, &writes) else { return }
        try threads.begin(
            .thread(uid: place.uid, thread: place.thread),
            WithdrawalRecord(through: transaction.nextVersion, isRead: count == 0), transaction, &writes)
    }

    mutating func readAll(of uid: String) throws {
        guard try threads.clear(uid, transaction, &writes) else { return }
        try threads.begin(
            .thread(uid: uid, thread: nil), WithdrawalRecord(through: transaction.nextVersion, isRead: true),
            transaction, &writes)
    }

    /// Withdraws a notification, unless that was begun before. Returns whether it is there.
    @discardableResult
    mutating func beginWithdrawal(of id: String) throws -> Bool {
        let key = NotificationRecord.key(id)
        guard var notification = try transaction.readable(NotificationRecord.self, key),
            notification.withdrawal == nil
        else { return false }
        guard notification.withdrawnAt == nil else { return true }
        notification.withdrawnAt = now
        writes.put(key, notification)
        try threads.begin(
            .notification(id), WithdrawalRecord(through: transaction.nextVersion), transaction, &writes)
        return true
    }
}
