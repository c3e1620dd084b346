/// Jobs of several clients, and of the service itself, in the order in which they run. Pure.
///
/// - Clients take turns: between two jobs of one client, each other client that waits gets one job run. So a client
///   waits for one job of each other client, however many jobs the others have.
/// - The jobs of one client run in the order in which they were appended.
/// - While jobs of the service and of clients wait, they alternate.
struct TurnQueue<Job> {
    private struct Turn {
        var client: String
        var job: Job
    }

    private var service = FirstInFirstOut<Job>()
    /// The next job of each client that waits, in the order of their turns.
    private var turns = FirstInFirstOut<Turn>()
    /// The further jobs of each client that is in `turns`.
    private var further: [String: FirstInFirstOut<Job>] = [:]
    private var isServiceNext = true
    private(set) var count = 0

    /// - Parameter client: nil for a job of the service.
    mutating func append(_ job: Job, of client: String?) {
        count += 1
        guard let client else { return service.append(job) }
        guard further[client]?.append(job) == nil else { return }
        further[client] = FirstInFirstOut()
        turns.append(Turn(client: client, job: job))
    }

    /// The job that runs next; nil when there is none.
    mutating func takeNext() -> Job? {
        let isOfService = !service.isEmpty && (isServiceNext || turns.isEmpty)
        guard let job = isOfService ? service.takeFirst() : takeOfClient() else { return nil }
        isServiceNext = !isOfService
        count -= 1
        return job
    }

    private mutating func takeOfClient() -> Job? {
        guard let turn = turns.takeFirst() else { return nil }
        if let next = further[turn.client]?.takeFirst() {
            turns.append(Turn(client: turn.client, job: next))
        } else {
            further[turn.client] = nil
        }
        return turn.job
    }
}
