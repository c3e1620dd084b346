import HatoTesting
import Testing

@testable import HatoRPC

/// Which requests start while client or process hold too much (`StartQueue`).
struct StartTests {
    @Test func oneRequestIsCalledForAnExemptionAndOthersAsMemoryIsFree() throws {
        let budget = ProcessBudget(limit: 1_000, clientMax: 1_000, readBytes: 10)
        let accounts = (0..<100).map { budget.clients.enter("user\($0)") }
        let filler = budget.clients.enter("filler")
        budget.add(1_000, to: filler)
        budget.add(1, to: filler)
        let exemption = try #require(budget.takeExemption(.read, accounts[0]))
        let called = Shared<[Int]>([])
        for (index, account) in accounts.enumerated() {
            budget.whenOneMayStart(.read, for: UInt64(index), of: account) { called.change { $0.append(index) } }
        }
        #expect(called.current == [])
        budget.returnExemption(exemption)
        #expect(called.current == [0], "one, not all")
        // It does not take the exemption: the next one is called.
        budget.startLooked(of: accounts[0])
        #expect(called.current == [0, 1])
        let taken = try #require(budget.takeExemption(.read, accounts[1]))
        budget.add(-31, to: filler)
        #expect(called.current == [0, 1, 2, 3, 4, 5], "as many as there is memory for")
        budget.forgetStart(of: 5, accounts[5])
        budget.returnExemption(taken)
    }

    @Test func linesLeaveMemoryForReads() throws {
        let budget = ProcessBudget(limit: 1_000, clientMax: 1_000, readBytes: 10)
        let (writer, reader) = (budget.clients.enter("writer"), budget.clients.enter("reader"))
        budget.add(800, to: writer)
        #expect(!budget.mayStart(.line, writer) && budget.mayStart(.read, reader))
        #expect(budget.mayStart(.mediumLine, reader), "long lines leave memory for shorter ones, too")
        let exemption = try #require(budget.takeExemption(.line, writer))
        #expect(budget.takeExemption(.line, reader) == nil)
        let called = Shared<[UInt64]>([])
        budget.whenOneMayStart(.line, for: 1, of: reader) { called.change { $0.append(1) } }
        budget.add(201, to: writer)
        #expect(!budget.mayStart(.mediumLine, reader))
        let read = try #require(budget.takeExemption(.read, reader), "reads have one of their own")
        budget.whenOneMayStart(.read, for: 2, of: reader) { called.change { $0.append(2) } }
        #expect(called.current == [])
        budget.add(-101, to: writer)
        #expect(called.current == [2], "the line waits for more")
        budget.add(-150, to: writer)
        #expect(called.current == [2, 1])
        budget.returnExemption(exemption)
        budget.returnExemption(read)
    }

    @Test func requestsOfAClientBeyondItsShareGoOnOneByOne() throws {
        let budget = ProcessBudget(limit: 10_000, clientMax: 100, readBytes: 10)
        let (mallory, anna) = (budget.clients.enter("mallory"), budget.clients.enter("anna"))
        budget.add(200, to: mallory)
        let exemption = try #require(budget.takeExemption(.read, mallory))
        let called = Shared<[UInt64]>([])
        for id in 1...3 as ClosedRange<UInt64> {
            budget.whenOneMayStart(.read, for: id, of: mallory) { called.change { $0.append(id) } }
        }
        budget.whenOneMayStart(.read, for: 9, of: anna) { called.change { $0.append(9) } }
        #expect(called.current == [9])
        budget.returnExemption(exemption)
        #expect(called.current == [9, 1])
        // It has closed meanwhile.
        budget.forgetStart(of: 1, mallory)
        #expect(called.current == [9, 1, 2])
        _ = budget.takeExemption(.read, mallory)
        budget.startLooked(of: mallory)
        #expect(called.current == [9, 1, 2])
        budget.add(-150, to: mallory)
        #expect(called.current == [9, 1, 2, 3], "within its share again")
    }

    @Test func fewClientsThatTakeNoResultsLeaveMemoryToOthers() throws {
        let budget = ProcessBudget(limit: 1_000, clientMax: 250, readBytes: 10)
        let hostile = (1...8).map { budget.clients.enter("mallory \($0)") }
        for account in (0..<100).flatMap({ _ in hostile }) where budget.mayStart(.read, account) {
            budget.add(10, to: account)
        }
        #expect(hostile.allSatisfy { $0.usedBytes > 100 }, "a ninth each")
        let anna = budget.clients.enter("anna")
        for _ in 0..<5 {
            #expect(budget.mayStart(.read, anna))
            budget.add(10, to: anna)
        }
    }

    @Test func clientBeyondItsShareGoesOnWhenOthersGiveBackMemory() throws {
        let budget = ProcessBudget(limit: 1_000, clientMax: 500, readBytes: 10)
        let (anna, bea) = (budget.clients.enter("anna"), budget.clients.enter("bea"))
        budget.add(300, to: anna)
        budget.add(500, to: bea)
        #expect(!budget.mayStart(.read, anna))
        _ = try #require(budget.takeExemption(.read, anna))
        let called = Shared<[UInt64]>([])
        budget.whenOneMayStart(.read, for: 1, of: anna) { called.change { $0.append(1) } }
        budget.add(-50, to: bea)
        #expect(called.current == [])
        budget.add(-100, to: bea)
        #expect(called.current == [1])
    }

    @Test func requestThatMayStartIsFoundWithoutALookAtThoseThatMayNot() {
        var queue = StartQueue()
        for id in 0..<10_000 as Range<UInt64> { queue.waits(id, of: "user\(id)") }
        var looks = 0
        func next(mayStart: Bool) -> UInt64? {
            queue.next(
                .init(
                    mayStart: mayStart,
                    isBeyondShare: { _ in
                        looks += 1
                        return false
                    }, isExemptionFree: { _ in false }))
        }
        #expect(next(mayStart: false) == nil)
        #expect(next(mayStart: true) == 0)
        #expect(next(mayStart: true) == 1)
        #expect(looks <= 3)
        #expect(queue.waitingCount == 9_998)
    }

    @Test func clientsTakeTurns() {
        var queue = StartQueue()
        for id in 0..<3 as Range<UInt64> { queue.waits(id, of: "anna") }
        for id in 3..<6 as Range<UInt64> { queue.waits(id, of: "bea") }
        var called: [UInt64] = []
        let memory = StartQueue.Memory(mayStart: true, isBeyondShare: { _ in false }, isExemptionFree: { _ in false })
        while let connection = queue.next(memory) { called.append(connection) }
        #expect(called == [0, 3, 1, 4, 2, 5])
    }
}
