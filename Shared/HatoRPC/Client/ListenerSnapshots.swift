public import HatoModel

extension MessagesListener {
    /// The value after each event, kept here, and what the event did to its children. A `since` or `etag` of the
    /// request is left out: the first snapshot is whole.
    public var snapshots: ListenerSnapshots {
        var listener = self
        listener.request.since = nil
        listener.request.epoch = nil
        listener.request.etag = nil
        return ListenerSnapshots(listener: listener)
    }
}

/// What a listener sees, one snapshot for each event; lives and ends as `MessagesListener` does.
///
/// After a lost connection the next snapshot has the difference alone, also when the service has sent the whole
/// value anew.
public struct ListenerSnapshots: AsyncSequence, Sendable {
    public typealias Element = ListenerSnapshot

    let listener: MessagesListener

    public func makeAsyncIterator() -> Iterator {
        Iterator(
            events: listener.makeAsyncIterator(), reducer: ChildEventReducer(listener.request.query ?? TreeQuery()))
    }

    /// Reads the snapshots one after the other.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        var events: MessagesListener.Iterator
        var reducer: ChildEventReducer

        /// The next snapshot; nil when the sequence has ended. Throws what ended the listener.
        public mutating func next() async throws -> ListenerSnapshot? {
            guard let event = try await events.next() else { return nil }
            do {
                let childEvents = try reducer.apply(event.events)
                return ListenerSnapshot(version: event.version, childEvents: childEvents, state: reducer)
            } catch {
                // Nothing that comes later could be right.
                events.end()
                throw error
            }
        }
    }
}

/// The value of a listener at one version.
public struct ListenerSnapshot: Sendable {
    /// The version of the store that the value is of.
    public let version: UInt64
    /// What has happened since the snapshot before, in the order of `ChildEventReducer`; of the first one all children
    /// are added.
    public let childEvents: [ChildEvent]
    let state: ChildEventReducer

    /// The value; of a query, the selected children.
    public var node: TreeNode { state.node }
    /// The children in the order of the query.
    public var children: [TreeChild] { state.children }
}
