public import HatoModel

/// The result of one query at one path, updated from commits: shared by all listeners with an equal query.
///
/// It keeps only the keys and sort values that the query needs: nothing for a query that selects every child, keys for
/// a range, keys and sort values for a limit, of slightly more children than are visible. After `apply` it equals the
/// result of the query on the state with which it was applied; the events lead from the previous state to that one.
public struct QueryWindow: Sendable {
    /// The query.
    public let query: TreeQuery
    /// The collection that is queried.
    public let path: TreePath
    /// To be set when indexes are added or dropped, before the next `apply`.
    public var plan: QueryPlan
    private var content: Content
    /// Of `Content.keys`.
    private var keyBytes = 0

    private enum Content: Sendable {
        case everything
        case keys(Set<TreeKey>)
        case sortKeys(WindowChildren)
    }

    /// About what it takes in memory.
    public var byteCount: Int {
        switch content {
        case .everything: 0
        case .keys: keyBytes
        case .sortKeys(let sortKeys): sortKeys.byteCount
        }
    }

    private static func byteCount(of keys: some Sequence<TreeKey>) -> Int {
        keys.reduce(0) { $0 + 96 + $1.text.utf8.count }
    }

    /// Reads the window.
    ///
    /// - Throws: `TreeError.tooBig` when the keys of the children exceed `bytesMax` of the runner, and its other
    ///   errors.
    public init(_ query: TreeQuery, at path: TreePath, by plan: QueryPlan, reading runner: QueryRunner) throws {
        self.query = query
        self.path = path
        self.plan = plan
        content = .everything
        content = try read(runner)
    }

    private mutating func read(_ runner: QueryRunner) throws -> Content {
        if query.selectsEverything { return .everything }
        guard let limit = query.limit else {
            let keys = Set(
                try runner.sortKeys(query, at: path, by: plan, sortKeyBytesMax: runner.bytesMax).map(\.key))
            keyBytes = Self.byteCount(of: keys)
            return .keys(keys)
        }
        var wider = query
        wider.limit = WindowChildren.room(for: limit)
        return .sortKeys(
            WindowChildren(
                try runner.sortKeys(wider, at: path, by: plan, sortKeyBytesMax: runner.bytesMax), limit: limit))
    }

    /// The number of visible children, where the window keeps them.
    public var count: Int {
        switch content {
        case .everything: 0
        case .keys(let keys): keys.count
        case .sortKeys(let sortKeys): sortKeys.visible.count
        }
    }

    /// The visible children in query order, for a listener's first event.
    ///
    /// - Parameter runner: reads the state that was applied last.
    /// - Throws: the errors of the runner.
    public func sortKeys(reading runner: QueryRunner) throws -> [SortKey] {
        if case .sortKeys(let sortKeys) = content { return Array(sortKeys.visible) }
        return try runner.sortKeys(query, at: path, by: plan)
    }

    /// Applies commits, in order, and returns the update for listeners.
    ///
    /// Where there is a limit, or every child is selected, commits have events of their own, as far as the state after
    /// the last of them says what was there between. They are merged when several wrote the same child, and when they
    /// are many or large; from there on when a child becomes visible that is written again, or must be read.
    ///
    /// - Parameter runner: reads the state after the last of these commits.
    /// - Throws: the errors of the runner; the window is then unchanged.
    public mutating func apply(commits: [[PathChange]], reading runner: QueryRunner) throws -> ListenerUpdate {
        guard let apart = apart(commits) else { return try apply(Array(commits.joined()), reading: runner) }
        let before = content
        do {
            let events = try events(of: apart, runner)
            return events.isEmpty ? .nothing : .events(events)
        } catch {
            content = before
            guard case TreeError.tooBig = error else { throw error }
            return try apply(Array(commits.joined()), reading: runner)
        }
    }

    private mutating func events(of commits: [TouchedChildren], _ runner: QueryRunner) throws -> [ListenerEvent] {
        let bytesMax = min(Self.apartBytesMax, runner.bytesMax)
        var reading = ChangeReading(path: path, nodes: runner.nodes, bytesMax: bytesMax)
        var events: [ListenerEvent] = []
        var later = Set(commits.flatMap(\.keys))
        for (index, touched) in commits.enumerated() {
            later.subtract(touched.keys)
            if let changed = try apply(touched, before: later, runner, &reading) {
                if let event = ListenerEvent(changed) { events.append(event) }
                continue
            }
            let rest = TouchedChildren(merging: commits[index...])
            if let changed = try apply(rest, before: [], runner, &reading), let event = ListenerEvent(changed) {
                events.append(event)
            }
            break
        }
        return events
    }

