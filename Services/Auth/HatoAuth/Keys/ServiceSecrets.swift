import HatoIdentity
import HatoModel
import HatoStorage

/// The secrets of the service: the signing keys, and the key from which the successors of refresh tokens are derived.
///
/// Generated when a store is opened for the first time, or after a restore. `SecretRows` reads and writes them.
struct ServiceSecrets: Sendable {
    static let format = "1"

    var ring: SigningKeyRing
    var refreshKey: [UInt8]

    /// Reads them, or generates them when the store is new.
    ///
    /// What is not encrypted with the first key of `encryption` is written again in the same transaction.
    static func open(
        _ store: any Store, _ environment: AuthEnvironment, _ encryption: KeyEncryption? = nil
    ) async throws -> ServiceSecrets {
        let secretRows = SecretRows(encryption: encryption)
        return try await store.write { rows in
            let isKnown = try checkFormat(rows)
            let keys = try secretRows.signingKeys(in: rows)
            let ring = try SigningKeyRing(keys.records)
            let refreshKey = try secretRows.refreshKey(in: rows)
            if let ring, let refreshKey {
                let secrets = ServiceSecrets(ring: ring, refreshKey: refreshKey.secret)
                let since = try UsedProviderTokens.refusedBefore(in: rows)
                if keys.isOutdated || refreshKey.isOutdated { try secrets.put(secretRows, in: rows) }
                // The clock was ahead when the store was restored.
                let now = environment.now()
                if let since, since > now { UsedProviderTokens.refuse(issuedBefore: now, in: rows) }
                return secrets
            }
            guard ring == nil, refreshKey == nil else { throw RecordError(record: "secret", problem: "it is missing") }
            let secrets = make(environment)
            // A store with a format and without keys was restored.
            if isKnown { UsedProviderTokens.refuse(issuedBefore: environment.now(), in: rows) }
            rows.putRow(AuthKey.format, Array(format.utf8))
            try secrets.put(secretRows, in: rows)
            return secrets
        }.outcome
    }

    static func newKey(_ role: SigningKeyRecord.Role, _ environment: AuthEnvironment) -> SigningKeyRecord {
        let kid = Base64.url.encode(environment.randomBytes(12))
        return SigningKeyRecord(role: role, key: SigningKey(kid: kid), createdAt: environment.now())
    }

    private static func make(_ environment: AuthEnvironment) -> ServiceSecrets {
        ServiceSecrets(
            ring: SigningKeyRing(current: newKey(.current, environment), next: newKey(.next, environment)),
            refreshKey: environment.randomBytes(SecretRows.refreshKeyBytes))
    }

    private func put(_ secretRows: SecretRows, in rows: some StoreTransaction) throws {
        for record in ring.records { try secretRows.put(record, in: rows) }
        try secretRows.put(refreshKey: refreshKey, in: rows)
    }

    /// Returns whether the store has one: it is no new one.
    private static func checkFormat(_ rows: some StoreReading) throws -> Bool {
        guard let found = try rows.row(AuthKey.format) else { return false }
        let text = String(decoding: found, as: UTF8.self)
        guard text == format else {
            throw RecordError(record: "format", problem: "this version reads format \(format), the store has \(text)")
        }
        return true
    }
}
