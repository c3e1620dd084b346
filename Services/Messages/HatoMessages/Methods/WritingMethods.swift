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
        var mutation = Mutation.set(request.value, at: request.path, if: condition)
        let shown = ShownWrite(etag: request.etag, echo: request.echo, of: &mutation, limits)
        write(mutation, request.database, context) { [self] result in
            switch result {
            case .success(let done):
                respond(shown, context) {
                    let node = done.outcome.written?.first
                    reply.succeed(
                        Messages.Set.Result(
                            etag: done.outcome.etag ?? shown.etag(of: node), value: shown.value(of: node),
                            version: done.version))
                }
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func update(_ request: Messages.Update, _ context: RPCContext, _ reply: RPCReply<Messages.Update>) {
        do { try limits.checkPaths(of: request.values) } catch { return reply.fail(error) }
        var mutation = Mutation.update(request.values, at: request.path)
        let shown = ShownWrite(echo: request.echo, of: &mutation, limits)
        let names = shown.isAsked ? request.values.members.map(\.name) : []
        write(mutation, request.database, context) { [self] result in
            switch result {
            case .success(let done):
                respond(shown, context) {
                    let values = shown.values(of: done.outcome.written, named: names)
                    reply.succeed(Messages.Update.Result(values: values, version: done.version))
                }
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    private func push(_ request: Messages.Push, _ context: RPCContext, _ reply: RPCReply<Messages.Push>) {
        let key = request.key ?? keys.next(now: now())
        var mutation = Mutation.push(request.value, at: request.path, key: key, isClientKey: request.key != nil)
        let shown = ShownWrite(etag: request.etag, echo: request.echo, of: &mutation, limits)
        write(mutation, request.database, context) { [self] result in
            switch result {
            case .success(let done):
                pushed(shown, done, context) { node, version in
                    reply.succeed(
                        Messages.Push.Result(
                            key: key, etag: shown.etag(of: node), value: shown.value(of: node), version: version))
                }
            case .failure(let error): reply.refuse(error)
            }
        }
    }

    /// - Parameter body: gets what was written, if the response shows it, and the version of that.
    private func pushed(
        _ shown: ShownWrite, _ done: Committed<WriteOutcome>, _ context: RPCContext,
        _ body: @escaping @Sendable (TreeNode?, UInt64) -> Void
    ) {
        guard let repeated = done.outcome.repeated else {
            // Most show nothing.
            guard shown.takesLong else { return body(done.outcome.written?.first, done.version) }
            return store.submitRead(of: context.client) { body(done.outcome.written?.first, done.version) }
        }
        store.submitRead(of: context.client) {
            // The push stands whether or not its version can be found.
            guard let first = try? repeated.firstVersion(upTo: done.version) else { return body(nil, done.version) }
            guard shown.isAsked else { return body(nil, first) }
            body(try? repeated.firstNode(at: first), first)
        }
    }

    /// What takes long to make is made on a reader's thread: responses are sent where all others wait for theirs.
    private func respond(_ shown: ShownWrite, _ context: RPCContext, _ body: @escaping @Sendable () -> Void) {
        if shown.takesLong { store.submitRead(of: context.client, body) } else { body() }
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
