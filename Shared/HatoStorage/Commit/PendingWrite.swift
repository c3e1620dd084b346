/// What waits for the writer.
enum Submission: Sendable {
    case write(any PendingWrite)
    case snapshot(PendingSnapshot)

    func refuse(_ error: StoreError) {
        switch self {
        case .write(let write): write.refuse(error)
        case .snapshot(let snapshot): snapshot.completion(.failure(error))
        }
    }
}

/// Somebody's wish for the state at this place among the writes.
struct PendingSnapshot: Sendable {
    var endsGroup: Bool
    var completion: @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
}

/// A submitted closure between its submission and its answer. Everything but `refuse` before the hand-over happens on
/// the writer's two threads, on one at a time.
protocol PendingWrite: AnyObject, Sendable {
    /// Runs the closure; false when it threw.
    func plan(on transaction: any StoreTransaction) -> Bool
    /// The answer will be this error, although the closure did not throw.
    func fail(_ error: StoreError)
    func answer(at version: UInt64)
    func refuse(_ error: StoreError)
}

/// `@unchecked Sendable`: `outcome` belongs to whoever has its group.
final class SubmittedWrite<Outcome: Sendable>: PendingWrite, @unchecked Sendable {
    private let body: @Sendable (any StoreTransaction) throws -> Outcome
    private let completion: @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    private var outcome: Result<Outcome, any Error> = .failure(StoreError.closed(cause: nil))

    init(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        self.body = body
        self.completion = completion
    }

    func plan(on transaction: any StoreTransaction) -> Bool {
        do {
            outcome = .success(try body(transaction))
            return true
        } catch {
            outcome = .failure(error)
            return false
        }
    }

    func fail(_ error: StoreError) { outcome = .failure(error) }

    func answer(at version: UInt64) {
        completion(outcome.map { Committed(outcome: $0, version: version) })
    }

    func refuse(_ error: StoreError) { completion(.failure(error)) }
}
