import HatoModel
import HatoRules
import HatoTree

/// That somebody may read something: shared by all listeners of one caller to one topic. Lives on the publisher's
/// thread.
final class ReadRight {
    struct Key: Hashable {
        var topic: TopicKey
        var caller: Caller
    }

    let id: UInt64
    let key: Key
    fileprivate(set) var reads = RulesReadSet()
    /// Who lives by it.
    var listeners: [UInt64: Listener] = [:]

    init(id: UInt64, key: Key) {
        self.id = id
        self.key = key
    }

    /// Whether it may end by time alone.
    var isTimed: Bool { reads.readsTime }
}

/// All rights to read that listeners have, and what they rest on.
///
/// The rules are asked when a right begins. After that only a commit that touches what they looked at, other rules, or
/// the clock, if they looked at it, makes it doubtful: finding those costs by depth and by what is found.
struct ReadRights {
    private var rights: [UInt64: ReadRight] = [:]
    private var ids: [ReadRight.Key: UInt64] = [:]
    private var tries: [DatabaseID: ReadTrie<UInt64>] = [:]
    private var timed: Set<UInt64> = []

    subscript(id: UInt64) -> ReadRight? { rights[id] }

    subscript(key: ReadRight.Key) -> ReadRight? { ids[key].flatMap { rights[$0] } }

    mutating func add(_ right: ReadRight) {
        rights[right.id] = right
        ids[right.key] = right.id
    }

    /// Notes what a right rests on now.
    mutating func set(_ reads: RulesReadSet, of right: ReadRight) {
        let database = right.key.topic.database
        var trie = tries.removeValue(forKey: database) ?? ReadTrie()
        trie.remove(right.id, right.reads)
        trie.insert(right.id, reads)
        tries[database] = trie
        right.reads = reads
        if right.isTimed { timed.insert(right.id) } else { timed.remove(right.id) }
    }

    mutating func remove(_ right: ReadRight) {
        let database = right.key.topic.database
        rights[right.id] = nil
        ids[right.key] = nil
        timed.remove(right.id)
        tries[database]?.remove(right.id, right.reads)
    }

    func touched(by changes: [PathChange], in database: DatabaseID) -> Set<UInt64> {
        tries[database]?.touched(by: changes) ?? []
    }

    /// Those that rest on the rules of a database.
    func all(of database: DatabaseID) -> [UInt64] {
        rights.values.filter { $0.key.topic.database == database }.map(\.id)
    }

    /// Those that may end by time alone, in order.
    var allTimed: [UInt64] { timed.sorted() }
}
