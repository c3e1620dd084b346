public import HatoModel

/// What the listeners of one query at one path see, told from commits: shared by all that ask the same.
///
/// It keeps keys and sort values of its children, and only where the query needs them: nothing for a query that selects
/// every child, keys for a range, keys and sort values for a limit. After `apply` it is exactly what the query would
/// answer from the state it was applied with; the event leads from the state before to that one.
public struct QueryWindow: Sendable {
    public let query: TreeQuery
    public let path: TreePath
    /// To be changed when indexes come and go, before the next `apply`.
    public var plan: QueryPlan
    private var content: Content

    private enum Content: Sendable {
        case everything
        case keys(Set<TreeKey>)
        /// In query order, at most as many as the limit says; and each child's place in it by key.
        case places([SortPlace], [TreeKey: SortPlace])
    }

    /// Reads the window; also what to do after it was `.fresh` and the reader failed.
    public init(_ query: TreeQuery, at path: TreePath, by plan: QueryPlan, reading runner: QueryRunner) throws {
        self.query = query
        self.path = path
        self.plan = plan
        content = .everything
        try reload(runner)
    }

    private mutating func reload(_ runner: QueryRunner) throws {
        if query.selectsEverything { return }
        let places = try runner.places(query, at: path, by: plan)
        if query.limit == nil {
            content = .keys(Set(places.map(\.key)))
        } else {
            content = Self.content(places)
        }
    }

    private static func content(_ places: [SortPlace]) -> Content {
        .places(places, Dictionary(uniqueKeysWithValues: places.map { ($0.key, $0) }))
    }

    /// How many children it keeps in memory.
    public var count: Int {
        switch content {
        case .everything: 0
        case .keys(let keys): keys.count
        case .places(let places, _): places.count
        }
    }

    /// The children it shows, in query order, read anew: for a listener's first event.
    ///
    /// - Parameter runner: reads the state that was last applied.
    public func places(reading runner: QueryRunner) throws -> [SortPlace] {
        if case .places(let places, _) = content { return places }
        return try runner.places(query, at: path, by: plan)
    }

    /// Takes over the changes of one or more commits, in order, and says what listeners must be told.
    ///
    /// - Parameter runner: reads the state after the last of these commits.
    public mutating func apply(_ changes: [PathChange], reading runner: QueryRunner) throws -> ListenerUpdate {
        var touched = TouchedChildren()
        for change in changes {
            if change.path.isAtOrAbove(path) {
                guard hasChanged(change) else { continue }
                try reload(runner)
                return .fresh
            }
            guard let relative = change.path.relative(to: path) else { continue }
            guard let key = relative.keys.first else { continue }  // the collection's own priority
            touched.add(key, change.settledPath.relative(to: path) ?? .root)
        }
        guard !touched.keys.isEmpty else { return .nothing }
        let changed: [Change]
        switch content {
        case .everything:
            changed = try touched.keys.flatMap { try touched.changes(of: $0, at: path, reading: runner) }
        case .keys(var keys):
            content = .everything  // so that the set is changed in place
            defer { content = .keys(keys) }
            changed = try update(&keys, touched, runner)
        case .places(let old, let placesByKey):
            let new = try window(after: touched, from: old, placesByKey, runner)
            changed = try difference(from: placesByKey, to: new, touched, runner)
            content = Self.content(new)
        }
        return ListenerEvent(changed).map { .events([$0]) } ?? .nothing
    }

    fileprivate typealias Change = (path: TreePath, node: TreeNode)

    private func hasChanged(_ change: PathChange) -> Bool {
        guard let rest = path.relative(to: change.path), let before = change.before, let after = change.after else {
            return true
        }
        return before.node(at: rest) != after.node(at: rest)
    }

    // MARK: A range without a limit

