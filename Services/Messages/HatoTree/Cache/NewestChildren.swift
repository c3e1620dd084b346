import HatoModel

/// The children of a parent after a certain key; some of them may no longer exist.
///
/// A push must verify that no ancestor is a leaf and that its key is free, and both hold below a parent that has
/// children when none of them has that key. (A seek costs a push more than the rest of planning and applying it.) Keys
/// of pushes rise, but those of several connections may arrive in another order; therefore the newest ones are held
/// individually.
struct NewestChildren {
    /// In rising order of their rows.
    private var keys: [ChildKey] = []
    private var floor: ChildKey

    /// - Parameter floor: a key without a child after it.
    init(after floor: ChildKey) { self.floor = floor }

    /// The number of children that are held individually.
    var count: Int { keys.count }

    /// Whether there is certainly no child with this key.
    func lack(_ key: ChildKey) -> Bool { lack(key, at: index(after: key)) }

    private func lack(_ key: ChildKey, at index: Int) -> Bool {
        index == 0 ? floor < key : keys[index - 1] != key
    }

    /// Returns the change of the number of keys.
    mutating func insert(_ key: ChildKey, max: Int) -> Int {
        let (index, count) = (index(after: key), keys.count)
        guard lack(key, at: index) else { return 0 }
        keys.insert(key, at: index)
        if keys.count > max { evictOlderHalf() }
        return keys.count - count
    }

    /// Drops the older half; all children after the greatest dropped one stay known. The last one is dropped, too, so
    /// that a parent that is not written to finally holds none.
    mutating func evictOlderHalf() {
        guard !keys.isEmpty else { return }
        let half = (keys.count + 1) / 2
        floor = keys[half - 1]
        // A new array: the old one would keep its capacity.
        keys = Array(keys[half...])
    }

    /// The number of keys not after this one; usually nearly all.
    private func index(after key: ChildKey) -> Int {
        var (low, high) = (0, keys.count)
        var middle = high - 1
        while low < high {
            if key < keys[middle] { high = middle } else { low = middle + 1 }
            middle = (low + high) / 2
        }
        return low
    }
}

/// The first 24 bytes of a child's encoded key, or all of a shorter one padded with zeros: a push key has 21. They have
/// the order of the keys. Long keys with equal beginnings are treated as one, which can only make a key seem taken.
struct ChildKey: Comparable, Sendable {
    private let words: (UInt64, UInt64, UInt64)

    /// - Parameter key: a child's key as encoded by `TreeKeyCodec`.
    init(_ key: ArraySlice<UInt8>) {
        let bytes = key.span.bytes
        words = (Self.word(0, bytes), Self.word(1, bytes), Self.word(2, bytes))
    }

    private static func word(_ number: Int, _ bytes: RawSpan) -> UInt64 {
        let start = 8 * number
        if start + 8 <= bytes.byteCount {
            return UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
        }
        var word: UInt64 = 0
        for index in start..<start + 8 {
            let byte = index < bytes.byteCount ? bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self) : 0
            word = word << 8 | UInt64(byte)
        }
        return word
    }

    static func == (left: ChildKey, right: ChildKey) -> Bool { left.words == right.words }

    static func < (left: ChildKey, right: ChildKey) -> Bool { left.words < right.words }
}
