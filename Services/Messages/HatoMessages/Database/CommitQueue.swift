import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// A write on its way: what, where, by whom.
struct Write: Sendable {
    var database: DatabaseName
    var mutation: Mutation
    var caller: Caller
    /// An administrator speaks as the caller, and is told why rules refuse it.
    var isByAdministrator = false
    /// Followers do not see it.
    var isHiddenFromFollowers = false
    /// Nil when nobody asks how long it takes.
    var watch: OperationWatch?
}

/// Plans, authorises and commits writes, in the order in which they arrive.
///
/// `submit` is called on event loops, in the order of the lines of a connection; the store runs the closures in the
/// order of submission. Each is planned against what its predecessors left, judged by the rules that were set before
/// it, and leaves nothing when it is denied. Its answer goes out when it is durable and its events are on their way.
final class CommitQueue: Sendable {
    private let store: any Store
    private let catalogue: Catalogue
    private let publisher: Publisher
    private let parts: ServiceParts
    private let pending: PendingChanges
    private let syncTime = SyncTime()

    init(_ parts: ServiceParts, publisher: Publisher) {
        self.parts = parts
        self.publisher = publisher
        store = parts.store
        catalogue = parts.catalogue
        pending = PendingChanges()
    }

    /// `answer` gets the etag of a conditional write, and the version at which it is durable.
    func submit(
        _ write: Write, from session: ConnectionSession,
        answer: @escaping @Sendable (Result<Committed<String?>, any Error>) -> Void
    ) {
        guard write.mutation.isLarge else {
            return submit(
                from: session, watch: write.watch, { [self] transaction in try commit(write, in: transaction) },
                answer: answer)
        }
        session.writeBegan()
        session.holdingTurn { [self] in
            store.submitRead { [self] in
                let began = parts.slow.now
                let judged = Result { try JudgedWrite(write, parts) }
                write.watch?.preparation = parts.slow.now - began
                let watched = Watched(session, write.watch)
                send(from: watched, { [self] in try commit(write, judged.get(), in: $0) }, answer: answer)
                session.release()
            }
        }
    }

    /// Any closure that writes, in the order of its connection: `body` runs as `Store.submit` says; `published` runs
    /// when it is durable, before its events and its answer.
    func submit<Outcome: Sendable>(
        from session: ConnectionSession, watch: OperationWatch? = nil,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        published: @escaping @Sendable (Committed<Outcome>) -> Void = { _ in },
        answer: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        session.writeBegan()
        let watched = Watched(session, watch)
        if session.isFree { return send(from: watched, body, published: published, answer: answer) }
        session.inTurn { [self] in send(from: watched, body, published: published, answer: answer) }
    }

    /// Whose write it is, and who wants to know how long it takes.
    private struct Watched {
        var session: ConnectionSession
        var watch: OperationWatch?

        init(_ session: ConnectionSession, _ watch: OperationWatch?) {
            self.session = session
            self.watch = watch
        }
    }

    private func send<Outcome: Sendable>(
        from watched: Watched, _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        published: @escaping @Sendable (Committed<Outcome>) -> Void = { _ in },
        answer: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        let start = ContinuousClock.now
        let (metrics, slow, catalogue, watch) = (parts.metrics, parts.slow, parts.catalogue, watched.watch)
        store.submit(timed(body, watch)) { [publisher, syncTime] result in
            switch result {
            case .success(let committed):
                published(committed)
                metrics.wrote(after: ContinuousClock.now - start)
            case .failure:
                metrics.refusedWrite()
            }
            watched.session.writeEnded()
            if let watch {
                watch.durable = slow.now
                watch.sync = syncTime.last
            }
            publisher.afterEvents {
                slow.answered(watch, catalogue)
                answer(result)
            }
        }
    }

    private func timed<Outcome>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome, _ watch: OperationWatch?
    ) -> @Sendable (any StoreTransaction) throws -> Outcome {
        guard let watch else { return body }
        let slow = parts.slow
        return { transaction in
            watch.began = slow.now
            defer { watch.ended = slow.now }
            return try body(transaction)
        }
    }

    /// On the writer's thread, for every group.
    func groupBecameDurable(_ group: CommitGroup) {
        pending.becameDurable(through: group.snapshot.version)
        syncTime.last = group.syncTime
        parts.metrics.committed(
            group: group.commits.count, through: group.snapshot.version, in: group.syncTime)
    }

    /// Part of a closure that writes nothing else. When it throws, nothing has been put. Returns the etag of a
    /// conditional write.
    ///
    /// - Parameter judged: what was found out beforehand; it holds if nothing that it read has changed since.
    func commit(
        _ write: Write, _ judged: JudgedWrite? = nil, in transaction: any StoreTransaction
    ) throws -> String? {
        let database = try catalogue.forWriting(write.database)
        let reading: any StoreReading =
            if let watch = write.watch { CountedReading(reading: transaction, watch: watch) } else { transaction }
        let reader = StoreTreeReader(reading)
        let now = parts.now()
        let history = CommitHistory(database: database.id, store: store, pending: pending, uid: write.caller.uid)
        var judge = RulesJudge(database, reading: reader, now: now, explains: write.isByAdministrator)
        judge.history = history
        judge.watch = write.watch
        var resolved: ResolvedMutation
        if let judged, try judged.holds(in: database, history) {
            if let refusal = judged.refusal { throw refusal }
            resolved = judged.resolved
        } else {
            resolved = try database.planner.resolve(write.mutation, reading: reader, at: now)
            try judge.authorise(resolved, by: write.caller)
        }
        try judge.authorise(conditionOf: write.mutation, by: write.caller)
        resolved.hidesStored = try judge.hidesStored(write.mutation, from: write.caller)
        let plan = try database.planner.plan(resolved, reading: reader, history: history)
        guard !plan.isEmpty else { return plan.etag }
        plan.rows.apply(to: TransactionRows(transaction))
        let note = CommitNote(
            version: transaction.nextVersion, database: database.id, plan: plan, uid: write.caller.uid,
            isHiddenFromFollowers: write.isHiddenFromFollowers)
        transaction.record(note.record.span)
        transaction.attach(note)
        pending.append(note)
        return plan.etag
    }
}

/// How long the last sync took.
///
/// `@unchecked Sendable`: it is set and read on the writer's thread only.
private final class SyncTime: @unchecked Sendable {
    var last = Duration.zero
}

/// What every part of the service needs.
struct ServiceParts: Sendable {
    var store: any Store
    var catalogue: Catalogue
    var limits: MessagesLimits
    var metrics: MessagesMetrics
    var rulesMeter: RulesMeter
    var slow: SlowOperations
    /// Milliseconds since 1970.
    var now: @Sendable () -> Int64
}
