import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// `messages.get`: reads at its place among the writes of its connection, on a reader's thread.
///
/// A class: every read that waits for its turn holds it.
final class ReadingMethods: Sendable {
    private let parts: ServiceParts
    private let reads: ReadOrder

    init(parts: ServiceParts, reads: ReadOrder) {
        self.parts = parts
        self.reads = reads
    }

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Get.self) { [self] in get($0, $1, $2) }
    }

    private func get(_ request: Messages.Get, _ context: RPCContext, _ reply: RPCReply<Messages.Get>) {
        let (caller, explains) = (context.caller, context.isByAdministrator)
        reads.onReader(context, reply) { [self] view in
            view.note(request.path, of: request.database)
            let database = try view.database(request.database)
            var authoriser = OperationAuthoriser(
                database, reading: StoreTreeReader(view.snapshot), now: parts.now(), explains: explains)
            authoriser.watch = view.watch
            try request.checkCombination()
            try authoriser.authorise(reading: request.path.node, request.query, by: caller)
            var reading = NodeReading(database, in: view.snapshot, bytesMax: view.bytesMax)
            if view.bytesMax < parts.limits.responseBytesMax { reading.hashedBytesMax = view.bytesMax }
            let response = try reading.response(to: request)
            view.watch?.responseBytes = response.count
            reply.succeed(encoded: response)
            parts.metrics.didRead()
        }
    }
}
