/// Jobs of several clients, and of the service itself, in the order in which they run. Pure.
///
/// - Clients take turns: between two jobs of one client, each other client that waits gets one job run. So a client
///   waits for one job of each other client, however many jobs the others have.
/// - The jobs of one client run in the order in which they were appended, and so many at a time.
/// - While jobs of the service and of clients wait, they alternate.
struct TurnQueue<Job> {
    private struct Turn {
        var client: String
        var job: Job
    }

    private let runningMax: Int
    private var service = FirstInFirstOut<Job>()
    /// The next job of each client that waits, in the order of their turns.
    private var turns = FirstInFirstOut<Turn>()
    /// The further jobs of each client that is in `turns` or `held`.
    private var further: [String: FirstInFirstOut<Job>] = [:]
    /// By client, how many of its jobs run; empty when they are not counted.
    private var running: [String: Int] = [:]
    /// The next job of each client of which as many run as may.
    private var held: [String: Job] = [:]
    private var isServiceNext = true
    /// How many jobs wait.
    private(set) var count = 0

    /// - Parameter runningMax: how many jobs of one client may run at a time: then `ended` follows each; nil: any
    ///   number.
    init(runningMax: Int? = nil) { self.runningMax = runningMax ?? 0 }

    /// - Parameter client: nil for a job of the service.
    mutating func append(_ job: Job, of client: String?) {
        count += 1
        guard let client else { return service.append(job) }
        guard further[client]?.append(job) == nil else { return }
        further[client] = FirstInFirstOut()
        line(up: Turn(client: client, job: job))
    }

    /// The job that runs next; nil when none may.
    mutating func takeNext() -> (job: Job, client: String?)? {
        let isOfService = !service.isEmpty && (isServiceNext || turns.isEmpty)
        guard let next = isOfService ? service.takeFirst().map({ ($0, nil) }) : takeOfClient() else { return nil }
        isServiceNext = !isOfService
        count -= 1
        return next
    }

    /// A job of the client that `takeNext` has returned is over.
    mutating func ended(of client: String?) {
        guard runningMax > 0, let client, let count = running[client] else { return }
        running[client] = count > 1 ? count - 1 : nil
        if let job = held.removeValue(forKey: client) { turns.append(Turn(client: client, job: job)) }
    }

    private mutating func takeOfClient() -> (Job, String?)? {
        guard let turn = turns.takeFirst() else { return nil }
        if runningMax > 0 { running[turn.client, default: 0] += 1 }
        if let next = further[turn.client]?.takeFirst() {
            line(up: Turn(client: turn.client, job: next))
        } else {
            further[turn.client] = nil
        }
        return (turn.job, turn.client)
    }

    private mutating func line(up turn: Turn) {
        if runningMax > 0, running[turn.client, default: 0] >= runningMax {
            held[turn.client] = turn.job
        } else {
            turns.append(turn)
        }
    }
}