    private func update(
        _ keys: inout Set<TreeKey>, _ touched: TouchedChildren, _ runner: QueryRunner
    ) throws -> [Change] {
        var changed: [Change] = []
        for key in touched.keys {
            let place = try runner.place(of: key, at: path, in: query)
            let isIn = place.map(query.contains) ?? false
            switch (keys.contains(key), isIn) {
            case (true, true):
                changed += try touched.changes(of: key, at: path, reading: runner)
            case (true, false):
                keys.remove(key)
                changed.append((TreePath(uncheckedKeys: [key]), .empty))
            case (false, true):
                keys.insert(key)
                changed.append(try whole(key, runner))
            case (false, false):
                break
            }
        }
        return changed
    }

    // MARK: A limit

    /// The window after the touched children moved, read from the index only when children from outside may come in.
    private func window(
        after touched: TouchedChildren, from old: [SortPlace], _ placesByKey: [TreeKey: SortPlace],
        _ runner: QueryRunner
    ) throws -> [SortPlace] {
        guard let limit = query.limit else { return old }
        var new = touched.keys.contains { placesByKey[$0] != nil } ? old.filter { !touched.contains($0.key) } : old
        var hasGrown = false
        for key in touched.keys {
            guard let place = try runner.place(of: key, at: path, in: query), query.contains(place) else { continue }
            new.append(place)
            hasGrown = true
        }
        if hasGrown { new.sort() }
        // As long as the window was not full, nobody stands outside of it.
        guard old.count >= limit.count else { return QueryRunner.limited(new, limit) }
        // Who stands outside stands beyond its far edge: up to there the order is known.
        switch limit {
        case .first:
            if let edge = old.last { new = Array(new.prefix { $0 <= edge }) }
        case .last:
            if let edge = old.first { new = Array(new.drop { $0 < edge }) }
        }
        guard new.count >= limit.count else { return try runner.places(query, at: path, by: plan) }
        return QueryRunner.limited(new, limit)
    }

    private func difference(
        from old: [TreeKey: SortPlace], to new: [SortPlace], _ touched: TouchedChildren, _ runner: QueryRunner
    ) throws -> [Change] {
        let newKeys = Set(new.map(\.key))
        var changed: [Change] = old.values.filter { !newKeys.contains($0.key) }.sorted().map {
            (TreePath(uncheckedKeys: [$0.key]), .empty)
        }
        for place in new {
            if old[place.key] == nil {
                changed.append(try whole(place.key, runner))
            } else if touched.contains(place.key) {
                changed += try touched.changes(of: place.key, at: path, reading: runner)
            }
        }
        return changed
    }

    private func whole(_ key: TreeKey, _ runner: QueryRunner) throws -> Change {
        let child = TreePath(uncheckedKeys: path.keys + [key])
        return (TreePath(uncheckedKeys: [key]), try runner.nodes.node(at: child))
    }
}

/// The children of a collection that commits wrote in, with the places in them, none below another.
private struct TouchedChildren {
    /// More places than this in one child are the whole child.
    private static let placesMax = 64

    private(set) var keys: [TreeKey] = []
    private var placesByKey: [TreeKey: [TreePath]] = [:]

    func contains(_ key: TreeKey) -> Bool { placesByKey[key] != nil }

    /// - Parameter place: relative to the collection.
    mutating func add(_ key: TreeKey, _ place: TreePath) {
        let place = place.isRoot ? TreePath(uncheckedKeys: [key]) : place
        guard var places = placesByKey[key] else {
            keys.append(key)
            placesByKey[key] = [place]
            return
        }
        if places.contains(where: { $0.isAtOrAbove(place) }) { return }
        places.removeAll { place.isAtOrAbove($0) }
        places.append(place)
        placesByKey[key] = places.count > Self.placesMax ? [TreePath(uncheckedKeys: [key])] : places
    }

    /// What is now at the places that were written in a child.
    func changes(of key: TreeKey, at path: TreePath, reading runner: QueryRunner) throws -> [QueryWindow.Change] {
        try (placesByKey[key] ?? []).map { place in
            let absolute = TreePath(uncheckedKeys: path.keys + place.keys, isPriority: place.isPriority)
            return (place, try runner.nodes.node(at: absolute))
        }
    }
}
