import HatoModel

/// The children at one end of an order: those that a limit shows, and a few more after them, so that a removed child is
/// replaced without reading.
struct WindowChildren: Sendable {
    /// What the writes of some children change about the visible ones.
    struct Shift {
        /// Keys that are no longer visible, in their previous order.
        var left: [TreeKey] = []
        /// Children that are newly visible, or visible and written, in order.
        var shown: [(sortKey: SortKey, isNew: Bool)] = []
    }

    let limit: TreeQuery.Limit
    /// In query order: all selected children, or a number of them from the end that the limit counts from.
    private var sortKeys: [SortKey]
    private var byKey: [TreeKey: SortKey]
    /// Whether all selected children are kept.
    private var isWhole: Bool
    /// About what they take in memory.
    private(set) var byteCount: Int

    /// - Parameter places: selected children in order, at most `room(for: limit)`; if fewer, all of them.
    init(_ sortKeys: [SortKey], limit: TreeQuery.Limit) {
        self.limit = limit
        self.sortKeys = sortKeys
        // A damaged index may contain a child twice; `verify` reports that.
        byKey = Dictionary(sortKeys.map { ($0.key, $0) }) { first, _ in first }
        byteCount = byKey.values.reduce(0) { $0 + $1.byteCount }
        isWhole = sortKeys.count < Self.room(for: limit).count
    }

    /// Half of the limit: a chat that loses messages one by one is read again once for this many removals.
    private static func margin(of limit: TreeQuery.Limit) -> Int { min(max(limit.count / 2, 8), 256) }

    /// How many children to read for a window.
    static func room(for limit: TreeQuery.Limit) -> TreeQuery.Limit {
        let (sum, isTooMuch) = limit.count.addingReportingOverflow(margin(of: limit))
        let count = isTooMuch ? Int.max : sum
        return switch limit {
        case .first: .first(count)
        case .last: .last(count)
        }
    }

    private var isFirst: Bool { if case .first = limit { true } else { false } }

    /// Kept children.
    var count: Int { sortKeys.count }

    /// The visible children in query order.
    var visible: ArraySlice<SortKey> { isFirst ? sortKeys.prefix(limit.count) : sortKeys.suffix(limit.count) }

    /// The last visible child, counted from the end of the limit; nil while fewer than the limit are visible.
    private var edge: SortKey? {
        guard sortKeys.count >= limit.count else { return nil }
        return isFirst ? visible.last : visible.first
    }

    /// All selected children up to here are known; nil when all are.
    private var end: SortKey? { isWhole ? nil : isFirst ? sortKeys.last : sortKeys.first }

    /// The query for the children to read when so many have left that unknown ones may become visible: those after the
    /// last known child. (A read from the beginning would step over the tombstones of everything ever removed at a
    /// queue's front.)
    ///
    /// - Parameter old: these places before they were moved.
    func missing(in query: TreeQuery, after old: WindowChildren) -> TreeQuery? {
        guard let end = old.end else { return nil }
        let count = Self.room(for: limit).count - sortKeys.count
        var rest = query
        if isFirst {
            rest.start = TreeQuery.Cut(end.value, .after(end.key))
            rest.limit = .first(count)
        } else {
            rest.end = TreeQuery.Cut(end.value, .before(end.key))
            rest.limit = .last(count)
        }
        return rest
    }

    /// These children and the missing ones.
    func with(_ missing: [SortKey]) -> WindowChildren {
        WindowChildren(isFirst ? sortKeys + missing : missing + sortKeys, limit: limit)
    }

    private func isShown(_ sortKey: SortKey, edge: SortKey?) -> Bool {
        guard let edge else { return true }
        return isFirst ? sortKey <= edge : sortKey >= edge
    }

