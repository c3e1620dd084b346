import HatoModel
import HatoRPC
import HatoTree

/// What one listener is sent, and when: each method is an event and returns what is to be done about it. Pure.
///
/// **Guarantees.** What a client was sent first, with every later event applied to it, is the value of the topic at the
/// version of each event: no gap, nothing twice. Nothing is sent while its right to read is in doubt: what was read or
/// sent to others before the verdict is not for it (`job`). Nothing is sent after the end. An answer to a write of the
/// same connection that is held for it (`holdAnswers`) is released when the events up to its version were sent.
///
/// **Relies on** the registry to carry out actions in order and at once, to report every commit that touches the topic
/// while the listener is not live (`committed`), and to tell live listeners together (`TopicNotifier`).
struct ListenerStateMachine: Hashable {
    enum State: Hashable {
        /// Is sent each event of its topic with the others.
        case live
        /// Has everything up to a version, or was found to be allowed to read then; lacks what it `missed` since.
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
        /// Its connection has no room.
        case full
        /// Lets changes gather until its time has passed or an answer to an own write waits.
        case gathering
    }

    enum Action: Hashable {
        /// Search the kept commits after a version, then report `searched`.
        case search(after: UInt64)
        /// Begin a catch-up job: report `rightsWereDoubted` if there is no verdict, else `topicBecameReady` when the
        /// topic is.
        case catchUp
        /// Read as of the newest group, or share what was read as of `from` or later, then report `caughtUp`.
        case read(ListenerReading.Wanted, from: UInt64)
        /// Send in order, then report `sent`, or `refused` as soon as the connection has no room.
        case send([EncodedJSON])
        /// When the topic is ready, report what the live ones were sent after a version (`othersWereSent`).
        case join(after: UInt64)
        case becomeLive
        case leaveLive
        /// Answer the request that opened it.
        case answer(version: UInt64, isUnchanged: Bool)
        /// Refuse the request that opened it.
        case refuse
        /// Send that it was cancelled.
        case sendCancelled
        /// Hold answers to writes of its connection about versions after one.
        case holdAnswers(after: UInt64)
        /// Release those through a version; nil: all.
        case releaseAnswers(through: UInt64?)
        /// It waits for a verdict: report answers to writes of its connection, and `rightsWereJudged`.
        case awaitVerdict
        /// The verdict is wanted before others.
        case hurryVerdict
        /// Report `drained` when the connection has room.
        case waitForDrain
        /// Report `timePassed` after its gathering time.
        case startTimer
        /// Forget it.
        case leave
    }

    /// Whether it lets changes gather for a while instead of being live.
    let gathers: Bool
    private let path: TreePath
    private let hasQuery: Bool
    private(set) var state = State.behind(position: 0, .queued)
    /// The number of its catch-up job: what is done for an earlier one is void.
    private(set) var job: UInt64 = 0
    /// What it was neither sent nor is being read for it, while it is behind.
    private var missed: MissedChanges
    /// Of the value the client has, until it was sent another.
    private var etag: String?
    private var isAnswered = false
    /// Whether something was read for it that its first event says, sent or not.
    private var hasNews = false
    private var timerRuns = false
    /// The newest version of an own write whose answer waits for it.
    private var awaited: UInt64 = 0

    init(of key: TopicKey, gathers: Bool, etag: String? = nil) {
        path = key.path
        hasQuery = key.query != nil
        self.gathers = gathers
        self.etag = etag
        missed = MissedChanges(of: key.path)
    }

    var isInDoubt: Bool { phase == .authorising }
    private var phase: Phase? { if case .behind(_, let phase) = state { phase } else { nil } }
    private var position: UInt64 { if case .behind(let position, _) = state { position } else { 0 } }

    private mutating func enter(_ phase: Phase, at position: UInt64? = nil) {
        state = .behind(position: position ?? self.position, phase)
    }

    // MARK: Beginning

    /// - Parameter since: the version the client has; nil when it is not known or too old to search from.
    mutating func subscribed(since: UInt64?, searches: Bool) -> [Action] {
        if let since { enter(.queued, at: since) }
        guard let since, searches else {
            missed.addWhole()
            return catchUp()
        }
        job += 1
        enter(.searching)
        return [.search(after: since)]
    }

    mutating func searched(_ found: MissedChanges) -> [Action] {
        guard phase == .searching else { return [] }
        missed.formUnion(found)
        return catchUp()
    }

    // MARK: Commits

    /// A commit changed the topic, and the listener is not live.
    mutating func committed(_ changes: [PathChange]) -> [Action] {
        if hasQuery { missed.addWhole() } else { missed.add(changes) }
        return phase == .gathering ? startTimer() : []
    }

    /// An event for the live ones found no room.
    ///
    /// - Parameter lost: what it and those that wait behind it say, by changes; nil: the whole value.
    mutating func eventWasRefused(after position: UInt64, _ lost: [[PathChange]]?) -> [Action] {
        guard state == .live else { return [] }
        enter(.full, at: position)
        missed = MissedChanges(of: path)
        if lost == nil || hasQuery { missed.addWhole() }
        for changes in lost ?? [] { missed.add(changes) }
        return [.leaveLive, .releaseAnswers(through: nil), .waitForDrain]
    }

