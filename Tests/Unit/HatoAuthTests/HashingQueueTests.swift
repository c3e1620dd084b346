import Testing

@testable import HatoAuth

@Suite struct HashingQueueTests {
    private func drained(_ queue: HashingQueue<String>) -> [String] {
        var (queue, jobs) = (queue, [String]())
        while let job = queue.takeNext() { jobs.append(job) }
        return jobs
    }

    @Test func clientsTakeTurnsAndKeepTheirOwnOrder() {
        var queue = HashingQueue<String>(countMax: 10)
        for job in ["a1", "a2", "a3", "b1", "c1", "b2"] {
            #expect(queue.append(job, of: String(job.prefix(1))) == nil)
        }
        #expect(drained(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"])
    }

    @Test func clientThatComesLaterWaitsForOneJobOfEachOther() {
        var queue = HashingQueue<String>(countMax: 10)
        for job in ["a1", "a2", "a3", "a4"] { _ = queue.append(job, of: "a") }
        #expect(queue.takeNext() == "a1")
        #expect(queue.takeNext() == "a2")
        _ = queue.append("b1", of: "b")
        #expect(drained(queue) == ["a3", "b1", "a4"])
    }

    @Test func fullQueueTakesTheJobOfASmallerClientInPlaceOfTheLargestClientsNewest() {
        var queue = HashingQueue<String>(countMax: 3)
        for job in ["a1", "a2", "a3"] { _ = queue.append(job, of: "a") }
        #expect(queue.append("a4", of: "a") == "a4")
        #expect(queue.append("b1", of: "b") == "a3")
        // Each has its share: the one that comes now is refused.
        #expect(queue.append("b2", of: "b") == "b2")
        #expect(queue.append("c1", of: "c") == "a2")
        #expect(queue.append("d1", of: "d") == "d1")
        #expect(queue.count == 3)
        #expect(drained(queue) == ["a1", "b1", "c1"])
    }

    @Test func queueOfNoPlaceTakesNothing() {
        var queue = HashingQueue<String>(countMax: 0)
        #expect(queue.append("a1", of: "a") == "a1")
        #expect(queue.takeNext() == nil)
    }
}
