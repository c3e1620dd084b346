import Crypto
import HatoModel

/// A thread of a user: what is counted, read and withdrawn together.
struct UserThread: Hashable, Sendable {
    var uid: String
    var thread: String
}

/// A user's badge: the sum, so that no push reads all counts.
struct BadgeRecord: FieldObject, Hashable {
    var total: Int
    /// How many threads have a count.
    var threads: Int

    static let fields = Fields<Self>(
        blank: Self(total: 0, threads: 0), .required("total", \.total), .required("threads", \.threads))

    /// What a push carries at most.
    static let shownMax = 99_999

    /// As a push carries it.
    var shown: Int { min(max(0, total), Self.shownMax) }

    static func key(_ uid: String) -> RecordKey { RecordKey(.badge).with(uid).with(0 as UInt32) }
}

/// How many notifications of a thread a user has not read; a row for each count that is not 0.
struct ThreadRecord: FieldObject, Hashable {
    var count: Int
    /// The commit that changed it last.
    var changed: UInt64

    static let fields = Fields<Self>(
        blank: Self(count: 0, changed: 0), .required("count", \.count), .required("changed", \.changed))

    static func prefix(_ uid: String) -> RecordKey { RecordKey(.badge).with(uid).with(1 as UInt32) }
    static func key(_ place: UserThread) -> RecordKey { prefix(place.uid).with(place.thread) }

    /// The thread of such a row.
    static func thread(_ key: RecordKey) -> String? {
        var reader = RecordKeyReader(key.bytes)
        guard reader.text() != nil, reader.shortNumber() != nil else { return nil }
        return reader.text()
    }

    /// As it counts: a row is whatever a disk makes of it.
    var shown: Int { min(max(0, count), BadgeRecord.shownMax) }
}

/// A notification with a thread that a user has not read, as far as is known, and that was not withdrawn.
struct ShownRecord: FieldObject, Hashable {
    /// The numbers of the user's deliveries.
    var deliveries: [UInt32]
    /// Whether it counts for the badge.
    var isCounted: Bool
    /// The commit that accepted it.
    var accepted: UInt64

    static let fields = Fields<Self>(
        blank: Self(deliveries: [], isCounted: false, accepted: 0),
        .required("deliveries", \.deliveries),
        .flag("isCounted", \.isCounted),
        .required("accepted", \.accepted))

    static func prefix(_ uid: String) -> RecordKey { RecordKey(.shown).with(uid) }
    static func prefix(_ place: UserThread) -> RecordKey { prefix(place.uid).with(place.thread) }
    static func key(_ place: UserThread, _ notification: String) -> RecordKey { prefix(place).with(notification) }

    /// The thread and the notification of such a row.
    static func names(_ key: RecordKey) -> (thread: String, notification: String)? {
        var reader = RecordKeyReader(key.bytes)
        guard reader.text() != nil, let thread = reader.text(), let notification = reader.text() else { return nil }
        return (thread, notification)
    }
}

/// What a trigger made for a path, so that it is withdrawn with it.
struct OriginRecord: FieldObject, Hashable {
    /// The newest last.
    var notifications: [String]
    /// Where the deletion, or the reading of a thread, stands among the changes: notifications of earlier ones may
    /// still be accepted.
    var deleted: ChangePosition?

    /// One node seldom fires a trigger so often within the days that notifications are kept.
    static let notificationsMax = 64

    static let fields = Fields<Self>(
        blank: Self(notifications: []),
        .required("notifications", \.notifications),
        .optional("deleted", \.deleted))

    /// Of the trigger and the path together, which may be long.
    static func key(_ trigger: String, _ path: String) -> RecordKey {
        RecordKey(.origin).with(ArraySlice(Array(SHA256.hash(data: Array("\(trigger)\u{0}\(path)".utf8)))))
    }

    /// Of a thread that a user has read.
    static func key(_ place: UserThread) -> RecordKey { key("\u{1}\(place.uid)", place.thread) }

    /// Whether the deletion, or the reading, came after a change.
    func isDeleted(after position: ChangePosition) -> Bool { deleted.map { position < $0 } ?? false }
}

extension ChangePosition: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(sequence: 0, index: 0), .required("sequence", \.sequence), .required("index", \.index))
}

