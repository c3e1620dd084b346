import HatoStorage
import HatoTree

/// A write whose condition did not hold, with the state it was compared with: its response comes after the events of
/// its connection up to there. A client that tries again at once, with what its listeners have been sent, then has the
/// value that the condition was compared with.
struct RefusedCondition: Error {
    var error: TreeError
    /// The version of that state.
    var version: UInt64

    /// In a write closure: runs `body`, and adds the version to the error of a condition that does not hold.
    static func noting<Outcome>(
        in transaction: any StoreTransaction, _ body: () throws -> Outcome
    ) throws -> Outcome {
        do {
            return try body()
        } catch let error as TreeError where error.isRefusedCondition {
            throw RefusedCondition(error: error, version: transaction.nextVersion - 1)
        }
    }
}

/// The events of its connection that a response comes after: those of commits up to a version.
struct EarlierEvents: Sendable {
    /// 0: it waits for none.
    var version: UInt64 = 0
    /// Whether the response refuses a condition: the connection has written nothing itself.
    var isRefused = false

    init(_ result: Result<UInt64, any Error>) {
        switch result {
        case .success(let version): self.version = version
        case .failure(let refused as RefusedCondition): (version, isRefused) = (refused.version, true)
        case .failure: break
        }
    }
}
