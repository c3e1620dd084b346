import HatoModel
import HatoRPC
import Synchronization

/// What the firings of one feed need of messages, read by a task each, so that no firing waits for what another needs.
///
/// What was read for a trigger that waits stays, with what it takes of the budget, until a turn of the feed takes it.
/// What was read ahead is nowhere but among the lists that are kept for all.
final class FeedReadings: Sendable {
    /// What a firing needs before it can be accepted.
    enum Need: Hashable, Sendable {
        /// The recipients whose uids are the keys of this node.
        case recipients(TreePath)
        /// The whole node, as it is now.
        case node(TreePath)
        /// Recipients of several kinds, or their tokens.
        case query(RecipientQuery)
        /// A short text.
        case text(TreePath)
    }

    /// What was read for a need.
    struct Found: Sendable {
        enum Value: Sendable {
            case recipients(RecipientList)
            /// Nil: it can never be read.
            case node(JSONValue?)
            /// Nil: there is none.
            case text(String?)
        }

        var value: Value
        /// The version of the store when the reading began: what came before is in it.
        var time: UInt64
        /// What it takes of the budget for as long as it is kept.
        var reservations: [ByteBudget.Reservation]
    }

    /// What was read, by what it was read for.
    typealias All = [Need: Found]

    /// What will be needed for a firing, of which the change came at a version of the store.
    struct Ahead: Sendable {
        var need: Need
        var time: UInt64
    }

    private struct State {
        var running: [Need: Task<Void, Never>] = [:]
        var found: [Need: Found] = [:]
        /// What triggers wait for.
        var wanted: Set<Need> = []
        /// What was read ahead, with the newest firing that it was read for.
        var ahead: [Need: UInt64] = [:]
        var failure: (any Error)?
        var isStopped = false
    }

    /// As many readings are under way at most when another one begins ahead of its turn.
    private static let aheadMax = 16

    private let state = Mutex(State())
    private let read: @Sendable (Need) async throws -> Found
    private let ended: @Sendable () -> Void

    /// `ended` is called when a reading has ended.
    init(ended: @escaping @Sendable () -> Void, read: @escaping @Sendable (Need) async throws -> Found) {
        self.ended = ended
        self.read = read
    }

    /// Begins to read what triggers wait for, and what firings behind will need, once for each of them, unless it is
    /// under way. What no trigger waits for is dropped.
    func begin(_ needs: [Need], ahead: [Ahead] = []) {
        state.withLock { state in
            guard !state.isStopped, state.failure == nil else { return }
            state.wanted = Set(needs)
            state.found = state.found.filter { [wanted = state.wanted] in wanted.contains($0.key) }
            for need in needs { begin(need, &state) }
            var newest = Dictionary(ahead.map { ($0.need, $0.time) }, uniquingKeysWith: max)
            state.ahead = state.ahead.filter { newest[$0.key] != nil }
            for need in ahead.map(\.need) where state.running.count < Self.aheadMax {
                guard let time = newest.removeValue(forKey: need), state.running[need] == nil,
                    state.ahead[need].map({ $0 < time }) ?? true
                else { continue }
                state.ahead[need] = time
                begin(need, &state)
            }
        }
    }

    private func begin(_ need: Need, _ state: inout State) {
        guard state.running[need] == nil, state.found[need] == nil else { return }
        // Unstructured: it outlives the turn that begins it; `stop` waits for it.
        state.running[need] = Task {
            let result: Result<Found, any Error>
            do { result = .success(try await self.read(need)) } catch { result = .failure(error) }
            self.finished(need, result)
        }
    }

    private func finished(_ need: Need, _ result: Result<Found, any Error>) {
        state.withLock { state in
            state.running[need] = nil
            guard !state.isStopped, state.wanted.contains(need) else { return }
            switch result {
            case .success(let found): state.found[need] = found
            case .failure(let error): state.failure = error
            }
        }
        ended()
    }

    /// What was read since the last call. Throws why what a trigger waits for could not be read, if it may be read
    /// later.
    func take() throws -> [Need: Found] {
        try state.withLock { state in
            if let failure = state.failure { throw failure }
            defer { state.found = [:] }
            return state.found
        }
    }

    /// Ends what is under way.
    func stop() async {
        let tasks = state.withLock { state in
            state.isStopped = true
            state.found = [:]
            return Array(state.running.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }
}
