import HatoModel
import HatoRPC
import HatoRules
import HatoStorage

/// `messages.databases.…`, `messages.rules.…`, `messages.indexes.list`, `messages.stats`: what administrators do.
///
/// Those that write go through the commit queue in the order of their lines, like every write.
struct DatabaseMethods: Sendable {
    let parts: ServiceParts
    let queue: CommitQueue
    let reads: ReadOrder
    let builds: IndexBuilds
    let administration: DatabaseAdministration
    private let indexCounts: IndexCounts

    init(_ parts: ServiceParts, queue: CommitQueue, reads: ReadOrder, builds: IndexBuilds) {
        self.parts = parts
        self.queue = queue
        self.reads = reads
        self.builds = builds
        administration = DatabaseAdministration(parts)
        indexCounts = IndexCounts(now: parts.now)
    }

    func add(to router: inout RPCRouter) {
        router.handleInOrder(Messages.Databases.Create.self) { create($0, $1, $2) }
        router.handleInOrder(Messages.Databases.Drop.self) { drop($0, $1, $2) }
        router.handleInOrder(Messages.Databases.List.self) { _, context, reply in
            reads.read(context, reply) { view in
                Messages.Databases.List.Result(
                    databases: view.databases.byName.values.sorted { $0.name.rawValue < $1.name.rawValue }.map {
                        Messages.Databases.Database(name: $0.name, createdAt: $0.record.createdAt)
                    })
            }
        }
        router.handleInOrder(Messages.Rules.Get.self) { request, context, reply in
            reads.read(context, reply) { view in
                let rules = try view.database(request.database).record.rules
                return Messages.Rules.Get.Result(
                    rules: request.strict == true ? try RulesJSON.strict(rules) : rules)
            }
        }
        router.handleInOrder(Messages.Rules.Set.self) { setRules($0, $1, $2) }
        router.handleInOrder(Messages.Rules.Check.self) { request, context, reply in
            reads.read(context, reply) { view in
                let database = try view.database(request.database)
                return try OperationAuthoriser(database, reading: StoreTreeReader(view.snapshot), now: parts.now())
                    .check(request)
            }
        }
        router.handleInOrder(Messages.Indexes.List.self) { [indexCounts] request, context, reply in
            reads.read(context, reply) { view in
                try IndexListing(
                    database: view.database(request.database), snapshot: view.snapshot, counts: indexCounts
                ).list()
            }
        }
    }

    private func create(
        _ request: Messages.Databases.Create, _ context: RPCContext, _ reply: RPCReply<Messages.Databases.Create>
    ) {
        let rules: Rules
        do { rules = try administration.compile(request.rules ?? DefaultRules.deny) } catch {
            return reply.refuse(error)
        }
        change(request.database, context) { [administration] transaction in
            try administration.create(request.database, rules, in: transaction)
        } completion: { result in
            reply.complete(result, isIdempotent: request.isIdempotent) { Messages.Databases.Create.Result(version: $0) }
        }
    }

    private func drop(
        _ request: Messages.Databases.Drop, _ context: RPCContext, _ reply: RPCReply<Messages.Databases.Drop>
    ) {
        queue.submit(from: reads.sessions.session(of: context)) { [administration] transaction in
            try administration.drop(request.database, in: transaction)
        } completion: { result in
            let done = result.map { Committed(outcome: (), version: $0.version) }
            reply.complete(done, isIdempotent: request.isIdempotent) {
                Messages.Databases.Drop.Result(version: $0)
            }
        }
    }

    private func setRules(
        _ request: Messages.Rules.Set, _ context: RPCContext, _ reply: RPCReply<Messages.Rules.Set>
    ) {
        let name = request.database ?? .default
        let rules: Rules
        do { rules = try administration.compile(request.rules) } catch { return reply.refuse(error) }
        if request.dryRun == true {
            return reads.read(context, reply) { view in
                _ = try view.database(name)
                return Messages.Rules.Set.Result(version: view.snapshot.version)
            }
        }
        change(name, context) { [administration] transaction in
            try administration.setRules(name, rules, in: transaction)
        } completion: { result in
            reply.complete(result, isIdempotent: request.isIdempotent) { Messages.Rules.Set.Result(version: $0) }
        }
    }

    /// A commit that makes or changes a database; once it is durable, its new indexes are built.
    private func change(
        _ name: DatabaseName, _ context: RPCContext,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Database,
        completion: @escaping @Sendable (Result<Committed<Void>, any Error>) -> Void
    ) {
        queue.submit(from: reads.sessions.session(of: context), body) { [builds] _ in
            builds.resume(name)
        } completion: { result in
            completion(result.map { Committed(outcome: (), version: $0.version) })
        }
    }
}

extension RPCReply {
    /// Responses a write whose result is its version.
    ///
    /// - Parameter isIdempotent: of the request.
    func complete(
        _ result: Result<Committed<Void>, any Error>, isIdempotent: @autoclosure () -> Bool,
        _ make: (UInt64) -> Request.Result
    ) {
        switch result {
        case .success(let done): succeed(make(done.version))
        case .failure(let error): refuse(error, isIdempotent: isIdempotent())
        }
    }
}
