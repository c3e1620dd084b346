import HatoIdentity
import HatoModel

/// A hashed password as text of the PHC string format: `$scrypt$ln=14,r=8,p=5$<salt>$<hash>`.
///
/// Compared in constant time only (`matches`), therefore not `Equatable`.
struct PasswordHash: Sendable {
    static let saltBytes = 16
    static let hashBytes = 32

    var cost: ScryptCost
    var salt: [UInt8]
    var hash: [UInt8]

    init(cost: ScryptCost, salt: [UInt8], hash: [UInt8]) {
        self.cost = cost
        self.salt = salt
        self.hash = hash
    }

    /// Nil when the text does not have the form of `text`.
    init?(_ text: String) {
        let fields = text.split(separator: "$", omittingEmptySubsequences: false)
        guard fields.count == 5, fields[0].isEmpty, fields[1] == "scrypt", let cost = Self.cost(fields[2]),
            let salt = Self.bytes(fields[3]), let hash = Self.bytes(fields[4]), !salt.isEmpty,
            hash.count == Self.hashBytes
        else { return nil }
        self.init(cost: cost, salt: salt, hash: hash)
    }

    var text: String { "$scrypt$ln=\(cost.logN),r=\(cost.r),p=\(cost.p)$\(Self.text(salt))$\(Self.text(hash))" }

    /// Whether `derived` is the hash, in constant time.
    func matches(_ derived: [UInt8]) -> Bool { ConstantTime.isSame(derived, hash) }

    private static func cost(_ text: Substring) -> ScryptCost? {
        let parts = text.split(separator: ",")
        guard parts.count == 3, parts[0].hasPrefix("ln="), parts[1].hasPrefix("r="), parts[2].hasPrefix("p="),
            let logN = Int(parts[0].dropFirst(3)), let r = Int(parts[1].dropFirst(2)),
            let p = Int(parts[2].dropFirst(2))
        else { return nil }
        let cost = ScryptCost(logN: logN, r: r, p: p)
        return cost.isReasonable ? cost : nil
    }

    // PHC uses the standard alphabet of base64, without padding.
    private static func text(_ bytes: [UInt8]) -> String { Base64.standard.encode(bytes) }
    private static func bytes(_ text: Substring) -> [UInt8]? { Base64.standard.decode(text.utf8) }
}
