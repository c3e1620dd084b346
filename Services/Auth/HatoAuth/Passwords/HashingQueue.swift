/// Jobs that wait for a hashing thread, and the order in which clients get one. Pure.
///
/// - Clients take turns: between two jobs of one client, each other client that waits gets one job run.
/// - The jobs of one client run in the order in which they were appended.
/// - A full queue takes a job of a client with fewer jobs than the client with the most, which loses its newest job. So
///   one client cannot keep the others out.
///
/// All operations take time proportional to the number of jobs, which `countMax` bounds.
struct HashingQueue<Job> {
    private struct Waiting {
        var client: String
        /// Jobs run in the order of their rounds; each client has at most one job in a round.
        var round: Int
        var job: Job
    }

    let countMax: Int
    private var waiting: [Waiting] = []
    /// The round of the job that was taken last.
    private var round = 0

    init(countMax: Int) { self.countMax = countMax }

    var count: Int { waiting.count }

    /// Appends a job. Returns the job that has no place in the queue: nil while the queue is not full, then the newest
    /// job of the client with the most, or the given one.
    mutating func append(_ job: Job, of client: String) -> Job? {
        let own = waiting.count { $0.client == client }
        var refused: Job?
        if waiting.count >= countMax {
            guard let largest = largestClient(), largest.count > own + 1,
                let newest = waiting.lastIndex(where: { $0.client == largest.name })
            else { return job }
            refused = waiting.remove(at: newest).job
        }
        let last = waiting.last { $0.client == client }?.round ?? round
        // Rounds begin anew with an empty queue, and one more job raises them by one at most.
        waiting.append(Waiting(client: client, round: last + 1, job: job))
        return refused
    }

    /// The job that runs next; nil when there is none.
    mutating func takeNext() -> Job? {
        guard let next = waiting.indices.min(by: { waiting[$0].round < waiting[$1].round }) else { return nil }
        let taken = waiting.remove(at: next)
        round = waiting.isEmpty ? 0 : taken.round
        return taken.job
    }

    private func largestClient() -> (name: String, count: Int)? {
        var counts: [String: Int] = [:]
        for job in waiting { counts[job.client, default: 0] += 1 }
        return counts.max { $0.value < $1.value }.map { ($0.key, $0.value) }
    }
}