    /// More commits at once are always merged: a listener needs no more events than it can show.
    private static let apartMax = 32
    /// Kept children that are copied for all of the commits; beyond, they are merged.
    private static let apartCopiesMax = 8_192
    /// Bytes of the events of all of the commits; beyond, they are merged.
    private static let apartBytesMax = 256 << 10

    /// What each commit wrote; nil when they must be merged.
    private func apart(_ commits: [[PathChange]]) -> [TouchedChildren]? {
        guard 2...Self.apartMax ~= commits.count else { return nil }
        switch content {
        case .keys: return nil
        case .sortKeys(let sortKeys) where sortKeys.count * commits.count > Self.apartCopiesMax: return nil
        case .sortKeys, .everything: break
        }
        var keys: Set<TreeKey> = []
        var all: [TouchedChildren] = []
        for commit in commits {
            guard let touched = touched(by: commit), keys.isDisjoint(with: touched.keys) else { return nil }
            keys.formUnion(touched.keys)
            all.append(touched)
        }
        return all
    }

    /// The children that commits wrote in; nil when the whole collection changed.
    private func touched(by changes: [PathChange]) -> TouchedChildren? {
        var touched = TouchedChildren()
        for change in changes {
            if change.path.isAtOrAbove(path) {
                if hasChanged(change) { return nil }
                continue
            }
            guard let relative = change.path.relative(to: path) else { continue }
            guard let key = relative.keys.first else { continue }  // the collection's own priority
            touched.add(key, change.settledPath.relative(to: path) ?? .root)
        }
        return touched
    }

    /// Applies the changes of one or more commits, in order, as one, and returns the update for listeners.
    ///
    /// - Parameter runner: reads the state after the last of these commits.
    /// - Throws: the errors of the runner; the window is then unchanged.
    public mutating func apply(_ changes: [PathChange], reading runner: QueryRunner) throws -> ListenerUpdate {
        guard let touched = touched(by: changes) else {
            content = try read(runner)
            return .fresh
        }
        guard !touched.keys.isEmpty else { return .nothing }
        do {
            var reading = ChangeReading(path: path, nodes: runner.nodes, bytesMax: runner.bytesMax)
            let changed = try apply(touched, before: [], runner, &reading)
            return changed.flatMap { ListenerEvent($0) }.map { .events([$0]) } ?? .nothing
        } catch TreeError.tooBig {
            // The whole value can be written without building nodes, and the writer detects when it is too big.
            content = try read(runner)
            return .fresh
        }
    }

    /// - Parameter later: children that later commits wrote, of which the state is that after those.
    /// - Returns: nil, and the window is unchanged, when one of these, or one that would have to be read, becomes
    ///   visible.
    private mutating func apply(
        _ touched: TouchedChildren, before later: Set<TreeKey>, _ runner: QueryRunner, _ reading: inout ChangeReading
    ) throws -> [Change]? {
        switch content {
        case .everything: return try touched.keys.flatMap { key in try reading.changes(of: key, touched) }
        case .keys(var keys):
            let moves = try moves(keys, touched, runner, &reading)
            content = .everything  // so that the set is changed in place
            keys.subtract(moves.left)
            keys.formUnion(moves.come)
            keyBytes += Self.byteCount(of: moves.come) - Self.byteCount(of: moves.left)
            content = .keys(keys)
            return moves.changed
        case .sortKeys(let sortKeys):
            guard let (moved, shift) = try move(sortKeys, touched, before: later, runner) else { return nil }
            let changed = try reading.changes(shift, touched)
            content = .sortKeys(moved)
            return changed
        }
    }

    fileprivate typealias Change = (path: TreePath, node: TreeNode)

    private func hasChanged(_ change: PathChange) -> Bool {
        guard let rest = path.relative(to: change.path), let before = change.before, let after = change.after else {
            return true
        }
        return before.node(at: rest) != after.node(at: rest)
    }

    // MARK: A range without a limit

    private func moves(
        _ keys: Set<TreeKey>, _ touched: TouchedChildren, _ runner: QueryRunner, _ reading: inout ChangeReading
    ) throws -> (left: [TreeKey], come: [TreeKey], changed: [Change]) {
        var moves: (left: [TreeKey], come: [TreeKey], changed: [Change]) = ([], [], [])
        for key in touched.keys {
            let sortKey = try runner.sortKey(of: key, at: path, in: query)
            let isIn = sortKey.map(query.contains) ?? false
            switch (keys.contains(key), isIn) {
            case (true, true):
                moves.changed += try reading.changes(of: key, touched)
            case (true, false):
                moves.left.append(key)
                moves.changed.append((TreePath(uncheckedKeys: [key]), .empty))
            case (false, true):
                moves.come.append(key)
                moves.changed.append(try reading.whole(key))
            case (false, false):
                break
            }
        }
        return moves
    }

    // MARK: A limit

