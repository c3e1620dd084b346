/// Jobs of several clients, and of the service itself, in the order in which they run. Pure.
///
/// - Clients take turns: between two jobs of one client, each other client that waits gets one job run. So a client
///   waits for one job of each other client, however many jobs the others have.
/// - The jobs of one client run in the order in which they were appended, and so many at a time.
/// - While jobs of the service and of clients wait, they alternate.
package struct TurnQueue<Job> {
    private struct Client {
        /// The job that runs next, usually the only one that waits.
        var next: Job?
        var further = FirstInFirstOut<Job>()
        /// How many of its jobs run; 0 when they are not counted.
        var running = 0
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

        /// Whether it has to be added to `turns`.
        mutating func lineUp(_ runningMax: Int?) -> Bool {
            guard !isInTurns, next != nil, running < runningMax ?? .max else { return false }
            isInTurns = true
            return true
        }
    }

    private let runningMax: Int?
    private var service = FirstInFirstOut<Job>()
    /// Those with a job that waits or runs.
    private var clients: [String: Client] = [:]
    /// Those of which a job may run next, in the order of their turns.
    private var turns = FirstInFirstOut<String>()
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
        if update(client, { $0.append(job) }) { turns.append(client) }
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
    package mutating func ended(of client: String?) {
        guard runningMax != nil, let client else { return }
        if update(client, { $0.running = max(0, $0.running - 1) }) { turns.append(client) }
    }

    /// How many jobs of a client wait, or are counted as running.
    package func count(of client: String) -> Int { clients[client]?.count ?? 0 }

    private mutating func takeOfClient() -> (Job, String?)? {
        guard let client = turns.takeFirst() else { return nil }
        var job: Job?
        let isCounted = runningMax != nil
        let isNext = update(client) {
            $0.isInTurns = false
            job = $0.takeNext()
            if isCounted { $0.running += 1 }
        }
        if isNext { turns.append(client) }
        return job.map { ($0, client) }
    }

    /// Changes a client; returns whether it has to be added to `turns`.
    private mutating func update(_ name: String, _ change: (inout Client) -> Void) -> Bool {
        // Each search in the dictionary hashes the name.
        guard let index = clients.index(forKey: name) else {
            var client = Client()
            change(&client)
            let isNext = client.lineUp(runningMax)
            if !client.isIdle { clients[name] = client }
            return isNext
        }
        change(&clients.values[index])
        let isNext = clients.values[index].lineUp(runningMax)
        if clients.values[index].isIdle { clients.remove(at: index) }
        return isNext
    }
}
