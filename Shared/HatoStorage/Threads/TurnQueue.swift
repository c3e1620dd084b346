/// Jobs of several clients, and of the service itself, in the order in which they run. Pure.
///
/// - Clients share the time: the next job is one of the client that has had the least (start-time fair queueing). What
///   a job takes is known when it has ended (`ended`); before, each counts as `costMin`. So where all jobs take the
///   same time, a client waits for one job of each other client, however many jobs the others have; and one that has
///   waited for none waits for about one job of all others together, however long they take.
/// - New clients begin just below the time of the one whose turn it is. While they come one after another, so that it
///   does not move on, it does with the work that is done (`age`): they pass no client for ever.
/// - The jobs of one client run in the order in which they were appended, and so many at a time.
/// - While jobs of the service and of clients wait, they alternate, however long they take.
package struct TurnQueue<Job> {
    /// Whose job `takeNext` has returned: until `ended`, the client keeps its slot.
    package struct Turn {
        /// Nil: a job of the service.
        package let client: String?
        fileprivate let slot: Int
    }

    private struct Client {
        let name: String
        /// The job that runs next, usually the only one that waits.
        var next: Job?
        var further = FirstInFirstOut<Job>()
        var running = 0
        /// The time that it has had, counted from the same beginning as `now`.
        var time: Int
        /// Whether it is in `turns`.
        var isInTurns = false

        var isIdle: Bool { next == nil && running == 0 }
        /// How many wait or run.
        var count: Int { (next == nil ? 0 : 1) + further.count + running }

        mutating func append(_ job: Job) {
            if next == nil { next = job } else { further.append(job) }
        }

        mutating func takeNext() -> Job? {
            let job = next.take()
            if !further.isEmpty { next = further.takeFirst() }
            return job
        }
    }

    /// What each job counts as at least, in nanoseconds.
    package static var costMin: Int { 1_000 }
    /// What one job counts as at most: a clock that jumps takes no client out for ever.
    private static var costMax: Int { 60_000_000_000 }
    /// Clients without jobs that are kept at least.
    private static var idleMin: Int { 256 }
    /// The number of clients without jobs at which all of them are forgotten.
    private static var idleMax: Int { 4_096 }
    /// What one job counts for `age` at most.
    private static var agingMax: Int { 1_000_000 }
    /// How far `age` is behind `now` at most: more than it moves while each client has one turn.
    private static var lag: Int { 2 * agingMax }
    /// Where the time begins again when nothing waits.
    private static var timeMax: Int { 1 << 60 }

    private let runningMax: Int
    private var service = FirstInFirstOut<Job>()
    private var slots: [String: Int] = [:]
    /// By slot; what a free slot has is of no meaning.
    private var clients: [Client] = []
    private var freeSlots: [Int] = []
    private var idleCount = 0
    /// The number of idle clients at which those that are of no use are forgotten.
    private var idleLimit = Self.idleMin
    /// Those of which a job may run next, by the time they have had.
    private var turns = TurnHeap()
    /// The time that the client of the last job had had before it.
    private var now = 0
    /// Half of the time that each client that waits would have had of all work, counted from where `now` was.
    private var age = -Self.lag
    /// The most that a client which is idle has had.
    private var latest = 0
    private var isServiceNext = true
    /// How many jobs wait.
    package private(set) var count = 0

    /// - Parameter runningMax: how many jobs of one client may run at a time; nil: any number.
    package init(runningMax: Int? = nil) { self.runningMax = runningMax ?? .max }

    /// - Parameter client: nil for a job of the service.
    package mutating func append(_ job: Job, of client: String?) {
        count += 1
        guard let client else { return service.append(job) }
        let slot = slots[client] ?? add(client)
        if clients[slot].isIdle {
            idleCount -= 1
            clients[slot].time = max(clients[slot].time, beginning)
        }
        clients[slot].append(job)
        lineUp(slot)
    }

    /// Whether a job may run.
    var hasNext: Bool { !service.isEmpty || !turns.isEmpty }

    /// The job that runs next; nil when none may. `ended` follows each.
    package mutating func takeNext() -> (job: Job, turn: Turn)? {
        let isOfService = !service.isEmpty && (isServiceNext || turns.isEmpty)
        guard let next = isOfService ? takeOfService() : takeOfClient() else { return nil }
        isServiceNext = !isOfService
        count -= 1
        return next
    }

    /// A job that `takeNext` has returned is over.
    ///
    /// - Parameter time: what it has taken, in nanoseconds.
    package mutating func ended(_ turn: Turn, after time: Int = 0) {
        let slot = turn.slot
        guard turn.client != nil, clients.indices.contains(slot), clients[slot].running > 0 else { return }
        clients[slot].running -= 1
        clients[slot].time += min(max(0, time - Self.costMin), Self.costMax)
        age += max(1, min(max(0, time), Self.agingMax) / (2 * max(1, slots.count - idleCount)))
        lineUp(slot)
        guard clients[slot].isIdle else { return }
        // Keeps no capacity for what waited.
        clients[slot].further = FirstInFirstOut()
        idleCount += 1
        latest = max(latest, clients[slot].time)
        if idleCount == slots.count { allAreIdle() } else if idleCount >= idleLimit { forgetIdle() }
    }

    /// How many jobs of a client wait or run.
    package func count(of client: String) -> Int { slots[client].map { clients[$0].count } ?? 0 }

    private mutating func takeOfService() -> (Job, Turn)? {
        service.takeFirst().map { ($0, Turn(client: nil, slot: 0)) }
    }

    private mutating func takeOfClient() -> (Job, Turn)? {
        while let (slot, time) = turns.takeFirst() {
            clients[slot].isInTurns = false
            // Charged since: its turn comes later.
            guard clients[slot].time <= time, let job = clients[slot].takeNext() else {
                lineUp(slot)
                continue
            }
            clients[slot].running += 1
            clients[slot].time = max(time, now) + Self.costMin
            now = max(now, time)
            age = max(age, now - Self.lag)
            lineUp(slot)
            return (job, Turn(client: clients[slot].name, slot: slot))
        }
        return nil
    }

    /// Adds a client to `turns` when a job of it may run.
    private mutating func lineUp(_ slot: Int) {
        guard !clients[slot].isInTurns, clients[slot].next != nil, clients[slot].running < runningMax else { return }
        clients[slot].isInTurns = true
        turns.insert(slot, clients[slot].time)
    }

    // MARK: Clients without jobs

    /// The time with which a new client begins.
    private var beginning: Int { max(now, age) - Self.costMin }

    private mutating func add(_ name: String) -> Int {
        let client = Client(name: name, time: beginning)
        let slot = freeSlots.popLast() ?? clients.count
        if slot < clients.count { clients[slot] = client } else { clients.append(client) }
        slots[name] = slot
        idleCount += 1
        return slot
    }

    /// No client waits or runs: all begin with the same time again.
    private mutating func allAreIdle() {
        now = max(now, age, latest) + Self.costMin
        guard clients.count > Self.idleMin || now > Self.timeMax else { return }
        (slots, clients, freeSlots) = ([:], [], [])
        (idleCount, idleLimit, now, age, latest) = (0, Self.idleMin, 0, -Self.lag, 0)
    }

    /// Forgets clients that would begin here anyhow; all without jobs when there are very many.
    private mutating func forgetIdle() {
        let limit = idleCount >= Self.idleMax ? Int.max : beginning
        for (name, slot) in slots where clients[slot].isIdle && clients[slot].time <= limit {
            slots[name] = nil
            clients[slot] = Client(name: "", time: 0)
            freeSlots.append(slot)
            idleCount -= 1
        }
        // Not at each job, where many have had more than the least time.
        idleLimit = max(Self.idleMin, 2 * idleCount)
    }
}

/// Slots with the time that each has had, the least first; of equal ones the first that came.
private struct TurnHeap {
    private struct Entry: Comparable {
        var time: Int
        var number: UInt64
        var slot: Int

        static func < (left: Entry, right: Entry) -> Bool {
            left.time != right.time ? left.time < right.time : left.number < right.number
        }
    }

    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }

    mutating func insert(_ slot: Int, _ time: Int) {
        lastNumber &+= 1
        entries.append(Entry(time: time, number: lastNumber, slot: slot))
        var child = entries.count - 1
        while child > 0, entries[child] < entries[(child - 1) / 2] {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func takeFirst() -> (slot: Int, time: Int)? {
        guard let last = entries.popLast() else { return nil }
        guard let first = entries.first else { return (last.slot, last.time) }
        entries[0] = last
        var parent = 0
        while true {
            var least = 2 * parent + 1
            guard least < entries.count else { break }
            if least + 1 < entries.count, entries[least + 1] < entries[least] { least += 1 }
            guard entries[least] < entries[parent] else { break }
            entries.swapAt(parent, least)
            parent = least
        }
        return (first.slot, first.time)
    }
}
