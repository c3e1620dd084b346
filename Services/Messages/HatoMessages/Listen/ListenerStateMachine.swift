import HatoModel
import HatoRPC
import HatoTree

/// What one listener is sent, and when: each method is an event and returns what is to be done about it. Pure.
///
/// **Guarantees.** What a client was sent first, with every later event applied to it, is the value of the topic at the
/// version of each event: no gap, nothing twice. Nothing is sent while its authorisation to read is unsure: what was
/// read or sent to others before the verdict is not for it (`job`). Nothing is sent after the end. A response to a
/// write of the same connection that is held for it (`holdResponses`) is released when the events up to its version
/// were sent.
///
/// It keeps no changes: what it lacks follows from its position and from what the topic knows of recent commits
/// (`ChangedPaths`), which is kept once for all listeners.
///
/// **Relies on** the registry to carry out actions in order and at once, to report what a listener asks for
/// (`reportChange`, `reportRefused`, `reportResponses`), and to send events to live listeners together
/// (`TopicNotifier`).
struct ListenerStateMachine: Hashable {
    enum State: Hashable {
        /// Is sent each event of its topic with the others.
        case live
        /// Has everything up to a version.
        case behind(position: UInt64, Phase)
        case ended
    }

    enum Phase: Hashable {
        /// The kept commits are searched for what it missed.
        case searching
        /// A catch-up job waits for the verdict whether it may still read.
        case authorising
        /// A catch-up job waits for the topic.
        case queued
        /// A catch-up job reads what it missed.
        case reading
        /// Was sent what was read; is to be sent what the live ones were sent meanwhile.
        case joining
        /// Its connection is full.
        case full
        /// Lets changes gather until its time has passed or a response to an own write waits.
        case gathering
    }

    enum Action: Hashable {
        /// Search the kept commits after a version for changes of the topic, then report `searched`.
        case search(after: UInt64)
        /// Begin a catch-up job: report `authorisationBecameOutdated` if there is no verdict, else `topicBecameReady`
        /// when the topic is.
        case catchUp
        /// Read as of the newest group, or share what was read as of `from` or later, then report `caughtUp`.
        case read(ListenerReading.Wanted, from: UInt64)
        /// What is read is void.
        case stopReading
        /// Send in order, then report `sent`, or `refused` as soon as the connection is full.
        case send([EncodedJSON])
        /// When the topic is ready, or it may go on, report what the live ones were sent after a version
        /// (`othersWereSent`).
        case join(after: UInt64)
        case becomeLive
        case leaveLive
        /// Answer the request that opened it.
        case respond(version: UInt64, isUnchanged: Bool)
        /// Refuse the request that opened it.
        case refuse
        /// Send that it was cancelled.
        case sendCancelled
        /// Hold responses to writes of its connection about versions after one.
        case holdResponses(after: UInt64)
        /// Release those through a version; nil: all.
        case releaseResponses(through: UInt64?)
        /// It waits for a verdict: report the next response to a write of its connection, and
        /// `authorisationWasConfirmed`.
        case awaitVerdict
        /// The verdict is wanted before others.
        case hurryVerdict
        /// Report `drained` when the connection has drained.
        case waitForDrain
        /// Report `timePassed` after its gathering time.
        case startTimer
        /// Report the next commit that changes the topic (`topicChanged`), and no responses before.
        case reportChange
        /// The same, and the next response that refuses a condition (`ownResponseBecameDue`).
        case reportRefused
        /// Report the next response to a write of its connection (`ownResponseBecameDue`).
        case reportResponses
        /// Forget it.
        case leave
    }

    /// Whether it lets changes gather for a while instead of being live.
    let gathers: Bool
    private(set) var state = State.behind(position: 0, .queued)
    /// The number of its catch-up job: what is done for an earlier one is void.
    private(set) var job: UInt64 = 0
    /// The version as of which its authorisation to read was last found to stand, after it was unsure.
    private var authorised: UInt64 = 0
    /// Whether the whole value is to be read for it, whatever has changed since its position.
    private var readsWhole = false
    /// Of the value the client has, until it was sent another.
    private var etag: String?
    private var isAnswered = false
    /// Whether something was read for it that its first event says, sent or not.
    private var hasNews = false
    private var timerRuns = false
    /// Whether responses to own writes wait for it.
    private var holdsResponses = false
    /// The version from which on responses to own writes wait for it until it is live, because its topic is never
    /// ready.
    private var heldSince: UInt64?

    init(gathers: Bool, etag: String? = nil) {
        self.gathers = gathers
        self.etag = etag
    }

    var isOutdated: Bool { phase == .authorising }
    private var phase: Phase? { if case .behind(_, let phase) = state { phase } else { nil } }
    private var position: UInt64 { if case .behind(let position, _) = state { position } else { 0 } }
    /// What is read for it must be of this version or a later one.
    var oldestReadable: UInt64 { max(position, authorised) }

