import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging
import Synchronization

/// Makes the onDisconnect writes of ended connections.
///
/// Everything of a connection is one commit for each database, as one write of many paths (and one more for every
/// further user with registered writes). A commit that is refused is tried again in halves, until the refused write is
/// alone; it is dropped, the rest is written. Each try is a write like any other, so other writes wait no longer than
/// for an update of the same size.
///
/// The first try goes into the queue when the connection has closed, so it comes after everything the connection
/// sent.
///
/// A connection also ends with the process: registered writes are in the store until they are made or cancelled, and
/// the next start makes those that it finds (`finishFormerRun`), each path once.
final class DisconnectRuns: Sendable {
    private struct State {
        var entries: [UInt64: DisconnectEntries] = [:]
        var underWay = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// Rules of a batch that take more steps refuse it, so that it is split: some 10 milliseconds.
    private static let batchStepsMax = 1_000_000

    private let parts: ServiceParts
    private let queue: CommitQueue
    private let totals: DisconnectTotals
    private let logger: Logger
    private let notices: ThrottledNotices
    private let state = Mutex(State())

    init(_ parts: ServiceParts, queue: CommitQueue, logger: Logger) {
        self.parts = parts
        self.queue = queue
        self.logger = logger
        notices = ThrottledNotices(logger)
        totals = DisconnectTotals(parts.metrics, parts.limits)
    }

    /// The onDisconnect writes of a connection. Called on its event loop, so calls and its close come one after
    /// another.
    func entries(of connection: RPCConnection, _ session: ConnectionSession) -> DisconnectEntries {
        let id = connection.id
        if let entries = state.withLock({ $0.entries[id] }) { return entries }
        let entries = DisconnectEntries(of: id, totals: totals) { [weak self] entries, owner, work in
            self?.queue.submit(from: session) {
                entries.store(owner, in: $0)
            } completion: { _ in
                work?.isStillUnderWay()
            }
        }
        state.withLock { $0.entries[id] = entries }
        connection.onClose { [weak self] in self?.ended(id, session) }
        return entries
    }

    /// Makes the onDisconnect writes of connections of the former process, or, after a restore, of those open at the
    /// backup. Called before the first connection is accepted. Throws when the store cannot be read.
    func finishFormerRun() async throws {
        let (store, catalogue) = (parts.store, parts.catalogue)
        let remains = try await store.read { [totals] snapshot in
            // In a damaged store two may have one id; `verify` reports that.
            let databases = Dictionary(catalogue.databases(of: snapshot).byName.map { ($0.value.id, $0.key) }) {
                one, other in one.rawValue < other.rawValue ? one : other
            }
            return try StoredDisconnects(snapshot, databases, totals: totals)
        }
        let stale = remains.stale
        if !stale.isEmpty {
            _ = try await store.write { transaction in
                for key in stale { transaction.delete(key.span) }
            }
        }
        guard !remains.connections.isEmpty else { return }
        parts.metrics.foundOnDisconnect(remains.count)
        logger.info(
            "making the onDisconnect writes of connections of the former run",
            metadata: ["connections": "\(remains.connections.count)", "writes": "\(remains.count)"])
        for entries in remains.connections {
            state.withLock { $0.underWay += 1 }
            next(ConnectionSession(of: nil, client: nil), entries) { entries.takeAll() }
        }
        await finish()
    }

    /// Returns when all onDisconnect writes of closed connections are made or dropped.
    func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.underWay > 0 { state.waiting.append(continuation) }
                return state.underWay == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func ended(_ connection: UInt64, _ session: ConnectionSession) {
        let entries = state.withLock { state in
            let entries = state.entries.removeValue(forKey: connection)
            if entries != nil { state.underWay += 1 }
            return entries
        }
        guard let entries else { return }
        next(session, entries) { entries.takeAll() }
    }

    /// Tries the first of the remaining writes, then continues with the others.
    private func next(
        _ session: ConnectionSession, _ entries: DisconnectEntries,
        _ left: @escaping @Sendable () -> [DisconnectWrite]
    ) {
        queue.submit(from: session) { [self] transaction in
            var left = left()
            guard !left.isEmpty else { return left }
            let write = left.removeFirst()
            left.insert(contentsOf: try again(write, entries, in: transaction), at: 0)
            return left
        } completion: { [self] result in
            switch result {
            case .success(let done) where !done.outcome.isEmpty: next(session, entries) { done.outcome }
            case .success: runEnded()
            case .failure(let error):
                notices.notice(
                    .unwrittenOnDisconnect, "an onDisconnect write could not be made", ["error": "\(error)"],
                    level: .error)
                runEnded()
            }
        }
    }

    /// Commits, or returns what to try instead. Throws when the store has closed: the next start makes the rest then.
    /// Nothing else ends a run: the rest would stay in the store, and the next start would write it over later writes.
    private func again(
        _ write: DisconnectWrite, _ entries: DisconnectEntries, in transaction: any StoreTransaction
    ) throws -> [DisconnectWrite] {
        do {
            guard try parts.catalogue.database(write.name, in: transaction).id == write.database else {
                throw MessagesError.databaseNotFound(write.name)
            }
            let caller = write.batch.owner.caller(at: parts.now())
            var mutation = write.batch.mutation
            // A batch that would take long is split; one write is planned whatever it replaces.
            if write.batch.writes.count > 1 { mutation.limitToTurn() }
            var commit = Write(database: write.name, mutation: mutation, caller: caller)
            if write.batch.writes.count > 1 { commit.rulesStepsMax = Self.batchStepsMax }
            _ = try queue.commit(commit, in: transaction)
            entries.wrote(write, in: transaction)
            parts.metrics.wroteOnDisconnect(write.batch.writes.count)
            return []
        } catch StoreError.closed(let cause) {
            throw StoreError.closed(cause: cause)
        } catch {
            let halves = write.halves
            guard halves.isEmpty else { return halves }
            entries.wrote(write, in: transaction)
            parts.metrics.droppedOnDisconnect()
            // Only the reason: the texts of errors of rules and values name paths.
            let reason = (error as? any RPCErrorConvertible)?.rpcError.reason ?? "\(error)"
            notices.notice(
                .unwrittenOnDisconnect, "dropped an onDisconnect write",
                [
                    "path": "\(parts.slow.shown(write.batch.writes[0].path, of: write.name, parts.catalogue))",
                    "error": "\(reason)",
                ], level: error is StoreError ? .error : .debug)
            return []
        }
    }

    private func runEnded() {
        let waiting = state.withLock { state in
            state.underWay -= 1
            guard state.underWay == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
