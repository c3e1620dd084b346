import HatoIdentity
import HatoModel

/// A hashed password. `PasswordHash+Text.swift` has its text.
///
/// Compared in constant time only (`matches`), therefore not `Equatable`.
struct PasswordHash: Sendable {
    static let saltBytes = 16
    static let hashBytes = 32

    var scheme: HashScheme
    /// Of bcrypt: the characters of its text.
    var salt: [UInt8]
    /// Of bcrypt: the characters of its text.
    var hash: [UInt8]

    init(_ scheme: HashScheme, salt: [UInt8], hash: [UInt8]) {
        self.scheme = scheme
        self.salt = salt
        self.hash = hash
    }

    /// A hash as this service makes it.
    init(cost: ScryptCost, salt: [UInt8], hash: [UInt8]) { self.init(.scrypt(cost), salt: salt, hash: hash) }

    /// Whether `derived` is the hash, in constant time.
    func matches(_ derived: [UInt8]) -> Bool { ConstantTime.isSame(derived, hash) }

    /// Whether what this service makes at `cost` is better: stronger, or as a check takes less memory. Also when other
    /// software made it.
    func isOutdated(at cost: ScryptCost) -> Bool {
        guard case .scrypt(let own) = scheme else { return true }
        return own.work < cost.work || own.memoryBytes > cost.memoryBytes
    }
}
