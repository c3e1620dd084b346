import HatoModel
import HatoRPC
import HatoTree

@testable import HatoMessages

/// One listener's state machine with a model of its surroundings: a topic of two children that commits write, a
/// connection with and without space, readers that take their time, a right that commits make uncertain, and the
/// client, which checks what it gets. A value: two equal worlds continue alike.
struct ExploredListening: Hashable {
    private struct Work: Hashable {
        var sent: UInt64
        var versions: [UInt64]
        var snapshot: UInt64
    }

    private struct Asked: Hashable {
        var job: UInt64
        var wanted: ListenerReading.Wanted
        var oldest: UInt64
        /// While the topic is busy: what the live ones were sent up to.
        var reached: UInt64?
    }

    private struct Reading: Hashable {
        var job: UInt64
        var wanted: ListenerReading.Wanted
        var version: UInt64
        /// The children that were changed from the wanted version on.
        var children: [Int]
    }

    private struct Parked: Hashable {
        var job: UInt64
        /// Nil: a catch-up job that has not read.
        var joinsAfter: UInt64?
    }

    private static let key = TopicKey(database: DatabaseID(rawValue: 1), path: "/t", query: nil)
    private static let opened: UInt64 = 2
    private static let listenerID = 1
    private static let topicID = 2

    let setting: Setting
    private(set) var machine: ListenerStateMachine
    /// By version.
    private(set) var states: [State]
    private var recent = RecentEvents(version: 2)
    private var changes = ChangedPaths(of: Self.key.path, after: 2)
    private var awaitsChange = false
    private var awaitsAnswer = false
    private var work: Work?
    private var pending: [UInt64] = []
    private var parked: [Parked] = []
    private var reached: UInt64?
    private var isLive = false
    /// What waits to be read, with its first version.
    private var asked: Asked?
    private var readings: [Reading] = []
    private var searching: Parked?
    private var outdated: UInt64?
    private var hasRoom = true
    private var waitsForDrain = false
    private var timerRuns = false
    /// Versions of own writes whose responses have not come by.
    private var dueAnswers: [UInt64] = []
    private var held: [Int: UInt64] = [:]
    private var delayed: [UInt64] = []
    /// The newest own write whose response has left.
    private var lastAnswered: UInt64 = 0
    private var client = ExploredClient()
    private var isOpen = false
    private(set) var hasEnded = false
    /// Whether something was refused since it was up to date.
    private var hasRefused = false

    init(_ setting: Setting) throws {
        self.setting = setting
        let first = State(children: [1, 1])
        states = [first, first, State(children: [2, 1], written: 0)]
        let etag = setting.etag == "same" ? states[2].etag : setting.etag
        machine = ListenerStateMachine(gathers: setting.gathers, etag: etag)
        if setting.since {
            client.children = [1, 1]
            client.version = 1
        } else if setting.etag == "same" {
            client.children = states[2].children
        }
        if setting.isBusy {
            states.append(State(children: [2, 3], isLong: true, written: 1))
            recent.changed(at: newest)
            changes.add(change(newest), at: newest)
            try send([newest], after: newest - 1)
        }
        try carryOut(machine.subscribed(since: setting.since ? 1 : nil, searches: setting.since))
        if setting.isOpen {
            begin()
            try read()
        }
    }

    private var newest: UInt64 { UInt64(states.count - 1) }

    // MARK: Steps

    /// What may happen next.
    ///
    /// - Parameter newestMax: the last version that is written.
    func steps(newestMax: UInt64) -> [Step] {
        var steps: [Step] = []
        if newest < newestMax, !hasEnded {
            steps += [.write(own: true, isLong: false), .write(own: true, isLong: true)]
            steps += [.write(own: false, isLong: true), .doubt(stands: true), .doubt(stands: false)]
        }
        if !dueAnswers.isEmpty { steps.append(.answer) }
        if outdated != nil { steps.append(.verdict) }
        if searching != nil { steps.append(.search) }
        if asked != nil { steps.append(.begin) }
        if !readings.isEmpty { steps.append(.read) }
        if work != nil { steps.append(.topicWork) }
        if hasRoom { steps.append(.fill) }
        if !hasRoom || waitsForDrain { steps.append(.drain) }
        if timerRuns { steps.append(.timer) }
        if !hasEnded { steps.append(.unlisten) }
        return steps
    }