    private mutating func enter(_ phase: Phase, at position: UInt64? = nil) {
        state = .behind(position: position ?? self.position, phase)
    }

    // MARK: Beginning

    /// - Parameters:
    ///   - since: the version the client has; nil when it is not known.
    ///   - searches: whether what changed since is searched for in the kept commits.
    mutating func subscribed(since: UInt64?, searches: Bool) -> [Action] {
        let reports: [Action] = gathers ? [.reportResponses] : []
        guard let since else {
            readsWhole = true
            return reports + catchUp()
        }
        enter(.queued, at: since)
        guard searches else { return reports + catchUp() }
        job += 1
        enter(.searching)
        return reports + [.search(after: since)]
    }

    /// The topic knows what the search has found.
    mutating func searched() -> [Action] { phase == .searching ? catchUp() : [] }

    // MARK: Commits

    /// A commit changed the topic; comes once for each `reportChange` and `reportRefused`.
    mutating func topicChanged() -> [Action] {
        switch phase {
        case .gathering: startTimer() + [.reportResponses]
        case .authorising: [.reportResponses]
        case .searching where gathers, .queued where gathers, .reading where gathers: [.reportResponses]
        default: []
        }
    }

    /// The connection was too full for an event of the live ones.
    ///
    /// - Parameter position: the version up to which it was sent everything.
    mutating func eventWasRefused(after position: UInt64) -> [Action] {
        guard state == .live else { return [] }
        enter(.full, at: position)
        return [.leaveLive, .releaseResponses(through: nil), .waitForDrain]
    }

    // MARK: Catching up

    private mutating func catchUp() -> [Action] {
        job += 1
        enter(.queued)
        return [.catchUp]
    }

    /// Its authorisation stands, and its topic is ready for a reading, or it may go on (`mayGoOn`).
    ///
    /// - Parameters:
    ///   - version: of what would be read; `oldestReadable` or later.
    ///   - changes: all that the topic knows of the commits up to the newest.
    mutating func topicBecameReady(at version: UInt64, _ changes: ChangedPaths) -> [Action] {
        guard phase == .queued else { return [] }
        let wanted: ListenerReading.Wanted
        switch readsWhole ? .everything : changes.missing(after: position) {
        case .nothing:
            enter(.reading, at: version)
            return sent(lastChanged: 0, newestHeld: 0)
        case .paths(let first): wanted = .changedFrom(first)
        case .everything: wanted = etag.map { .unlessEtag($0) } ?? .whole
        }
        enter(.reading)
        return [.read(wanted, from: oldestReadable)]
    }

    /// - Parameter event: what was read; nil when there is nothing to send.
    mutating func caughtUp(
        _ event: EncodedJSON?, at version: UInt64, lastChanged: UInt64, newestHeld: UInt64
    ) -> [Action] {
        guard phase == .reading else { return [] }
        enter(.reading, at: version)
        readsWhole = false
        etag = nil
        guard let event else { return sent(lastChanged: lastChanged, newestHeld: newestHeld) }
        hasNews = true
        return [.send([event])]
    }

    /// The connection has taken everything.
    ///
    /// - Parameters:
    ///   - lastChanged: the version of the last commit that changed the topic.
    ///   - newestHeld: the newest version of a write of its connection whose response is held.
    mutating func sent(lastChanged: UInt64, newestHeld: UInt64) -> [Action] {
        switch phase {
        case .reading where gathers: return gather(lastChanged, newestHeld)
        case .reading:
            enter(.joining)
            return [.join(after: position)]
        case .joining: return becomeLive()
        default: return []
        }
    }

    /// - Parameter events: what brings it where the live ones are; nil: that is not kept.
    mutating func othersWereSent(_ events: [EncodedJSON]?) -> [Action] {
        guard phase == .joining else { return [] }
        guard let events else { return catchUp() }
        return events.isEmpty ? becomeLive() : [.send(events)]
    }

    /// Events were computed for the live ones while it waited for the topic, and now more are.
    ///
    /// - Parameter newest: the version of the newest group.
    mutating func topicStayedBusy(newest: UInt64) -> [Action] {
        guard phase == .queued || phase == .joining, heldSince == nil else { return [] }
        heldSince = newest
        return [.holdResponses(after: 0)]
    }

    /// Whether it may be read for, and join the live ones, as of the version up to which they were sent everything,
    /// while later events are being computed: responses to its own writes after that version wait for it.
    func mayGoOn(at sent: UInt64) -> Bool { heldSince.map { max($0, oldestReadable) <= sent } ?? false }

    private mutating func becomeLive() -> [Action] {
        let response = respondOnce()
        etag = nil
        holdsResponses = false
        heldSince = nil
        state = .live
        return [.becomeLive] + response + [.releaseResponses(through: nil)]
    }

