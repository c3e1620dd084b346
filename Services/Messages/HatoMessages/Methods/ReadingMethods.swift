import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// `messages.get`: waits for the earlier writes of its own connection, then reads a snapshot on a reader's thread.
struct ReadingMethods: Sendable {
    var parts: ServiceParts
    var sessions: ConnectionSessions

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Get.self) { get($0, $1, $2) }
    }

    private func get(_ request: Messages.Get, _ context: RPCContext, _ reply: RPCReply<Messages.Get>) {
        let caller = context.caller
        sessions.session(of: context.connection).afterOwnWrites {
            parts.store.submitRead {
                do {
                    let snapshot = try parts.store.snapshot()
                    let database = try parts.catalogue.forReading(request.database ?? .default)
                    let reading = NodeReading(database, in: snapshot, bytesMax: parts.limits.responseBytesMax)
                    reply.succeed(encoded: try reading.answer(request, to: caller))
                    parts.metrics.didRead()
                } catch {
                    reply.refuse(error)
                }
            }
        }
    }
}
