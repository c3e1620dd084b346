import HatoModel
import HatoStorage
import HatoTree

/// What topics missed whose listeners listen again from a version: found in the kept commits on a reader's thread, in
/// one pass for all that ask at the same time. After a restart all clients come back at once.
struct MissedScan: Sendable {
    let store: any Store
    let limits: MessagesLimits
    /// By topic, the oldest version that a listener has.
    let positions: [TopicKey: UInt64]
    /// The newest version that is looked at.
    let end: UInt64
    /// Those that wait for it.
    let peers: [any ListenerPeer]

    private static let pageMax = 512

    /// Whether the commits after `since` are not searched: then the whole value is cheaper.
    static func isTooFar(_ since: UInt64, from version: UInt64, _ limits: MessagesLimits) -> Bool {
        version - min(since, version) > UInt64(limits.resumeCommitsMax)
    }

    /// What changed in each topic, as far as that is known.
    ///
    /// - Throws: `ConnectionClosed` when all peers are gone, and what the store throws.
    func changes() throws -> [TopicKey: ChangedPaths] {
        var found = positions.map { ($0, ChangedPaths(of: $0.path, hasQuery: $0.query != nil, after: $1)) }
        var tries: [DatabaseID: ListenerTrie<Int>] = [:]
        for (index, (key, _)) in found.enumerated() {
            tries[key.database, default: ListenerTrie()].insert(index, at: key.path)
        }
        func forget(through version: UInt64) {
            for index in found.indices { found[index].1.forget(through: version) }
        }
        var position = positions.values.min() ?? end
        var bytesLeft = limits.resumeBytesMax
        while position < end {
            guard peers.contains(where: { !$0.isClosed }) else { throw ConnectionClosed() }
            let commits: [Commit]
            do { commits = try store.commits(after: position, limit: Self.pageMax) } catch {
                switch error {
                case .compacted(let oldest):
                    // At least one version further than before: commits may be forgotten while this reads.
                    position = max(position + 1, oldest - 1)
                    forget(through: position)
                    continue
                case .unknownVersion:
                    forget(through: end)
                    return Dictionary(uniqueKeysWithValues: found)
                default: throw error
                }
            }
            guard let last = commits.last else { break }
            for commit in commits where commit.version <= end {
                bytesLeft -= commit.record.count
                guard let note = try CommitNote.of(commit), let trie = tries[note.database] else { continue }
                for match in trie.matches(note.changes) {
                    let changes = match.indexes.map { note.changes[$0] }
                    for index in match.ids { found[index].1.add(changes, at: commit.version) }
                }
            }
            position = last.version
            if bytesLeft < 0, position < end {
                forget(through: end)
                break
            }
        }
        return Dictionary(uniqueKeysWithValues: found)
    }
}
