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
        guard badge != nil || isWithdrawable, !change.isMany else { return [] }
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
