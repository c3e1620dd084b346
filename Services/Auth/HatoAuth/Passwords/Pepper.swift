import Crypto
public import HatoIdentity
import HatoModel

/// Secret keys, kept outside of the store, that are mixed into passwords before they are hashed (HMAC-SHA256): a copy
/// of the store alone is of no use for guessing passwords.
///
/// The first key of the file hashes, every key checks. To change it, write the new one on the first line: a password
/// gets it at its next use. The others stay until no password needs them.
public struct Pepper: Sendable {
    private struct Key: Sendable {
        /// What stands in the text of a hash; reveals nothing of the key.
        var id: String
        var key: SymmetricKey
    }

    private let keys: [Key]
    /// Warnings for the operator that do not stop the start.
    public let warnings: [String]

    /// No pepper.
    public static let none = Pepper([], warnings: [])

    /// The keys of the file at `path`, one a line.
    public init(file path: String) throws(SecretFileError) {
        let lines = try KeyLines(file: path)
        self.init(lines.keys, warnings: lines.warnings)
    }

    /// Keys from memory, for tests; nil when one is too short.
    public init?(keys: [String]) {
        guard keys.allSatisfy({ $0.utf8.count >= KeyLines.keyBytesMin }) else { return nil }
        self.init(keys, warnings: [])
    }

    private init(_ keys: [String], warnings: [String]) {
        self.keys = keys.map { text in
            func derived(_ purpose: String, byteCount: Int) -> SymmetricKey {
                HKDF<SHA256>.deriveKey(
                    inputKeyMaterial: SymmetricKey(data: Array(text.utf8)), salt: [UInt8](),
                    info: Array(purpose.utf8), outputByteCount: byteCount)
            }
            let id = derived("hato pepper id", byteCount: 9).withUnsafeBytes { Base64.standard.encode(Array($0)) }
            return Key(id: id, key: derived("hato pepper", byteCount: 32))
        }
        self.warnings = warnings
    }

    /// The id of the key that new hashes get; nil: none.
    var currentID: String? { keys.first?.id }

    var ids: Set<String> { Set(keys.map(\.id)) }

    /// Whether there is a key with this id.
    func contains(_ id: String) -> Bool { keys.contains { $0.id == id } }

    /// A password with the key of an id, nil: as it is. Nil when there is no such key.
    func applied(to password: [UInt8], _ id: String?) -> [UInt8]? {
        guard let id else { return password }
        guard let key = keys.first(where: { $0.id == id }) else { return nil }
        return Array(HMAC<SHA256>.authenticationCode(for: password, using: key.key))
    }
}

/// Why passwords of a store cannot be checked; the text names the setting.
public struct PepperError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Accounts whose passwords need a key that is missing.
    var count: Int

    public var description: String {
        "setting pepper-file: \(count) passwords in the store are hashed with a key that is not in the file; add it as a "
            + "line"
    }
}
