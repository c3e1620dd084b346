import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

/// That a caller may read something: shared by all listeners of one caller to one topic. Lives on the publisher's
/// thread.
final class ReadRight {
    struct Key: Hashable {
        var topic: TopicKey
        var caller: Caller
    }

    let id: UInt64
    let key: Key
    fileprivate(set) var reads = RulesReadSet()
    /// What it takes in memory, without the claims of its caller.
    fileprivate(set) var byteCount = ListenerCost.right
    /// The listeners that it allows.
    var listeners: [UInt64: Listener] = [:]
    /// The newest version that may have ended it, until there is a verdict; nil: it stood at the last verdict, and
    /// nothing has touched what it rests on since.
    var doubtedThrough: UInt64?

    /// What a connection waits for until there is a verdict.
    var works: [RPCIdentityWork] = []

    init(id: UInt64, key: Key) {
        self.id = id
        self.key = key
    }

    /// Whether it may end by time alone.
    var isTimed: Bool { reads.readsTime }
    var isInDoubt: Bool { doubtedThrough != nil }
    var inOrder: [Listener] { listeners.values.sorted { $0.id < $1.id } }
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
    /// How many rights each caller has.
    private var callers: [Caller: Int] = [:]
    /// What all of them take in memory, with the claims of their callers.
    private(set) var byteCount = 0

    subscript(id: UInt64) -> ReadRight? { rights[id] }

    subscript(key: ReadRight.Key) -> ReadRight? { ids[key].flatMap { rights[$0] } }

    /// The caller as other rights of it have it, so that its claims are kept once.
    func shared(_ caller: Caller) -> Caller { callers.index(forKey: caller).map { callers[$0].key } ?? caller }

    mutating func add(_ right: ReadRight) {
        guard rights.updateValue(right, forKey: right.id) == nil else { return }
        byteCount += right.byteCount
        if callers[right.key.caller] == nil { byteCount += ListenerCost.bytes(of: right.key.caller) }
        callers[right.key.caller, default: 0] += 1
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
        byteCount -= right.byteCount
        right.byteCount = ListenerCost.right + ListenerCost.bytes(of: reads)
        byteCount += right.byteCount
        if right.isTimed { timed.insert(right.id) } else { timed.remove(right.id) }
    }

    mutating func remove(_ right: ReadRight) {
        guard rights.removeValue(forKey: right.id) != nil else { return }
        let (database, caller) = (right.key.topic.database, right.key.caller)
        byteCount -= right.byteCount
        let others = callers[caller, default: 1] - 1
        callers[caller] = others > 0 ? others : nil
        if others == 0 { byteCount -= ListenerCost.bytes(of: caller) }
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

/// Which rights the commits of one group have made unsure, and which of them first.
struct RightDoubts {
    /// By right: the place in the group of the first commit that touched what it rests on.
    private(set) var first: [UInt64: Int] = [:]
    /// By database: the place of the last commit that brought other rules.
    private var lastRules: [DatabaseID: Int] = [:]

    mutating func add(_ ids: some Sequence<UInt64>, at index: Int) {
        for id in ids where first[id] == nil { first[id] = index }
    }

    mutating func noteRules(of database: DatabaseID, at index: Int) { lastRules[database] = index }

    /// Those that may have been lost in between although they stand after the group.
    ///
    /// - Parameter rights: with the verdicts after the group. Where no later commit touched what a right rests on
    ///   now, the commit that made it unsure left it standing: what it rests on was read as it was then.
    func unsure(in group: CommitGroup, _ rights: ReadRights) -> Set<UInt64> {
        guard let earliest = first.values.min() else { return [] }
        var unsure: Set<UInt64> = []
        for (id, index) in first {
            if let database = rights[id]?.key.topic.database, let last = lastRules[database], last > index {
                unsure.insert(id)
            }
        }
        for (index, commit) in group.commits.enumerated().dropFirst(earliest + 1) {
            guard let note = commit.note as? CommitNote else { continue }
            for id in rights.touched(by: note.changes, in: note.database) {
                if let doubted = first[id], doubted < index { unsure.insert(id) }
            }
        }
        return unsure
    }
}
