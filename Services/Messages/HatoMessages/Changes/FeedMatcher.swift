import HatoModel
import HatoTree

/// Decides which changes of a commit a follower gets (protocol §5).
///
/// It reads the changes as the record keeps them. For a node that was too large to keep, the skeleton shows which nodes
/// in it match and which of them differ: each is a change of its own, with cut nodes. What the skeleton does not show
/// becomes `many`.
struct FeedMatcher: Sendable, Hashable {
    /// Nil: every written path.
    var patterns: [FeedPattern]?
    /// Matches of one pattern in one commit that are sent one by one.
    var matchesMax: Int
    /// Of a notification that is in memory once for all followers that get it.
    var sharedBytesMin = MessagesLimits().sharedEventBytesMin

    func entries(of note: CommitNote) -> [Messages.Change.Entry] {
        guard let patterns else { return note.cutChanges.map { entry(of: $0, note) } }
        return patterns.flatMap { pattern in
            var matches = FeedMatches(pattern, matchesMax: matchesMax)
            for change in note.cutChanges { matches.add(change) }
            return entries(of: matches, note)
        }
    }

    private func entry(of change: PathChange, _ note: CommitNote) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: change.path.text, type: .of(change.before, change.after))
        entry.fill(before: change.before, after: change.after, uid: note.uid)
        return entry
    }

    private func entries(of matches: FeedMatches, _ note: CommitNote) -> [Messages.Change.Entry] {
        let name = matches.pattern.description
        if matches.areTooMany {
            return matches.commonPath.map { [many(below: $0, matches.pattern, note, isCut: false)] } ?? []
        }
        var entries = matches.all.map { match in
            var entry = Messages.Change.Entry(path: match.path.text, type: match.type)
            entry.pattern = name
            entry.params = Self.params(match.parameters)
            entry.fill(before: match.before, after: match.after, uid: note.uid)
            if match.isPartial { entry.partial = true }
            return entry
        }
        if let path = matches.unknownPath { entries.append(many(below: path, matches.pattern, note, isCut: true)) }
        return entries
    }

    /// - Parameter isCut: whether they are not known, rather than too many.
    private func many(
        below path: TreePath, _ pattern: FeedPattern, _ note: CommitNote, isCut: Bool
    ) -> Messages.Change.Entry {
        let change = note.cutChanges.first { $0.path == path }
        var entry = Messages.Change.Entry(path: path.text, type: .of(change?.before, change?.after))
        entry.pattern = pattern.description
        if case .above(let parameters)? = pattern.match(path) { entry.params = Self.params(parameters) }
        entry.uid = note.uid
        entry.many = true
        if isCut { entry.truncated = true }
        return entry
    }

    private static func params(_ parameters: [FeedPattern.Parameter]) -> [String: String] {
        Dictionary(parameters.map { ($0.name, $0.key.text) }) { first, _ in first }
    }
}

extension Messages.Change.EntryType {
    /// By what was and what is there; nil: something, but too large to keep.
    static func of(_ before: TreeNode?, _ after: TreeNode?) -> Self {
        switch (before?.isEmpty, after?.isEmpty) {
        case (true?, _): .created
        case (_, true?): .deleted
        default: .updated
        }
    }
}

extension Messages.Change.Entry {
    /// Nodes that are not known are left out, and the entry says that it is cut.
    fileprivate mutating func fill(before: TreeNode?, after: TreeNode?, uid: String?) {
        self.before = before?.export
        self.after = after?.export
        self.uid = uid
        if before == nil || after == nil { truncated = true }
    }
}