/// What is being withdrawn, a page at a time: a row goes when all is done.
enum WithdrawalJob: Hashable, Sendable {
    case notification(String)
    /// Nil: all threads of the user.
    case thread(uid: String, thread: String?)

    var key: RecordKey {
        switch self {
        case .notification(let id): RecordKey(.withdrawal).with(0 as UInt32).with(id)
        case .thread(let uid, let thread): Self.userPrefix(uid).with(thread)
        }
    }

    /// The user of a thread; nil: it is that of a notification.
    var uid: String? { if case .thread(let uid, _) = self { uid } else { nil } }

    static func userPrefix(_ uid: String) -> RecordKey { RecordKey(.withdrawal).with(1 as UInt32).with(uid) }

    /// Nil when it is no such row.
    init?(_ key: RecordKey) {
        var reader = RecordKeyReader(key.bytes)
        guard let kind = reader.shortNumber(), let name = reader.text() else { return nil }
        switch kind {
        case 0: self = .notification(name)
        case 1:
            if reader.tail.first == 0 {
                self = .thread(uid: name, thread: nil)
            } else {
                var rest = RecordKeyReader(reader.tail)
                guard let thread = rest.text() else { return nil }
                self = .thread(uid: name, thread: thread)
            }
        default: return nil
        }
    }
}

/// How far a withdrawal is.
struct WithdrawalRecord: FieldObject, Hashable {
    /// Of a notification: the number of the last delivery that was looked at; nil before the first.
    var last: UInt32?
    /// Of a thread: what was accepted later stays.
    var through: UInt64
    /// Of a thread: whether it was read; else its count fell, and only the badge is new.
    var isRead: Bool
    /// Of a thread: whether its count falls by what is withdrawn; else it was set before.
    var lowersCount: Bool
    /// Of a thread: the key of the row that was looked at last, the newest being the first; nil before the first.
    var lastRow: [UInt8]?

    static let fields = Fields<Self>(
        blank: Self(through: 0),
        .optional("last", \.last),
        .required("through", \.through),
        .flag("isRead", \.isRead),
        .flag("lowersCount", \.lowersCount),
        .optional("lastRow", \.lastRow))

    init(through: UInt64, isRead: Bool = false, lowersCount: Bool = false) {
        self.through = through
        self.isRead = isRead
        self.lowersCount = lowersCount
    }
}

/// What a silent push withdraws; its badge is that of the time when it is sent.
struct WithdrawalContent: FieldObject, Hashable {
    /// Of notifications, the newest first.
    var ids: [String]
    /// Threads of which nothing is to be shown any more.
    var threads: [String]
    /// Whether it carries the badge though all counts are 0.
    var hasBadge: Bool

    static let fields = Fields<Self>(
        blank: Self(ids: [], threads: [], hasBadge: false),
        .required("ids", \.ids),
        .required("threads", \.threads),
        .flag("hasBadge", \.hasBadge))

    /// Bytes of its ids and threads as JSON, at most: with them a push of every platform fits into its limit.
    static let bytesMax = 3_000
    /// So many fit into them, without threads.
    static let idsMax = 80

    /// The same with what an earlier one says that was not sent, as far as it fits.
    func adding(_ other: WithdrawalContent) -> WithdrawalContent {
        WithdrawalContent(
            ids: ids + other.ids.filter { !ids.contains($0) },
            threads: threads + other.threads.filter { !threads.contains($0) }, hasBadge: hasBadge || other.hasBadge
        ).bounded
    }

    /// The newest, as far as they fit. Threads come first: one stands for many ids.
    var bounded: WithdrawalContent {
        var room = Self.bytesMax
        func fits(_ text: String) -> Bool {
            // Quotes, a comma, and what a text inside of a text has more.
            let bytes = text.utf8.reduce(6) { $0 + ($1 == 0x22 || $1 == 0x5C ? 4 : 1) }
            guard bytes <= room else { return false }
            room -= bytes
            return true
        }
        let threads = threads.prefix { fits($0) }
        let ids = ids.prefix(Self.idsMax).prefix { fits($0) }
        return WithdrawalContent(ids: Array(ids), threads: Array(threads), hasBadge: hasBadge)
    }
}
