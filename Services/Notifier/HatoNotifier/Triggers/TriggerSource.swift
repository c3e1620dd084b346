import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import Logging

/// What the triggers of one database read besides their changes, and what they say in the log.
struct TriggerSource: Sendable {
    let database: DatabaseName
    let messages: MessagesClient
    let outbox: Outbox
    let budget: TriggerBudget
    /// Notices that any user with write access can cause.
    let notices: ThrottledNotices
    /// One list at a time is read page by page, or waits for a turn of the feed after that.
    private let longListPlace = ByteBudget(1)

    init(
        database: DatabaseName, messages: MessagesClient, outbox: Outbox, budget: TriggerBudget,
        notices: ThrottledNotices
    ) {
        self.database = database
        self.messages = messages
        self.outbox = outbox
        self.budget = budget
        self.notices = notices
    }

    /// The changes that wait.
    var rows: ChangeRows { ChangeRows(outbox: outbox, database: database) }

    // MARK: Recipients

    /// A list that was read since the change of the firing came.
    func list(_ wanted: RecipientLists.Source, for firing: Firing) -> RecipientList? {
        budget.lists.list(RecipientLists.Key(database: database, source: wanted), after: firing.time)
    }

    /// Reads the devices of recipients that are known.
    func read(_ uids: [String], as source: RecipientLists.Source) async throws -> RecipientList {
        let (time, bounds) = (outbox.store.version, bounds)
        let list = try await outbox.store.read { snapshot in
            var list = RecipientList()
            _ = try list.add(uids, in: snapshot, bounds)
            list.sort()
            return list
        }
        budget.lists.keep(list, RecipientLists.Key(database: database, source: source), readAt: time)
        return list
    }

    /// Reads of messages what firings need.
    func read(_ need: FeedReadings.Need) async throws -> FeedReadings.Found {
        switch need {
        case .node(let path): return try await readNode(path)
        case .recipients(let path): return try await readList(path)
        case .query(let query): return try await readQuery(query)
        case .text(let path):
            let time = outbox.store.version
            return FeedReadings.Found(value: .text(try await text(path)), time: time, reservations: [])
        }
    }

    /// Recipients that are the keys of a node.
    private func readList(_ path: TreePath) async throws -> FeedReadings.Found {
        try await readKeys(path).found(as: .keys(of: path), self)
    }

    /// A list that is being read, and what it holds of the budget.
    struct ListReading {
        var list = RecipientList()
        /// Users in it, and users without devices, as far as they are asked for.
        var uids: [String] = []
        /// The version of the store when the reading began.
        var time: UInt64
        var held: [ByteBudget.Reservation]

        /// The list is complete.
        consuming func found(as source: RecipientLists.Source, _ triggers: TriggerSource) -> FeedReadings.Found {
            var reading = self
            reading.list.sort()
            let key = RecipientLists.Key(database: triggers.database, source: source)
            triggers.budget.lists.keep(reading.list, key, readAt: reading.time)
            // The list may be held for some turns, which keeps no others from reading.
            reading.held.last?.shrink(to: reading.list.bytes)
            return FeedReadings.Found(
                value: .recipients(reading.list), time: reading.time, reservations: reading.held.suffix(1))
        }
    }

    /// Reads the devices of users that are the keys of a node.
    ///
    /// - Parameter uidsMax: how many of the uids are wanted, whether they have devices or not.
    func readKeys(_ path: TreePath, gathering uidsMax: Int = 0) async throws -> ListReading {
        let bounds = bounds
        let begin = { KeyReading(messages, database, path, outbox.limits, textBytesMax: budget.keysTextMax) }
        var result = ListReading(
            time: outbox.store.version, held: [try await budget.reads.reserve(budget.recipientsRead)])
        var (reading, isLong) = (begin(), false)
        do {
            while let uids = try await reading.next() {
                let (former, last) = (result.list, reading.last)
                let ahead: UserAhead
                (result.list, ahead) = try await outbox.store.read { snapshot in
                    var list = former
                    let passed = try list.add(uids, in: snapshot, bounds)
                    return (list, try snapshot.userAhead(of: last, passed: passed))
                }
                result.uids += uids.prefix(max(0, uidsMax - result.uids.count))
                if result.uids.count >= uidsMax { reading.goOn(at: ahead) }
                guard !isLong, reading.hasMore else { continue }
                // More than a page: begins again in its turn among such lists, which delays no others.
                result.held = []
                let place = try await longListPlace.reserve(1)
                result = ListReading(
                    time: outbox.store.version,
                    held: [place, try await budget.longReads.reserve(budget.recipientsRead)])
                (reading, isLong) = (begin(), true)
            }
        } catch let error as RPCError { try passOver(error, path) }
        return result
    }

    var bounds: RecipientList.Bounds {
        RecipientList.Bounds(countMax: outbox.limits.deliveriesPerNotificationMax, bytesMax: budget.listMax)
    }

