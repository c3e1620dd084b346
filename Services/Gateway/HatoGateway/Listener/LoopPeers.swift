import NIOCore

/// All event loops of a gateway, as one of them sees them. What belongs to a session is handed over to its event loop.
struct LoopPeers: Sendable {
    private let states: [NIOLoopBound<LoopState>]
    /// The number of this event loop.
    let index: Int

    /// - Parameter states: of all event loops, in the same order for each.
    init(_ states: [NIOLoopBound<LoopState>] = [], of loop: (any EventLoop)? = nil) {
        self.states = states
        index = states.firstIndex { $0.eventLoop === loop } ?? 0
    }

    /// Calls `body` on the event loop of this number, in a later turn and in the order of these calls. Returns false,
    /// without it, when there is none.
    @discardableResult
    func perform(on index: Int, _ body: @escaping @Sendable (LoopState) -> Void) -> Bool {
        guard states.indices.contains(index) else { return false }
        let state = states[index]
        state.eventLoop.execute { body(state.value) }
        return true
    }

    /// Calls `body` on each event loop, in a later turn.
    func performEverywhere(_ body: @escaping @Sendable (LoopState) -> Void) {
        for index in states.indices { perform(on: index, body) }
    }

    /// A number that no event loop has given out before, of the `count`th call on this one.
    func number(_ count: Int) -> Int { count * states.count + index }
}
