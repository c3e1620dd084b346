import HatoModel
import HatoStorage

/// Records of e-mails that say nothing any more: the next e-mail of their thread would not wait for them.
struct OldDigests {
    let outbox: Outbox

    /// Records that are looked at in one read.
    private static let pageMax = 500

    /// Throws the errors of the store.
    func forget() async throws {
        let pace = MailLanes(outbox.policy, outbox.limits).pace
        var last: RecordKey?
        repeat {
            // Most are needed: the writer only sees those that are not.
            let (keys, old) = try await outbox.store.read { [outbox, last] snapshot in
                let rows = try snapshot.rows(RecordKey(.digest), after: last, limit: Self.pageMax)
                let now = outbox.time.now()
                return (rows.map(\.key), try rows.filter { try Self.isOld($0, at: now, pace, snapshot) }.map(\.key))
            }
            if !old.isEmpty {
                try await outbox.change { draft in
                    for key in old {
                        guard let value = try draft.transaction.value(key),
                            try Self.isOld((key, value), at: draft.now, pace, draft.transaction)
                        else { continue }
                        draft.writes.delete(key)
                    }
                }
            }
            last = keys.count < Self.pageMax ? nil : keys.last
        } while last != nil
    }

    private static func isOld(
        _ row: (key: RecordKey, value: [UInt8]), at now: Int64, _ pace: DigestPace, _ reading: some StoreReading
    ) throws -> Bool {
        let digest = try? RecordCodec.decode(DigestRecord.self, row.value, key: row.key.bytes)
        guard let digest, let lane = DigestRecord.lane(of: row.key) else { return true }
        // While something of its e-mail waits, it says under which id.
        return try digest.nextTime(at: now, pace) == nil && reading.keys(lane.prefix, limit: 1).isEmpty
    }
}
