import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

/// The authorisations to read of all listeners: a verdict is found when a listener begins, when its identity changes,
/// and when what the verdict rests on has changed, once for all listeners of the same caller to the same topic. Lives
/// on the publisher's thread.
///
/// Authorisations that commits have made unsure get their verdicts at once as long as that is short, else in later
/// turns of the thread, so that one commit that many authorisations rest on does not hold up all events and responses.
/// Until then their listeners are sent nothing (`ListenerStateMachine`); whatever comes after a verdict is of a later
/// group, which finds the authorisation again, with what it rests on now.
final class ListenerAuthorisation {
    private unowned let registry: ListenerRegistry
    private let parts: ServiceParts
    private let line: Publisher.Line
    private var authorisations = ReadAuthorisations()
    /// Whether a timer runs for the authorisations that end by time.
    private var isTiming = false
    private var timedRound = TimedRound()
    /// Authorisations without a verdict.
    private var waiting = AuthorisationQueue()
    /// Whether a turn is on its way that finds verdicts for them.
    private var isAuthorising = false

    /// How often verdicts are found that rest on the time.
    private static let timedEveryMs = 1_000

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
    }

    func touched(by changes: [PathChange], in database: DatabaseID) -> Set<UInt64> {
        authorisations.touched(by: changes, in: database)
    }

    /// What all authorisations take in memory.
    var byteCount: Int { authorisations.byteCount }

    func all(of database: DatabaseID) -> [UInt64] { authorisations.all(of: database) }

    /// The authorisation of a caller to listen to a topic; nil for an administrator, who needs none.
    ///
    /// - Throws: `MessagesError.denied`.
    func authorisation(to key: TopicKey, in database: Database, for caller: Caller, explains: Bool) throws
        -> ReadAuthorisation?
    {
        guard !caller.isAdministrator, let current = registry.current else { return nil }
        let authorisationKey = ReadAuthorisation.Key(topic: key, caller: authorisations.shared(caller))
        let known = authorisations[authorisationKey]
        if let known, !known.isTimed, !known.isOutdated { return known }
        parts.metrics.authorisationEvaluated()
        let authoriser = OperationAuthoriser(
            database, reading: StoreTreeReader(current), now: parts.now(), explains: explains)
        let reads = try authoriser.reads(behind: key.path, key.query, by: caller)
        let authorisation = known ?? ReadAuthorisation(id: registry.nextID(), key: authorisationKey)
        authorisations.add(authorisation)
        authorisations.set(reads, of: authorisation)
        if authorisation.isTimed { watchTime() }
        if authorisation.isOutdated { settle(authorisation) }
        return authorisation
    }

    func give(_ authorisation: ReadAuthorisation?, to listener: Listener) {
        // Taking the authorisation of the only listener of it ends it.
        guard listener.authorisation !== authorisation else { return }
        take(from: listener)
        listener.authorisation = authorisation
        authorisation?.listeners[listener.id] = listener
    }

    func take(from listener: Listener) {
        guard let authorisation = listener.authorisation else { return }
        listener.authorisation = nil
        authorisation.listeners[listener.id] = nil
        if authorisation.listeners.isEmpty { authorisations.remove(authorisation) }
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
        let key = ReadAuthorisation.Key(topic: listener.topic.key, caller: authorisations.shared(listener.caller))
        let authorisation = authorisations[key] ?? ReadAuthorisation(id: registry.nextID(), key: key)
        if authorisations[key] == nil {
            authorisations.add(authorisation)
            authorisation.outdatedThrough = current.version
            waiting.add(authorisation.id)
        }
        give(authorisation, to: listener)
        guard authorisation.isOutdated else { return stands(listener) }
        if let work { authorisation.works.append(work) }
        becameOutdated(listener)
        authoriseLater()
    }

    /// Cancels the listeners of an authorisation that is lost; false then.
    @discardableResult
    private func authorise(_ authorisation: ReadAuthorisation) -> Bool {
        guard let current = registry.current, let database = registry.topic(of: authorisation.key.topic)?.database
        else {
            return false
        }
        parts.metrics.authorisationEvaluated()
        do {
            let authoriser = OperationAuthoriser(database, reading: StoreTreeReader(current), now: parts.now())
            let reads = try authoriser.reads(
                behind: authorisation.key.topic.path, authorisation.key.topic.query, by: authorisation.key.caller)
            authorisations.set(reads, of: authorisation)
            if authorisation.isTimed { watchTime() }
            return true
        } catch {
            for listener in authorisation.inOrder { registry.cancel(listener, .lost(error)) }
            return false
        }
    }

    /// Finds verdicts for the authorisations that a group has made unsure, in the state after it, or leaves them for
    /// later.
    ///
    /// - Returns: Authorisations that stand but may have been lost between two of the commits: to be settled when
    ///   events of the group were sent, so that their listeners are shown only the state after it.
    func authorise(_ outdated: OutdatedAuthorisations, of group: CommitGroup) -> [ReadAuthorisation] {
        var turn = PublisherTurn(milliseconds: parts.limits.rightsTurnMs)
        var kept: [UInt64] = []
        let version = group.snapshot.version
        for id in outdated.first.keys.sorted() {
            guard let authorisation = authorisations[id] else { continue }
            // One that waits already keeps its place.
            if authorisation.isOutdated || !turn.takesOne() {
                if !authorisation.isOutdated { waiting.add(id) }
                markOutdated(authorisation, through: version)
            } else if authorise(authorisation) {
                kept.append(id)
            }
        }
        authoriseLater()
        let unsure = kept.isEmpty ? [] : outdated.unsure(in: group, authorisations)
        let passedOver = kept.filter(unsure.contains).compactMap { authorisations[$0] }
        for authorisation in passedOver { markOutdated(authorisation, through: version) }
        return passedOver
    }

    /// - Parameter version: of the newest commit that may have ended it.
    private func markOutdated(_ authorisation: ReadAuthorisation, through version: UInt64) {
        authorisation.outdatedThrough = version
        for listener in authorisation.inOrder { becameOutdated(listener) }
    }

    func becameOutdated(_ listener: Listener) {
        let topic = listener.topic
        let actions = listener.machine.authorisationBecameOutdated(sent: topic.sentVersion, isWorking: topic.isWorking)
        registry.carryOut(actions, for: listener)
    }

    /// An authorisation was unsure and stands, in the state after the newest group.
    func settle(_ authorisation: ReadAuthorisation) {
        authorisation.outdatedThrough = nil
        authorisation.works = []
        for listener in authorisation.inOrder {
            registry.totals.recount(listener)
            stands(listener)
        }
    }

    private func stands(_ listener: Listener) {
        guard listener.machine.isOutdated, !listener.isOutdated, let current = registry.current else { return }
        registry.carryOut(listener.machine.authorisationWasConfirmed(at: current.version), for: listener)
    }

    // MARK: Later turns

    /// A response waits for the verdict about a listener.
    func hurry(_ listener: Listener) {
        if let authorisation = listener.authorisation { waiting.hurry(authorisation.id) }
    }

    private func authoriseLater() {
        guard !isAuthorising, !waiting.isEmpty else { return }
        isAuthorising = true
        // Behind everything that waits for the thread now.
        line.post { $0.authorisations.authoriseWaiting() }
    }

    private func authoriseWaiting() {
        isAuthorising = false
        var turn = PublisherTurn(milliseconds: parts.limits.rightsTurnMs)
        while !waiting.isEmpty, turn.takesOne() {
            guard let authorisation = waiting.takeFirst().flatMap({ authorisations[$0] }), authorisation.isOutdated
            else { continue }
            if authorise(authorisation) { settle(authorisation) }
        }
        authoriseLater()
    }

    // MARK: Time

    private func watchTime() {
        guard !isTiming else { return }
        isTiming = true
        line.postLater(Self.timedEveryMs) { registry in
            let authorisations = registry.authorisations
            authorisations.timedRound.begin(authorisations.authorisations.allTimed)
            authorisations.authoriseTimed()
        }
    }

    private func authoriseTimed() {
        let max = Duration.milliseconds(parts.limits.rightsClientMs)
        var turn = PublisherTurn(milliseconds: parts.limits.rightsTurnMs)
        while !timedRound.isOver, turn.takesOne() {
            // One without a verdict waits for its turn already.
            guard let authorisation = timedRound.takeFirst().flatMap({ authorisations[$0] }), authorisation.isTimed,
                !authorisation.isOutdated,
                let client = authorisation.listeners.first?.value.client,
                timedRound.admits(authorisation.id, of: client, max: max)
            else { continue }
            let start = ContinuousClock.now
            authorise(authorisation)
            timedRound.evaluated(of: client, in: ContinuousClock.now - start)
        }
        if !timedRound.isOver { return line.post { $0.authorisations.authoriseTimed() } }
        isTiming = false
        if !authorisations.allTimed.isEmpty { watchTime() }
    }
}
