import HatoModel
import HatoStorage

/// The ID tokens of providers that have signed in, until they have expired: each signs in once. Their number is
/// counted, so that it has a limit.
enum UsedProviderTokens {
    /// A clock that was set back by less does not make a used token good again.
    private static let marginSeconds: Int64 = 3_600
    private static let pageMax = 500

    /// Whether a token may sign in: it has not yet. A backup does not know which ones signed in after it, so none does
    /// that was issued before a restored store was opened.
    static func isGood(_ identity: ProviderIdentity, in rows: some StoreReading) throws -> Bool {
        guard identity.issuedAt >= (try refusedBefore(in: rows) ?? 0) / 1000 else { return false }
        return try rows.row(key(identity)) == nil
    }

    /// The time before which issued tokens are refused, in milliseconds since 1970; nil: none are.
    static func refusedBefore(in rows: some StoreReading) throws -> Int64? {
        try rows.row(AuthKey.providerTokensSince).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }

    /// Refuses what was issued before a time, in milliseconds since 1970.
    static func refuse(issuedBefore time: Int64, in rows: some StoreWriting) {
        rows.putRow(AuthKey.providerTokensSince, Array(String(time).utf8))
    }

    static func count(in rows: some StoreReading) throws -> Int {
        try rows.row(AuthKey.usedTokenCount).flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    }

    /// Writes that a token has signed in.
    ///
    /// - Parameter count: how many there were before.
    static func put(_ identity: ProviderIdentity, count: Int, in rows: some StoreWriting) {
        rows.putRow(key(identity), [])
        put(count: count + 1, in: rows)
    }

    /// Deletes a page of those that have expired. Returns whether there may be more.
    ///
    /// - Parameter now: milliseconds since 1970.
    static func forgetPage(now: Int64, in store: any Store) async throws -> Bool {
        let end = AuthKey.usedTokens(until: now / 1000 - marginSeconds)
        return try await store.write { rows in
            var expired: [[UInt8]] = []
            try rows.rows(end) { key, _ in
                expired.append(key)
                return expired.count < pageMax
            }
            guard !expired.isEmpty else { return false }
            let count = try count(in: rows)
            for key in expired { rows.deleteRow(key) }
            put(count: max(0, count - expired.count), in: rows)
            return expired.count == pageMax
        }.outcome
    }

    private static func put(count: Int, in rows: some StoreWriting) {
        rows.putRow(AuthKey.usedTokenCount, Array(String(count).utf8))
    }

    private static func key(_ identity: ProviderIdentity) -> [UInt8] {
        AuthKey.usedToken(identity.tokenHash, expiresAt: identity.expiresAt)
    }
}
