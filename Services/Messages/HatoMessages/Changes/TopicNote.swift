import HatoTree

/// What one commit changes for the topics at one path.
struct TopicNote: Sendable {
    let version: UInt64
    /// At the path, above it or below it.
    let changes: [PathChange]
    /// About as many as the nodes in the changes take.
    let byteCount: Int
}

extension CommitNote {
    /// Divides the commit into what it changes for the topics at each path, so that an update of many paths costs each
    /// topic what it writes there and not all it writes.
    func parts(for topics: ListenerTrie<UInt64>) -> [(topics: Set<UInt64>, note: TopicNote)] {
        // A change of much may stand in many parts.
        lazy var byteCounts = changes.map { ChangeRecord.byteCount(of: [$0]) }
        return topics.matches(changes).map { match in
            guard match.indexes.count < changes.count else {
                return (match.ids, TopicNote(version: version, changes: changes, byteCount: byteCount))
            }
            return (
                match.ids,
                TopicNote(
                    version: version, changes: match.indexes.map { changes[$0] },
                    byteCount: match.indexes.reduce(0) { $0 + byteCounts[$1] })
            )
        }
    }
}
