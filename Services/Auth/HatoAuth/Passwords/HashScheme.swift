import HatoModel

/// How a password becomes a hash: with scrypt, as this service hashes, or by a scheme of other software, which is only
/// checked (spec auth §7).
enum HashScheme: Sendable, Hashable {
    /// Of the password in its normalised form; all others are of the password as it was typed.
    case scrypt(ScryptCost)
    case standardScrypt(ScryptCost)
    case firebaseScrypt(FirebaseScrypt)
    /// The key is the signer key.
    case hmac(HashDigest, key: [UInt8], order: SaltOrder)
    case pbkdf2(HashDigest, rounds: Int)
    /// The digest of a digest, so many times; 0 as 1.
    case digest(HashDigest, rounds: Int, order: SaltOrder)
    case bcrypt(Bcrypt)
    case argon2(Argon2)

    /// A hash that needs more memory is never computed: a damaged record or an import must not exhaust the process.
    static let memoryBytesMax = 256 << 20
}

/// The cost and the keys of Firebase's own scheme: scrypt, whose result encrypts the signer key.
struct FirebaseScrypt: Sendable, Hashable {
    /// Log₂ of N: `memoryCost`.
    var logN: Int
    /// The block size: `rounds`.
    var r: Int
    var saltSeparator: [UInt8]
    var signerKey: [UInt8]
}

/// A digest that other software uses for passwords.
enum HashDigest: String, Sendable, Hashable, CaseIterable {
    case md5
    case sha1
    case sha256
    case sha512

    var byteCount: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// Where the salt is in what is hashed.
enum SaltOrder: String, Sendable, Hashable {
    case passwordFirst = "ps"
    case saltFirst = "sp"

    func joined(_ password: [UInt8], _ salt: [UInt8]) -> [UInt8] {
        self == .passwordFirst ? password + salt : salt + password
    }
}

/// Why a hash cannot be taken.
struct HashProblem: Error, Sendable, Hashable {
    /// The parameter of `auth.users.import` that is wrong, where it is one of the whole request.
    var parameter: String
    /// States a valid value; never the hash.
    var message: String

    init(_ parameter: String, _ message: String) {
        self.parameter = parameter
        self.message = message
    }

    init(_ message: String) { self.init("passwordHash", message) }
}
