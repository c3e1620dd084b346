import HatoModel
import HatoTree

/// Decides what a follower is told of a commit (protocol §5).
struct FeedMatcher: Sendable {
    /// Nil: every written path.
    var patterns: [FeedPattern]?
    /// Matches of one pattern in one commit that are told one by one.
    var matchesMax: Int

    func entries(of note: CommitNote) -> [Messages.Change.Entry] {
        guard let patterns else { return note.changes.map { entry(of: $0, note) } }
        return patterns.flatMap { entries(of: note, matching: $0) }
    }

    // MARK: Without patterns

    private func entry(of change: PathChange, _ note: CommitNote) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: change.path.text, type: Self.type(change.before, change.after))
        entry.fill(before: change.before, after: change.after, uid: note.uid)
        return entry
    }

    private static func type(_ before: TreeNode?, _ after: TreeNode?) -> Messages.Change.EntryType {
        switch (before?.isEmpty, after?.isEmpty) {
        case (true?, _): .created
        case (_, true?): .deleted
        default: .updated
        }
    }

    // MARK: With a pattern

    /// What happened to one node that the pattern means.
    private struct Match {
        var path: TreePath
        var parameters: [FeedPattern.Parameter]
        var before: TreeNode?
        var after: TreeNode?
        var type: Messages.Change.EntryType
        /// Only what was written below the node is known.
        var isPartial = false
    }

    private func entries(of note: CommitNote, matching pattern: FeedPattern) -> [Messages.Change.Entry] {
        var matches: [Match] = []
        for change in note.changes {
            switch pattern.match(change.path) {
            case nil: continue
            case .exact(let parameters)? where !change.path.isPriority:
                matches.append(
                    Match(
                        path: change.path, parameters: parameters, before: change.before, after: change.after,
                        type: Self.type(change.before, change.after)))
            case .exact(let parameters)?:
                addPart(of: change, parameters, depth: change.path.depth, to: &matches)
            case .below(let parameters, let depth)?:
                addPart(of: change, parameters, depth: depth, to: &matches)
            case .above(let parameters)?:
                guard !change.path.isPriority else { continue }
                guard addInside(change, pattern, parameters, to: &matches) else {
                    return [many(change, pattern, parameters, note)]
                }
            }
        }
        guard matches.count <= matchesMax else {
            return [manyPlaces(note, pattern)]
        }
        return matches.map { entry(of: $0, pattern, note) }
    }

    private func entry(of match: Match, _ pattern: FeedPattern, _ note: CommitNote) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: match.path.text, type: match.type)
        entry.pattern = pattern.description
        entry.params = Dictionary(match.parameters.map { ($0.name, $0.key.text) }) { first, _ in first }
        entry.fill(before: match.before, after: match.after, uid: note.uid)
        if match.isPartial { entry.partial = true }
        return entry
    }

    /// A write below the node: several of one commit are one change of the node.
    private func addPart(
        of change: PathChange, _ parameters: [FeedPattern.Parameter], depth: Int, to matches: inout [Match]
    ) {
        let path = change.path.prefix(depth)
        guard let relative = change.path.relative(to: path) else { return }
        let before = change.before.map { TreeNode.empty.setting($0, at: relative) }
        let after = change.after.map { TreeNode.empty.setting($0, at: relative) }
        if let place = matches.firstIndex(where: { $0.path == path && $0.isPartial }) {
            matches[place].before = merged(matches[place].before, change.before, at: relative)
            matches[place].after = merged(matches[place].after, change.after, at: relative)
            return
        }
        let type: Messages.Change.EntryType =
            change.existedDepth < depth ? .created : change.existsDepth < depth ? .deleted : .updated
        matches.append(
            Match(path: path, parameters: parameters, before: before, after: after, type: type, isPartial: true))
    }

    private func merged(_ node: TreeNode?, _ part: TreeNode?, at path: TreePath) -> TreeNode? {
        guard let node, let part else { return nil }
        return node.setting(part, at: path)
    }

    /// A write above: every node inside that the pattern means and that differs. False when there are too many, or the
    /// nodes are not known.
    private func addInside(
        _ change: PathChange, _ pattern: FeedPattern, _ parameters: [FeedPattern.Parameter], to matches: inout [Match]
    ) -> Bool {
        guard let before = change.before, let after = change.after else { return false }
        let rest = pattern.segments.dropFirst(change.path.depth)
        return addInside(
            Place(path: change.path, before: before, after: after, parameters: parameters), rest, to: &matches)
    }

    private struct Place {
        var path: TreePath
        var before: TreeNode
        var after: TreeNode
        var parameters: [FeedPattern.Parameter]

        func child(_ key: TreeKey, as name: String?) -> Place {
            Place(
                path: TreePath(uncheckedKeys: path.keys + [key]), before: before.child(key), after: after.child(key),
                parameters: name.map { parameters + [FeedPattern.Parameter($0, key)] } ?? parameters)
        }
    }

    private func addInside(_ place: Place, _ rest: ArraySlice<FeedPattern.Segment>, to matches: inout [Match]) -> Bool {
        if place.before == place.after { return true }
        guard let segment = rest.first else {
            guard matches.count < matchesMax else { return false }
            matches.append(
                Match(
                    path: place.path, parameters: place.parameters, before: place.before, after: place.after,
                    type: Self.type(place.before, place.after)))
            return true
        }
        switch segment {
        case .key(let key): return addInside(place.child(key, as: nil), rest.dropFirst(), to: &matches)
        case .any(let name):
            for key in Self.keys(of: place.before, and: place.after)
            where !addInside(place.child(key, as: name), rest.dropFirst(), to: &matches) { return false }
            return true
        }
    }

    private static func keys(of before: TreeNode, and after: TreeNode) -> [TreeKey] {
        let old = (before.children ?? TreeChildren(sorted: [])).map(\.key)
        let new = (after.children ?? TreeChildren(sorted: [])).map(\.key)
        return Set(old).union(new).sorted()
    }

    // MARK: Too much to tell

    private func many(
        _ change: PathChange, _ pattern: FeedPattern, _ parameters: [FeedPattern.Parameter], _ note: CommitNote
    ) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: change.path.text, type: Self.type(change.before, change.after))
        entry.pattern = pattern.description
        entry.params = Dictionary(parameters.map { ($0.name, $0.key.text) }) { first, _ in first }
        entry.uid = note.uid
        entry.many = true
        if change.isTruncated { entry.truncated = true }
        return entry
    }

    /// Matches all over the commit, by the node above all of them.
    private func manyPlaces(_ note: CommitNote, _ pattern: FeedPattern) -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: commonPath(of: note.changes).text, type: .updated)
        entry.pattern = pattern.description
        entry.uid = note.uid
        entry.many = true
        return entry
    }

    private func commonPath(of changes: [PathChange]) -> TreePath {
        guard var common = changes.first?.path.node else { return .root }
        for change in changes { common = common.prefix(common.sharedDepth(with: change.path)) }
        return common
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
