import Crypto

/// Encrypts secrets that a service keeps in its store: AES-256-GCM (NIST SP 800-38D) with keys of a file outside of it.
///
/// The first key of the file encrypts, every key decrypts: to change it, write the new one on the first line, start the
/// service, and remove the others.
public struct KeyEncryption: Sendable {
    /// By so many bytes an encrypted secret is longer: its nonce and its tag.
    public static let addedBytes = 28

    /// A decrypted secret.
    public struct Decrypted: Sendable {
        /// The bytes as they were before encryption.
        public var secret: [UInt8]
        /// Whether the first key decrypted it.
        public var isOfFirstKey: Bool
    }

    private let keys: [SymmetricKey]
    /// Warnings for the operator that do not stop the start.
    public let warnings: [String]

    /// The keys of the file at `path`.
    public init(file path: String) throws(SecretFileError) {
        let lines = try KeyLines(file: path)
        self.init(lines.keys, warnings: lines.warnings)
    }

    /// Keys from memory, for tests; nil when there is none, or one is too short.
    public init?(keys: [String]) {
        guard !keys.isEmpty, keys.allSatisfy({ $0.utf8.count >= KeyLines.keyBytesMin }) else { return nil }
        self.init(keys, warnings: [])
    }

    private init(_ keys: [String], warnings: [String]) {
        self.keys = keys.map { key in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: Array(key.utf8)), salt: [UInt8](),
                info: Array("hato key encryption".utf8), outputByteCount: 32)
        }
        self.warnings = warnings
    }

    /// The encrypted secret, for `name` only: at another place it cannot be decrypted.
    ///
    /// - Throws: the errors of the cryptography library.
    public func encrypt(_ secret: [UInt8], of name: String) throws -> [UInt8] {
        guard let key = keys.first else { throw CryptoKitError.incorrectKeySize }
        let sealed = try AES.GCM.seal(secret, using: key, authenticating: Array(name.utf8))
        return Array(sealed.nonce) + Array(sealed.ciphertext) + Array(sealed.tag)
    }

    /// Nil when none of the keys has encrypted it, or it was not encrypted for `name`.
    public func decrypt(_ bytes: [UInt8], of name: String) -> Decrypted? {
        guard let sealed = try? AES.GCM.SealedBox(combined: bytes) else { return nil }
        for (index, key) in keys.enumerated() {
            guard let secret = try? AES.GCM.open(sealed, using: key, authenticating: Array(name.utf8)) else { continue }
            return Decrypted(secret: Array(secret), isOfFirstKey: index == 0)
        }
        return nil
    }
}