    private mutating func gather(_ lastChanged: UInt64, _ newestHeld: UInt64) -> [Action] {
        let actions = respondOnce() + [.releaseResponses(through: position)]
        let lacksSome = lastChanged > position
        // Responses wait for more that the connection wrote itself.
        if holdsResponses, newestHeld > position, lacksSome { return actions + catchUp() }
        holdsResponses = false
        enter(.gathering)
        return actions + (lacksSome ? startTimer() + [.reportResponses] : [.reportChange])
            + [.releaseResponses(through: nil)]
    }

    private mutating func startTimer() -> [Action] {
        guard !timerRuns else { return [] }
        timerRuns = true
        return [.startTimer]
    }

    private mutating func respondOnce() -> [Action] {
        guard !isAnswered else { return [] }
        isAnswered = true
        return [.respond(version: position, isUnchanged: !hasNews)]
    }

    /// The connection was too full for what was to be sent.
    mutating func refused() -> [Action] {
        guard phase == .reading || phase == .joining else { return [] }
        // What was read is let go, and read again when the connection has drained.
        if phase == .reading { readsWhole = true }
        etag = nil
        holdsResponses = false
        heldSince = nil
        let response = respondOnce()
        enter(.full)
        return response + [.releaseResponses(through: nil), .waitForDrain]
    }

    mutating func drained() -> [Action] {
        guard phase == .full else { return [] }
        // Until it is live again: what it lacks is on its way.
        return [gathers ? .reportResponses : .holdResponses(after: 0)] + catchUp()
    }

    mutating func timePassed(lastChanged: UInt64) -> [Action] {
        timerRuns = false
        return phase == .gathering && lastChanged > position ? catchUp() : []
    }

    // MARK: Rights

    /// A commit, other rules or the clock may have ended its authorisation to read. Comes before events of the
    /// commit are sent.
    ///
    /// - Parameters:
    ///   - `sent`: the version up to which the live ones were sent everything.
    ///   - isWorking: whether later events are being computed for them.
    mutating func authorisationBecameOutdated(sent: UInt64, isWorking: Bool) -> [Action] {
        var actions: [Action] = []
        switch phase {
        case nil:
            guard state == .live else { return [] }
            enter(.authorising, at: sent)
            // Responses that wait for events of the live ones, of which it is none any more, wait for it.
            if isWorking { actions.append(.holdResponses(after: sent)) }
            actions.append(.leaveLive)
        // Is sent nothing before its next catch-up job.
        case .full: return []
        case .authorising: return [.reportResponses]
        // What was on its way is void.
        case .reading: actions.append(.stopReading)
        case .searching, .queued, .joining, .gathering: break
        }
        job += 1
        enter(.authorising)
        return actions + [.awaitVerdict]
    }

    /// Its authorisation stands in the state of a version.
    mutating func authorisationWasConfirmed(at version: UInt64) -> [Action] {
        guard phase == .authorising else { return [] }
        // What others read before may be of a version at which it had no authorisation.
        authorised = max(authorised, version)
        // Responses about what it lacks may still be on their way to the registry.
        holdsResponses = true
        return [.holdResponses(after: 0)] + catchUp()
    }

    // MARK: Own writes

    /// A response to a write of its connection is about to leave; comes once for each `reportResponses` and
    /// `reportRefused`.
    ///
    /// - Parameters:
    ///   - lastChanged: the version of the last commit that changed the topic.
    ///   - outdatedThrough: the version of the newest commit that made its authorisation unsure.
    mutating func ownResponseBecameDue(_ version: UInt64, lastChanged: UInt64, outdatedThrough: UInt64?) -> [Action] {
        let lacksSome = readsWhole || lastChanged > position
        switch phase {
        case .authorising where lacksSome || outdatedThrough ?? 0 >= version:
            holdsResponses = true
            return [.holdResponses(after: 0), .hurryVerdict]
        // Own writes end its gathering.
        case .gathering where gathers && lastChanged >= version && lacksSome:
            holdsResponses = true
            return [.holdResponses(after: 0)] + catchUp()
        // What it lacks may be on its way already.
        case .searching where gathers && lastChanged >= version, .queued where gathers && lastChanged >= version,
            .reading where gathers && lastChanged >= version:
            holdsResponses = true
            return [.holdResponses(after: 0)]
        // What it lacks concerns only those that refuse a condition: they are compared with changes of others.
        case .gathering where lacksSome, .searching where gathers && lacksSome, .queued where gathers && lacksSome,
            .reading where gathers && lacksSome:
            return [.reportRefused]
        // Only another commit can make it wait.
        case .authorising, .gathering: return [.reportChange]
        case .searching where gathers, .queued where gathers, .reading where gathers: return [.reportChange]
        default: return []
        }
    }

    // MARK: Ending

    /// The client or its connection ends it.
    mutating func unlistened() -> [Action] {
        guard state != .ended else { return [] }
        state = .ended
        return [.leave] + (isAnswered ? [] : [.refuse])
    }

    /// The service ends it.
    mutating func cancelled() -> [Action] {
        guard state != .ended else { return [] }
        state = .ended
        return [isAnswered ? .sendCancelled : .refuse, .leave]
    }
}
