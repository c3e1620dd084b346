import HatoTree

/// What one commit changes for the topics at one path.
struct TopicNote: Sendable {
    let version: UInt64
    /// At the path, above it or below it.
    let changes: [PathChange]
    /// About as many as the nodes in the changes take.
    let byteCount: Int
    /// How many topics share it.
    let topicCount: Int

    /// What one of these topics takes in memory when it keeps the note, as the others do.
    var keptBytes: Int { MemoryLayout<TopicNote>.stride + byteCount / max(1, topicCount) }
}

extension CommitNote {
    /// Divides the commit into what it changes for the topics at each path, so that an update of many paths costs each
    /// topic what it writes there and not all it writes.
    func parts(for topics: ListenerTrie<UInt64>) -> [(topics: Set<UInt64>, note: TopicNote)] {
        // A change of much may stand in many parts.
        lazy var byteCounts = changes.map { ChangeRecord.byteCount(of: [$0]) }
        return topics.matches(changes).map { match in
            let isAll = match.indexes.count == changes.count
            let note = TopicNote(
                version: version, changes: isAll ? changes : match.indexes.map { changes[$0] },
                byteCount: isAll ? byteCount : match.indexes.reduce(0) { $0 + byteCounts[$1] },
                topicCount: match.ids.count)
            return (match.ids, note)
        }
    }
}
