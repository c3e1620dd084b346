import HatoModel
import HatoStorage

/// Deletes the anonymous accounts that are no longer used.
struct AnonymousUpkeep {
    let service: AuthService

    /// Accounts that are deleted in one transaction.
    private static let accountsPerPage = 200

    /// Deletes the anonymous accounts that were not used for `anonymousDays`. Returns their number. Rows that cannot be
    /// read stay.
    ///
    /// - Throws: the errors of the store.
    @discardableResult
    func forgetUnused() async throws -> Int {
        let days = service.configuration.anonymousDays
        guard days > 0 else { return 0 }
        let before = service.environment.now() - Int64(days) * 86_400_000
        var range = AuthKey.accounts
        var count = 0
        while true {
            let start = range
            let page = try await service.store.read { try Self.unusedAnonymous(start, before: before, in: $0) }
            if !page.uids.isEmpty { count += try await forget(page.uids, before: before) }
            guard let last = page.last else { break }
            range.lower = last + [0]
        }
        return count
    }

    private func forget(_ uids: [String], before: Int64) async throws -> Int {
        try await service.write { [environment = service.environment] rows in
            let now = environment.now()
            // Read again: one of them may have been used since.
            let accounts = try uids.compactMap { try AccountRows.find($0, in: rows) }
            let deletions = try accounts.filter { try Self.isUnused($0, before: before, in: rows) }.map {
                try AccountDeletion($0, in: rows)
            }
            rows.endsUnused = true
            for deletion in deletions { deletion.apply(at: now, in: rows) }
            return deletions.count
        }.outcome
    }

    private struct AnonymousPage {
        var uids: [String] = []
        /// The last key that was looked at; nil at the end.
        var last: [UInt8]?
    }

    private static func unusedAnonymous(
        _ range: KeyRange, before: Int64, in rows: some StoreReading
    ) throws -> AnonymousPage {
        var page = AnonymousPage()
        var accounts: [AccountRecord] = []
        // Many accounts may have to be looked at to find one.
        var left = 20 * accountsPerPage
        try rows.rows(range) { key, value in
            left -= 1
            page.last = key
            if let account = try? AccountRecord(value), account.isUnused(before: before) { accounts.append(account) }
            return left > 0 && accounts.count < accountsPerPage
        }
        page.uids = try accounts.filter { try isUnused($0, before: before, in: rows) }.map(\.uid)
        return page
    }

    private static func isUnused(_ account: AccountRecord, before: Int64, in rows: some StoreReading) throws -> Bool {
        guard account.isUnused(before: before) else { return false }
        return try SessionRows.all(of: account.uid, in: rows).allSatisfy { $0.rotation.rotatedAt < before }
    }
}

extension AccountRecord {
    /// Whether a person made it, it is anonymous and, as far as its own row says, was not used since a time in
    /// milliseconds. `validSince` is no earlier than an import. One to which an administrator gave a password waits for
    /// its name.
    fileprivate func isUnused(before: Int64) -> Bool {
        isAnonymous && !isManaged && passwordHash == nil
            && max(createdAt, lastLoginAt ?? 0, lastRefreshAt ?? 0, validSince * 1000) < before
    }
}
