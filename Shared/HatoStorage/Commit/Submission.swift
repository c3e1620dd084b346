/// An entry of the writer's queue.
enum Submission: Sendable {
    case write(any StoreWrite)
    case snapshot(PendingSnapshot)

    /// The client whose turn it takes.
    var client: String? {
        switch self {
        case .write(let write): write.client
        case .snapshot(let snapshot): snapshot.client
        }
    }

    func refuse(_ error: StoreError) {
        switch self {
        case .write(let write): write.ended(.failure(error))
        case .snapshot(let snapshot): snapshot.completion(.failure(error))
        }
    }
}

/// A request for the state at this position in the order of writes.
struct PendingSnapshot: Sendable {
    var client: String?
    var endsGroup: Bool
    var completion: @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
}

/// `@unchecked Sendable`: `outcome` belongs to the thread that has the write's group.
final class SubmittedWrite<Outcome: Sendable>: StoreWrite, @unchecked Sendable {
    let client: String?
    private let body: @Sendable (any StoreTransaction) throws -> Outcome
    private let completion: @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    private var outcome: Outcome?

    init(
        of client: String? = nil,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        self.client = client
        self.body = body
        self.completion = completion
    }

    func write(in transaction: any StoreTransaction) throws { outcome = try body(transaction) }

    func ended(_ result: Result<UInt64, any Error>) {
        completion(
            result.flatMap { version in
                guard let outcome else { return .failure(StoreError.closed(cause: nil)) }
                return .success(Committed(outcome: outcome, version: version))
            })
    }
}
