import HatoModel
import HatoStorage

/// Takes deliveries back in one transaction, since their messages are withdrawn or read: also those that count others,
/// and those that others count.
///
/// One that went into another one counts there no more. One that others went into stays for these, and goes without its
/// own words; one that is shown stays as it is when it was read, and else goes once more without them. With the last of
/// them it ends, or is removed from the screen.
///
/// A transaction does not see its own writes: what becomes of these is gathered, and `settle` writes it.
struct TakingBack {
    /// Whether words that are shown must go at once: the message is withdrawn, and not read.
    let removesWords: Bool
    /// Deliveries that count others, or that others count, as they are left.
    private var changed: [RecordKey: DeliveryRecord] = [:]
    /// Those of them that were taken back themselves.
    private var taken: Set<RecordKey> = []
    /// Those that a device may show, and is to remove.
    private var shown: Set<RecordKey> = []
    /// Deliveries that ended.
    private(set) var dropped = 0

    /// How often one went into another one, until that is not followed any more: it counts to the end then. One that
    /// waits goes into another one when that has its turn, or with each newer one of its collapse key.
    private static let stepsMax = 64

    init(removesWords: Bool) { self.removesWords = removesWords }

    /// Takes a delivery back, as the transaction reads it.
    mutating func take(_ found: DeliveryRecord, in draft: inout OutboxDraft) throws {
        var delivery = changed[found.key] ?? found
        guard let pacing = delivery.pacing,
            pacing.staysForOthers || pacing.wentInto != nil || changed[found.key] != nil
        else {
            if try draft.withdraw(found) { dropped += 1 }
            switch found.machine.state {
            case .leased, .delivered: shown.insert(found.key)
            // An attempt whose response was lost may have arrived.
            case .pending, .dead: if found.machine.attempts > 0 { shown.insert(found.key) }
            case .dropped: break
            }
            return
        }
        taken.insert(found.key)
        let wasTaken = pacing.isTakenBack == true
        delivery.pacing = pacing.takenBack
        changed[found.key] = delivery
        guard !wasTaken, pacing.wentInto != nil, var other = try last(delivery, draft) else { return }
        other.pacing = other.pacing?.without(oneOf: pacing.thread)
        changed[other.key] = other
    }

    /// The delivery that counts one that went into another one; nil when it is not known.
    private func last(_ delivery: DeliveryRecord, _ draft: OutboxDraft) throws -> DeliveryRecord? {
        var last = delivery
        for _ in 0..<Self.stepsMax {
            guard let id = last.pacing?.wentInto else { return last }
            guard let key = DeliveryRecord.key(id: id),
                let next = try changed[key] ?? draft.transaction.readable(DeliveryRecord.self, key)
            else { return nil }
            last = next
        }
        return nil
    }

    /// Writes what became of those that count others.
    mutating func settle(in draft: inout OutboxDraft) throws {
        let all = changed.values.sorted {
            ($0.sequenceVersion, $0.sequenceIndex) < ($1.sequenceVersion, $1.sequenceIndex)
        }
        for delivery in all { try settle(delivery, in: &draft) }
    }

    private mutating func settle(_ delivery: DeliveryRecord, in draft: inout OutboxDraft) throws {
        let isEmpty = delivery.pacing?.count == 0
        let losesWords = removesWords && taken.contains(delivery.key)
        draft.writes.put(delivery.key, delivery)
        switch delivery.machine.state {
        case .dropped: break
        case .delivered where isEmpty: shown.insert(delivery.key)
        case .delivered where losesWords: try replaceShown(delivery, in: &draft)
        case .delivered: break
        case .leased:
            guard isEmpty || losesWords else { return }
            _ = try draft.withdraw(delivery)
            shown.insert(delivery.key)
        case .pending where !isEmpty: draft.replaceBehindHead(delivery)
        case .dead where !isEmpty && !taken.contains(delivery.key): break
        case .pending, .dead:
            if try draft.withdraw(delivery) { dropped += 1 }
            if delivery.machine.attempts > 0 { shown.insert(delivery.key) }
        }
    }

    /// Sends one once more that is shown, with the count of the others in place of its words. When it has expired, it
    /// is removed, and also where a newer one with its collapse key waits.
    private mutating func replaceShown(_ delivery: DeliveryRecord, in draft: inout OutboxDraft) throws {
        var again = delivery
        guard case .waitUntil = again.machine.othersTookPlace(at: draft.now) else {
            shown.insert(delivery.key)
            return
        }
        if again.replaces, try !draft.transaction.rows(again.lane.prefix, limit: 1).isEmpty {
            // The newer one may never be sent.
            shown.insert(delivery.key)
            return
        }
        again.pacing = again.pacing?.with(turnsOf: nil).with(isNext: false)
        try draft.enqueue(again)
    }

    // MARK: What came of it

    /// Whether a device may show a delivery that was taken back, and is to remove it.
    func isShown(_ delivery: DeliveryRecord) -> Bool { shown.contains(delivery.key) }

    /// Those that were shown for others alone, the last of which are taken back now, the newest first.
    var shownForOthers: [DeliveryRecord] {
        changed.values.filter { shown.contains($0.key) && !taken.contains($0.key) }
            .sorted { ($0.sequenceVersion, $0.sequenceIndex) > ($1.sequenceVersion, $1.sequenceIndex) }
    }

    /// Whether one that has its words no more stays for others under the thread of a user: the thread must not be
    /// removed from screens as a whole.
    func stays(at place: UserThread) -> Bool {
        changed.values.contains { delivery in
            delivery.uid == place.uid && delivery.pacing?.thread == place.thread
                && delivery.machine.state != .dropped && !shown.contains(delivery.key)
                && delivery.pacing?.isTakenBack == true && delivery.pacing?.staysForOthers == true
        }
    }
}
