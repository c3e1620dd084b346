import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Synchronization

/// `messages.set`, `.update`, `.push`, `.remove`: handed to the commit queue in the order of their lines.
///
/// A class: every push that waits for its response holds it.
final class WritingMethods: Sendable {
    private let queue: CommitQueue
    private let sessions: ConnectionSessions
    private let limits: MessagesLimits
    private let slow: SlowOperations
    private let now: @Sendable () -> Int64
    private let store: any Store
    private let quotas: WriteQuotas
    private let keys = PushKeys()

    init(queue: CommitQueue, sessions: ConnectionSessions, parts: ServiceParts) {
        self.queue = queue
        self.sessions = sessions
        limits = parts.limits
        slow = parts.slow
        now = parts.now
        store = parts.store
        quotas = parts.quotas
    }

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Set.self) { [self] in set($0, $1, $2) }
        router.handleInOrder(Messages.Update.self) { [self] in update($0, $1, $2) }
        router.handleInOrder(Messages.Push.self) { [self] in push($0, $1, $2) }
        router.handleInOrder(Messages.Remove.self) { [self] in remove($0, $1, $2) }
    }

    private func set(_ request: Messages.Set, _ context: RPCContext, _ reply: RPCReply<Messages.Set>) {
        guard request.ifMatch == nil || request.ifVersion == nil else {
            return reply.fail(
                RPCError.invalidArgument(
                    "ifVersion", reason: "two_conditions", "A write has one condition: ifMatch or ifVersion, e.g. 17"))
        }
        do { try IssuedTexts.checkEtag(request.ifMatch, "ifMatch") } catch { return reply.fail(error) }
        let condition =
            request.ifMatch.map(Mutation.Condition.etag) ?? request.ifVersion.map(Mutation.Condition.version)
        write(.set(request.value, at: request.path, if: condition), request.database, context) { result in
            switch result {
            case .success(let done): reply.succeed(Messages.Set.Result(etag: done.outcome.etag, version: done.version))
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func update(_ request: Messages.Update, _ context: RPCContext, _ reply: RPCReply<Messages.Update>) {
        do { try limits.checkPaths(of: request.values) } catch { return reply.fail(error) }
        write(.update(request.values, at: request.path), request.database, context) { result in
            switch result {
            case .success(let done): reply.succeed(Messages.Update.Result(version: done.version))
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func push(_ request: Messages.Push, _ context: RPCContext, _ reply: RPCReply<Messages.Push>) {
        let key = request.key ?? keys.next(now: now())
        let mutation = Mutation.push(request.value, at: request.path, key: key, isClientKey: request.key != nil)
        write(mutation, request.database, context) { [self] result in
            switch result {
            case .success(let done): pushed(key, done, context, reply)
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func pushed(
        _ key: PushKey, _ done: Committed<WriteOutcome>, _ context: RPCContext, _ reply: RPCReply<Messages.Push>
    ) {
        guard let repeated = done.outcome.repeated else {
            return reply.succeed(Messages.Push.Result(key: key, version: done.version))
        }
        store.submitRead(of: context.client) {
            // The push stands whether or not its version can be found.
            let first = try? repeated.firstVersion(upTo: done.version)
            reply.succeed(Messages.Push.Result(key: key, version: first ?? done.version))
        }
    }

    private func remove(_ request: Messages.Remove, _ context: RPCContext, _ reply: RPCReply<Messages.Remove>) {
        do { try IssuedTexts.checkEtag(request.ifMatch, "ifMatch") } catch { return reply.fail(error) }
        let mutation = Mutation.remove(at: request.path, if: request.ifMatch.map(Mutation.Condition.etag))
        write(mutation, request.database, context) { result in
            switch result {
            case .success(let done): reply.succeed(Messages.Remove.Result(version: done.version))
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func write(
        _ mutation: Mutation, _ database: DatabaseName?, _ context: RPCContext,
        completion: @escaping @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void
    ) {
        do { try quotas.take(context, now: now()) } catch { return completion(.failure(error)) }
        let write = Write(
            database: database ?? .default, mutation: mutation, caller: context.caller,
            isByAdministrator: context.isByAdministrator,
            watch: slow.watch(context.method, database: database, path: mutation.path))
        let session = sessions.session(of: context)
        guard write.isByAdministrator else { return queue.submit(write, from: session, completion: completion) }
        queue.submit(write, from: session) { [store] result in
            // A thousand rules take milliseconds to put into words, and responses are given where all others wait for
            // theirs.
            if case .failure(MessagesError.denied(_, trace: _?)) = result {
                store.submitRead { completion(result) }
            } else {
                completion(result)
            }
        }
    }
}

extension MessagesLimits {
    /// Throws `too_many_paths` when an update has more paths than the limit.
    func checkPaths(of values: JSONObject) throws(RPCError) {
        guard values.count > updatePathsMax else { return }
        throw .invalidArgument(
            "values", reason: "too_many_paths", "'values' may have at most \(updatePathsMax) paths")
    }
}

/// The push keys this service makes, each greater than the one before.
final class PushKeys: Sendable {
    private let generator = Mutex(PushKeyGenerator())

    func next(now: Int64) -> PushKey {
        generator.withLock { generator in
            var random = SystemRandomNumberGenerator()
            return generator.next(now: now, using: &random)
        }
    }
}
