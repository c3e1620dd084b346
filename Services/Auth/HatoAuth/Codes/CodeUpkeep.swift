import HatoModel
import HatoStorage
import Logging

/// Deletes codes and mails that are of no use any more.
struct CodeUpkeep {
    let service: AuthService

    /// Deletes codes that expired a day ago or cannot be read, and mails that have been dead for a week, one page per
    /// transaction.
    func forgetExpired() async throws {
        if try await forgetExpiredCodes() { try await forgetUnreadableCodes() }
        while try await forgetDeadMails() == Self.codesPerPage {}
    }

    private static let codesPerPage = 500
    /// Milliseconds.
    private static let expiredCodesAreKept: Int64 = 86_400_000
    private static let deadMailsAreKept: Int64 = 7 * 86_400_000

    /// Returns whether there are some that cannot be read.
    private func forgetExpiredCodes() async throws -> Bool {
        var range = AuthKey.codes
        var areAllReadable = true
        while true {
            let start = range
            // Until then it says that it has expired, whenever the upkeep runs.
            let before = service.environment.now() - Self.expiredCodesAreKept
            let page = try await service.store.write { rows -> (last: [UInt8]?, isReadable: Bool) in
                var expired: [CodeRecord] = []
                var (count, last): (Int, [UInt8]?) = (0, nil)
                var isReadable = true
                try rows.rows(start) { key, value in
                    if let code = try? CodeRecord(Array(key.dropFirst()), value) {
                        if code.expiresAt <= before { expired.append(code) }
                    } else {
                        isReadable = false
                    }
                    (count, last) = (count + 1, key)
                    return count < Self.codesPerPage
                }
                for code in expired { CodeRows.delete(code, in: rows) }
                return (last, isReadable)
            }.outcome
            areAllReadable = areAllReadable && page.isReadable
            guard let last = page.last else { break }
            range.lower = last + [0]
        }
        return !areAllReadable
    }

    /// Deletes the codes that no method takes any more because their rows cannot be read: nothing says when they
    /// expire. The rows by which they are found go first, and then they themselves, so that none is left after a crash.
    private func forgetUnreadableCodes() async throws {
        for range in [AuthKey.codesOfAddresses, AuthKey.recoveries] {
            _ = try await forgetUnreadable(range) { _, value in value }
        }
        let count = try await forgetUnreadable(AuthKey.codes) { key, _ in Array(key.dropFirst()) }
        service.environment.logger.warning(
            "codes that cannot be read were deleted", metadata: ["codes": "\(count)"])
    }

    /// Deletes the rows of a range whose code cannot be read, or is not there. Returns their number.
    private func forgetUnreadable(
        _ range: KeyRange, _ id: @escaping @Sendable (_ key: [UInt8], _ value: [UInt8]) -> [UInt8]
    ) async throws -> Int {
        var (range, deleted) = (range, 0)
        while true {
            let start = range
            let page = try await service.store.write { rows -> (last: [UInt8]?, deleted: Int) in
                var found: [(key: [UInt8], id: [UInt8])] = []
                try rows.rows(start) { key, value in
                    found.append((key, id(key, value)))
                    return found.count < Self.codesPerPage
                }
                let unreadable = try found.filter { try CodeRows.find($0.id, in: rows) == nil }
                for row in unreadable { rows.deleteRow(row.key) }
                return (found.last?.key, unreadable.count)
            }.outcome
            deleted += page.deleted
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
