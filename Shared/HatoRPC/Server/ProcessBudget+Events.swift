import Synchronization

// Events that connections share (`SharedBytes`), in the budget of the process: see `EventCapacity`.

extension ProcessBudget {
    /// Whether another connection than this one waits for memory for an event.
    func areEventsAwaited(butBy connection: UInt64) -> Bool {
        areEventsAwaited.load(ordering: .sequentiallyConsistent)
            && events.withLock { $0.isAwaited(butBy: connection) }
    }

    /// Counts an event that is sent to any number of connections until the value that is returned goes; nil when there
    /// is no memory for it.
    func chargeEvent(_ count: Int) -> EventCharge? {
        let isCharged = events.withLock { events in
            guard events.charge(count, free: freeBytes) else { return false }
            addShared(count)
            return true
        }
        return isCharged ? EventCharge(count, in: self) : nil
    }

    fileprivate func end(_ charge: EventCharge) {
        events.withLock { $0.endCharge(charge.count) }
        addShared(-charge.count)
        offerEventMemory()
    }

    /// Calls once, from any thread, when a connection that was refused an event may try again.
    func waitForEventMemory(
        _ connection: UInt64, for count: Int, of event: UInt64, resume: @escaping @Sendable () -> Void
    ) {
        events.withLock { events in
            events.wait(connection, for: count, of: event, resume: resume)
            areEventsAwaited.store(events.isAwaited, ordering: .sequentiallyConsistent)
        }
        // What was given back before is seen here.
        offerEventMemory()
    }

    func stopWaitingForEventMemory(_ connection: UInt64) {
        events.withLock { events in
            events.stopWaiting(connection)
            areEventsAwaited.store(events.isAwaited, ordering: .sequentiallyConsistent)
        }
        // The next one may need less.
        offerEventMemory()
    }

    /// Lets those go on that waited for what is free now. Costs one look while none waits.
    func offerEventMemory() {
        guard areEventsAwaited.load(ordering: .sequentiallyConsistent) else { return }
        let ready = events.withLock { events in
            defer { areEventsAwaited.store(events.isAwaited, ordering: .sequentiallyConsistent) }
            return events.takeReady(free: freeBytes)
        }
        for resume in ready { resume() }
    }
}

/// Bytes of an event that count in the budget as long as this exists.
final class EventCharge: Sendable {
    fileprivate let count: Int
    private let budget: ProcessBudget

    fileprivate init(_ count: Int, in budget: ProcessBudget) {
        self.count = count
        self.budget = budget
    }

    deinit { budget.end(self) }
}
