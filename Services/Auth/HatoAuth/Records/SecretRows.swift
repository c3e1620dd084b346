import HatoIdentity
import HatoModel
import HatoStorage

/// Why the secrets of a store cannot be read; the text names the setting.
public enum KeyEncryptionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The store holds encrypted keys, and no file of keys is set.
    case noKey
    /// The keys of the file are others.
    case wrongKey

    public var description: String {
        switch self {
        case .noKey:
            "setting key-encryption-file is missing: the keys in the store are encrypted, name the file of their key"
        case .wrongKey:
            "setting key-encryption-file: no key of the file decrypts the keys in the store; add the key that "
                + "encrypted them as a line"
        }
    }
}

/// The secrets of a store, encrypted if there are keys for that: the private halves of the signing keys, and the key
/// from which the successors of refresh tokens are derived.
struct SecretRows: Sendable {
    static let refreshKeyBytes = 32
    private static let refreshKeyName = "refresh key"

    /// Nil: they are written in clear, protected by the mode of the store's folder.
    let encryption: KeyEncryption?

    /// A secret as it was found.
    struct Found {
        var secret: [UInt8]
        /// Whether `put` would write it otherwise.
        var isOutdated: Bool
    }

    // MARK: Signing keys

    /// All signing keys. Throws `RecordError`, `KeyEncryptionError`, and the errors of the store.
    func signingKeys(in rows: some StoreReading) throws -> (records: [SigningKeyRecord], isOutdated: Bool) {
        var records: [SigningKeyRecord] = []
        var isOutdated = false
        try rows.rows(AuthKey.signingKeys) { key, value in
            let kid = String(decoding: key.dropFirst(), as: UTF8.self)
            let record = try SigningKeyRecord(kid: kid, value) { sealed in
                let found = try decrypt(sealed, of: kid)
                if found.isOutdated { isOutdated = true }
                return found.secret
            }
            if encryption != nil, record.key != nil, record.isInClear { isOutdated = true }
            records.append(record)
            return true
        }
        return (records, isOutdated)
    }

    /// Nil when the store holds none yet.
    func ring(in rows: some StoreReading) throws -> SigningKeyRing? {
        try SigningKeyRing(try signingKeys(in: rows).records)
    }

    func put(_ record: SigningKeyRecord, in rows: some StoreWriting) throws {
        let sealed = try record.key.flatMap { try encryption?.encrypt($0.rawRepresentation, of: record.kid) }
        rows.putRow(AuthKey.signingKey(record.kid), record.bytes(sealed: sealed))
    }

    // MARK: The key of refresh tokens

    /// Nil when the store holds none yet.
    func refreshKey(in rows: some StoreReading) throws -> Found? {
        guard let row = try rows.row(AuthKey.refreshSecret) else { return nil }
        switch row.count {
        case Self.refreshKeyBytes: return Found(secret: row, isOutdated: encryption != nil)
        case Self.refreshKeyBytes + KeyEncryption.addedBytes: return try decrypt(row, of: Self.refreshKeyName)
        default: throw RecordError(record: "secret")
        }
    }

    func put(refreshKey: [UInt8], in rows: some StoreWriting) throws {
        rows.putRow(
            AuthKey.refreshSecret, try encryption?.encrypt(refreshKey, of: Self.refreshKeyName) ?? refreshKey)
    }

    private func decrypt(_ sealed: [UInt8], of name: String) throws -> Found {
        guard let encryption else { throw KeyEncryptionError.noKey }
        guard let found = encryption.decrypt(sealed, of: name) else { throw KeyEncryptionError.wrongKey }
        return Found(secret: found.secret, isOutdated: !found.isOfFirstKey)
    }
}
