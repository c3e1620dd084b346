/// A random id of one history of a store; 32 lower-case hex digits as text.
public struct StoreEpoch: Sendable, Hashable, CustomStringConvertible {
    public var description: String

    public init(_ description: String) { self.description = description }

    /// Whether a text has the form of an epoch.
    public static func isEpoch(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
                default: false
                }
            }
    }

    /// A random epoch from a given source.
    public static func random(using generator: inout some RandomNumberGenerator) -> StoreEpoch {
        let digits = Array("0123456789abcdef")
        return StoreEpoch(String((0..<32).map { _ in digits[Int.random(in: 0..<16, using: &generator)] }))
    }

    /// A random epoch from the system's source.
    public static func random() -> StoreEpoch {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }
}
