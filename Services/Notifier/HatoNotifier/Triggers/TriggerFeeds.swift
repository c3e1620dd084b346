import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// Follows the feed of each database that has triggers: one subscription for all triggers of a database, from the
/// stored cursor on, again after whatever interrupted it.
actor TriggerFeeds {
    private struct Feed {
        var task: Task<Void, Never>
        /// Its own: a feed that pauses stops the reading of no other.
        var client: RPCClient
        /// The changes that wait in its rows; nil until these were counted.
        var backlog: ChangeBacklog?
        var isFollowing = false
        /// How often it could not be followed since it was.
        var failures = 0
        var error: String?
    }

    private let messages: MessagesClient
    private let outbox: Outbox
    private let logger: Logger
    private let notices: ThrottledNotices
    private let budget: TriggerBudget
    // State of this actor.
    private var feeds: [String: Feed] = [:]
    /// Counts the restarts of each database, so that only the newest one starts a task.
    private var restarts: [String: Int] = [:]
    private var isStopping = false

    /// Pauses between attempts to follow.
    private static let backoff: BackoffPolicy = {
        var policy = BackoffPolicy()
        policy.first = .milliseconds(250)
        policy.longest = .seconds(15)
        return policy
    }()

    /// With more commits than these at once the next ones are gathered for `gathering` before they are handled.
    private static let unhurriedCommits = 4
    private static let gathering = Duration.milliseconds(10)

    init(_ messages: MessagesClient, _ outbox: Outbox, _ budget: TriggerBudget, logger: Logger) {
        self.messages = messages
        self.outbox = outbox
        self.logger = logger
        notices = ThrottledNotices(logger)
        self.budget = budget
    }

    func start() async throws {
        // The process may have ended between the removal of the last trigger of a database and that of its rows.
        for database in try await ChangeRows.databases(in: outbox) {
            try await ChangeRows(outbox: outbox, database: database).dropAll()
        }
        let databases = try await outbox.triggers().map(\.trigger.database)
        for database in Set(databases).sorted() { await triggersChanged(in: database) }
    }

    func stop() async {
        isStopping = true
        for feed in feeds.values { feed.task.cancel() }
        // Closed first: a task that waits for an answer of messages gets none any more and ends.
        await messages.close()
        for feed in feeds.values { await feed.client.close() }
        for feed in feeds.values { await feed.task.value }
    }

    /// Ends the feed of a database and follows it anew, as its triggers are now.
    func triggersChanged(in database: String) async {
        let restart = (restarts[database] ?? 0) + 1
        restarts[database] = restart
        let former = feeds.removeValue(forKey: database)
        former?.task.cancel()
        await former?.task.value
        await former?.client.close()
        guard restarts[database] == restart, !isStopping, let name = DatabaseName(rawValue: database) else { return }
        // Unstructured: lives until the triggers change again or `stop`, which wait for it.
        let client = messages.feed()
        feeds[database] = Feed(task: Task { await self.follow(name, client) }, client: client)
    }

    /// How each feed stands. A database whose last trigger was removed is no more.
    func statuses() async throws -> [Notifier.CursorStatus] {
        let cursors = try await outbox.cursors()
        return cursors.map { database, cursor in
            let feed = feeds[database]
            // Through which commit all is accepted.
            let version = min(cursor.version, feed?.backlog?.oldestVersion.map { max($0, 1) - 1 } ?? .max)
            return Notifier.CursorStatus(
                database: database, version: Int(clamping: version),
                epoch: cursor.epoch.isEmpty ? nil : cursor.epoch,
                following: feed?.isFollowing ?? false, gaps: cursor.gaps, error: feed?.error)
        }
    }

    // MARK: Following

    private func follow(_ database: DatabaseName, _ client: RPCClient) async {
        while !Task.isCancelled {
            do { return try await followOnce(database, client) } catch {
                if Task.isCancelled { return }
                let failures = (feeds[database.rawValue]?.failures ?? 0) + 1
                feeds[database.rawValue]?.failures = failures
                feeds[database.rawValue]?.isFollowing = false
                feeds[database.rawValue]?.error = describe(error)
                if await resumed(database, after: error) { continue }
                logger.warning(
                    "the feed of a database is not followed",
                    metadata: ["database": "\(database)", "error": "\(describe(error))"])
                let delay = TriggerFeeds.backoff.delay(
                    afterAttempt: failures, random: outbox.randomFraction(), floor: .milliseconds(50))
                try? await outbox.time.sleep(for: .milliseconds(delay))
            }
        }
    }

    /// Returns when the database has no triggers; throws what ended the feed.
    private func followOnce(_ database: DatabaseName, _ client: RPCClient) async throws {
        let records = try await outbox.triggers().filter { $0.trigger.database == database.rawValue }
        let stored = try await outbox.store.read { snapshot in
            try snapshot.record(CursorRecord.self, CursorRecord.key(database.rawValue))
        }
        guard !records.isEmpty, let cursor = stored else {
            return try await ChangeRows(outbox: outbox, database: database).dropAll()
        }
        let types = try await outbox.store.read { snapshot in
            try Dictionary(records.compactMap(\.trigger.type).map { ($0, try snapshot.typedContent($0)) }) { $1 }
        }
        let triggers = records.compactMap { record -> FeedTrigger? in
            // Limits can have become tighter since it was set: then it is not served, and the log says so.
            guard var compiled = try? CompiledTrigger(record.trigger, limits: outbox.limits) else {
                logger.error("a stored trigger is not valid", metadata: ["trigger": "\(record.trigger.id)"])
                return nil
            }
            compiled.typed = record.trigger.type.flatMap { types[$0] ?? nil }
            return FeedTrigger(compiled: compiled, record: record)
        }
        let backlog = try await backlog(of: database)
        let source = TriggerSource(
            database: database, messages: messages, outbox: outbox, budget: budget, notices: notices)
        let readings = FeedReadings(ended: { backlog.ring() }, read: { try await source.read($0) })
        let intake = FeedIntake(source, triggers, backlog, cursor)
        let handler = ChangeHandler(source, readings, triggers, backlog)
        let result: Result<Void, any Error>
        do {
            try await withThrowingTaskGroup { group in
                group.addTask { try await self.handle(handler, backlog) }
                group.addTask { try await self.follow(client, intake, triggers) }
                try await group.next()
                group.cancelAll()
            }
            result = .success(())
        } catch { result = .failure(error) }
        await readings.stop()
        try result.get()
        try Task.checkCancellation()
    }

    /// What waits in the rows of a database: counted once, known from then on.
    private func backlog(of database: DatabaseName) async throws -> ChangeBacklog {
        if let known = feeds[database.rawValue]?.backlog {
            known.allAreReady()
            return known
        }
        let backlog = ChangeBacklog { [metrics = outbox.metrics] in metrics.changesWaiting($0, in: database) }
        let through = outbox.store.version
        backlog.came(try await ChangeRows(outbox: outbox, database: database).shares(), through: through)
        feeds[database.rawValue]?.backlog = backlog
        return backlog
    }

    /// Writes down what comes until the feed ends; throws what ended it.
    private func follow(
        _ client: RPCClient, _ intake: FeedIntake, _ triggers: [FeedTrigger]
    ) async throws {
        let (database, cursor) = (intake.database, intake.cursor)
        let subscription = try await client.subscribe(
            Messages.Follow(
                database: database, after: cursor.version, epoch: cursor.epoch.isEmpty ? nil : cursor.epoch,
                patterns: Array(Set(triggers.flatMap { [$0.compiled.pattern] + $0.compiled.badgePatterns }))))
        feeds[database.rawValue]?.isFollowing = true
        feeds[database.rawValue]?.failures = 0
        feeds[database.rawValue]?.error = nil
        let buffer = CommitBuffer(outbox.limits, budget)
        let reader = Task {
            do {
                for try await event in subscription { try await buffer.append(try FeedCommit(event)) }
                buffer.end(.failure(FeedEnded(reason: "ended")))
            } catch {
                buffer.end(.failure(error))
            }
        }
        let result: Result<Void, any Error>
        do { result = .success(try await write(buffer, intake)) } catch { result = .failure(error) }
        reader.cancel()
        subscription.cancel()
        await reader.value
        try result.get()
    }

    private nonisolated func write(_ buffer: CommitBuffer, _ intake: FeedIntake) async throws {
        var intake = intake
        while let commits = try await buffer.takeAll() {
            try await intake.take(commits.map(\.commit))
            buffer.finished(commits)
            // Under load one transaction, and one sync of the disk, for what comes in a few milliseconds: the message
            // database needs both as much. A single message does not wait.
            if commits.count > TriggerFeeds.unhurriedCommits {
                try await outbox.time.sleep(for: TriggerFeeds.gathering)
            }
        }
    }

    /// Handles what waits in the rows until it is cancelled; throws what ends it.
    private nonisolated func handle(_ handler: ChangeHandler, _ backlog: ChangeBacklog) async throws {
        var handler = handler
        var rings = backlog.rings().makeAsyncIterator()
        while true {
            try Task.checkCancellation()
            if try await !handler.turn() { _ = await rings.next() }
        }
    }

    /// Moves the cursor where the feed can go on from, when the reason is that it cannot from where it is. True when it
    /// did.
    private func resumed(_ database: DatabaseName, after error: any Error) async -> Bool {
        let reason = (error as? FeedEnded)?.reason ?? (error as? RPCError)?.reason
        let oldest = (error as? RPCError)?.data["oldest"]?.number.flatMap { UInt64(exactly: $0) }
        do {
            switch reason {
            case "compacted" where error is RPCError:
                try await moveCursor(database) { cursor in
                    let resume = max(oldest ?? 1, 1) - 1
                    cursor.gaps += 1
                    cursor.missedVersions += resume > cursor.version ? resume - cursor.version : 0
                    cursor.version = resume
                }
            case "unknown_version":
                try await moveCursor(database) { cursor in
                    cursor.gaps += 1
                    cursor.handledThrough = cursor.time
                    cursor.version = 0
                    cursor.epoch = ""
                }
            default:
                guard error is UnreadableRecord else { return false }
                guard try await outbox.replaceUnreadableCursor(of: database) else { return false }
            }
        } catch {
            return false
        }
        outbox.metrics.feedHadGap()
        logger.error(
            "the feed of a database has a gap; it goes on at the oldest change that is kept",
            metadata: ["database": "\(database)", "reason": "\(reason ?? describe(error))"])
        return true
    }

    private func moveCursor(
        _ database: DatabaseName, _ change: @escaping @Sendable (inout CursorRecord) -> Void
    ) async throws {
        try await outbox.change { draft in
            let key = CursorRecord.key(database.rawValue)
            guard var cursor = try draft.transaction.record(CursorRecord.self, key) else { return }
            change(&cursor)
            draft.writes.put(key, cursor)
        }
    }

    private func describe(_ error: any Error) -> String {
        switch error {
        case let error as RPCError: error.message
        case let error as FeedEnded: "messages ended the feed: \(error.reason)"
        default: "\(error)"
        }
    }
}
