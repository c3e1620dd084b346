import HatoRPC

/// Entries by key, of which the one that was set longest ago is evicted first.
struct RecentEntries<Key: Hashable, Entry> {
    private var entries: [Key: Entry] = [:]
    /// The entries that may be evicted, in the order in which they were set.
    private var evictable = IndexedHeap<Key, UInt64>()
    private var settings: UInt64 = 0

    subscript(key: Key) -> Entry? { entries[key] }
    var all: [Key: Entry] { entries }

    /// - Parameters:
    ///   - entry: nil removes it.
    ///   - isEvictable: false: it stays until it is set again.
    mutating func set(_ key: Key, _ entry: Entry?, isEvictable: Bool = true) {
        entries[key] = entry
        settings += 1
        if entry != nil, isEvictable { evictable.insert(key, settings) } else { evictable.remove(key) }
    }

    /// Evicts what is too much with an entry for `key`, and returns it. Nil when too little may be evicted.
    mutating func evict(for key: Key, countMax: Int) -> [Key]? {
        guard entries[key] == nil else { return [] }
        var evicted: [Key] = []
        while entries.count >= countMax {
            guard let oldest = evictable.first?.key else { return nil }
            set(oldest, nil)
            evicted.append(oldest)
        }
        return evicted
    }
}
