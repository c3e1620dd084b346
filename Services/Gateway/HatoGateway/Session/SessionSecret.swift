import HatoIdentity
import HatoModel

/// A secret that names a session: in clear the place where it is found, and then 144 random bits.
struct SessionSecret: Sendable {
    /// The event loop of a session, and a random number on it.
    struct Place: Sendable, Hashable {
        fileprivate static let numberBits: UInt64 = 48
        fileprivate let bits: UInt64

        /// A place on the event loop `loop`.
        init(loop: Int) {
            var generator = SystemRandomNumberGenerator()
            let number = UInt64.random(in: 0..<1 << Self.numberBits, using: &generator)
            bits = UInt64(truncatingIfNeeded: loop) << Self.numberBits | number
        }

        fileprivate init(_ bytes: ArraySlice<UInt8>) { bits = bytes.reduce(0) { $0 << 8 | UInt64($1) } }

        /// The number of the event loop, which may not exist: clients send it.
        var loop: Int { Int(bits >> Self.numberBits) }
    }

    private static let placeBytes = 8
    private static let randomBytes = 18

    let place: Place
    private let random: [UInt8]

    /// A new secret for a session at `place`.
    init(_ place: Place) {
        self.place = place
        random = Self.random()
    }

    /// Reads what a client has sent; nil for what can be no such secret.
    init?(_ text: String) {
        guard text.utf8.count <= 64, let bytes = Base64.url.decode(text.utf8),
            bytes.count == Self.placeBytes + Self.randomBytes
        else { return nil }
        place = Place(bytes[..<Self.placeBytes])
        random = Array(bytes[Self.placeBytes...])
    }

    /// Letters, digits, `-` and `_`.
    var text: String {
        let bits = place.bits
        let bytes = (0..<Self.placeBytes).reversed().map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
        return Base64.url.encode(bytes + random)
    }

    /// In constant time but for the place.
    func isSame(as other: SessionSecret) -> Bool { place == other.place && ConstantTime.isSame(random, other.random) }

    /// 144 random bits.
    static func random() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<randomBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
