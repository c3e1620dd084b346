import HatoModel
import HatoStorage
import Synchronization

/// A device of a recipient of a trigger.
struct Recipient: Sendable, Hashable {
    var uid: String
    var device: String
    /// The name of the provider queue of the device; nil without one.
    var queue: String?
    var platform: Notifier.Platform
    /// Whether its user looks at what the notification is about: nothing of it is shown.
    var isPresent = false

    init(_ device: DeviceRecord) {
        (uid, self.device, queue) = (device.uid, device.device, device.queue?.name)
        platform = device.platform
    }

    /// Its place among recipients: those of one user stand together, and each token without a user before all users.
    /// No uid has a control character.
    var order: String { uid.isEmpty ? "\u{1}\(device)" : uid }

    /// Whether it is a mailbox.
    var isMailbox: Bool { queue?.hasPrefix(ProviderQueue.mailPrefix) == true }

    /// What it takes in memory.
    var bytes: Int { 160 + uid.utf8.count + device.utf8.count + (queue?.utf8.count ?? 0) }
}

/// Some of the devices that a firing of a trigger goes to: those of whole users, in the order of uids.
struct RecipientPart: Sendable, Hashable {
    var recipients: [Recipient]
    /// Devices of all parts.
    var total: Int
    /// Devices that no part has, because there are more than one notification may go to.
    var leftOut: Int
    /// No further part comes.
    var isLast: Bool
}

/// The active devices of a trigger's recipients, in the order of uids, so that a place among them is known by a uid
/// though users come and go.
struct RecipientList: Sendable {
    private var recipients: [Recipient] = []
    private var leftOut = 0

    /// How many devices are in it.
    var count: Int { recipients.count }

    /// Adds the devices of users, which are looked up; those that cannot be read are left out, and what does not fit
    /// into `bounds` is counted only. `sort` comes after the last of them. Returns how many devices were passed, of
    /// these users and of others between them.
    @discardableResult
    mutating func add(_ uids: some Sequence<String>, in snapshot: some StoreReading, _ bounds: Bounds) throws -> Int {
        try snapshot.forEachDevice(of: uids) { uid, key in
            guard let device = try snapshot.readable(DeviceRecord.self, key), device.state == .active else { return }
            add(Recipient(device), bounds)
        }
    }

    /// Adds a device, which is counted only when it does not fit into `bounds`. `sort` comes after the last one.
    mutating func add(_ recipient: Recipient, _ bounds: Bounds) {
        if recipients.count < bounds.countMax, bytes + recipient.bytes <= bounds.bytesMax {
            recipients.append(recipient)
            bytes += recipient.bytes
        } else {
            leftOut += 1
        }
    }

    /// Brings the recipients into the order of uids, each device once.
    mutating func sort() {
        recipients.sort { ($0.order, $0.device) < ($1.order, $1.device) }
        var last: String?
        recipients.removeAll { recipient in
            defer { last = recipient.device }
            guard recipient.device == last else { return false }
            bytes -= recipient.bytes
            return true
        }
    }

    /// The users in it, in the order in which they came.
    var uids: [String] {
        var seen: Set<String> = []
        return recipients.map(\.uid).filter { seen.insert($0).inserted }
    }

    /// Marks users that are there; returns how many of them are in it.
    mutating func mark(present uids: Set<String>) -> Int {
        guard !uids.isEmpty else { return 0 }
        var marked: Set<String> = []
        for index in recipients.indices where uids.contains(recipients[index].uid) {
            recipients[index].isPresent = true
            marked.insert(recipients[index].uid)
        }
        return marked.count
    }

    struct Bounds: Sendable {
        var countMax: Int
        var bytesMax: Int
    }

    init() {}

    /// What it takes in memory.
    private(set) var bytes = 128

    /// The devices of the users behind `uid`, without those of the author: `count` of them, or a few more so that no
    /// user is parted.
    func part(after uid: String?, without author: String?, count: Int) -> RecipientPart {
        let all = recipients.count { $0.uid != author }
        var index = uid.map { uid in recipients.firstIndex { $0.order > uid } ?? recipients.count } ?? 0
        var part: [Recipient] = []
        while index < recipients.count {
            let recipient = recipients[index]
            if recipient.uid != author {
                if part.count >= count, recipient.order != part.last?.order { break }
                part.append(recipient)
            }
            index += 1
        }
        return RecipientPart(recipients: part, total: all, leftOut: leftOut, isLast: index == recipients.count)
    }

    /// Whether a user of the part is in this list.
    func hasUsers(of part: RecipientPart) -> Bool {
        part.recipients.contains { recipient in
            var (low, high) = (0, recipients.count)
            while low < high {
                let middle = (low + high) / 2
                if recipients[middle].order < recipient.order { low = middle + 1 } else { high = middle }
            }
            return low < recipients.count && recipients[low].order == recipient.order
        }
    }
}

/// Lists of recipients that were read, for the firings that need the same: those used last, of all databases, up to a
/// number of bytes.
final class RecipientLists: Sendable {
    enum Source: Hashable, Sendable {
        /// The keys of a node.
        case keys(of: TreePath)
        /// Those that a trigger names.
        case named(by: String)
        case user(String)
        /// Those of several kinds, and tokens.
        case query(RecipientQuery)

        /// What must be read of messages for it; nil: nothing.
        var need: FeedReadings.Need? {
            switch self {
            case .keys(let path): .recipients(path)
            case .query(let query): .query(query)
            case .named, .user: nil
            }
        }
    }

    struct Key: Hashable, Sendable {
        var database: DatabaseName
        var source: Source

        /// What it takes in memory, in the table and beside it.
        fileprivate var bytes: Int {
            let name =
                switch source {
                case .keys(let path): path.text
                case .named(let trigger): trigger
                case .user(let uid): uid
                case .query: ""
                }
            if case .query(let query) = source { return 256 + database.rawValue.utf8.count + 2 * query.bytes }
            return 256 + database.rawValue.utf8.count + 2 * name.utf8.count
        }
    }

    private struct Entry {
        var list: RecipientList
        var bytes: Int
        var time: UInt64
        var use: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var bytes = 0
        var uses: UInt64 = 0
    }

    let bytesMax: Int
    private let state = Mutex(State())

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var bytes: Int { state.withLock { $0.bytes } }

    /// A list of which the reading began after a version of the store: what was so when a change came is in it.
    func list(_ key: Key, after time: UInt64) -> RecipientList? {
        state.withLock { state in
            guard let entry = state.entries[key], entry.time > time else { return nil }
            state.uses += 1
            state.entries[key]?.use = state.uses
            return entry.list
        }
    }

    /// Keeps a list whose reading began at a version of the store.
    func keep(_ list: RecipientList, _ key: Key, readAt time: UInt64) {
        let bytes = list.bytes + key.bytes
        state.withLock { state in
            state.uses += 1
            state.bytes += bytes - (state.entries[key]?.bytes ?? 0)
            state.entries[key] = Entry(list: list, bytes: bytes, time: time, use: state.uses)
            guard state.bytes > bytesMax else { return }
            // Half of them go, so that sorting is rare.
            for (key, entry) in state.entries.sorted(by: { $0.value.use < $1.value.use }) {
                state.entries[key] = nil
                state.bytes -= entry.bytes
                if state.bytes <= bytesMax / 2 { break }
            }
        }
    }
}
