import HatoModel
import HatoStorage

/// Deletes codes and mails that are of no use any more.
struct CodeUpkeep {
    let service: AuthService

    /// Deletes codes that expired a day ago, and mails that have been dead for a week, one page per transaction. Rows
    /// that cannot be read stay.
    func forgetExpired() async throws {
        var range = AuthKey.codes
        while true {
            let start = range
            // Until then it says that it has expired, whenever the upkeep runs.
            let before = service.environment.now() - Self.expiredCodesAreKept
            let last = try await service.store.write { rows -> [UInt8]? in
                var expired: [CodeRecord] = []
                var (count, last): (Int, [UInt8]?) = (0, nil)
                try rows.rows(start) { key, value in
                    if let code = try? CodeRecord(Array(key.dropFirst()), value), code.expiresAt <= before {
                        expired.append(code)
                    }
                    (count, last) = (count + 1, key)
                    return count < Self.codesPerPage
                }
                for code in expired { CodeRows.delete(code, in: rows) }
                return last
            }.outcome
            guard let last else { break }
            range.lower = last + [0]
        }
        while try await forgetDeadMails() == Self.codesPerPage {}
    }

    private static let codesPerPage = 500
    /// Milliseconds.
    private static let expiredCodesAreKept: Int64 = 86_400_000
    private static let deadMailsAreKept: Int64 = 7 * 86_400_000

    /// Deletes the oldest. Returns their number.
    private func forgetDeadMails() async throws -> Int {
        let old = service.environment.now() - Self.deadMailsAreKept
        return try await service.store.write { [limits = service.configuration.limits] rows in
            var queue = try MailQueueChange(limits, in: rows)
            let dead = try MailRows.dead(after: nil, limit: Self.codesPerPage, in: rows).filter { $0.createdAt <= old }
            guard !dead.isEmpty else { return 0 }
            for mail in dead { queue.delete(mail, in: rows) }
            queue.finish(in: rows)
            return dead.count
        }.outcome
    }
}