    mutating func take(_ step: Step) throws {
        switch step {
        case .write(let own, let isLong): try write(own ? 0 : 1, isLong: isLong)
        case .doubt(let stands): try outdate(stands)
        case .answer: try respond()
        case .verdict: try authorise()
        case .search: try search()
        case .begin: begin()
        case .read: try read()
        case .topicWork: try topicWorked()
        case .fill: hasRoom = false
        case .drain:
            hasRoom = true
            guard waitsForDrain else { return }
            waitsForDrain = false
            try carryOut(machine.drained())
        case .timer:
            timerRuns = false
            try carryOut(machine.timePassed(lastChanged: recent.lastChanged))
        case .unlisten: try carryOut(machine.unlistened())
        }
    }

    private mutating func write(_ child: Int, isLong: Bool) throws {
        var state = states[states.count - 1]
        state.children[child] = newest + 1
        state.isLong = isLong
        state.written = child
        states.append(state)
        if child == 0 { dueAnswers.append(newest) }
        try changeTopic()
    }

    /// A right that was lost comes back, and stays when it stands.
    private mutating func outdate(_ stands: Bool) throws {
        var state = states[states.count - 1]
        let before = state
        state.mayRead = stands
        state.written = state.mayRead == before.mayRead ? nil : 1
        if state.written == 1 { state.children[1] = newest + 1 }
        state.isLong = false
        states.append(state)
        if !setting.authorisesAtOnce || state.mayRead {
            outdated = newest
            try carryOut(
                machine.authorisationBecameOutdated(sent: work?.sent ?? recent.lastSent, isWorking: work != nil))
        } else {
            try carryOut(machine.cancelled())
        }
        if state.written != nil { try changeTopic() }
        if setting.authorisesAtOnce { try authorise() }
    }

    private mutating func authorise() throws {
        guard outdated != nil else { return }
        outdated = nil
        if states[states.count - 1].mayRead {
            try carryOut(machine.authorisationWasConfirmed(at: newest))
        } else {
            try carryOut(machine.cancelled())
        }
    }

    private mutating func respond() throws {
        let version = dueAnswers.removeFirst()
        if awaitsAnswer {
            awaitsAnswer = false
            try carryOut(
                machine.ownResponseBecameDue(version, lastChanged: recent.lastChanged, outdatedThrough: outdated))
        }
        if let least = held.values.min(), least < version { delayed.append(version) } else { try hear(version) }
    }

    private mutating func release(_ id: Int, through version: UInt64?) throws {
        guard held[id] != nil else { return }
        held[id] = version
        let limit = held.values.min() ?? .max
        while let first = delayed.first, first <= limit { try hear(delayed.removeFirst()) }
    }

    // MARK: The topic

    private func change(_ version: UInt64) -> [PathChange] {
        let path: TreePath = states[Int(version)].written == 0 ? "/t/a" : "/t/b"
        let node = TreeNode.leaf(.number(Double(version)))
        return [PathChange(path: path, before: .empty, after: node, depths: (2, 2))]
    }

    private mutating func changeTopic() throws {
        let before = newest - 1
        recent.changed(at: newest)
        changes.add(change(newest), at: newest)
        if awaitsChange, !hasEnded {
            awaitsChange = false
            try carryOut(machine.topicChanged())
        }
        if work != nil { return pending.append(newest) }
        guard isLive || setting.hasCompany || recent.isNeeded else { return recent.sent(through: newest) }
        try send([newest], after: before)
    }

    private mutating func send(_ versions: [UInt64], after sent: UInt64) throws {
        guard versions.contains(where: { states[Int($0)].isLong }) else {
            return try deliver(Work(sent: sent, versions: versions, snapshot: newest))
        }
        work = Work(sent: sent, versions: versions, snapshot: newest)
        if isLive { held[Self.topicID] = sent }
    }

