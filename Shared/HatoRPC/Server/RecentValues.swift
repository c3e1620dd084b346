/// Values by keys, of which those that were set last are kept, 8,192 at least.
package struct RecentValues<Key: Hashable, Value> {
    /// At so many, the newer half becomes the older half, which is forgotten.
    private static var halfMax: Int { 8_192 }

    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]

    /// No values.
    package init() {}

    /// The value of a key; nil: it has none, or it is forgotten.
    package subscript(_ key: Key) -> Value? {
        get { newer[key] ?? older[key] }
        set {
            older[key] = nil
            if newValue != nil, newer.count >= Self.halfMax { (newer, older) = ([:], newer) }
            newer[key] = newValue
        }
    }
}

extension RecentValues: Sendable where Key: Sendable, Value: Sendable {}
