import HatoModel
import HatoRules
import HatoStorage
import HatoTree
import Synchronization

/// A write on its way: what, where, by whom.
struct Write: Sendable {
    var database: DatabaseName
    var mutation: Mutation
    var caller: Caller
    /// An administrator acts as the caller, and gets the trace of a refusal.
    var isByAdministrator = false
    /// Followers get a change without nodes.
    var disablesTriggers = false
    /// Steps of all its rules; nil: as many as the service allows.
    var rulesStepsMax: Int?
    /// Nil when its time is not measured.
    var watch: OperationWatch?
}

/// Plans, authorises and commits writes, in the order in which they arrive.
///
/// `submit` is called on event loops, in the order of the lines of a connection; the store runs the writes in the
/// order of submission. Each is planned against the state that its predecessors left and authorised by the rules that
/// were set before it; one that is denied leaves nothing. Its response is sent when it is durable and its events are
/// sent.
final class CommitQueue: Sendable {
    private let store: any Store
    private let catalogue: Catalogue
    private let publisher: Publisher
    private let parts: ServiceParts
    private let large: LargeWrites
    private let syncTime = SyncTime()

    /// Throws when the operating system gives no threads.
    init(_ parts: ServiceParts, publisher: Publisher) throws(StoreError) {
        self.parts = parts
        self.publisher = publisher
        store = parts.store
        catalogue = parts.catalogue
        // One: what a large write is planned in takes many times the memory of its values, and is not counted.
        large = LargeWrites(parts: parts, publisher: publisher, threads: try ReaderPool(threads: 1))
    }

    /// `response` gets what came of it, and the version at which it is durable.
    func submit(
        _ write: Write, from session: ConnectionSession,
        completion: @escaping @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void
    ) {
        if write.mutation.isLarge(parts.limits) { return hold(write, from: session, completion) { $0.submit($1, $2) } }
        let outgrowsTurn = write.mutation.mayOutgrowTurn
        var write = write
        if outgrowsTurn { write.mutation.limitToTurn() }
        // What needs nothing but the time need not take the writer's.
        let resolved = Result { try WritePlanner.resolve(write.mutation, at: parts.now()) }
        guard outgrowsTurn else {
            session.writeBegan()
            let queued = QueuedWrite(write, resolved, Arrival(session, write.watch), to: self, completion)
            if session.isFree { return store.submit(queued) }
            return session.inTurn { [store] in store.submit(queued) }
        }
        hold(write, from: session, completion) { $0.submitInTurn($1, resolved, $2) }
    }

    /// Hands a write that holds the turn of its connection to the large writes.
    private func hold(
        _ write: Write, from session: ConnectionSession,
        _ completion: @escaping @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void,
        _ submit: @escaping @Sendable (LargeWrites, Write, LargeWrites.Steps) -> Void
    ) {
        session.writeBegan()
        let arrival = Arrival(session, write.watch)
        let steps = LargeWrites.Steps(client: session.client) { [self] holder, planned, transaction in
            guard let write = holder.write else { throw MessagesError.stopping }
            return try timed(write.watch) {
                try commit(write, planned, resolved: holder.resolved, in: transaction)
            }
        } ended: { [self] result in
            ended(result, of: arrival, completion: completion)
            session.release()
        }
        session.holdingTurn { [large] in submit(large, write, steps) }
    }

    /// Any closure that writes, in the order of its connection: `body` runs as `Store.submit` says; `published` runs
    /// when it is durable, before its events and its response.
    func submit<Outcome: Sendable>(
        from session: ConnectionSession, watch: OperationWatch? = nil,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        published: @escaping @Sendable (Committed<Outcome>) -> Void = { _ in },
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        session.writeBegan()
        let arrival = Arrival(session, watch)
        if session.isFree { return send(arrival, body, published: published, completion: completion) }
        session.inTurn { [self] in send(arrival, body, published: published, completion: completion) }
    }