    private mutating func deliver(_ done: Work) throws {
        recent.sent(through: done.snapshot)
        let event = ExploredEvent.commits(done.versions).json
        recent.keep(RecentEvents.Sent(after: done.sent, version: done.snapshot, members: event))
        guard isLive, try !send(event) else { return }
        try carryOut(machine.eventWasRefused(after: done.sent))
    }

    private mutating func topicWorked() throws {
        guard let done = work else { return }
        work = nil
        try deliver(done)
        let notes = pending
        pending = []
        if !notes.isEmpty { try send(notes, after: done.snapshot) }
        if let work {
            try release(Self.topicID, through: work.sent)
            reached = parked.isEmpty ? nil : work.sent
        } else {
            reached = nil
        }
        let steps = parked
        parked = []
        var left: [Parked] = []
        for step in steps {
            if let work, step.job == machine.job, !machine.mayGoOn(at: work.sent) {
                try carryOut(machine.topicStayedBusy(newest: newest))
                left.append(step)
                continue
            }
            if step.job == machine.job {
                if let version = step.joinsAfter { try join(after: version) } else { try catchUp() }
            }
            if step.joinsAfter != nil { recent.jobEnded() }
        }
        parked = left + parked
        if work == nil { try release(Self.topicID, through: nil) }
    }

    // MARK: Catching up

    private mutating func catchUp() throws {
        guard outdated == nil else {
            return try carryOut(
                machine.authorisationBecameOutdated(sent: work?.sent ?? recent.lastSent, isWorking: work != nil))
        }
        guard let work, !setting.gathers else {
            return try carryOut(machine.topicBecameReady(at: newest, changes))
        }
        guard reached != nil, machine.mayGoOn(at: work.sent) else {
            return parked.append(Parked(job: machine.job))
        }
        try carryOut(machine.topicBecameReady(at: work.sent, changes))
    }

    private mutating func join(after version: UInt64) throws {
        if let work, !machine.mayGoOn(at: work.sent) {
            recent.jobBegan()
            return parked.append(Parked(job: machine.job, joinsAfter: version))
        }
        try carryOut(machine.othersWereSent(recent.sent(after: version)))
    }

    private mutating func search() throws {
        guard let search = searching else { return }
        searching = nil
        let end = max(2, search.joinsAfter ?? 2)
        var earlier = ChangedPaths(of: Self.key.path, after: 1)
        for version in 2...end where states[Int(version)].written != nil {
            earlier.add(change(version), at: version)
        }
        changes.prepend(earlier, through: end)
        if search.job == machine.job { try carryOut(machine.searched()) }
    }

    private mutating func begin() {
        guard let asked else { return }
        self.asked = nil
        let version = asked.reached ?? (setting.shares ? max(recent.lastChanged, asked.oldest) : newest)
        let children = [0, 1].filter { child in
            guard case .changedFrom(let first) = asked.wanted else { return false }
            return (first...newest).contains { states[Int($0)].written == child }
        }
        readings.append(Reading(job: asked.job, wanted: asked.wanted, version: version, children: children))
        recent.jobBegan()
    }

    private mutating func read() throws {
        let reading = readings.removeFirst()
        if reading.job == machine.job {
            try carryOut(
                machine.caughtUp(
                    event(reading), at: reading.version, lastChanged: recent.lastChanged,
                    newestHeld: delayed.last ?? 0))
        }
        recent.jobEnded()
    }

    private func event(_ reading: Reading) -> EncodedJSON? {
        switch reading.wanted {
        case .whole: return ExploredEvent.whole(reading.version).json
        case .unlessEtag(let etag):
            return states[Int(reading.version)].etag == etag ? nil : ExploredEvent.whole(reading.version).json
        case .changedFrom: return ExploredEvent.places(reading.version, reading.children).json
        }
    }

    // MARK: Actions

