import HatoModel
import HatoStorage

/// When more deliveries wait than may, users with the most lose their oldest: who has few waiting loses none.
extension OutboxDraft {
    /// Drops the oldest waiting deliveries of the users with the most, until no more wait than `waitingMax`: as many as
    /// entered, and more as far as one transaction takes them.
    mutating func dropExcess(_ waitingMax: Int, _ policy: DeliveryPolicy) throws {
        // Users whose deliveries are all being attempted.
        var passedOver: Set<UserDigest> = []
        var read: [UserDigest: RecordKey] = [:]
        while waiting.total > waitingMax,
            droppedBecauseFull.count < enteredCount || writes.count < Self.writesMax,
            let user = waiting.longest(besides: passedOver)
        {
            var last = read[user] ?? waiting.lastLost(by: user)
            var oldest = try oldestWaiting(of: user, after: &last)
            if oldest == nil, last != nil, read[user] == nil {
                last = nil
                oldest = try oldestWaiting(of: user, after: &last)
            }
            read[user] = last ?? RecordKey(.waiting).with(user.value)
            // Rows without a lane have gone meanwhile.
            guard waiting.total > waitingMax else { return }
            guard let oldest = oldest ?? takeFirstEntered(of: user) else {
                passedOver.insert(user)
                continue
            }
            try dropBecauseFull(oldest, policy)
            waiting.lost(oldest.waitingKey, of: user)
        }
    }

    /// The first delivery that is pending, of those that a user had before this draft; `last` is the row that was read
    /// last.
    private mutating func oldestWaiting(of user: UserDigest, after last: inout RecordKey?) throws -> DeliveryRecord? {
        while let row = try transaction.rows(RecordKey(.waiting).with(user.value), after: last, limit: 1).first {
            last = row.key
            let laneKey = RecordKey(bytes: row.value)
            if hasLeft(laneKey) { continue }
            guard let key = try transaction.value(laneKey) else {
                // Its lane lost it when it could not be read.
                leaveWaiting(row.key, of: user)
                continue
            }
            let delivery = try transaction.readable(DeliveryRecord.self, RecordKey(bytes: key))
            if let delivery, delivery.machine.state == .pending, !hasMoved(delivery.key) { return delivery }
        }
        return nil
    }
}
