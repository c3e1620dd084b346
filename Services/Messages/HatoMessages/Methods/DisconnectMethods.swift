import HatoModel
import HatoRPC
import HatoTree

/// `messages.onDisconnect.set`, `.update`, `.remove`, `.cancel`: authorised and registered in the order of the
/// connection's writes; the response is sent when the registration is durable.
struct DisconnectMethods: Sendable {
    let parts: ServiceParts
    let queue: CommitQueue
    let sessions: ConnectionSessions
    let runs: DisconnectRuns

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.OnDisconnect.Set.self) { request, context, reply in
            register(.set(request.value, at: request.path), request.database, context, reply)
        }
        router.handleInOrder(Messages.OnDisconnect.Update.self) { request, context, reply in
            register(.update(request.values, at: request.path), request.database, context, reply)
        }
        router.handleInOrder(Messages.OnDisconnect.Remove.self) { request, context, reply in
            register(.remove(at: request.path), request.database, context, reply)
        }
        router.handleInOrder(Messages.OnDisconnect.Cancel.self) { cancel($0, $1, $2) }
    }

    private func register<Request: RPCRequest>(
        _ mutation: Mutation, _ database: DatabaseName?, _ context: RPCContext, _ reply: RPCReply<Request>
    ) where Request.Result == Empty {
        let writes: [DeferredWrite]
        do {
            try parts.quotas.take(context, now: parts.now())
            try checkSize(of: mutation)
            writes = try DeferredWrite.all(of: mutation)
        } catch {
            return reply.refuse(error)
        }
        let session = sessions.session(of: context)
        let entries = runs.entries(of: context.connection, session)
        let owner = entries.owner(of: context)
        let watch = parts.slow.watch(context.method, database: database, path: mutation.path)
        queue.submit(from: session, watch: watch) { [parts] transaction in
            let database = try parts.catalogue.database(database ?? .default, in: transaction)
            let (reader, now) = (StoreTreeReader(transaction), parts.now())
            let resolved = try database.planner.resolve(mutation, reading: reader, at: now)
            try OperationAuthoriser(database, reading: reader, now: now).authorise(resolved, by: context.caller)
            try entries.change(of: database, by: context.limitedClient, in: transaction) { tree throws(MessagesError) in
                writes.flatMap { tree.set($0, by: owner) }
            }
        } completion: { result in
            reply.complete(result, isIdempotent: mutation.isIdempotent) { _ in Empty() }
        }
    }

    /// A write that is too large is refused before it is processed: other connections of the event loop would wait for
    /// that, and on the writer's thread all of them.
    private func checkSize(of mutation: Mutation) throws {
        let limits = parts.limits
        if case .update(let values) = mutation.operation { try limits.checkPaths(of: values) }
        guard DeferredWrite.byteCount(of: mutation, upTo: limits.onDisconnectBytesMax) <= limits.onDisconnectBytesMax
        else { throw MessagesError.onDisconnectTooBig(bytesMax: limits.onDisconnectBytesMax) }
        guard mutation.valueCount(upTo: limits.writeValuesMax) <= limits.writeValuesMax else {
            throw MessagesError.tooManyValues(of: mutation, max: limits.writeValuesMax)
        }
    }

    /// Every caller may cancel the writes of its own connection.
    private func cancel(
        _ request: Messages.OnDisconnect.Cancel, _ context: RPCContext,
        _ reply: RPCReply<Messages.OnDisconnect.Cancel>
    ) {
        do { try request.path.requireNode() } catch {
            return reply.fail(RPCError.invalidArgument("path", reason: error.reason, error.message))
        }
        let session = sessions.session(of: context)
        let entries = runs.entries(of: context.connection, session)
        queue.submit(from: session) { [parts] transaction in
            let database = try parts.catalogue.database(request.database ?? .default, in: transaction)
            let entriesMax = parts.limits.onDisconnectEntriesMax
            try entries.change(of: database, by: context.limitedClient, in: transaction) { tree throws(MessagesError) in
                guard tree.entriesMin(afterCancelAt: request.path) <= entriesMax else {
                    throw .tooManyOnDisconnect(max: entriesMax)
                }
                return tree.cancel(at: request.path)
            }
        } completion: { result in
            reply.complete(result, isIdempotent: request.isIdempotent) { _ in Empty() }
        }
    }
}