    private func readNode(_ path: TreePath) async throws -> FeedReadings.Found {
        // Alone, beside what was read and waits for its turn.
        let reservation = try await budget.reads.reserve(budget.nodeRead)
        let time = outbox.store.version
        var node: JSONValue?
        do { node = try await messages.node(database, path, within: budget.node) } catch let error as RPCError {
            try passOver(error, path)
        }
        reservation.shrink(to: node?.memoryBytes ?? 0)
        return FeedReadings.Found(value: .node(node), time: time, reservations: [reservation])
    }

    // MARK: Content

    /// What a firing sends.
    struct Content: Sendable {
        var recipients: RecipientLists.Source?
        /// Without recipients; nil when title and body come out empty.
        var notification: NewNotification?
    }

    /// What a firing sends; nil when the trigger's condition does not hold.
    func content(of firing: Firing) -> Content? {
        let truth = firing.trigger.truth(firing.change)
        if truth == .tooMuchWork { reportUndecided(firing) }
        guard truth.fires else { return nil }
        reportIncomplete(firing, truth)
        let settings = CompiledTrigger.Settings(
            limits: outbox.limits, timeToLive: outbox.policy.timeToLive, now: outbox.time.now())
        let content = Content(
            recipients: firing.trigger.source(firing.change),
            notification: firing.trigger.notification(for: firing.change, in: firing.commit, settings: settings))
        return typed(content, of: firing)
    }

    /// Throws the error of what may be read later; the trigger goes without what can never be read.
    ///
    /// Messages that does not understand the request is another version: the notifier waits until it is replaced. Not
    /// so where it refuses a path, which can come from data: one change would stop all triggers.
    static func mayPassOver(_ error: RPCError) -> Bool {
        if error.isRetryable || error.reason == Self.reasonOfEarlierVersion { return false }
        switch error.code {
        case .unavailable, .unauthenticated, .invalidParams, .methodNotFound: return false
        default: return true
        }
    }

    /// An earlier version reads no keys alone together with a query.
    private static let reasonOfEarlierVersion = "shallow_alone"

    func passOver(_ error: RPCError, _ path: TreePath) throws {
        guard Self.mayPassOver(error) else { throw error }
        notices.notice(
            .trigger("unreadable"), "messages does not let a path be read; the trigger goes without it",
            ["path": "\(path)", "error": "\(error.message)"], level: .warning)
    }

    // MARK: Log

    func reportMany(_ commit: FeedCommit) {
        for change in commit.changes where change.isMany {
            outbox.metrics.changeSkipped()
            notices.notice(
                .trigger("many"), "a commit changed more nodes than are listed; triggers do not fire for them",
                ["path": "\(change.path)", "version": "\(commit.version)"], level: .warning)
        }
    }

    func reportDropped(_ count: Int) {
        guard count > 0 else { return }
        outbox.metrics.changesDropped(count)
        notices.notice(
            .trigger("backlog"), "too many bytes of changes wait; the oldest of the writer with the most are dropped",
            [
                "database": "\(database)", "dropped": "\(count)",
                "trigger-backlog-bytes-max": "\(outbox.limits.backlogBytesMax)",
            ], level: .warning)
    }

    func reportLeftOut(_ notification: AcceptedNotification) {
        outbox.metrics.recipientsLeftOut(notification.leftOut)
        notices.notice(
            .trigger("recipients"), "a trigger has more recipients than one notification may",
            ["notification": "\(notification.notification ?? "")", "recipients": "\(notification.leftOut)"],
            level: .warning)
    }

    func reportInvalidTokens(_ count: Int) {
        guard count > 0 else { return }
        outbox.metrics.tokensLeftOut(count)
        notices.notice(
            .trigger("tokens"), "what a trigger takes for a token is none; it is left out",
            ["database": "\(database)", "tokens": "\(count)"], level: .warning)
    }

    func reportEmpty(_ firing: Firing) {
        notices.notice(
            .trigger("empty"), "a trigger fires, but title and body come out empty: nothing is sent",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
            ], level: .info)
    }

    private func reportUndecided(_ firing: Firing) {
        outbox.metrics.conditionUndecided()
        notices.notice(
            .trigger("undecided"), "the texts of a change are too long for a trigger's condition; it counts as not met",
            [
                "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)", "path": "\(firing.change.path)",
                "bytes-max": "\(RulesLimits.predicateWorkBytesMax)",
            ], level: .warning)
    }

    private func reportIncomplete(_ firing: Firing, _ truth: RulesPredicate.Truth) {
        guard firing.trigger.goesWithout(firing.change, truth) else { return }
        outbox.metrics.changesIncomplete(1)
        notices.notice(
            .trigger("incomplete"),
            "a commit was too big to list the values of its nodes; triggers that use them fire without them",
            [
                "database": "\(database)", "version": "\(firing.commit.version)", "path": "\(firing.change.path)",
                "trigger": "\(firing.trigger.trigger.id)",
            ], level: .warning)
    }
}
