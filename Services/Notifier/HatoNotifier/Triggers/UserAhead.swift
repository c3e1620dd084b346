import HatoModel
import HatoStorage

/// The next user with a device behind a key, in the order of the tree's keys: keys before it are of no recipients.
struct UserAhead: Sendable, Hashable {
    enum User: Sendable, Hashable {
        case uid(String)
        /// No user comes behind the key.
        case none
        /// Not to be found in a few steps.
        case unknown
    }

    var user: User
    /// Devices that were passed among the keys before, of whichever users.
    var passed: Int
}

extension StoreReading {
    /// Rows that are passed to find what is wanted; then it is searched for.
    private static var stepsMax: Int { 16 }
    /// Devices that are found before they are visited.
    private static var foundMax: Int { 512 }

    /// Between a text of bytes below this and any other, the order of rows is that of the tree's keys; it differs
    /// between characters that begin with these bytes (`UTF16Order`).
    private static var plainEnd: UInt8 { 0xEE }

    /// The next user behind a key.
    func userAhead(of key: String?, passed: Int) throws -> UserAhead {
        var ahead = UserAhead(user: .unknown, passed: passed)
        // Users that are numbers come first among the tree's keys, and were before.
        guard let key, KeyOrder.integer(key) == nil else { return ahead }
        let table = RecordKey(.deviceOfUser)
        let plain = key.utf8.prefix { $0 < Self.plainEnd }
        let isPlain = plain.count == key.utf8.count
        let lower = isPlain ? table.with(key).end : table.bytes + plain + [Self.plainEnd]
        var steps = 0
        ahead.user = .none
        try scan(KeyRange(lower: lower ?? table.bytes, upper: table.end), reverse: false) { row, _ in
            var reader = RecordKeyReader(row.copied)
            let uid = reader.text()
            steps += 1
            ahead.user = .unknown
            guard let uid, steps < Self.stepsMax, uid.utf8.allSatisfy({ $0 < Self.plainEnd }) else { return .stop }
            ahead.user = .none
            if TreeKey.problem(uid) != nil || KeyOrder.integer(uid) != nil { return .next }
            ahead.user = .uid(uid)
            return .stop
        }
        return ahead
    }

    /// Visits the devices of users, in the order of rows. Returns how many rows were passed on the way: where few
    /// devices of others lie between two users, these are passed; where many do, the second one is searched for.
    func forEachDevice(
        of uids: some Sequence<String>, _ visit: (_ uid: String, _ device: RecordKey) throws -> Void
    ) throws -> Int {
        let wanted = uids.lazy.filter { !$0.isEmpty }.map { (key: RecordKey(.deviceOfUser).with($0).bytes, uid: $0) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        let end = RecordKey(.deviceOfUser).end
        var (index, passed) = (0, 0)
        var start = wanted.first?.key
        while let lower = start {
            start = nil
            var (found, steps): ([(uid: String, row: RecordKey)], Int) = ([], 0)
            try scan(KeyRange(lower: lower, upper: end), reverse: false) { row, _ in
                let key = row.copied
                while index < wanted.count, !key.starts(with: wanted[index].key),
                    wanted[index].key.lexicographicallyPrecedes(key)
                { index += 1 }
                guard index < wanted.count else { return .stop }
                passed += 1
                if key.starts(with: wanted[index].key) {
                    found.append((wanted[index].uid, RecordKey(bytes: key)))
                    steps = 0
                    guard found.count == Self.foundMax else { return .next }
                    start = key + [0]
                } else {
                    steps += 1
                    guard steps == Self.stepsMax else { return .next }
                    start = wanted[index].key
                }
                return .stop
            }
            for (uid, row) in found {
                var reader = RecordKeyReader(row.bytes)
                guard reader.text() != nil, let device = reader.text() else { throw UnreadableRecord(key: row.bytes) }
                try visit(uid, DeviceRecord.key(device))
            }
        }
        return passed
    }
}