    private mutating func carryOut(_ actions: [ListenerStateMachine.Action]) throws {
        for action in actions {
            switch action {
            case .search: searching = Parked(job: machine.job, joinsAfter: newest)
            case .catchUp: try catchUp()
            case .read(let wanted, let oldest):
                asked = Asked(
                    job: machine.job, wanted: wanted, oldest: oldest, reached: setting.gathers ? nil : reached)
                // What it is to read is known from the beginning.
                if !setting.queues || asked?.reached != nil { begin() }
            case .stopReading:
                asked = nil
                readings = readings.map { Reading(job: 0, wanted: $0.wanted, version: $0.version, children: []) }
            case .send(let events): try send(events)
            case .join(let version): try join(after: version)
            case .becomeLive:
                isLive = true
                if let work { held[Self.topicID] = work.sent }
            case .leaveLive: isLive = false
            case .respond(let version, let isUnchanged): try open(version, isUnchanged)
            case .refuse: try end(isAnswer: true)
            case .sendCancelled: try end(isAnswer: false)
            case .holdResponses(let version): held[Self.listenerID] = version
            case .releaseResponses(let version): try release(Self.listenerID, through: version)
            case .hurryVerdict: break
            case .awaitVerdict, .reportResponses: (awaitsAnswer, awaitsChange) = (true, false)
            // No condition is refused here.
            case .reportChange, .reportRefused: (awaitsAnswer, awaitsChange) = (false, true)
            case .waitForDrain: waitsForDrain = true
            case .startTimer:
                if timerRuns { throw HistoryFailure("two timers") }
                timerRuns = true
            case .leave:
                hasEnded = true
                isLive = false
                outdated = nil
                try release(Self.listenerID, through: nil)
            }
        }
        if hasRefused, isUpToDate, hasRoom { hasRefused = false }
    }

    private var isUpToDate: Bool {
        switch machine.state {
        case .live, .behind(_, .gathering): true
        case .behind, .ended: false
        }
    }

    private mutating func send(_ events: [EncodedJSON]) throws {
        for event in events {
            guard try send(event) else { return try carryOut(machine.refused()) }
        }
        try carryOut(machine.sent(lastChanged: recent.lastChanged, newestHeld: delayed.last ?? 0))
    }

    // MARK: The client

    private mutating func send(_ event: EncodedJSON) throws -> Bool {
        guard hasRoom else {
            hasRefused = true
            return false
        }
        if hasEnded { throw HistoryFailure("\(event.text) was sent after the end") }
        try client.hear(event, states, from: Self.opened)
        return true
    }

    private mutating func open(_ version: UInt64, _ isUnchanged: Bool) throws {
        if isOpen || hasEnded { throw HistoryFailure("was answered twice") }
        isOpen = true
        if hasRefused { return }
        // Its connection lets the events leave behind this response.
        if isUnchanged == client.wasRead { throw HistoryFailure("is called unchanged: \(isUnchanged)") }
        client.version = max(client.version, version)
        try client.check("when it is open", states[Int(client.version)])
        // Responses that left before belong to what it was sent first.
        try hear(lastAnswered)
    }

    private mutating func end(isAnswer: Bool) throws {
        if isAnswer == isOpen { throw HistoryFailure("was ended by the wrong notice") }
        hasEnded = true
    }

    /// The response to an own write leaves.
    private mutating func hear(_ answered: UInt64) throws {
        lastAnswered = max(lastAnswered, answered)
        guard isOpen, !hasRefused, !hasEnded, machine.state != .ended, client.version < answered else { return }
        let since = states[Int(answered)...].map(\.children)
        guard let children = client.children, since.contains(children) else {
            throw HistoryFailure("at \(client.version) was answered \(answered) before its event")
        }
    }

    // MARK: The end

    /// Lets everything go on until nothing is left, and checks what the client has then.
    func checkEnd() throws {
        var world = self
        world.hasRoom = true
        for _ in 0..<60 {
            let step = world.steps(newestMax: 0).first { step in
                switch step {
                case .fill, .unlisten: false
                default: true
                }
            }
            guard let step else { break }
            try world.take(step)
        }
        guard world.delayed.isEmpty, world.held.isEmpty || world.hasEnded else {
            throw HistoryFailure("answers are held for ever: \(world.held)")
        }
        guard !world.hasEnded else { return }
        guard world.isUpToDate, world.isOpen else { throw HistoryFailure("stays \(world.machine.state)") }
        guard world.states[world.states.count - 1].mayRead else { throw HistoryFailure("goes on without a right") }
        try world.client.check("at the end", world.states[world.states.count - 1])
    }
}
