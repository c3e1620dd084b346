import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

/// That a caller may read something: shared by all listeners of one caller to one topic. Lives on the publisher's
/// thread.
final class ReadAuthorisation {
    struct Key: Hashable {
        var topic: TopicKey
        var caller: Caller
    }

    let id: UInt64
    let key: Key
    fileprivate(set) var reads = RulesReadSet()
    /// What it takes in memory, without the claims of its caller.
    fileprivate(set) var byteCount = ListenerCost.authorisation
    /// The listeners that it allows.
    var listeners: [UInt64: Listener] = [:]
    /// The newest version that may have ended it, until there is a verdict; nil: it stood at the last verdict, and
    /// nothing has touched what it rests on since.
    var outdatedThrough: UInt64?

    /// What a connection waits for until there is a verdict.
    var works: [RPCIdentityWork] = []

    init(id: UInt64, key: Key) {
        self.id = id
        self.key = key
    }

    /// Whether it may end by time alone.
    var isTimed: Bool { reads.readsTime }
    var isOutdated: Bool { outdatedThrough != nil }
    var inOrder: [Listener] { listeners.values.sorted { $0.id < $1.id } }
}

/// All authorisations to read that listeners have, and what they rest on.
///
/// The rules are asked when an authorisation begins. After that only a commit that touches what they looked at, other
/// rules, or the clock, if they looked at it, makes it doubtful: finding those costs by depth and by what is found.
struct ReadAuthorisations {
    private var authorisations: [UInt64: ReadAuthorisation] = [:]
    private var ids: [ReadAuthorisation.Key: UInt64] = [:]
    private var tries: [DatabaseID: ReadTrie<UInt64>] = [:]
    private var timed: Set<UInt64> = []
    /// How many authorisations each caller has.
    private var callers: [Caller: Int] = [:]
    /// What all of them take in memory, with the claims of their callers.
    private(set) var byteCount = 0

    subscript(id: UInt64) -> ReadAuthorisation? { authorisations[id] }

    subscript(key: ReadAuthorisation.Key) -> ReadAuthorisation? { ids[key].flatMap { authorisations[$0] } }

    /// The caller as other authorisations of it have it, so that its claims are kept once.
    func shared(_ caller: Caller) -> Caller { callers.index(forKey: caller).map { callers[$0].key } ?? caller }

    mutating func add(_ authorisation: ReadAuthorisation) {
        guard authorisations.updateValue(authorisation, forKey: authorisation.id) == nil else { return }
        byteCount += authorisation.byteCount
        if callers[authorisation.key.caller] == nil { byteCount += ListenerCost.bytes(of: authorisation.key.caller) }
        callers[authorisation.key.caller, default: 0] += 1
        ids[authorisation.key] = authorisation.id
    }

    /// Notes what an authorisation rests on now.
    mutating func set(_ reads: RulesReadSet, of authorisation: ReadAuthorisation) {
        let database = authorisation.key.topic.database
        var trie = tries.removeValue(forKey: database) ?? ReadTrie()
        trie.remove(authorisation.id, authorisation.reads)
        trie.insert(authorisation.id, reads)
        tries[database] = trie
        authorisation.reads = reads
        byteCount -= authorisation.byteCount
        authorisation.byteCount = ListenerCost.authorisation + ListenerCost.bytes(of: reads)
        byteCount += authorisation.byteCount
        if authorisation.isTimed { timed.insert(authorisation.id) } else { timed.remove(authorisation.id) }
    }

    mutating func remove(_ authorisation: ReadAuthorisation) {
        guard authorisations.removeValue(forKey: authorisation.id) != nil else { return }
        let (database, caller) = (authorisation.key.topic.database, authorisation.key.caller)
        byteCount -= authorisation.byteCount
        let others = callers[caller, default: 1] - 1
        callers[caller] = others > 0 ? others : nil
        if others == 0 { byteCount -= ListenerCost.bytes(of: caller) }
        ids[authorisation.key] = nil
        timed.remove(authorisation.id)
        tries[database]?.remove(authorisation.id, authorisation.reads)
    }

    func touched(by changes: [PathChange], in database: DatabaseID) -> Set<UInt64> {
        tries[database]?.touched(by: changes) ?? []
    }

    /// Those that rest on the rules of a database.
    func all(of database: DatabaseID) -> [UInt64] {
        authorisations.values.filter { $0.key.topic.database == database }.map(\.id)
    }

    /// Those that may end by time alone, in order.
    var allTimed: [UInt64] { timed.sorted() }
}

/// Which authorisations the commits of one group have made unsure, and which of them first.
struct OutdatedAuthorisations {
    /// By authorisation: the place in the group of the first commit that touched what it rests on.
    private(set) var first: [UInt64: Int] = [:]
    /// By database: the place of the last commit that brought other rules.
    private var lastRules: [DatabaseID: Int] = [:]

    mutating func add(_ ids: some Sequence<UInt64>, at index: Int) {
        for id in ids where first[id] == nil { first[id] = index }
    }

    mutating func noteRules(of database: DatabaseID, at index: Int) { lastRules[database] = index }

    /// Those that may have been lost in between although they stand after the group.
    ///
    /// - Parameter authorisations: with the verdicts after the group. Where no later commit touched what an
    ///   authorisation rests on now, the commit that made it unsure left it standing: what it rests on was read as it
    ///   was then.
    func unsure(in group: CommitGroup, _ authorisations: ReadAuthorisations) -> Set<UInt64> {
        guard let earliest = first.values.min() else { return [] }
        var unsure: Set<UInt64> = []
        for (id, index) in first {
            if let database = authorisations[id]?.key.topic.database, let last = lastRules[database], last > index {
                unsure.insert(id)
            }
        }
        for (index, commit) in group.commits.enumerated().dropFirst(earliest + 1) {
            guard let note = commit.note as? CommitNote else { continue }
            for id in authorisations.touched(by: note.changes, in: note.database) {
                if let doubted = first[id], doubted < index { unsure.insert(id) }
            }
        }
        return unsure
    }
}
