/// Entries in the order of their priorities, of which any can be removed by its key.
///
/// A binary heap with an index: inserting, removing and taking the first cost the logarithm of the number of entries,
/// looking at the first costs nothing.
package struct IndexedHeap<Key: Hashable, Priority: Comparable> {
    private var entries: [(key: Key, priority: Priority)] = []
    /// Where the entry of a key stands.
    private var positions: [Key: Int] = [:]

    /// No entries.
    package init() {}

    /// How many entries there are.
    package var count: Int { entries.count }
    /// Whether there are none.
    package var isEmpty: Bool { entries.isEmpty }
    /// The entry of the least priority.
    package var first: (key: Key, priority: Priority)? { entries.first }

    /// Whether there is an entry of this key.
    package func contains(_ key: Key) -> Bool { positions[key] != nil }

    /// The priority of the entry of this key.
    package func priority(of key: Key) -> Priority? { positions[key].map { entries[$0].priority } }

    /// Adds an entry; one of the same key is replaced.
    package mutating func insert(_ key: Key, _ priority: Priority) {
        if let position = positions[key] {
            entries[position].priority = priority
            moveUp(from: position)
            moveDown(from: position)
            return
        }
        positions[key] = entries.count
        entries.append((key, priority))
        moveUp(from: entries.count - 1)
    }

    /// Nothing happens when there is no entry of this key.
    package mutating func remove(_ key: Key) {
        guard let position = positions.removeValue(forKey: key), let last = entries.popLast() else { return }
        guard position < entries.count else { return }
        entries[position] = last
        positions[last.key] = position
        moveUp(from: position)
        moveDown(from: position)
    }

    /// Removes every entry.
    package mutating func removeAll() {
        entries = []
        positions = [:]
    }

    private mutating func moveUp(from start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard entries[position].priority < entries[parent].priority else { return }
            swap(position, parent)
            position = parent
        }
    }

    private mutating func moveDown(from start: Int) {
        var position = start
        while true {
            var least = 2 * position + 1
            guard least < entries.count else { return }
            if least + 1 < entries.count, entries[least + 1].priority < entries[least].priority { least += 1 }
            guard entries[least].priority < entries[position].priority else { return }
            swap(position, least)
            position = least
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        entries.swapAt(one, other)
        positions[entries[one].key] = one
        positions[entries[other].key] = other
    }
}

extension IndexedHeap: Sendable where Key: Sendable, Priority: Sendable {}
