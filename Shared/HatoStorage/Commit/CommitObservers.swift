import Synchronization

/// The registration of an observer of commits; it lasts as long as the store unless it is cancelled.
public final class CommitObservation: Sendable {
    private let end: @Sendable () -> Void

    package init(end: @escaping @Sendable () -> Void) { self.end = end }

    /// No group that becomes durable after this returns is handed to the observer (one that is being handed out may
    /// still be).
    public func cancel() { end() }
}

/// The registered observers of commits.
final class CommitObservers: Sendable {
    private struct Entry {
        let id: UInt64
        let observer: @Sendable (CommitGroup) -> Void
        let ended: @Sendable (StoreError) -> Void
    }

    private struct State {
        var entries: [Entry] = []
        var lastID: UInt64 = 0
        var ended: StoreError?
    }

    private let state = Mutex(State())

    func add(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation {
        let (id, error) = state.withLock { state in
            state.lastID += 1
            if state.ended == nil {
                state.entries.append(Entry(id: state.lastID, observer: observer, ended: ended))
            }
            return (state.lastID, state.ended)
        }
        if let error { ended(error) }
        return CommitObservation { [weak self] in
            let removed = self?.state.withLock { state -> Entry? in
                guard let index = state.entries.firstIndex(where: { $0.id == id }) else { return nil }
                return state.entries.remove(at: index)
            }
            // Closures are released outside the lock.
            _ = removed
        }
    }

    func notify(_ group: CommitGroup) {
        for entry in state.withLock({ $0.entries }) { entry.observer(group) }
    }

    func end(_ error: StoreError) {
        let entries = state.withLock { state in
            state.ended = error
            defer { state.entries = [] }
            return state.entries
        }
        for entry in entries { entry.ended(error) }
    }
}
