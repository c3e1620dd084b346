import HatoModel
import HatoStorage
import HatoTree
import Synchronization

/// Takes large writes to the writer, and those that ask for the hash of a large node or replace many rows, each planned
/// on a thread for such work before its turn (`PlannedWrite`).
///
/// **Order.** Such a write holds the turn of its connection until it is done: what the connection sends after it
/// comes after it. When something it rests on has changed by its turn it is planned again, a few times; then it is
/// refused, or any client could have the writer plan large writes by writing to the same nodes meanwhile. An
/// administrator's is planned by the writer itself, and others wait.
///
/// **Memory.** A value of millions of nodes takes a tenth of a second only to be let go. So the last to let go of it
/// is a thread for such work, after the writer and the publisher have.
struct LargeWrites: Sendable {
    private static let triesMax = 4

    let parts: ServiceParts
    let publisher: Publisher
    /// Few: each write at hand may take hundreds of megabytes.
    let threads: ReaderPool

    /// What a large write leaves to the queue.
    struct Steps: Sendable {
        /// The client whose turns the connection takes in the queue.
        var client: String?
        /// In a write closure; nil: to be planned now.
        var commit: @Sendable (Holder, PlannedWrite?, any StoreTransaction) throws -> WriteOutcome
        /// The write is durable, or refused.
        var ended: @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void
    }

    /// The write as it came, for those who only pass it on.
    final class Holder: Sendable {
        private struct State {
            var write: Write
            var planned: PlannedWrite?
        }

        private let state: Mutex<State?>

        /// What was said of a write before its first turn.
        let resolved: CommitQueue.Resolution?

        init(_ write: Write, resolved: CommitQueue.Resolution? = nil) {
            state = Mutex(State(write: write))
            self.resolved = resolved
        }

        /// Nil when it is over.
        var write: Write? { state.withLock { $0?.write } }
        var planned: PlannedWrite? { state.withLock { $0?.planned } }

        func keep(_ planned: PlannedWrite?) { state.withLock { $0?.planned = planned } }

        func letGo() {
            let old = state.withLock { state in
                defer { state = nil }
                return state
            }
            _ = old
        }
    }

    func submit(_ write: Write, _ steps: Steps) { attempt(1, Holder(write), steps) }

    /// A write that may outgrow its turn (`Mutation.limitToTurn`): most do not, so the turn comes first.
    func submitInTurn(_ write: Write, _ resolved: CommitQueue.Resolution, _ steps: Steps) {
        let first = Holder(write, resolved: resolved)
        parts.store.submit(of: steps.client, { try steps.commit(first, nil, $0) }) { result in
            switch result {
            case .failure(TreeError.tooBig), .failure(is TooLargeForTurn):
                var write = write
                write.mutation.liftTurnLimits()
                attempt(1, Holder(write), steps)
            default: steps.ended(result.mapError(write.naming))
            }
        }
    }

    /// - Parameter isBehind: whether it is planned on a state that has all writes before it.
    private func attempt(_ number: Int, isBehind: Bool = false, _ holder: Holder, _ steps: Steps) {
        threads.submit(of: holder.write.flatMap { Self.client(of: $0, from: steps.client) }) {
            do {
                guard let write = holder.write else { return }
                let began = parts.slow.now
                defer { write.watch?.preparation = parts.slow.now - began }
                let isContended = number > Self.triesMax
                if isContended, !write.caller.isAdministrator { throw MessagesError.contended }
                // The writer plans it itself, also when its database is not there yet.
                holder.keep(isContended ? nil : try PlannedWrite(write, parts))
            } catch is PlannedWrite.Outdated {
                return attempt(number + 1, holder, steps)
            } catch {
                // Writes before it may not have been in what it was planned on: asked once more behind them.
                guard isBehind else {
                    return parts.store.submit(of: steps.client, { _ in }) { _ in
                        attempt(number, isBehind: true, holder, steps)
                    }
                }
                return refuse(error, holder, steps)
            }
            parts.store.submit(of: steps.client, { try steps.commit(holder, holder.planned, $0) }) { result in
                if case .failure(let error) = result, error is PlannedWrite.Outdated {
                    return attempt(number + 1, holder, steps)
                }
                end(result, holder, steps)
            }
        }
    }

    /// The client whose turn the write takes on the threads: the user, or the address when no user is signed in; nil,
    /// the service, for administrators.
    ///
    /// - Parameter client: the client whose turns the connection takes in the queue.
    static func client(of write: Write, from client: String?) -> String? {
        if write.caller.isAdministrator || write.isByAdministrator { return nil }
        // A variable is no user, whatever uid it has.
        if case .user(let user) = write.caller { return "user \(user.uid)" }
        return client
    }

    /// In the queue of the writer, so that the response comes after those of the writes before it.
    private func refuse(_ error: any Error, _ holder: Holder, _ steps: Steps) {
        parts.store.submit(
            of: steps.client,
            { transaction -> WriteOutcome in try RefusedCondition.noting(in: transaction) { throw error } }
        ) { end($0, holder, steps) }
    }

    private func end(_ result: Result<Committed<WriteOutcome>, any Error>, _ holder: Holder, _ steps: Steps) {
        steps.ended(result.mapError { holder.write?.naming($0) ?? $0 })
        // The group that is being handed out holds the changes, and then the publisher does: both are done with it when
        // they have come to something later.
        let (publisher, threads) = (publisher, threads)
        parts.store.submit({ _ in }) { _ in
            publisher.run { _ in publisher.run { _ in threads.submit(of: nil) { holder.letGo() } } }
        }
    }
}
