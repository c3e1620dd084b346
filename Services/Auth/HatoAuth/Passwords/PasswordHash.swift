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
    /// The id of the key of `Pepper` that was mixed into the password; nil: none, as in all schemes of other software.
    var pepperID: String?

    init(_ scheme: HashScheme, salt: [UInt8], hash: [UInt8], pepperID: String? = nil) {
        self.scheme = scheme
        self.salt = salt
        self.hash = hash
        self.pepperID = pepperID
    }

    /// A hash as this service makes it.
    init(cost: ScryptCost, salt: [UInt8], hash: [UInt8], pepperID: String? = nil) {
        self.init(.scrypt(cost), salt: salt, hash: hash, pepperID: pepperID)
    }

    /// Whether `derived` is the hash, in constant time.
    func matches(_ derived: [UInt8]) -> Bool { ConstantTime.isSame(derived, hash) }

    /// Whether what this service makes at `cost` with a key of `Pepper` is better: stronger, with another key, or as a
    /// check takes less memory. Also when other software made it.
    func isOutdated(at cost: ScryptCost, _ pepperID: String? = nil) -> Bool {
        guard case .scrypt(let own) = scheme else { return true }
        return own.work < cost.work || own.memoryBytes > cost.memoryBytes || self.pepperID != pepperID
    }
}
