import HatoModel

/// The children at one end of an order: those that a limit shows, and a few more behind them, so that one that leaves
/// is followed without reading.
struct WindowPlaces: Sendable {
    /// What some children that were written mean for what is shown.
    struct Shift {
        /// Keys that are shown no more, in the order they had.
        var left: [TreeKey] = []
        /// What is shown and was not, or was written, in order.
        var shown: [(place: SortPlace, isNew: Bool)] = []
    }

    let limit: TreeQuery.Limit
    /// In query order: all that are selected, or so many of them from the end that the limit counts from.
    private var places: [SortPlace]
    private var byKey: [TreeKey: SortPlace]
    /// Whether nobody that is selected is missing.
    private var isWhole: Bool

    /// - Parameter places: selected ones, in order, at most `room(for: limit)`; if fewer, all there are.
    init(_ places: [SortPlace], limit: TreeQuery.Limit) {
        self.limit = limit
        self.places = places
        // A damaged index may name a child twice; that is for `verify` to tell.
        byKey = Dictionary(places.map { ($0.key, $0) }) { first, _ in first }
        isWhole = places.count < Self.room(for: limit).count
    }

    /// Half as many again: a chat that loses messages one by one is read anew once in so many.
    private static func margin(of limit: TreeQuery.Limit) -> Int { min(max(limit.count / 2, 8), 256) }

    /// How many to read for a window.
    static func room(for limit: TreeQuery.Limit) -> TreeQuery.Limit {
        let (sum, isTooMuch) = limit.count.addingReportingOverflow(margin(of: limit))
        let count = isTooMuch ? Int.max : sum
        return switch limit {
        case .first: .first(count)
        case .last: .last(count)
        }
    }

    private var isFirst: Bool { if case .first = limit { true } else { false } }

    /// What the limit shows, in query order.
    var visible: ArraySlice<SortPlace> { isFirst ? places.prefix(limit.count) : places.suffix(limit.count) }

    /// The last one that is shown, counted from the end of the limit; nil while more could be.
    private var edge: SortPlace? {
        guard places.count >= limit.count else { return nil }
        return isFirst ? visible.last : visible.first
    }

    /// Up to here everybody is known; nil when everybody is.
    private var end: SortPlace? { isWhole ? nil : isFirst ? places.last : places.first }

    /// What must be read when so many have left that others may have to be shown: those behind all that are known.
    /// (From the beginning, a reader would step over all that ever left a queue at its front.)
    ///
    /// - Parameter old: these places before they were moved.
    func missing(in query: TreeQuery, after old: WindowPlaces) -> TreeQuery? {
        guard let end = old.end else { return nil }
        let count = Self.room(for: limit).count - places.count
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

    /// These and the ones that were missing.
    func with(_ missing: [SortPlace]) -> WindowPlaces {
        WindowPlaces(isFirst ? places + missing : missing + places, limit: limit)
    }

    private func isShown(_ place: SortPlace, edge: SortPlace?) -> Bool {
        guard let edge else { return true }
        return isFirst ? place <= edge : place >= edge
    }

    /// Takes over where children stand now: those that were written, nil for one that is not selected any more.
    ///
    /// Nil when somebody who is not kept may have to be shown: then the window must be read anew.
    mutating func move(_ moved: [TreeKey: SortPlace?]) -> Shift? {
        let oldEdge = edge
        let end = end
        let wereShown = moved.keys.compactMap { byKey[$0] }.filter { isShown($0, edge: oldEdge) }
        let isFirst = isFirst
        replace(moved) { place in end.map { isFirst ? place <= $0 : place >= $0 } ?? true }
        guard isWhole || places.count >= limit.count else { return nil }
        let newEdge = edge
        var shift = Shift()
        let known = Set(wereShown.map(\.key))
        for case (let key, let place?) in moved where byKey[key] != nil && isShown(place, edge: newEdge) {
            shift.shown.append((place, !known.contains(key)))
        }
        let remaining = Set(shift.shown.map(\.place.key))
        var left = wereShown.filter { !remaining.contains($0.key) }
        for place in between(oldEdge, newEdge) where moved[place.key] == nil {
            if isShown(place, edge: newEdge) { shift.shown.append((place, true)) } else { left.append(place) }
        }
        shift.left = left.sorted().map(\.key)
        shift.shown.sort { $0.place < $1.place }
        trim()
        return shift
    }

    /// Lets go of where they stood, and keeps where they stand now, if somebody there is kept.
    private mutating func replace(_ moved: [TreeKey: SortPlace?], where isKept: (SortPlace) -> Bool) {
        let new = moved.values.compactMap { $0 }.filter(isKept)
        if moved.count > Self.oneByOneMax {
            places.removeAll { moved[$0.key] != nil }
            places += new
            places.sort()
        } else {
            for key in moved.keys {
                if let place = byKey[key] { places.remove(at: index(of: place)) }
            }
            for place in new { places.insert(place, at: index(of: place)) }
        }
        for key in moved.keys { byKey[key] = nil }
        for place in new { byKey[place.key] = place }
    }

    /// More than so many are sorted in together.
    private static let oneByOneMax = 16

    /// The kept ones that one of the edges shows and the other does not.
    private func between(_ one: SortPlace?, _ other: SortPlace?) -> ArraySlice<SortPlace> {
        if one == other { return [] }
        if isFirst {
            // Up to an edge, it included.
            let bounds = [one, other].map { edge in edge.map { after($0) } ?? places.count }
            return places[min(bounds[0], bounds[1])..<max(bounds[0], bounds[1])]
        }
        let bounds = [one, other].map { edge in edge.map { index(of: $0) } ?? 0 }
        return places[min(bounds[0], bounds[1])..<max(bounds[0], bounds[1])]
    }

    /// Where a place stands, or would.
    private func index(of place: SortPlace) -> Int {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if places[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func after(_ place: SortPlace) -> Int {
        let index = index(of: place)
        return index < places.count && places[index] == place ? index + 1 : index
    }

    /// Lets go of those furthest behind when they have become many.
    private mutating func trim() {
        let room = Self.room(for: limit).count
        guard places.count > room, places.count - room > Self.margin(of: limit) else { return }
        let surplus = isFirst ? places[room...] : places[..<(places.count - room)]
        for place in surplus { byKey[place.key] = nil }
        if isFirst { places.removeSubrange(room...) } else { places.removeFirst(places.count - room) }
        isWhole = false
    }
}