    // MARK: Catching up

    private mutating func catchUp() -> [Action] {
        job += 1
        enter(.queued)
        return [.catchUp]
    }

    /// Its right stands, and its topic is ready for a reading.
    ///
    /// - Parameter newest: the version of the newest group.
    mutating func topicBecameReady(at newest: UInt64) -> [Action] {
        guard phase == .queued else { return [] }
        if missed.isEmpty {
            enter(.reading, at: newest)
            return sent()
        }
        enter(.reading)
        let wanted = missed.isWhole ? etag.map { .unlessEtag($0) } ?? .whole : ListenerReading.Wanted.missed(missed)
        missed = MissedChanges(of: path)
        return [.read(wanted, from: position)]
    }

    /// - Parameter event: what was read; nil when there is nothing to send.
    mutating func caughtUp(_ event: EncodedJSON?, at version: UInt64) -> [Action] {
        guard phase == .reading else { return [] }
        enter(.reading, at: version)
        etag = nil
        guard let event else { return sent() }
        hasNews = true
        return [.send([event])]
    }

    /// The connection has taken everything.
    mutating func sent() -> [Action] {
        switch phase {
        case .reading where gathers: return gather()
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

    private mutating func becomeLive() -> [Action] {
        let answer = answerOnce()
        missed = MissedChanges(of: path)
        state = .live
        return [.becomeLive] + answer + [.releaseAnswers(through: nil)]
    }

    private mutating func gather() -> [Action] {
        let actions = answerOnce() + [.releaseAnswers(through: position)]
        // Answers wait for more that the connection wrote itself.
        if awaited > position, !missed.isEmpty { return actions + catchUp() }
        enter(.gathering)
        return actions + startTimer() + [.releaseAnswers(through: nil)]
    }

    private mutating func startTimer() -> [Action] {
        guard !timerRuns, !missed.isEmpty else { return [] }
        timerRuns = true
        return [.startTimer]
    }

    private mutating func answerOnce() -> [Action] {
        guard !isAnswered else { return [] }
        isAnswered = true
        return [.answer(version: position, isUnchanged: !hasNews)]
    }

    /// The connection had no room for what was to be sent.
    mutating func refused() -> [Action] {
        guard phase == .reading || phase == .joining else { return [] }
        // What was read is let go, and read again when there is room for it.
        if phase == .reading { missed.addWhole() }
        let answer = answerOnce()
        enter(.full)
        return answer + [.releaseAnswers(through: nil), .waitForDrain]
    }

    mutating func drained() -> [Action] { phase == .full ? catchUp() : [] }

    mutating func timePassed() -> [Action] {
        timerRuns = false
        return phase == .gathering && !missed.isEmpty ? catchUp() : []
    }

    // MARK: Rights

    /// A commit, other rules or the clock may have ended its right to read. Comes before the commit is told to anybody.
    ///
    /// - Parameters:
    ///   - told: the version up to which the live ones were sent everything.
    ///   - isTelling: whether later events are being worked out for them.
    mutating func rightsWereDoubted(told: UInt64, isTelling: Bool) -> [Action] {
        var actions: [Action] = []
        switch phase {
        case nil:
            guard state == .live else { return [] }
            missed = MissedChanges(of: path)
            enter(.authorising, at: told)
            // Answers that wait until the live ones were told, of which it is none any more, wait for it.
            if isTelling {
                missed.addWhole()
                actions.append(.holdAnswers(after: told))
            }
            actions.append(.leaveLive)
        // Is sent nothing before its next catch-up job.
        case .full, .authorising: return []
        // What was on its way is void.
        case .searching, .reading: missed.addWhole()
        case .queued, .joining, .gathering: break
        }
        job += 1
        enter(.authorising)
        return actions + [.awaitVerdict]
    }

    /// Its right stands in the state of a version: it is read for from there.
    mutating func rightsWereJudged(at version: UInt64) -> [Action] {
        guard phase == .authorising else { return [] }
        // What others read before may be of a version at which it had no right.
        enter(.queued, at: max(position, version))
        // Answers about what it lacks may still be on their way to the registry.
        return [.holdAnswers(after: 0)] + catchUp()
    }

    // MARK: Own writes

    /// An answer to a write of its connection is about to leave.
    ///
    /// - Parameters:
    ///   - lastChanged: the version of the last commit that touched the topic.
    ///   - doubtedThrough: the version of the newest commit that put its right in doubt.
    mutating func ownWriteWasAnswered(_ version: UInt64, lastChanged: UInt64, doubtedThrough: UInt64?) -> [Action] {
        switch phase {
        case .authorising where !missed.isEmpty || doubtedThrough ?? 0 >= version:
            awaited = max(awaited, version)
            return [.holdAnswers(after: 0), .hurryVerdict]
        // Own writes end its gathering.
        case .gathering where gathers && lastChanged >= version && !missed.isEmpty:
            awaited = max(awaited, version)
            return [.holdAnswers(after: 0)] + catchUp()
        // What it lacks may be on its way already.
        case .searching where gathers && lastChanged >= version, .queued where gathers && lastChanged >= version,
            .reading where gathers && lastChanged >= version:
            awaited = max(awaited, version)
            return [.holdAnswers(after: 0)]
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
