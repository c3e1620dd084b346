import Testing

@testable import HatoAuth

@Suite struct HashingQueueTests {
    private func queue(_ countMax: Int, clientsMax: Int = 1_000) -> HashingQueue<String> {
        HashingQueue(countMax: countMax, clientsMax: clientsMax)
    }

    /// Appends a job of the client that its first letter names.
    private func append(_ job: String, to queue: inout HashingQueue<String>) -> String? {
        queue.append(job, of: String(job.prefix(1)))
    }

    private func drained(_ queue: HashingQueue<String>) -> [String] {
        var (queue, jobs) = (queue, [String]())
        while let job = queue.takeNext() { jobs.append(job) }
        return jobs
    }

    @Test func clientsTakeTurnsAndKeepTheirOwnOrder() {
        var queue = queue(10)
        for job in ["a1", "a2", "a3", "b1", "c1", "b2"] { #expect(append(job, to: &queue) == nil) }
        #expect(drained(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"])
    }

    @Test func clientWithoutATurnIsNext() {
        var queue = queue(10)
        for job in ["a1", "a2", "a3", "a4"] { _ = append(job, to: &queue) }
        #expect(queue.takeNext() == "a1")
        #expect(queue.takeNext() == "a2")
        _ = append("b1", to: &queue)
        #expect(drained(queue) == ["b1", "a3", "a4"])
    }

    @Test func clientWhoseLastTurnIsLongestAgoIsNext() {
        var queue = queue(10)
        for client in ["a", "b", "c"] { queue.tookTurn(client) }
        for job in ["c1", "b1", "a1", "d1"] { _ = append(job, to: &queue) }
        #expect(drained(queue) == ["d1", "a1", "b1", "c1"])
    }

    @Test func fullQueueLosesTheJobThatWouldRunLast() {
        var queue = queue(3)
        for job in ["a1", "a2", "a3"] { _ = append(job, to: &queue) }
        #expect(append("a4", to: &queue) == "a4")
        #expect(append("b1", to: &queue) == "a3")
        // Each has its share: the one that comes now is refused.
        #expect(append("b2", to: &queue) == "b2")
        #expect(append("c1", to: &queue) == "a2")
        // None of the four had a turn.
        #expect(append("d1", to: &queue) == "d1")
        queue.tookTurn("b")
        #expect(append("d1", to: &queue) == "b1")
        #expect(queue.count == 3)
        #expect(drained(queue) == ["a1", "c1", "d1"])
    }

    @Test(arguments: [64, 1_000])
    func clientThatAsksAgainHasATurnAfterOneOfEachOther(clientsMax: Int) {
        var queue = queue(64, clientsMax: clientsMax)
        let others = (0..<100).map { "a\($0)" }
        var waiting: Set<String> = []
        func ask(_ client: String) {
            waiting.insert(client)
            if let refused = queue.append(client, of: client) { waiting.remove(refused) }
        }
        // The others ask again at once; this one asks 20 turns after it was refused, and after each turn it had.
        var turnsSince: [Int] = []
        var waited = 0
        for turn in 0..<2_000 {
            for other in others where !waiting.contains(other) { ask(other) }
            if turn % 20 == 0, !waiting.contains("b") { ask("b") }
            guard let taken = queue.takeNext() else { break }
            waiting.remove(taken)
            waited += 1
            guard taken == "b" else { continue }
            turnsSince.append(waited)
            waited = 0
        }
        #expect(turnsSince.count >= 14)
        #expect(turnsSince.allSatisfy { $0 <= 140 }, "\(turnsSince)")
    }

    @Test func clientsWithARightPasswordHaveEverySecondTurnAndHalfOfThePlaces() {
        var queue = queue(4)
        queue.tookTurn("r")
        queue.checked("r", isRight: true)
        queue.tookTurn("w")
        queue.checked("w", isRight: true)
        queue.checked("w", isRight: false)
        for job in ["a1", "b1", "w1", "c1"] { #expect(append(job, to: &queue) == nil) }
        // A client that never had a turn does not replace one with a right password, nor that one more than half.
        #expect(append("r1", to: &queue) == "w1")
        #expect(append("r2", to: &queue) == "c1")
        #expect(append("r3", to: &queue) == "r3")
        #expect(append("d1", to: &queue) == "d1")
        #expect(drained(queue) == ["r1", "a1", "r2", "b1"])
    }

    @Test func unwantedJobsLeaveTheirPlacesToOthers() {
        var queue = queue(4)
        for job in ["a1", "a2", "a3", "b1"] { _ = append(job, to: &queue) }
        #expect(queue.isFull)
        #expect(queue.removeAll { $0 == "a1" } == ["a1"])
        #expect(!queue.isFull)
        _ = append("b2", to: &queue)
        #expect(drained(queue) == ["a2", "b1", "a3", "b2"])
    }

    @Test func queueOfNoPlaceTakesNothing() {
        var queue = queue(0)
        #expect(append("a1", to: &queue) == "a1")
        #expect(queue.takeNext() == nil)
    }
}
