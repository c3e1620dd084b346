import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// `messages.get`: reads at its place among the writes of its connection, on a reader's thread.
struct ReadingMethods: Sendable {
    let parts: ServiceParts
    let reads: ReadOrder

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Get.self) { get($0, $1, $2) }
    }

    private func get(_ request: Messages.Get, _ context: RPCContext, _ reply: RPCReply<Messages.Get>) {
        let (caller, explains) = (context.caller, context.isByAdministrator)
        reads.onReader(context, reply) { view in
            let database = try view.database(request.database)
            let judge = RulesJudge(
                database, reading: StoreTreeReader(view.snapshot), now: parts.now(), explains: explains)
            try request.checkCombination()
            try judge.authorise(reading: request.path.node, request.query, by: caller)
            let reading = NodeReading(database, in: view.snapshot, bytesMax: parts.limits.responseBytesMax)
            reply.succeed(encoded: try reading.answer(request))
            parts.metrics.didRead()
        }
    }
}
