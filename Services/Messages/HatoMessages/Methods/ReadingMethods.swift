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
        let caller = context.caller
        reads.onReader(context, reply) { view in
            let reading = NodeReading(
                try view.database(request.database), in: view.snapshot, bytesMax: parts.limits.responseBytesMax)
            reply.succeed(encoded: try reading.answer(request, to: caller))
            parts.metrics.didRead()
        }
    }
}
