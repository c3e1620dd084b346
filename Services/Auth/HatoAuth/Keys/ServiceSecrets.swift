import HatoIdentity
import HatoModel
import HatoStorage

/// The secrets of the service: the signing keys, and the key from which the successors of refresh tokens are derived.
///
/// Generated when a store is opened for the first time. They are protected by the mode of the store's folder: 0700.
struct ServiceSecrets: Sendable {
    static let format = "1"

    var ring: SigningKeyRing
    var refreshKey: [UInt8]

    /// Reads them, or generates them when the store is new.
    static func open(_ store: any Store, _ environment: AuthEnvironment) async throws -> ServiceSecrets {
        try await store.write { rows in
            try checkFormat(rows)
            let ring = try SigningKeyRing(SigningKeyRecord.all(in: rows))
            let refreshKey = try rows.row(AuthKey.refreshSecret)
            if let ring, let refreshKey, refreshKey.count == 32 {
                return ServiceSecrets(ring: ring, refreshKey: refreshKey)
            }
            guard ring == nil, refreshKey == nil else { throw RecordError(record: "secret", problem: "it is missing") }
            return make(in: rows, environment)
        }.outcome
    }

    static func newKey(_ role: SigningKeyRecord.Role, _ environment: AuthEnvironment) -> SigningKeyRecord {
        let kid = Base64.url.encode(environment.randomBytes(12))
        return SigningKeyRecord(role: role, key: SigningKey(kid: kid), createdAt: environment.now())
    }

    private static func make(in rows: some StoreTransaction, _ environment: AuthEnvironment) -> ServiceSecrets {
        let ring = SigningKeyRing(current: newKey(.current, environment), next: newKey(.next, environment))
        let refreshKey = environment.randomBytes(32)
        rows.putRow(AuthKey.format, Array(format.utf8))
        rows.putRow(AuthKey.refreshSecret, refreshKey)
        for record in ring.records { rows.putRow(AuthKey.signingKey(record.kid), record.bytes) }
        return ServiceSecrets(ring: ring, refreshKey: refreshKey)
    }

    private static func checkFormat(_ rows: some StoreReading) throws {
        guard let found = try rows.row(AuthKey.format) else { return }
        let text = String(decoding: found, as: UTF8.self)
        guard text == format else {
            throw RecordError(record: "format", problem: "this version reads format \(format), the store has \(text)")
        }
    }
}
