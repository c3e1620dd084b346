import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// `messages.listen`, `.unlisten`, `.follow`, `.unfollow`: handed to the publisher's thread at their place among the
/// writes of their connection.
struct ListeningMethods: Sendable {
    let parts: ServiceParts
    let reads: ReadOrder
    private let openings: ClientTurns

    init(parts: ServiceParts, reads: ReadOrder) {
        self.parts = parts
        self.reads = reads
        openings = ClientTurns(countMax: parts.limits.openingsPerClientMax)
    }

    func add(to router: inout RPCRouter) {
        // The values come as events, whose memory is counted separately.
        router.handleInOrder(Messages.Listen.self, isSmall: true) { listen($0, $1, $2) }
        router.handleInOrder(Messages.Unlisten.self) { request, context, reply in
            end(request.subscription, context, reply) { $0.unlisten($1, $2) }
        }
        router.handleInOrder(Messages.Follow.self) { follow($0, $1, $2) }
        router.handleInOrder(Messages.Unfollow.self) { request, context, reply in
            end(request.subscription, context, reply) { $0.unfollow($1, $2) }
        }
    }

    private func listen(_ request: Messages.Listen, _ context: RPCContext, _ reply: RPCReply<Messages.Listen>) {
        let coalesceMs = request.coalesceMs ?? 0
        guard (0...parts.limits.coalesceMsMax).contains(coalesceMs) else {
            return reply.fail(
                RPCError.invalidArgument(
                    "coalesceMs", reason: "invalid_time", "coalesceMs is 0 to \(parts.limits.coalesceMsMax), e.g. 100"))
        }
        do {
            try IssuedTexts.checkEtag(request.etag, "etag")
            try IssuedTexts.checkEpoch(request.epoch)
        } catch { return reply.fail(error) }
        let (slow, catalogue) = (parts.slow, parts.catalogue)
        let timing = slow.watch(context.method, database: request.database, path: request.path)
        reads.onPublisher(context, reply, turns: openings) { registry, view in
            timing?.began = slow.now
            try request.path.requireListenable()
            guard !context.connection.isClosed else { throw MessagesError.stopping }
            let subscription = context.openSubscription()
            let opening = Listener.Opening(
                connection: context.connection, subscription: subscription, caller: context.caller,
                client: context.limitedClient, forwarded: context.forwarded, coalesceMs: coalesceMs,
                explains: context.isByAdministrator, endWatch: watch(context, subscription))
            var view = view
            view.watch = timing
            registry.open(opening, request, at: view) { result in
                switch result {
                case .success(let result): reply.succeed(result)
                case .failure(let error): reply.refuse(error)
                }
                slow.ended(timing, catalogue)
            }
        }
    }

    private func follow(_ request: Messages.Follow, _ context: RPCContext, _ reply: RPCReply<Messages.Follow>) {
        do { try IssuedTexts.checkEpoch(request.epoch) } catch { return reply.fail(error) }
        reads.onPublisher(context, reply) { registry, view in
            let database = try view.database(request.database)
            guard request.patterns?.count ?? 0 <= parts.limits.patternsPerFollowerMax else {
                throw MessagesError.tooManyPatterns(max: parts.limits.patternsPerFollowerMax)
            }
            let subscription = context.openSubscription()
            let opening = Follower.Opening(
                connection: context.connection, subscription: subscription, database: database,
                patterns: request.patterns, endWatch: watch(context, subscription))
            registry.follows.follow(opening, request, at: view.snapshot) { result in
                switch result {
                case .success(let result): reply.succeed(result)
                case .failure(let error): reply.refuse(error)
                }
            }
        }
    }

    private func watch(_ context: RPCContext, _ subscription: String) -> @Sendable () -> Void {
        let connection = context.connection.id
        let watch = context.watchIdentity { [publisher = reads.publisher] change, work in
            publisher.run { registry in
                registry.identityChanged(connection, subscription, change, work)
            }
        }
        return { watch.cancel() }
    }

    private func end<Request: RPCRequest>(
        _ subscription: String, _ context: RPCContext, _ reply: RPCReply<Request>,
        _ body: @escaping @Sendable (ListenerRegistry, RPCConnection, String) -> Bool
    ) where Request.Result == Empty {
        let connection = context.connection
        reads.onPublisher(context, reply) { registry, _ in
            guard body(registry, connection, subscription) else {
                throw MessagesError.subscriptionNotFound(subscription)
            }
            reply.succeed(Empty())
        }
    }
}
