@testable import HatoRPC

// What may happen to the connection of a `ConnectionWorld`.

extension ConnectionWorld {
    enum Line: Hashable {
        case request(RequestKind)
        /// Its credential must be verified first.
        case unverified(RequestKind)
        case identityChange
        case batch([RequestKind])
        /// Takes much memory when it is read.
        case large(RequestKind)
        /// Is read on another thread.
        case long(RequestKind)
    }

    enum Event: Hashable {
        case lineArrived(Line)
        /// The n-th among those in flight.
        case requestFinished(Int)
        case readOutgrew
        case verified(Bool)
        case longLineRead
        case batchReserved
        case identityTakenOver
        case budgetFilled, budgetFreed
        case outputDrained
        case inputClosed, stopping, inputRefused, closed
    }
}

extension ConnectionWorld.Line {
    var kinds: [RequestKind] {
        switch self {
        case .request(let kind), .unverified(let kind), .large(let kind), .long(let kind): [kind]
        case .identityChange: [RequestKind(start: .session)]
        case .batch(let kinds): kinds
        }
    }
}
