/// Jobs that wait for a hashing thread, and the order in which clients get one. Pure.
///
/// Clients are in two groups: those whose last password was right, and all others. While both wait, the groups get
/// turns alternately, and each may have half of the places. In each group:
///
/// - The client whose last turn is longest ago gets the next one. Clients that had none come first, in the order of
///   arrival.
/// - The jobs of one client run in the order in which they were appended, its second one after the first of each
///   other client.
/// - A full queue loses the job that would run last, which may be the one that is appended.
///
/// So a client that is refused and asks again runs after at most one job of each other client of its group: with 100
/// addresses in one group, after 100 turns of the group. An attacker with more addresses than `clientsMax`, or with a
/// new one for each turn, can keep out clients that never had a turn or whose last password was wrong, but not those
/// whose last password was right.
///
/// All operations take time proportional to the number of jobs, which `countMax` bounds.
struct HashingQueue<Job> {
    /// What is remembered of a client.
    private struct Client {
        /// The number of its last turn; 0: it had none.
        var lastTurn: UInt64 = 0
        var wasRight = false
    }

    private struct Waiting {
        var name: String
        var client: Client
        /// Jobs of the same client before it.
        var position: Int
        var job: Job

        func runs(before other: Waiting) -> Bool {
            (position, client.lastTurn) < (other.position, other.client.lastTurn)
        }
    }

    let countMax: Int
    private let clientsMax: Int
    /// In the order of arrival.
    private var waiting: [Waiting] = []
    private var clients = RecentEntries<String, Client>()
    private var turns: UInt64 = 0
    /// The group that had the last turn.
    private var wasRightsTurn = false

    /// - Parameter clientsMax: clients whose last turns are remembered.
    init(countMax: Int, clientsMax: Int) {
        self.countMax = countMax
        self.clientsMax = clientsMax
    }

    var count: Int { waiting.count }
    var isFull: Bool { waiting.count >= countMax }

    /// Appends a job. Returns the job that has no place in the queue; nil while the queue is not full.
    mutating func append(_ job: Job, of name: String) -> Job? {
        let position = waiting.count { $0.name == name }
        waiting.append(Waiting(name: name, client: clients[name] ?? Client(), position: position, job: job))
        guard waiting.count > countMax else { return nil }
        let isOthersShareFull = waiting.count { !$0.client.wasRight } * 2 > countMax
        return last(wereRight: !isOthersShareFull).map { waiting.remove(at: $0).job }
    }

    /// The job that runs next; nil when there is none.
    mutating func takeNext() -> Job? {
        guard let next = first(wereRight: !wasRightsTurn) ?? first(wereRight: wasRightsTurn) else { return nil }
        let taken = waiting.remove(at: next)
        wasRightsTurn = taken.client.wasRight
        for index in waiting.indices where waiting[index].name == taken.name { waiting[index].position -= 1 }
        tookTurn(taken.name)
        return taken.job
    }

    /// The client has a turn without having waited.
    mutating func tookTurn(_ name: String) {
        turns += 1
        var client = clients[name] ?? Client()
        client.lastTurn = turns
        remember(client, name)
    }

    /// A password of the client was checked.
    mutating func checked(_ name: String, isRight: Bool) {
        var client = clients[name] ?? Client()
        client.wasRight = isRight
        remember(client, name)
    }

    private mutating func remember(_ client: Client, _ name: String) {
        _ = clients.evict(for: name, countMax: clientsMax)
        clients.set(name, client)
        for index in waiting.indices where waiting[index].name == name { waiting[index].client = client }
    }

    /// Removes the jobs that are not wanted any more, and returns them.
    mutating func removeAll(where isUnwanted: (Job) -> Bool) -> [Job] {
        var removed: [Job] = []
        var positions: [String: Int] = [:]
        waiting = waiting.compactMap { kept in
            guard !isUnwanted(kept.job) else {
                removed.append(kept.job)
                return nil
            }
            var kept = kept
            kept.position = positions[kept.name, default: 0]
            positions[kept.name] = kept.position + 1
            return kept
        }
        return removed
    }

    private func first(wereRight: Bool) -> Int? {
        waiting.indices.filter { waiting[$0].client.wasRight == wereRight }
            .min { waiting[$0].runs(before: waiting[$1]) }
    }

    private func last(wereRight: Bool) -> Int? {
        waiting.indices.reversed().filter { waiting[$0].client.wasRight == wereRight }
            .max { waiting[$0].runs(before: waiting[$1]) }
    }
}
