import HatoModel
import HatoStorage

/// Records of e-mails that say nothing any more: the next e-mail of their thread would not wait for them.
struct OldDigests {
    let outbox: Outbox

    /// Records that are looked at in one transaction.
    private static let pageMax = 500

    /// Throws the errors of the store.
    func forget() async throws {
        var last: RecordKey?
        repeat {
            last = try await outbox.change { [last] draft in
                let rows = try draft.transaction.rows(RecordKey(.digest), after: last, limit: Self.pageMax)
                for row in rows where try Self.isOld(row, draft) { draft.writes.delete(row.key) }
                return rows.count == Self.pageMax ? rows.last?.key : nil
            }
        } while last != nil
    }

    private static func isOld(_ row: (key: RecordKey, value: [UInt8]), _ draft: OutboxDraft) throws -> Bool {
        let digest = try? RecordCodec.decode(DigestRecord.self, row.value, key: row.key.bytes)
        guard let digest, let lane = DigestRecord.lane(of: row.key) else { return true }
        // While something of its e-mail waits, it says under which id.
        return try digest.nextTime(at: draft.now, draft.mails.pace) == nil
            && draft.transaction.keys(lane.prefix, limit: 1).isEmpty
    }
}
