import HatoRPC

/// Entries by key, of which the one that was set longest ago is evicted first.
struct RecentEntries<Key: Hashable, Entry> {
    private var entries: [Key: Entry] = [:]
    /// The entries that may be evicted, in the order in which they were set.
    private var evictable = IndexedHeap<Key, UInt64>()
    private var settings: UInt64 = 0

    subscript(key: Key) -> Entry? { entries[key] }

    /// - Parameters:
    ///   - entry: nil removes it.
    ///   - isEvictable: false: it stays until it is set again.
    mutating func set(_ key: Key, _ entry: Entry?, isEvictable: Bool = true) {
        entries[key] = entry
        settings += 1
        if entry != nil, isEvictable { evictable.insert(key, settings) } else { evictable.remove(key) }
    }

    /// Evicts what is too much with an entry for `key`. False when nothing may be evicted.
    mutating func evict(for key: Key, countMax: Int) -> Bool {
        guard entries[key] == nil else { return true }
        while entries.count >= countMax {
            guard let oldest = evictable.first?.key else { return false }
            set(oldest, nil)
        }
        return true
    }
}
