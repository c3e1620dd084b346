import HatoTesting
import Testing

@testable import HatoStorage

@Suite("Turns of readers")
struct TurnQueueTests {
    private struct Job: Hashable {
        var client: String?
        var number: Int
    }

    private func taken(_ queue: inout TurnQueue<Job>) -> [Job] {
        var all: [Job] = []
        while let (job, turn) = queue.takeNext() {
            all.append(job)
            queue.ended(turn)
        }
        return all
    }

    private func next(of queue: inout TurnQueue<Job>) throws -> (job: Job, turn: TurnQueue<Job>.Turn) {
        let next = queue.takeNext()
        return try #require(next)
    }

    @Test func aClientWaitsForOneJobOfEachOther() {
        var queue = TurnQueue<Job>()
        for number in 0..<1_000 {
            queue.append(Job(client: "a", number: number), of: "a")
            queue.append(Job(client: "b", number: number), of: "b")
        }
        queue.append(Job(client: "c", number: 0), of: "c")
        let order = taken(&queue)
        #expect(order.firstIndex { $0.client == "c" } == 2)
        #expect(order.filter { $0.client == "a" }.map(\.number) == Array(0..<1_000))
        #expect(order.prefix(9).filter { $0.client == "b" }.count == 4)
        #expect(queue.count == 0)
    }

    @Test func clientsShareTheTimeHoweverLongTheirJobsTake() throws {
        var queue = TurnQueue<Job>(runningMax: 1)
        let times = ["long": 10_000_000, "short": 1_000_000]
        for number in 0..<1_000 {
            for client in times.keys.sorted() { queue.append(Job(client: client, number: number), of: client) }
        }
        var taken: [String: Int] = [:]
        for _ in 0..<220 {
            let (job, turn) = try next(of: &queue)
            let client = try #require(job.client)
            taken[client, default: 0] += 1
            queue.ended(turn, after: times[client] ?? 0)
        }
        #expect((19...21).contains(taken["long"] ?? 0) && (199...201).contains(taken["short"] ?? 0), "\(taken)")
        // A client that begins to wait is next, and is charged for nothing of before.
        queue.append(Job(client: "new", number: 0), of: "new")
        queue.append(Job(client: "new", number: 1), of: "new")
        #expect((0..<2).contains { _ in queue.takeNext()?.turn.client == "new" })
    }

    @Test func aClientThatWaitedForNoneOwesNothingLater() throws {
        var queue = TurnQueue<Job>(runningMax: 1)
        for number in 0..<10 {
            queue.append(Job(client: "alone", number: number), of: "alone")
            let turn = try next(of: &queue).turn
            queue.ended(turn, after: 1_000_000_000)
        }
        for number in 0..<4 { queue.append(Job(client: "other", number: number), of: "other") }
        queue.append(Job(client: "alone", number: 10), of: "alone")
        #expect(queue.takeNext()?.turn.client == "other")
        #expect(queue.takeNext()?.turn.client == "alone")
    }

    /// Each has had nothing when it comes, and there is always one that waits.
    @Test func clientsThatComeOneAfterAnotherPassNoneForEver() throws {
        for time in [1_500, 20_000, 5_000_000] {
            var queue = TurnQueue<Job>()
            queue.append(Job(client: "v", number: 0), of: "v")
            queue.append(Job(client: "v", number: 1), of: "v")
            let first = try next(of: &queue)
            #expect(first.job == Job(client: "v", number: 0))
            queue.ended(first.turn, after: time)
            queue.append(Job(client: "0", number: 0), of: "0")
            var (passed, client) = (0, "")
            while client != "v", passed < 10_000 {
                passed += 1
                queue.append(Job(client: "\(passed)", number: 0), of: "\(passed)")
                let next = try self.next(of: &queue)
                client = next.job.client ?? ""
                queue.ended(next.turn, after: time)
            }
            // Jobs longer than a millisecond count as one.
            #expect(passed * min(time, 1_000_000) <= 8 * (time + 2_000_000), "\(time)")
        }
    }

    @Test func jobsOfTheServiceAndOfClientsAlternate() {
        var queue = TurnQueue<Job>()
        for number in 0..<4 {
            queue.append(Job(client: "a", number: number), of: "a")
            queue.append(Job(client: nil, number: number), of: nil)
        }
        #expect(taken(&queue).map(\.client) == [nil, "a", nil, "a", nil, "a", nil, "a"])
    }