    /// Whose write it is, when it came, and who wants to know how long it takes.
    fileprivate struct Arrival {
        var session: ConnectionSession
        var watch: OperationWatch?
        var time = ContinuousClock.now

        init(_ session: ConnectionSession, _ watch: OperationWatch?) {
            self.session = session
            self.watch = watch
        }
    }

    private func send<Outcome: Sendable>(
        _ arrival: Arrival, _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        published: @escaping @Sendable (Committed<Outcome>) -> Void,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        let watch = arrival.watch
        store.submit(of: arrival.session.client) { [self] transaction in
            try timed(watch) { try body(transaction) }
        } completion: { [self] result in
            if case .success(let committed) = result { published(committed) }
            ended(result, of: arrival, completion: completion)
        }
    }

    fileprivate func timed<Outcome>(_ watch: OperationWatch?, _ body: () throws -> Outcome) rethrows -> Outcome {
        guard let watch else { return try body() }
        watch.began = parts.slow.now
        defer { watch.ended = parts.slow.now }
        return try body()
    }

    fileprivate func ended<Outcome: Sendable>(
        _ result: Result<Committed<Outcome>, any Error>, of arrival: Arrival,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        var result = result
        let earlier = EarlierEvents(result.map(\.version))
        switch result {
        case .success: parts.metrics.wrote(after: ContinuousClock.now - arrival.time)
        case .failure(let error):
            parts.metrics.refusedWrite()
            if let refused = error as? RefusedCondition { result = .failure(refused.error) }
        }
        arrival.session.writeEnded()
        let (slow, catalogue, watch) = (parts.slow, parts.catalogue, arrival.watch)
        if let watch {
            watch.durable = slow.now
            watch.sync = syncTime.last
        }
        // Without listeners and followers, no closure is made for it.
        guard publisher.isActive else {
            slow.ended(watch, catalogue)
            return completion(result)
        }
        publisher.after(earlier, to: arrival.session.id) { [result] in
            slow.ended(watch, catalogue)
            completion(result)
        }
    }

    /// On a thread of the store's writer, for every group.
    func groupBecameDurable(_ group: CommitGroup) {
        parts.recent.becameDurable(through: group.snapshot.version)
        syncTime.last = group.syncTime
        parts.metrics.committed(
            group: group.commits.count, through: group.snapshot.version, in: group.syncTime)
    }

    /// What `WritePlanner.resolve` said of a write before its turn.
    typealias Resolution = Result<ResolvedMutation?, any Error>

    /// In a transaction, before anything else is put. When it throws, nothing has been put.
    ///
    /// - Parameters:
    ///   - planned: the same, made ready beforehand; throws `PlannedWrite.Outdated` when that is of no more use.
    ///   - ahead: nil when it was not asked.
    func commit(
        _ write: Write, _ planned: PlannedWrite? = nil, resolved ahead: Resolution? = nil,
        in transaction: any StoreTransaction
    ) throws -> WriteOutcome {
        try RefusedCondition.noting(in: transaction) {
            try committed(write, planned, resolved: ahead, in: transaction)
        }
    }

