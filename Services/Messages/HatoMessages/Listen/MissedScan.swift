import HatoModel
import HatoStorage
import HatoTree

/// What listeners missed that listen again from a version: found in the kept commits on a reader's thread, in one pass
/// for all that ask at the same time. After a restart all clients come back at once.
struct MissedScan: Sendable {
    struct Request: Sendable, Hashable {
        var key: TopicKey
        /// The last version it has seen.
        var since: UInt64
    }

    private struct Found {
        var request: Request
        var missed: MissedChanges

        mutating func add(_ change: PathChange, of version: UInt64) {
            guard request.since < version else { return }
            // What a query selects is sent anew.
            if request.key.query == nil { missed.add([change]) } else { missed.addWhole() }
        }
    }

    let store: any Store
    let limits: MessagesLimits
    let requests: Set<Request>
    /// The newest version that is looked at.
    let until: UInt64

    private static let pageMax = 512

    /// Whether the commits after `since` are not searched: then the whole value is cheaper.
    static func isTooFar(_ since: UInt64, from version: UInt64, _ limits: MessagesLimits) -> Bool {
        since > version || version - since > UInt64(limits.resumeCommitsMax)
    }

    /// What each has missed: everything, where that is not known any more.
    func missed() throws -> [Request: MissedChanges] {
        var found = requests.map { Found(request: $0, missed: MissedChanges(of: $0.key.path)) }
        var tries: [DatabaseID: ListenerTrie<Int>] = [:]
        for (index, one) in found.enumerated() {
            tries[one.request.key.database, default: ListenerTrie()].insert(index, at: one.request.key.path)
        }
        func lose(before version: UInt64) {
            for index in found.indices where found[index].request.since < version { found[index].missed.addWhole() }
        }
        var position = requests.map(\.since).min() ?? until
        var bytesLeft = limits.resumeBytesMax
        while position < until {
            let commits: [Commit]
            do { commits = try store.commits(after: position, limit: Self.pageMax) } catch {
                switch error {
                case .compacted(let oldest):
                    // At least one version further than before: commits may be forgotten while this reads.
                    position = max(position + 1, oldest - 1)
                    lose(before: position)
                    continue
                case .unknownVersion:
                    lose(before: .max)
                    return results(found)
                default: throw error
                }
            }
            guard let last = commits.last else { break }
            for commit in commits where commit.version <= until {
                bytesLeft -= commit.record.count
                guard let note = try CommitNote.of(commit), let trie = tries[note.database] else { continue }
                for change in note.changes {
                    trie.forEachMatch(of: change.path) { index in
                        found[index].add(change, of: commit.version)
                    }
                }
            }
            position = last.version
            if bytesLeft < 0, position < until {
                lose(before: until)
                break
            }
        }
        return results(found)
    }

    private func results(_ found: [Found]) -> [Request: MissedChanges] {
        Dictionary(uniqueKeysWithValues: found.map { ($0.request, $0.missed) })
    }
}