    /// The children after these writes, and what changes about the visible ones; nil as of `apply`.
    private mutating func move(
        _ old: WindowChildren, _ touched: TouchedChildren, before later: Set<TreeKey>, _ runner: QueryRunner
    ) throws -> (WindowChildren, WindowChildren.Shift)? {
        var moved: [TreeKey: SortKey?] = [:]
        for key in touched.keys {
            let sortKey = try runner.sortKey(of: key, at: path, in: query)
            moved.updateValue(sortKey.flatMap { query.contains($0) ? $0 : nil }, forKey: key)
        }
        var new = old
        if let shift = new.move(moved) {
            return shift.shown.contains { later.contains($0.sortKey.key) } ? nil : (new, shift)
        }
        guard later.isEmpty else { return nil }
        if let missing = new.missing(in: query, after: old) {
            new = new.with(try runner.sortKeys(missing, at: path, by: plan, sortKeyBytesMax: runner.bytesMax))
        } else {
            guard case .sortKeys(let read) = try read(runner) else { return (old, WindowChildren.Shift()) }
            new = read
        }
        return (new, Self.shift(from: old.visible, to: new.visible, touched))
    }

    /// The same for two windows without further information.
    private static func shift(
        from old: ArraySlice<SortKey>, to new: ArraySlice<SortKey>, _ touched: TouchedChildren
    ) -> WindowChildren.Shift {
        let (oldKeys, newKeys) = (Set(old.map(\.key)), Set(new.map(\.key)))
        var shift = WindowChildren.Shift(left: old.map(\.key).filter { !newKeys.contains($0) })
        for sortKey in new where !oldKeys.contains(sortKey.key) || touched.contains(sortKey.key) {
            shift.shown.append((sortKey, !oldKeys.contains(sortKey.key)))
        }
        return shift
    }
}

/// Reads the contents of an event, up to the size limit of one.
private struct ChangeReading {
    /// The path of the collection.
    let path: TreePath
    let nodes: NodeReader
    private var room: NodeReader.Room

    init(path: TreePath, nodes: NodeReader, bytesMax: Int) {
        self.path = path
        self.nodes = nodes
        room = NodeReader.Room(bytesMax: bytesMax)
    }

    mutating func whole(_ key: TreeKey) throws -> QueryWindow.Change {
        let child = TreePath(uncheckedKeys: path.keys + [key])
        return (TreePath(uncheckedKeys: [key]), try nodes.node(at: child, taking: &room))
    }

    /// The current nodes at the written paths in a child.
    mutating func changes(of key: TreeKey, _ touched: TouchedChildren) throws -> [QueryWindow.Change] {
        var changes: [QueryWindow.Change] = []
        for relative in touched.paths(in: key) {
            let absolute = TreePath(uncheckedKeys: path.keys + relative.keys, isPriority: relative.isPriority)
            changes.append((relative, try nodes.node(at: absolute, taking: &room)))
        }
        return changes
    }

    mutating func changes(_ shift: WindowChildren.Shift, _ touched: TouchedChildren) throws -> [QueryWindow.Change] {
        var changed: [QueryWindow.Change] = shift.left.map { (TreePath(uncheckedKeys: [$0]), .empty) }
        for (sortKey, isNew) in shift.shown {
            if isNew {
                changed.append(try whole(sortKey.key))
            } else {
                changed += try changes(of: sortKey.key, touched)
            }
        }
        return changed
    }
}

/// The children of a collection that commits wrote in, with the written paths in them, none below another.
private struct TouchedChildren {
    /// The maximum number of paths in one child; beyond it the whole child counts as written.
    private static let pathsMax = 64

    private(set) var keys: [TreeKey] = []
    private var pathsByKey: [TreeKey: [TreePath]] = [:]

    func contains(_ key: TreeKey) -> Bool { pathsByKey[key] != nil }

    /// - Parameter path: relative to the collection.
    mutating func add(_ key: TreeKey, _ path: TreePath) {
        let path = path.isRoot ? TreePath(uncheckedKeys: [key]) : path
        guard var paths = pathsByKey[key] else {
            keys.append(key)
            pathsByKey[key] = [path]
            return
        }
        if paths.contains(where: { $0.isAtOrAbove(path) }) { return }
        paths.removeAll { path.isAtOrAbove($0) }
        paths.append(path)
        pathsByKey[key] = paths.count > Self.pathsMax ? [TreePath(uncheckedKeys: [key])] : paths
    }

    /// What several commits wrote that have no child in common.
    init(merging commits: ArraySlice<TouchedChildren>) {
        for touched in commits {
            keys += touched.keys
            pathsByKey.merge(touched.pathsByKey) { first, _ in first }
        }
    }

    init() {}

    /// The written paths in a child, none below another.
    func paths(in key: TreeKey) -> [TreePath] { pathsByKey[key] ?? [] }
}