    private func committed(
        _ write: Write, _ planned: PlannedWrite?, resolved ahead: Resolution?, in transaction: any StoreTransaction
    ) throws -> WriteOutcome {
        let database = try catalogue.database(write.database, in: transaction)
        let reader: StoreTreeReader =
            if let watch = write.watch {
                StoreTreeReader(CountedReading(reading: transaction, counter: watch.rows))
            } else {
                StoreTreeReader(transaction)
            }
        let ready = try planned?.resolved ?? ahead?.get()
        let now = ready?.now ?? parts.now()
        let turn = database.planner.turn(reading: reader)
        var resolved = try ready ?? database.planner.resolve(write.mutation, reading: turn, at: now)
        let authoriser = OperationAuthoriser(write, in: database, turn, now: now, parts)
        var history: CommitHistory { CommitHistory(of: database, parts, uid: write.caller.uid) }
        if !write.caller.isAdministrator {
            if planned == nil { try authoriser.authorise(resolved, by: write.caller) }
            try authoriser.authorise(conditionOf: write.mutation, by: write.caller)
            resolved.hidesStored = try authoriser.hidesStored(write.mutation, from: write.caller)
        }
        let made = try planned?.check(in: database, history, resolved, turn)
        let plan =
            try made?.plan
            ?? database.planner.plan(resolved, in: turn, history: resolved.asksHistory ? history : nil)
        let written =
            try write.mutation.showsWritten ? authoriser.shownNodes(of: resolved, to: write.caller) : [TreeNode]?.none
        if plan.isEmpty {
            // An old version in the response would show that nothing has changed, and so what is stored.
            guard try authoriser.hidesOutcome(of: resolved, from: write.caller) else {
                let repeated = try RepeatedPush(write.mutation, isOwn: resolved.hidesStored, in: history)
                return WriteOutcome(etag: plan.etag, repeated: repeated, written: written)
            }
        }
        turn.commit(plan)
        if made != nil {
            planned?.applyRows(to: transaction)
        } else {
            plan.rows.apply(to: StoreRows(transaction))
        }
        let cut = (made == nil ? nil : planned?.cutChanges) ?? CutChanges(plan.changes)
        let note = CommitNote(
            version: transaction.nextVersion, database: database.id, plan: plan, cut: cut, by: write)
        transaction.record(note.record(of: cut).span)
        transaction.attach(note)
        parts.recent.append(note)
        return WriteOutcome(etag: plan.etag, written: written)
    }
}

/// A write in the store's queue, until its response.
///
/// `@unchecked Sendable`: `outcome` is set in its turn and read after it, on one thread at a time.
private final class QueuedWrite: StoreWrite, @unchecked Sendable {
    private let write: Write
    private let resolved: CommitQueue.Resolution
    private let arrival: CommitQueue.Arrival
    private let queue: CommitQueue
    private let completion: @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void
    private var outcome: WriteOutcome?

    var client: String? { arrival.session.client }

    init(
        _ write: Write, _ resolved: CommitQueue.Resolution, _ arrival: CommitQueue.Arrival, to queue: CommitQueue,
        _ completion: @escaping @Sendable (Result<Committed<WriteOutcome>, any Error>) -> Void
    ) {
        self.write = write
        self.resolved = resolved
        self.arrival = arrival
        self.queue = queue
        self.completion = completion
    }

    func write(in transaction: any StoreTransaction) throws {
        outcome = try queue.timed(write.watch) { try queue.commit(write, resolved: resolved, in: transaction) }
    }

    func ended(_ result: Result<UInt64, any Error>) {
        let ended: Result<Committed<WriteOutcome>, any Error>
        switch (result, outcome) {
        case (.success(let version), let outcome?): ended = .success(Committed(outcome: outcome, version: version))
        case (.success, nil): ended = .failure(StoreError.closed(cause: nil))
        case (.failure(let error), _): ended = .failure(write.naming(error))
        }
        queue.ended(ended, of: arrival, completion: completion)
    }
}

/// How long the last sync took.
///
/// It is set when groups are published, and read when responses are made: for a closed store, where the write is
/// submitted.
private final class SyncTime: Sendable {
    private let time = Mutex(Duration.zero)

    var last: Duration {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }
}

/// What every part of the service needs. A class: it is handed on with every write.
final class ServiceParts: Sendable {
    let store: any Store
    let catalogue: Catalogue
    let recent: RecentCommits
    let limits: MessagesLimits
    let metrics: MessagesMetrics
    let rulesMeter: RulesMeter
    let quotas: WriteQuotas
    let slow: SlowOperations
    /// Milliseconds since 1970.
    let now: @Sendable () -> Int64

    init(
        _ store: any Store, _ limits: MessagesLimits, _ slow: SlowOperations, now: @escaping @Sendable () -> Int64
    ) throws {
        self.store = store
        self.limits = limits
        self.slow = slow
        self.now = now
        metrics = MessagesMetrics()
        rulesMeter = RulesMeter(limits, metrics)
        catalogue = try Catalogue(store, rulesMeter)
        recent = RecentCommits(store)
        quotas = WriteQuotas(limits)
    }
}
