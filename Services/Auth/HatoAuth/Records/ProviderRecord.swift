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
    /// What is in the row; the id is its key.
    private struct Stored: FieldObject {
        var issuer: String
        var clientIds: [String]
        var trustsEmail: Bool
        var allowsSignUp: Bool
        var isDiscovered: Bool
        var keys: JSONValue
        var keysFetchedAt: Int64?

        static let fields = Fields<Self>(
            blank: Self(
                issuer: "", clientIds: [], trustsEmail: false, allowsSignUp: false, isDiscovered: false, keys: .null),
            .required("issuer", \.issuer),
            .required("clientIds", \.clientIds),
            .flag("trustsEmail", \.trustsEmail),
            .flag("allowsSignUp", \.allowsSignUp),
            .flag("isDiscovered", \.isDiscovered),
            .required("keys", \.keys),
            .optionalTime("keysFetchedAt", \.keysFetchedAt))
    }

    private static let name = "provider"

    /// Throws `RecordError`.
    init(_ id: String, _ bytes: [UInt8]) throws(RecordError) {
        let stored = try RecordCodec.decode(Stored.self, bytes, of: Self.name, unknown: .rejected)
        self.init(id: id, issuer: stored.issuer, clientIds: stored.clientIds)
        trustsEmail = stored.trustsEmail
        allowsSignUp = stored.allowsSignUp
        isDiscovered = stored.isDiscovered
        do { keys = try ProviderKeySet(stored.keys) } catch {
            throw RecordError(record: Self.name, problem: "member keys")
        }
        keysFetchedAt = stored.keysFetchedAt
    }

    var bytes: [UInt8] {
        RecordCodec.encode(
            Stored(
                issuer: issuer, clientIds: clientIds, trustsEmail: trustsEmail, allowsSignUp: allowsSignUp,
                isDiscovered: isDiscovered, keys: keys.json, keysFetchedAt: keysFetchedAt))
    }
}

/// The providers of a store. It reads first and writes after.
enum ProviderRows {
    static func find(_ id: String, in rows: some StoreReading) throws -> ProviderRecord? {
        try rows.row(AuthKey.provider(id)).map { try ProviderRecord(id, $0) }
    }

    static func all(in rows: some StoreReading) throws -> [ProviderRecord] {
        var records: [ProviderRecord] = []
        try rows.rows(AuthKey.providers) { key, value in
            records.append(try ProviderRecord(String(decoding: key.dropFirst(), as: UTF8.self), value))
            return true
        }
        return records
    }

    static func put(_ record: ProviderRecord, in rows: some StoreWriting) {
        rows.putRow(AuthKey.provider(record.id), record.bytes)
    }
}
