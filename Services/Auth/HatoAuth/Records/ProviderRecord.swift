import HatoModel
import HatoStorage

/// A provider whose ID tokens sign in, with its keys.
struct ProviderRecord: Sendable {
    var id: String
    /// The `iss` of its tokens.
    var issuer: String
    /// The `aud` of its tokens is one of these.
    var clientIds: [String]
    /// Whether an address that it calls verified is that of the user.
    var trustsEmail = false
    var allowsSignUp = false
    /// Whether its keys are fetched; else they were given.
    var isDiscovered = false
    var keys = ProviderKeySet.none
    /// Milliseconds since 1970; nil for given keys.
    var keysFetchedAt: Int64?

    init(id: String, issuer: String, clientIds: [String]) {
        self.id = id
        self.issuer = issuer
        self.clientIds = clientIds
    }

    /// As administrators see it.
    var entry: Auth.Providers.Entry {
        var entry = Auth.Providers.Entry(id: id, issuer: issuer, clientIds: clientIds)
        entry.trustsEmail = trustsEmail
        entry.allowsSignUp = allowsSignUp
        entry.isDiscovered = isDiscovered
        entry.keyIds = keys.keyIDs
        entry.keysFetchedAt = keysFetchedAt
        return entry
    }

    func verifier(tokenBytesMax: Int) -> ProviderTokenVerifier {
        ProviderTokenVerifier(
            provider: id, issuer: issuer, clientIds: clientIds, keys: keys, tokenBytesMax: tokenBytesMax)
    }
}

extension ProviderRecord {
    /// Makes its keys, which takes too long within a transaction. Throws `RecordError`.
    init(_ row: ProviderRow) throws(RecordError) {
        self.init(id: row.id, issuer: row.issuer, clientIds: row.clientIds)
        trustsEmail = row.trustsEmail
        allowsSignUp = row.allowsSignUp
        isDiscovered = row.isDiscovered
        do { keys = try ProviderKeySet(row.keys) } catch {
            throw RecordError(record: ProviderRow.name, problem: "member keys")
        }
        keysFetchedAt = row.keysFetchedAt
    }

    /// As the store keeps it.
    var row: ProviderRow {
        ProviderRow(
            id: id, issuer: issuer, clientIds: clientIds, trustsEmail: trustsEmail, allowsSignUp: allowsSignUp,
            isDiscovered: isDiscovered, keys: keys.json, keysFetchedAt: keysFetchedAt)
    }
}

/// A provider as the store keeps it, its keys as text.
struct ProviderRow: Sendable {
    fileprivate static let name = "provider"

    /// The key of the row.
    var id: String
    var issuer: String
    var clientIds: [String]
    var trustsEmail: Bool
    var allowsSignUp: Bool
    var isDiscovered: Bool
    /// A JWK Set.
    var keys: JSONValue
    var keysFetchedAt: Int64?

    /// Whether its keys were fetched from an issuer.
    func isDiscovered(at issuer: String) -> Bool { isDiscovered && self.issuer == issuer }

    /// Whether its keys were fetched after a time: those of that time may have been withdrawn since. A later time than
    /// `now` is that of a clock that was set back.
    func hasKeys(from time: Int64, until now: Int64) -> Bool {
        keysFetchedAt.map { $0 > time && $0 <= now } ?? false
    }
}

extension ProviderRow: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(
            id: "", issuer: "", clientIds: [], trustsEmail: false, allowsSignUp: false, isDiscovered: false,
            keys: .null),
        .required("issuer", \.issuer),
        .required("clientIds", \.clientIds),
        .flag("trustsEmail", \.trustsEmail),
        .flag("allowsSignUp", \.allowsSignUp),
        .flag("isDiscovered", \.isDiscovered),
        .required("keys", \.keys),
        .optionalTime("keysFetchedAt", \.keysFetchedAt))

    /// Throws `RecordError`.
    init(_ id: String, _ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: Self.name, unknown: .rejected)
        self.id = id
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

/// The providers of a store. It reads first and writes after.
enum ProviderRows {
    static func find(_ id: String, in rows: some StoreReading) throws -> ProviderRow? {
        try rows.row(AuthKey.provider(id)).map { try ProviderRow(id, $0) }
    }

    static func all(in rows: some StoreReading) throws -> [ProviderRow] {
        var all: [ProviderRow] = []
        try rows.rows(AuthKey.providers) { key, value in
            all.append(try ProviderRow(String(decoding: key.dropFirst(), as: UTF8.self), value))
            return true
        }
        return all
    }

    /// How many there are besides one.
    static func count(besides id: String, in rows: some StoreReading) throws -> Int {
        var count = 0
        try rows.rows(AuthKey.providers) { key, _ in
            if key != AuthKey.provider(id) { count += 1 }
            return true
        }
        return count
    }

    static func put(_ row: ProviderRow, in rows: some StoreWriting) {
        rows.putRow(AuthKey.provider(row.id), row.bytes)
        rows.deleteRow(AuthKey.formerIssuer(row.id))
    }

    /// Removes a provider; what its identities are of stays known while accounts have some.
    static func remove(_ row: ProviderRow, hasIdentities: Bool, in rows: some StoreWriting) {
        rows.deleteRow(AuthKey.provider(row.id))
        if hasIdentities { rows.putRow(AuthKey.formerIssuer(row.id), Array(row.issuer.utf8)) }
    }

    /// The issuer of the identities of a provider that may have been removed; nil when none is known.
    static func issuer(ofIdentities id: String, in rows: some StoreReading) throws -> String? {
        if let row = try find(id, in: rows) { return row.issuer }
        return try rows.row(AuthKey.formerIssuer(id)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether an account has an identity of a provider.
    static func hasIdentities(_ id: String, in rows: some StoreReading) throws -> Bool {
        var hasOne = false
        try rows.rows(AuthKey.identities(of: id)) { _, _ in
            hasOne = true
            return false
        }
        return hasOne
    }
}
