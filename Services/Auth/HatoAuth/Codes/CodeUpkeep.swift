import HatoModel
import HatoStorage
import Logging

/// Deletes codes and mails that are of no use any more.
struct CodeUpkeep {
    let service: AuthService

    /// Deletes codes that expired a day ago, codes that cannot be read, and mails that have been dead for a week, one
    /// page per transaction.
    func forgetExpired() async throws {
        if try await forgetExpiredCodes() { try await forgetUnreadableCodes() }
        while try await forgetDeadMails() == Self.codesPerPage {}
    }

    private static let codesPerPage = 500
    /// Milliseconds.
    private static let expiredCodesAreKept: Int64 = 86_400_000
    private static let deadMailsAreKept: Int64 = 7 * 86_400_000

    /// Returns whether there are some to delete that cannot be read.
    private func forgetExpiredCodes() async throws -> Bool {
        var range = AuthKey.codes
        var hasUnreadable = false
        while true {
            let start = range
            let before = expiredBefore
            let page = try await service.store.write { rows -> (last: [UInt8]?, hasUnreadable: Bool) in
                var expired: [CodeRecord] = []
                var (count, last): (Int, [UInt8]?) = (0, nil)
                var hasUnreadable = false
                try rows.rows(start) { key, value in
                    if let code = try? CodeRecord(Array(key.dropFirst()), value) {
                        if code.expiresAt <= before { expired.append(code) }
                    } else if Self.isUnreadable(value, expiredBefore: before) {
                        hasUnreadable = true
                    }
                    (count, last) = (count + 1, key)
                    return count < Self.codesPerPage
                }
                for code in expired { CodeRows.delete(code, in: rows) }
                return (last, hasUnreadable)
            }.outcome
            hasUnreadable = hasUnreadable || page.hasUnreadable
            guard let last = page.last else { break }
            range.lower = last + [0]
        }
        return hasUnreadable
    }

    /// Until then it says that it has expired, whenever the upkeep runs.
    private var expiredBefore: Int64 { service.environment.now() - Self.expiredCodesAreKept }

    /// Whether a row that is no code of this version is of no use to any other. A newer version that ran on the store
    /// has written fields that this one does not have, and may run on it again: its codes stay until they expire.
    private static func isUnreadable(_ value: [UInt8], expiredBefore before: Int64) -> Bool {
        guard let expiresAt = (try? JSONParser.parse(value))?["expiresAt"]?.integer else { return true }
        return expiresAt <= before
    }

    /// Deletes the codes that no method takes any more because their rows cannot be read, and nothing says that they
    /// are good. The rows by which they are found go first, and then they themselves, so that none is left after a
    /// crash.
    private func forgetUnreadableCodes() async throws {
        let before = expiredBefore
        for range in [AuthKey.codesOfAddresses, AuthKey.recoveries] {
            _ = try await forgetUnreadable(range, expiredBefore: before) { _, value in value }
        }
        let count = try await forgetUnreadable(AuthKey.codes, expiredBefore: before) { key, _ in
            Array(key.dropFirst())
        }
        service.environment.logger.warning(
            "codes that cannot be read were deleted", metadata: ["codes": "\(count)"])
    }

    /// Deletes the rows of a range whose code cannot be read, or is not there. Returns their number.
    private func forgetUnreadable(
        _ range: KeyRange, expiredBefore before: Int64,
        _ id: @escaping @Sendable (_ key: [UInt8], _ value: [UInt8]) -> [UInt8]
    ) async throws -> Int {
        var (range, deleted) = (range, 0)
        while true {
            let start = range
            @Sendable func choose(_ rows: some StoreReading) throws -> (last: [UInt8]?, unreadable: [[UInt8]]) {
                var found: [(key: [UInt8], id: [UInt8])] = []
                try rows.rows(start) { key, value in
                    found.append((key, id(key, value)))
                    return found.count < Self.codesPerPage
                }
                let unreadable = try found.filter { row in
                    guard let value = try rows.row(AuthKey.code(row.id)) else { return true }
                    return (try? CodeRecord(row.id, value)) == nil && Self.isUnreadable(value, expiredBefore: before)
                }
                return (found.last?.key, unreadable.map(\.key))
            }
            var page = try await service.store.read { try choose($0) }
            if !page.unreadable.isEmpty {
                // A code may have taken the place of one meanwhile.
                page = try await service.store.write { rows in
                    let page = try choose(rows)
                    for key in page.unreadable { rows.deleteRow(key) }
                    return page
                }.outcome
            }
            deleted += page.unreadable.count
            guard let last = page.last else { return deleted }
            range.lower = last + [0]
        }
    }

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
