import HatoModel
import HatoStorage

/// Decides what `auth.providers.set` writes, within its transaction: its keys are made before.
struct ProviderChange: Sendable {
    /// As it is to be.
    var row: ProviderRow
    /// Whether the keys of `row` are those that were here.
    var hasKeptKeys: Bool
    /// Whether identities that accounts have of another issuer are those of this one.
    var keepsIdentities: Bool
    var countMax: Int

    /// Nil when its keys are not those of the provider in the store: it was changed meanwhile.
    ///
    /// - Throws: `AuthError` when there are too many, and when accounts have identities of another issuer.
    func row(now: Int64, in rows: some StoreReading) throws -> ProviderRow? {
        guard try ProviderRows.count(besides: row.id, in: rows) < countMax else {
            throw AuthError.tooManyProviders(countMax)
        }
        let former = try ProviderRows.issuer(ofIdentities: row.id, in: rows)
        // The same `sub` there is another person.
        if let former, former != row.issuer, !keepsIdentities, try ProviderRows.hasIdentities(row.id, in: rows) {
            throw AuthError.providerHasIdentities
        }
        guard row.isDiscovered else { return row }
        let stored = try ProviderRows.find(row.id, in: rows)
        guard let stored, stored.isDiscovered(at: row.issuer) else { return hasKeptKeys ? nil : row }
        guard stored.hasKeys(from: row.keysFetchedAt ?? 0, until: now) else { return row }
        // Fetched meanwhile: a key that is missing there was withdrawn.
        var newer = row
        (newer.keys, newer.keysFetchedAt) = (stored.keys, stored.keysFetchedAt)
        return newer
    }
}
