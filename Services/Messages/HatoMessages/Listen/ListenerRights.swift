import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

/// The rights to read of all listeners: a verdict is found when a listener begins, when its identity changes, and
/// when what the verdict rests on has changed, once for all listeners of the same caller to the same topic. Lives on
/// the publisher's thread.
///
/// Rights that commits have made unsure get their verdicts at once as long as that is short, else in later turns of the
/// thread, so that one commit that many rights rest on does not hold up all events and answers. Until then their
/// listeners are sent nothing (`ListenerStateMachine`); whatever comes after a verdict is of a later group, which finds
/// the right again, with what it rests on now.
final class ListenerRights {
    private unowned let registry: ListenerRegistry
    private let parts: ServiceParts
    private let line: Publisher.Line
    private var rights = ReadRights()
    /// Whether a timer runs for the rights that end by time.
    private var isTiming = false
    private var timedRound = TimedRound()
    /// Rights without a verdict.
    private var waiting = WaitingRights()
    /// Whether a turn is on its way that finds verdicts for them.
    private var isJudging = false

    /// How often verdicts are found that rest on the time.
    private static let timedEveryMs = 1_000

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
    }

    func touched(by changes: [PathChange], in database: DatabaseID) -> Set<UInt64> {
        rights.touched(by: changes, in: database)
    }

    /// What all rights take in memory.
    var byteCount: Int { rights.byteCount }

    func all(of database: DatabaseID) -> [UInt64] { rights.all(of: database) }

    /// The right of a caller to listen to a topic; nil for an administrator, who needs none.
    ///
    /// - Throws: `MessagesError.denied`.
    func right(to key: TopicKey, in database: Database, for caller: Caller, explains: Bool) throws -> ReadRight? {
        guard !caller.isAdministrator, let current = registry.current else { return nil }
        let rightKey = ReadRight.Key(topic: key, caller: rights.shared(caller))
        let known = rights[rightKey]
        if let known, !known.isTimed, !known.isInDoubt { return known }
        parts.metrics.judgedRight()
        let judge = RulesJudge(
            database, reading: StoreTreeReader(current), now: parts.now(), explains: explains)
        let reads = try judge.reads(behind: key.path, key.query, by: caller)
        let right = known ?? ReadRight(id: registry.nextID(), key: rightKey)
        rights.add(right)
        rights.set(reads, of: right)
        if right.isTimed { watchTime() }
        if right.isInDoubt { settle(right) }
        return right
    }

    func give(_ right: ReadRight?, to listener: Listener) {
        // Taking the right of the only listener of it ends it.
        guard listener.right !== right else { return }
        take(from: listener)
        listener.right = right
        right?.listeners[listener.id] = listener
    }

    func take(from listener: Listener) {
        guard let right = listener.right else { return }
        listener.right = nil
        right.listeners[listener.id] = nil
        if right.listeners.isEmpty { rights.remove(right) }
    }

    // MARK: Verdicts

    /// The caller of a listener is another now: it is sent nothing until that one is authorised, in a later turn.
    ///
    /// - Parameter work: kept until then.
    func callerChanged(of listener: Listener, _ work: RPCIdentityWork?) {
        defer { registry.totals.recount(listener) }
        guard !listener.caller.isAdministrator, let current = registry.current else {
            give(nil, to: listener)
            return stands(listener)
        }
        let key = ReadRight.Key(topic: listener.topic.key, caller: rights.shared(listener.caller))
        let right = rights[key] ?? ReadRight(id: registry.nextID(), key: key)
        if rights[key] == nil {
            rights.add(right)
            right.doubtedThrough = current.version
            waiting.add(right.id)
        }
        give(right, to: listener)
        guard right.isInDoubt else { return stands(listener) }
        if let work { right.works.append(work) }
        wereDoubted(listener)
        judgeLater()
    }

    /// Cancels the listeners of a right that is lost; false then.
    @discardableResult
    private func judge(_ right: ReadRight) -> Bool {
        guard let current = registry.current, let database = registry.topic(of: right.key.topic)?.database else {
            return false
        }
        parts.metrics.judgedRight()
        do {
            let judge = RulesJudge(database, reading: StoreTreeReader(current), now: parts.now())
            let reads = try judge.reads(behind: right.key.topic.path, right.key.topic.query, by: right.key.caller)
            rights.set(reads, of: right)
            if right.isTimed { watchTime() }
            return true
        } catch {
            for listener in right.inOrder { registry.cancel(listener, .lost(error)) }
            return false
        }
    }

    /// Finds verdicts for the rights that a group has made unsure, in the state after it, or leaves them for later.
    ///
    /// - Returns: Rights that stand but may have been lost between two of the commits: to be settled when events of the
    ///   group were sent, so that their listeners are shown only the state after it.
    func judge(_ doubts: RightDoubts, of group: CommitGroup) -> [ReadRight] {
        var turn = JudgingTurn(parts.limits)
        var kept: [UInt64] = []
        let version = group.snapshot.version
        for id in doubts.first.keys.sorted() {
            guard let right = rights[id] else { continue }
            // One that waits already keeps its place.
            if right.isInDoubt || !turn.takesOne() {
                if !right.isInDoubt { waiting.add(id) }
                doubt(right, through: version)
            } else if judge(right) {
                kept.append(id)
            }
        }
        judgeLater()
        let unsure = kept.isEmpty ? [] : doubts.unsure(in: group, rights)
        let passedOver = kept.filter(unsure.contains).compactMap { rights[$0] }
        for right in passedOver { doubt(right, through: version) }
        return passedOver
    }

    /// - Parameter version: of the newest commit that may have ended it.
    private func doubt(_ right: ReadRight, through version: UInt64) {
        right.doubtedThrough = version
        for listener in right.inOrder { wereDoubted(listener) }
    }

    func wereDoubted(_ listener: Listener) {
        let topic = listener.topic
        let actions = listener.machine.rightsWereDoubted(told: topic.toldVersion, isTelling: topic.isTelling)
        registry.carryOut(actions, for: listener)
    }

    /// A right was unsure and stands, in the state after the newest group.
    func settle(_ right: ReadRight) {
        right.doubtedThrough = nil
        right.works = []
        for listener in right.inOrder {
            registry.totals.recount(listener)
            stands(listener)
        }
    }

    private func stands(_ listener: Listener) {
        guard listener.machine.isInDoubt, !listener.isInDoubt, let current = registry.current else { return }
        registry.carryOut(listener.machine.rightsWereJudged(at: current.version), for: listener)
    }

    // MARK: Later turns

    /// An answer waits for the verdict about a listener.
    func hurry(_ listener: Listener) {
        if let right = listener.right { waiting.hurry(right.id) }
    }

    private func judgeLater() {
        guard !isJudging, !waiting.isEmpty else { return }
        isJudging = true
        // Behind everything that waits for the thread now.
        line.post { $0.rights.judgeWaiting() }
    }

    private func judgeWaiting() {
        isJudging = false
        var turn = JudgingTurn(parts.limits)
        while !waiting.isEmpty, turn.takesOne() {
            guard let right = waiting.takeFirst().flatMap({ rights[$0] }), right.isInDoubt else { continue }
            if judge(right) { settle(right) }
        }
        judgeLater()
    }

    // MARK: Time

    private func watchTime() {
        guard !isTiming else { return }
        isTiming = true
        line.postLater(Self.timedEveryMs) { registry in
            let rights = registry.rights
            rights.timedRound.begin(rights.rights.allTimed)
            rights.judgeTimed()
        }
    }

    private func judgeTimed() {
        let max = Duration.milliseconds(parts.limits.rightsClientMs)
        var turn = JudgingTurn(parts.limits)
        while !timedRound.isOver, turn.takesOne() {
            // One without a verdict waits for its turn already.
            guard let right = timedRound.takeFirst().flatMap({ rights[$0] }), right.isTimed, !right.isInDoubt,
                let client = right.listeners.first?.value.client,
                timedRound.admits(right.id, of: client, max: max)
            else { continue }
            let start = ContinuousClock.now
            judge(right)
            timedRound.judged(of: client, in: ContinuousClock.now - start)
        }
        if !timedRound.isOver { return line.post { $0.rights.judgeTimed() } }
        isTiming = false
        if !rights.allTimed.isEmpty { watchTime() }
    }
}
