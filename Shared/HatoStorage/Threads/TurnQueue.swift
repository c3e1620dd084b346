/// Jobs of several clients, and of the service itself, in the order in which they run. Pure.
///
/// - Clients share the time: the next job is one of the client that has had the least (start-time fair queueing). What
///   a job takes is known when it has ended (`charge`, `ended`); before, each counts as `costMin`. So where all jobs
///   take the same time, a client waits for one job of each other client, however many jobs the others have; and one
///   that has waited for none waits for about one job of all others together, however long they take.
/// - The jobs of one client run in the order in which they were appended, and so many at a time.
/// - While jobs of the service and of clients wait, they alternate.
package struct TurnQueue<Job> {
    private struct Client {
        /// The job that runs next, usually the only one that waits.
        var next: Job?
        var further = FirstInFirstOut<Job>()
        /// How many of its jobs run; 0 when they are not counted.
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
            next = further.takeFirst()
            return job
        }

        mutating func charge(_ nanoseconds: Int) {
            // A clock that jumps takes no client out for ever.
            time += min(max(0, nanoseconds - TurnQueue.costMin), 60_000_000_000)
        }

        /// Whether it has to be added to `turns`.
        mutating func lineUp(_ runningMax: Int?) -> Bool {
            guard !isInTurns, next != nil, running < runningMax ?? .max else { return false }
            isInTurns = true
            return true
        }
    }

    /// What each job counts as at least, in nanoseconds.
    package static var costMin: Int { 1_000 }
    /// Clients without jobs that are kept, besides those that have more than the least time.
    private static var idleMax: Int { 256 }

    private let runningMax: Int?
    private var service = FirstInFirstOut<Job>()
    /// Those with a job that waits or runs, and those that have had more time than others.
    private var clients: [String: Client] = [:]
    private var idleCount = 0
    /// Those of which a job may run next, by the time they have had.
    private var turns = TurnHeap()
    /// The time that the client of the last job had had before it: new clients begin just below it.
    private var now = 0
    private var isServiceNext = true
    /// How many jobs wait.
    package private(set) var count = 0

    /// - Parameter runningMax: how many jobs of one client may run at a time: then `ended` follows each; nil: any
    ///   number.
    package init(runningMax: Int? = nil) { self.runningMax = runningMax }

    /// - Parameter client: nil for a job of the service.
    package mutating func append(_ job: Job, of client: String?) {
        count += 1
        guard let client else { return service.append(job) }
        update(client) { $0.append(job) }
    }

    /// Whether a job may run.
    var hasNext: Bool { !service.isEmpty || !turns.isEmpty }

    /// The job that runs next; nil when none may.
    package mutating func takeNext() -> (job: Job, client: String?)? {
        let isOfService = !service.isEmpty && (isServiceNext || turns.isEmpty)
        guard let next = isOfService ? service.takeFirst().map({ ($0, nil) }) : takeOfClient() else { return nil }
        isServiceNext = !isOfService
        count -= 1
        return next
    }

    /// A job of the client that `takeNext` has returned is over.
    ///
    /// - Parameter time: what it has taken, in nanoseconds.
    package mutating func ended(of client: String?, after time: Int = 0) {
        guard runningMax != nil, let client else { return }
        update(client) { client in
            client.running = max(0, client.running - 1)
            client.charge(time)
        }
    }

    /// A job of the client has taken this time, in nanoseconds.
    package mutating func charge(_ client: String, _ time: Int) { update(client) { $0.charge(time) } }

    /// How many jobs of a client wait, or are counted as running.
    package func count(of client: String) -> Int { clients[client]?.count ?? 0 }

    private mutating func takeOfClient() -> (Job, String?)? {
        while let (client, time) = turns.takeFirst() {
            var job: Job?
            let isCounted = runningMax != nil
            let earliest = now
            update(client) {
                $0.isInTurns = false
                // Charged since: its turn comes later.
                guard $0.time <= time else { return }
                job = $0.takeNext()
                if isCounted { $0.running += 1 }
                $0.time = max($0.time, earliest) + Self.costMin
            }
            guard let job else { continue }
            now = max(now, time)
            return (job, client)
        }
        return nil
    }

    /// Changes a client, and adds it to `turns` when a job of it may run.
    private mutating func update(_ name: String, _ change: (inout Client) -> Void) {
        // Each search in the dictionary hashes the name.
        let index: Dictionary<String, Client>.Index
        if let found = clients.index(forKey: name) {
            index = found
        } else {
            clients[name] = Client(time: now - Self.costMin)
            idleCount += 1
            guard let added = clients.index(forKey: name) else { return }
            index = added
        }
        let wasIdle = clients.values[index].isIdle
        // A client that begins to wait comes before those that have had as much.
        if wasIdle { clients.values[index].time = max(clients.values[index].time, now - Self.costMin) }
        change(&clients.values[index])
        if clients.values[index].lineUp(runningMax) { turns.insert(name, clients.values[index].time) }
        let isIdle = clients.values[index].isIdle
        idleCount += (isIdle ? 1 : 0) - (wasIdle ? 1 : 0)
        guard isIdle else { return }
        if idleCount == clients.count { begin() } else if idleCount > Self.idleMax { forgetIdle() }
    }

    /// No client waits or runs: all begin with the same time again.
    private mutating func begin() {
        now = 0
        idleCount = 0
        clients.removeAll(keepingCapacity: clients.count <= Self.idleMax)
    }

    /// Forgets clients that would begin here anyhow; all without jobs when there are very many.
    private mutating func forgetIdle() {
        let limit = clients.count > 16 * Self.idleMax ? Int.max : now
        clients = clients.filter { !$0.value.isIdle || $0.value.time > limit }
        idleCount = clients.count { $0.value.isIdle }
    }
}

/// Names with the time that each has had, the least first; of equal ones the first that came.
private struct TurnHeap {
    private struct Entry: Comparable {
        var time: Int
        var number: UInt64
        var name: String

        static func < (left: Entry, right: Entry) -> Bool {
            left.time != right.time ? left.time < right.time : left.number < right.number
        }
    }

    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }

    mutating func insert(_ name: String, _ time: Int) {
        lastNumber += 1
        entries.append(Entry(time: time, number: lastNumber, name: name))
        var child = entries.count - 1
        while child > 0, entries[child] < entries[(child - 1) / 2] {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func takeFirst() -> (name: String, time: Int)? {
        guard let last = entries.popLast() else { return nil }
        guard let first = entries.first else { return (last.name, last.time) }
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
        return (first.name, first.time)
    }
}