    /// Applies the new positions of written children; nil for one that is not selected any more.
    ///
    /// Returns nil when a child that is not kept may become visible: then the window must be read again.
    mutating func move(_ moved: [TreeKey: SortKey?]) -> Shift? {
        let oldEdge = edge
        let end = end
        let wereShown = moved.keys.compactMap { byKey[$0] }.filter { isShown($0, edge: oldEdge) }
        let isFirst = isFirst
        replace(moved) { sortKey in end.map { isFirst ? sortKey <= $0 : sortKey >= $0 } ?? true }
        guard isWhole || sortKeys.count >= limit.count else { return nil }
        let newEdge = edge
        var shift = Shift()
        let known = Set(wereShown.map(\.key))
        for case (let key, let sortKey?) in moved where byKey[key] != nil && isShown(sortKey, edge: newEdge) {
            shift.shown.append((sortKey, !known.contains(key)))
        }
        let remaining = Set(shift.shown.map(\.sortKey.key))
        var left = wereShown.filter { !remaining.contains($0.key) }
        for sortKey in between(oldEdge, newEdge) where moved[sortKey.key] == nil {
            if isShown(sortKey, edge: newEdge) { shift.shown.append((sortKey, true)) } else { left.append(sortKey) }
        }
        shift.left = left.sorted().map(\.key)
        shift.shown.sort { $0.sortKey < $1.sortKey }
        trim()
        return shift
    }

    /// Removes the old positions, and keeps the new ones where `isKept` is true.
    private mutating func replace(_ moved: [TreeKey: SortKey?], where isKept: (SortKey) -> Bool) {
        let new = moved.values.compactMap { $0 }.filter(isKept)
        if moved.count > Self.oneByOneMax {
            sortKeys.removeAll { moved[$0.key] != nil }
            sortKeys += new
            sortKeys.sort()
        } else {
            for key in moved.keys {
                if let sortKey = byKey[key] { sortKeys.remove(at: index(of: sortKey)) }
            }
            for sortKey in new { sortKeys.insert(sortKey, at: index(of: sortKey)) }
        }
        for key in moved.keys { forget(key) }
        for sortKey in new {
            byteCount += sortKey.byteCount
            byKey[sortKey.key] = sortKey
        }
    }

    private mutating func forget(_ key: TreeKey) {
        if let sortKey = byKey.removeValue(forKey: key) { byteCount -= sortKey.byteCount }
    }

    /// More than this many are sorted together.
    private static let oneByOneMax = 16

    /// The kept children that only one of two edges shows.
    private func between(_ one: SortKey?, _ other: SortKey?) -> ArraySlice<SortKey> {
        if one == other { return [] }
        if isFirst {
            // Up to and including an edge.
            let bounds = [one, other].map { edge in edge.map { after($0) } ?? sortKeys.count }
            return sortKeys[min(bounds[0], bounds[1])..<max(bounds[0], bounds[1])]
        }
        let bounds = [one, other].map { edge in edge.map { index(of: $0) } ?? 0 }
        return sortKeys[min(bounds[0], bounds[1])..<max(bounds[0], bounds[1])]
    }

    /// The index of a position, or the index at which it would be inserted.
    private func index(of sortKey: SortKey) -> Int {
        var (low, high) = (0, sortKeys.count)
        while low < high {
            let middle = (low + high) / 2
            if sortKeys[middle] < sortKey { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func after(_ sortKey: SortKey) -> Int {
        let index = index(of: sortKey)
        return index < sortKeys.count && sortKeys[index] == sortKey ? index + 1 : index
    }

    /// Removes those furthest from the limit's end when they have become many.
    private mutating func trim() {
        let room = Self.room(for: limit).count
        guard sortKeys.count > room, sortKeys.count - room > Self.margin(of: limit) else { return }
        let surplus = isFirst ? sortKeys[room...] : sortKeys[..<(sortKeys.count - room)]
        for sortKey in surplus { forget(sortKey.key) }
        if isFirst { sortKeys.removeSubrange(room...) } else { sortKeys.removeFirst(sortKeys.count - room) }
        isWhole = false
    }
}

extension SortKey {
    /// About what it takes in the tables of a window.
    fileprivate var byteCount: Int {
        guard case .leaf(.string(let text)) = value else { return 256 + key.text.utf8.count }
        return 256 + key.text.utf8.count + text.utf8.count
    }
}