    @Test func oneOfAClientsJobsRunsAtATime() throws {
        var queue = TurnQueue<Job>(runningMax: 1)
        for number in 0..<3 { queue.append(Job(client: "a", number: number), of: "a") }
        let first = try next(of: &queue)
        #expect(first.job == Job(client: "a", number: 0))
        #expect(queue.takeNext() == nil)
        #expect(!queue.hasNext)
        // Others are not held up by it.
        queue.append(Job(client: "b", number: 0), of: "b")
        #expect(queue.hasNext)
        queue.append(Job(client: nil, number: 0), of: nil)
        let ofService = try next(of: &queue)
        #expect(ofService.turn.client == nil)
        let other = try next(of: &queue)
        #expect(other.turn.client == "b")
        #expect(queue.takeNext() == nil)
        #expect(queue.count == 2)
        queue.ended(other.turn)
        #expect(queue.takeNext() == nil)
        queue.ended(first.turn)
        queue.ended(ofService.turn)
        for number in 1...2 {
            let next = try self.next(of: &queue)
            #expect(next.job == Job(client: "a", number: number))
            queue.ended(next.turn)
        }
        #expect(queue.count == 0)
    }

    /// A slot that one client had is another's later; no client is charged for what others take.
    @Test func manyClientsComeAndGo() throws {
        var queue = TurnQueue<Job>(runningMax: 2)
        // One that stays, so that not all are ever idle together.
        queue.append(Job(client: "long", number: 0), of: "long")
        let long = try next(of: &queue)
        for number in 0..<20_000 {
            let client = "\(number)"
            queue.append(Job(client: client, number: 0), of: client)
            queue.append(Job(client: client, number: 1), of: client)
            #expect(queue.count(of: client) == 2)
            for job in 0..<2 {
                let next = try self.next(of: &queue)
                #expect(next.job == Job(client: client, number: job) && next.turn.client == client)
                queue.ended(next.turn, after: 1_000_000)
            }
            #expect(queue.count(of: client) == 0)
        }
        #expect(queue.count == 0 && queue.count(of: "long") == 1)
        queue.ended(long.turn, after: 1)
        #expect(queue.count(of: "long") == 0)
    }

    /// In any order of operations, at most so many jobs of a client run, and all do in the end.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func noClientHasMoreJobsRunThanItMay(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let runningMax = Int(seed % 3) + 1
        var queue = TurnQueue<Job>(runningMax: runningMax)
        var submitted: [String?: Int] = [:]
        var running: [TurnQueue<Job>.Turn] = []
        var taken: [String?: Int] = [:]
        func take() -> Bool {
            guard let (job, turn) = queue.takeNext() else { return false }
            let client = turn.client
            #expect(job.client == client && job.number == taken[client, default: 0], "seed \(seed)")
            taken[client, default: 0] += 1
            running.append(turn)
            if let client {
                #expect(running.count { $0.client == client } <= runningMax, "seed \(seed)")
            }
            return true
        }
        for _ in 0..<3_000 {
            switch random.next() % 3 {
            case 0:
                let client = random.next() % 5 == 0 ? nil : "\(random.next() % 4)"
                queue.append(Job(client: client, number: submitted[client, default: 0]), of: client)
                submitted[client, default: 0] += 1
            case 1: _ = take()
            default:
                guard !running.isEmpty else { continue }
                queue.ended(running.remove(at: Int(random.next() % UInt64(running.count))))
            }
        }
        while queue.count > 0 || !running.isEmpty {
            while take() {}
            guard !running.isEmpty else { break }
            queue.ended(running.removeFirst())
        }
        #expect(queue.count == 0 && taken == submitted, "seed \(seed)")
    }

    /// In any order of operations, each job is taken once, those of one client in order, and no client waits for two
    /// jobs of another one.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func noClientWaitsForTwoJobsOfAnother(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = TurnQueue<Job>()
        var submitted: [String?: Int] = [:]
        var done: [String?: Int] = [:]
        // For each client that waits: how many jobs of each other client were taken since its next job could be.
        var passed: [String: [String: Int]] = [:]
        for _ in 0..<4_000 {
            if random.next() % 100 < 52 {
                let client = random.next() % 5 == 0 ? nil : "\(random.next() % 6)"
                queue.append(Job(client: client, number: submitted[client, default: 0]), of: client)
                submitted[client, default: 0] += 1
            } else if let (job, turn) = queue.takeNext() {
                queue.ended(turn)
                #expect(job.number == done[job.client, default: 0], "seed \(seed)")
                done[job.client, default: 0] += 1
                guard let client = job.client else { continue }
                passed[client] = [:]
                for (other, count) in submitted {
                    guard let other, other != client, count > done[other, default: 0] else { continue }
                    passed[other, default: [:]][client, default: 0] += 1
                    #expect(passed[other]?[client] ?? 0 <= 1, "seed \(seed): \(other) waited for \(client)")
                }
            }
        }
        let left = submitted.values.reduce(0, +) - done.values.reduce(0, +)
        #expect(queue.count == left, "seed \(seed)")
        #expect(taken(&queue).count == left, "seed \(seed)")
    }
}
