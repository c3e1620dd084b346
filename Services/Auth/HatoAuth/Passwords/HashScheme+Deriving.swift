import Crypto
import CryptoExtras

extension HashScheme {
    /// The hash of a password and its salt.
    ///
    /// - Parameter byteCount: the size of the hash, for schemes that make any.
    func derive(_ password: [UInt8], _ salt: [UInt8], byteCount: Int) throws -> [UInt8] {
        switch self {
        case .scrypt(let cost), .standardScrypt(let cost):
            try Self.scrypt(password, salt, cost, byteCount: byteCount)
        case .firebaseScrypt(let firebase): try firebase.derive(password, salt)
        case .hmac(let digest, let key, let order):
            digest.authenticate(order.joined(password, salt), key: SymmetricKey(data: key))
        case .pbkdf2(let digest, let rounds):
            try KDF.Insecure.PBKDF2.deriveKey(
                from: password, salt: salt, using: digest.ofPBKDF2, outputByteCount: byteCount,
                unsafeUncheckedRounds: rounds
            ).bytes
        case .digest(let digest, let rounds, let order): digest.hash(order.joined(password, salt), rounds: rounds)
        case .bcrypt(let bcrypt): bcrypt.derive(password, salt)
        case .argon2(let argon2): try argon2.derive(password, salt, byteCount: byteCount)
        }
    }

    static func scrypt(
        _ password: [UInt8], _ salt: [UInt8], _ cost: ScryptCost, byteCount: Int
    ) throws -> [UInt8] {
        try KDF.Scrypt.deriveKey(
            from: password, salt: salt, outputByteCount: byteCount, rounds: 1 << cost.logN, blockSize: cost.r,
            parallelism: cost.p
        ).bytes
    }
}

extension FirebaseScrypt {
    private static let keyBytes = 64
    private static let cipherKeyBytes = 32

    /// The signer key, encrypted with the first 32 bytes of the derived key.
    func derive(_ password: [UInt8], _ salt: [UInt8]) throws -> [UInt8] {
        let cost = ScryptCost(logN: logN, r: r, p: 1)
        let derived = try HashScheme.scrypt(password, salt + saltSeparator, cost, byteCount: Self.keyBytes)
        let key = SymmetricKey(data: derived.prefix(Self.cipherKeyBytes))
        let zeros = [UInt8](repeating: 0, count: 16)
        return Array(try AES._CTR.encrypt(signerKey, using: key, nonce: AES._CTR.Nonce(nonceBytes: zeros)))
    }
}

extension HashDigest {
    fileprivate var ofPBKDF2: KDF.Insecure.PBKDF2.HashFunction {
        switch self {
        case .md5: .insecureMD5
        case .sha1: .insecureSHA1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }

    fileprivate func authenticate(_ bytes: [UInt8], key: SymmetricKey) -> [UInt8] {
        switch self {
        case .md5: Array(HMAC<Insecure.MD5>.authenticationCode(for: bytes, using: key))
        case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: bytes, using: key))
        case .sha256: Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
        case .sha512: Array(HMAC<SHA512>.authenticationCode(for: bytes, using: key))
        }
    }

    fileprivate func hash(_ bytes: [UInt8], rounds: Int) -> [UInt8] {
        switch self {
        case .md5: Self.hash(Insecure.MD5.self, bytes, rounds)
        case .sha1: Self.hash(Insecure.SHA1.self, bytes, rounds)
        case .sha256: Self.hash(SHA256.self, bytes, rounds)
        case .sha512: Self.hash(SHA512.self, bytes, rounds)
        }
    }

    private static func hash<Digest: HashFunction>(_: Digest.Type, _ bytes: [UInt8], _ rounds: Int) -> [UInt8] {
        var hash = Array(Digest.hash(data: bytes))
        for _ in 1..<max(1, rounds) { hash = Array(Digest.hash(data: hash)) }
        return hash
    }
}

extension SymmetricKey {
    fileprivate var bytes: [UInt8] { withUnsafeBytes { Array($0) } }
}
