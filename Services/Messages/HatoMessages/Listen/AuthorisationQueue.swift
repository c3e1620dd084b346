/// Rights that wait for a verdict, each once, in the order in which they came. Those that a response waits for are
/// taken in turn with the others: none waits for ever.
struct AuthorisationQueue {
    private struct Line {
        private var ids: [UInt64] = []
        /// The first that was not taken yet.
        private var first = 0
        private var members: Set<UInt64> = []

        var isEmpty: Bool { members.isEmpty }

        mutating func add(_ id: UInt64) {
            if members.insert(id).inserted { ids.append(id) }
        }

        mutating func takeFirst() -> UInt64? {
            guard first < ids.count else { return nil }
            let id = ids[first]
            first += 1
            members.remove(id)
            if first == ids.count {
                ids = []
                first = 0
            } else if first >= 1_024 {
                ids.removeFirst(first)
                first = 0
            }
            return id
        }
    }

    private var all = Line()
    /// Stand in `all`, too.
    private var urgent = Line()
    private var isUrgentNext = true

    var isEmpty: Bool { all.isEmpty && urgent.isEmpty }

    mutating func add(_ id: UInt64) { all.add(id) }

    /// A response waits for it.
    mutating func hurry(_ id: UInt64) { urgent.add(id) }

    /// May be one that has a verdict already, or has ended.
    mutating func takeFirst() -> UInt64? {
        defer { isUrgentNext.toggle() }
        if isUrgentNext, let id = urgent.takeFirst() { return id }
        return all.takeFirst() ?? urgent.takeFirst()
    }
}
