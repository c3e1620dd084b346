import HatoModel
import HatoRPC
import HatoStorage
import Synchronization

/// `messages.verify`: one check at a time, on a thread of its own, since it may read for minutes what the reader
/// threads are there to serve others with.
struct VerifyMethods: Sendable {
    let parts: ServiceParts
    let reads: ReadOrder
    private let turn = Turn()

    init(parts: ServiceParts, reads: ReadOrder) {
        self.parts = parts
        self.reads = reads
    }

    private final class Turn: Sendable {
        let isTaken = Atomic(false)
    }

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Verify.self) { [self] request, context, reply in
            reads.onReader(context, reply) { view in
                try view.checkNamed(request.database)
                try start(at: view.lasting ?? view.snapshot, reply)
            }
        }
    }

    private func start(at snapshot: any StoreSnapshot, _ reply: RPCReply<Messages.Verify>) throws {
        guard turn.isTaken.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
        else { throw MessagesError.verifying }
        let (store, findingsMax, meter) = (parts.store, parts.limits.verifyFindingsMax, parts.rulesMeter)
        let metrics = parts.metrics
        do {
            try startThread { [turn] in
                let inspection = OpenStoreInspection(store, at: snapshot)
                let verification = StoreVerification(inspection, findingsMax: findingsMax, meter: meter) {
                    metrics.verifying(rows: $0)
                }
                let outcome = Result { try verification.run() }
                metrics.verifying(rows: 0)
                turn.isTaken.store(false, ordering: .sequentiallyConsistent)
                switch outcome {
                case .success(let result): reply.succeed(result)
                case .failure(let error): reply.refuse(error)
                }
            }
        } catch {
            turn.isTaken.store(false, ordering: .sequentiallyConsistent)
            throw error
        }
    }
}
