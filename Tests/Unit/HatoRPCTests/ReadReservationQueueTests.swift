import HatoTesting
import NIOCore
import Testing

@testable import HatoRPC

/// Which large read goes on when.
struct ReadReservationQueueTests {
    /// A queue with what its reservations hold.
    private struct World {
        static let bytes = 16

        var queue: ReadReservationQueue
        var held: [String: Int] = [:]
        var open: [ReadReservationQueue.Request] = []
        var lastID: UInt64 = 0
        var now: UInt64 = 0

        init(limit: Int = 512, clientMax: Int = 128, runningMax: Int = 1, beyondMax: Int = 1) {
            queue = ReadReservationQueue(
                ReadSize(bytes: Self.bytes, memoryMax: limit - limit / 4, beyondMax: beyondMax), clientMax: clientMax,
                runningMax: runningMax)
        }

        var used: Int { held.values.reduce(0, +) }

        @discardableResult
        mutating func outgrew(_ client: String, connection: UInt64 = 1) -> UInt64 {
            lastID += 1
            queue.outgrew(.init(id: lastID, connection: connection, client: client))
            return lastID
        }

        mutating func next() -> ReadReservationQueue.Request? {
            let held = held
            let memory = ReadReservationQueue.Memory(used: used, usedByClient: { held[$0] ?? 0 }, now: now)
            guard let request = queue.next(memory) else { return nil }
            self.held[request.client, default: 0] += Self.bytes
            open.append(request)
            return request
        }

        /// Whether nothing goes on.
        mutating func allWait() -> Bool { next() == nil }

        mutating func taken(_ request: ReadReservationQueue.Request) {
            queue.taken(request.id, at: now)
            open.removeAll { $0.id == request.id }
            held[request.client, default: 0] -= Self.bytes
        }
    }

    @Test func clientsTakeTurns() throws {
        var world = World()
        for _ in 0..<3 { world.outgrew("anna") }
        for _ in 0..<3 { world.outgrew("bea") }
        var order: [String] = []
        while let request = world.next() {
            order.append(request.client)
            world.taken(request)
        }
        #expect(order == ["anna", "bea", "anna", "bea", "anna", "bea"])
    }

    @Test func noMoreRunThanMay() throws {
        var world = World(runningMax: 2)
        for _ in 0..<3 { world.outgrew("anna") }
        let (first, second) = (world.next(), world.next())
        let isThirdWaiting = world.allWait()
        #expect(first != nil && second != nil && isThirdWaiting)
        world.queue.readEnded(try #require(first).id)
        let third = world.next()
        #expect(third != nil)
        #expect(world.queue.openCount == 3)
    }

    @Test func clientThatDoesNotTakeItsResultsWaitsAlone() throws {
        var world = World(limit: 512, clientMax: 64)
        for _ in 0..<20 { world.outgrew("mallory") }
        while let request = world.next() { world.queue.readEnded(request.id) }
        #expect(world.held["mallory"] == 64)
        world.outgrew("anna")
        let next = world.next()
        #expect(next?.client == "anna")
    }

    @Test func quarterOfTheLimitStaysFreeUntilOneGoesBeyond() throws {
        var world = World(limit: 128)
        for number in 0..<20 { world.outgrew("user\(number)") }
        while world.used <= 96 - World.bytes, let request = world.next() { world.queue.readEnded(request.id) }
        #expect(world.used == 96)
        // One client without anything goes on; the next waits until that one is taken.
        let next = world.next()
        let beyond = try #require(next)
        world.queue.readEnded(beyond.id)
        let isNextWaiting = world.allWait()
        #expect(isNextWaiting)
        #expect(world.queue.isAwaited(99, of: "elsewhere", used: world.used, held: 0))
        world.taken(beyond)
        let after = world.next()
        #expect(after != nil)
    }

    @Test func peersAreAwaitedForMemoryAndNotForATurnToRun() throws {
        var world = World(limit: 128, runningMax: 1)
        world.outgrew("anna")
        let next = world.next()
        let running = try #require(next)
        world.outgrew("bert")
        world.outgrew("anna")
        let isNextWaiting = world.allWait()
        #expect(isNextWaiting, "one runs")
        #expect(!world.queue.isAwaited(99, of: "elsewhere", used: world.used, held: 0))
        #expect(!world.queue.isAwaited(99, of: "anna", used: world.used, held: World.bytes))
        #expect(!world.queue.isAwaited(99, of: "elsewhere", used: 128, held: 0), "one goes on beyond the limit")
        world.queue.readEnded(running.id)
    }

    @Test func clientsThatKeptTheirReservationsLeaveMemoryForOneThatDoesNot() throws {
        var world = World(limit: 128, runningMax: 100)
        for number in 0..<20 { world.outgrew("user\(number)") }
        while world.next() != nil {}
        #expect(world.open.count == 7, "six that fit, and one beyond the limit")
        while let request = world.open.first {
            world.now += 5_000
            world.taken(request)
            while world.next() != nil {}
        }
        for number in 0..<20 { world.outgrew("user\(number)") }
        while world.next() != nil {}
        #expect(world.open.count == 5)
        for _ in 0..<10 {
            world.outgrew("anna")
            let next = world.next()
            let request = try #require(next)
            #expect(request.client == "anna")
            world.now += 10
            world.taken(request)
            let isNextWaiting = world.allWait()
            #expect(isNextWaiting)
        }
        // Where nothing is open, they go on all the same.
        for request in world.open { world.taken(request) }
        let next = world.next()
        #expect(next != nil)
    }

    @Test func placesBeyondTheLimitAreForAsManyClientsAndTheLastForOneThatTakesItsResults() throws {
        var world = World(limit: 0, runningMax: 100, beyondMax: 4)
        // One that takes what it gets waits for no new clients.
        world.outgrew("bea")
        let ofBea = world.next()
        world.taken(try #require(ofBea))
        for number in 0..<4 { world.outgrew("user\(number)") }
        while world.next() != nil {}
        #expect(world.open.count == 3)
        world.outgrew("bea")
        let next = world.next()
        #expect(next?.client == "bea")
        world.taken(try #require(next))
        world.now += 5_000
        while let request = world.open.first {
            world.taken(request)
            while world.next() != nil {}
        }
        for number in 0..<4 { world.outgrew("user\(number)") }
        while world.next() != nil {}
        #expect(world.open.count == 2)
        for name in ["anna", "bea"] {
            world.outgrew(name)
            let next = world.next()
            #expect(next?.client == name)
        }
    }

    /// What outgrows its reservation, or closes its connection, is given back soon, too.
    @Test func onlyTakenResultsMakeAClientPrompt() throws {
        for outcome in [ReadReservationQueue.Outcome.taken, .outgrown, .dropped] {
            var world = World(limit: 0, runningMax: 100, beyondMax: 3)
            world.outgrew("anna")
            let first = world.next()
            let request = try #require(first)
            world.queue.taken(request.id, outcome, at: world.now)
            world.held = [:]
            for number in 0..<3 { world.outgrew("user\(number)") }
            while world.next() != nil {}
            world.outgrew("anna")
            #expect((world.next()?.client == "anna") == (outcome == .taken))
        }
    }

    @Test func sizesLeaveMemoryToEachOther() {
        var limits = RPCLimits()
        limits.processBytesInFlightMax = 64 << 20
        let mebibyte = 1 << 20
        #expect(
            ReadSize.all(limits) == [
                ReadSize(bytes: mebibyte, memoryMax: 32 * mebibyte, beyondMax: 4),
                ReadSize(bytes: 16 * mebibyte, memoryMax: 48 * mebibyte, beyondMax: 1),
            ])
        // What is hardly less than the largest response is not worth a beginning of its own.
        limits.responseBytesMax = mebibyte
        #expect(ReadSize.all(limits) == [ReadSize(bytes: mebibyte, memoryMax: 48 * mebibyte, beyondMax: 1)])
    }

    @Test func readsOfAClosedConnectionAreDropped() throws {
        var world = World()
        let dropped = [world.outgrew("anna", connection: 7), world.outgrew("anna", connection: 7)]
        world.outgrew("anna", connection: 8)
        let found = world.queue.closed(7, of: "anna")
        #expect(found == dropped)
        #expect(world.queue.waitingCount == 1)
        let next = world.next()
        #expect(next?.connection == 8)
        let (running, unknown) = (world.queue.closed(8, of: "anna"), world.queue.closed(9, of: "nobody"))
        #expect(running.isEmpty && unknown.isEmpty)
    }

    @Test func onlyWhatOthersWaitForIsAwaited() throws {
        var world = World(limit: 512, clientMax: 16)
        for _ in 0..<2 { world.outgrew("anna", connection: 1) }
        let first = world.next()
        world.queue.readEnded(try #require(first).id)
        let isSecondWaiting = world.allWait()
        #expect(isSecondWaiting)
        #expect(!world.queue.isAwaited(1, of: "anna", used: world.used, held: 16), "its own")
        #expect(world.queue.isAwaited(2, of: "anna", used: world.used, held: 16))
        #expect(!world.queue.isAwaited(3, of: "bea", used: world.used, held: 0))
        #expect(world.queue.isAwaited(3, of: "bea", used: 512, held: 0))
    }

    @Test func whatIsTakenLooksAtNoReadButTheNext() {
        var queue = ReadReservationQueue(
            ReadSize(bytes: 16, memoryMax: 96, beyondMax: 1), clientMax: 64, runningMax: 1_000)
        for id in 1...10_000 as ClosedRange<UInt64> {
            queue.outgrew(.init(id: id, connection: id, client: "user\(id % 5_000)"))
        }
        var looks = 0
        func next(used: Int) -> UInt64? {
            queue.next(
                .init(used: used) { _ in
                    looks += 1
                    return 16
                })?.id
        }
        // Up to the limit and one beyond; then all wait.
        var used = 0
        while let _ = next(used: used) { used += 16 }
        #expect(used == 112)
        looks = 0
        queue.taken(1)
        _ = next(used: used - 16)
        #expect(looks <= 5)
        #expect(queue.waitingCount >= 9_990)
    }

    @Test func everyReadGoesOnOrIsDroppedWhateverHappens() {
        var random = SeededRandom(seed: SeededRandom.seed())
        for _ in 0..<300 {
            let limit = Int.random(in: 16...600, using: &random)
            var world = World(
                limit: limit, clientMax: Int.random(in: 1...200, using: &random),
                runningMax: Int.random(in: 1...3, using: &random))
            var waiting: Set<UInt64> = []
            for _ in 0..<200 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let number = UInt64.random(in: 0..<8, using: &random)
                    waiting.insert(world.outgrew("client\(number % 4)", connection: number))
                case 2:
                    if let request = world.open.randomElement(using: &random) { world.queue.readEnded(request.id) }
                case 3:
                    if let request = world.open.randomElement(using: &random) { world.taken(request) }
                default:
                    let number = UInt64.random(in: 0..<8, using: &random)
                    for id in world.queue.closed(number, of: "client\(number % 4)") { waiting.remove(id) }
                }
                while let request = world.next() {
                    let known = waiting.remove(request.id)
                    #expect(known != nil)
                }
                #expect(world.queue.waitingCount == waiting.count)
                #expect(world.queue.openCount == world.open.count)
                #expect(world.used <= max(limit - limit / 4, 0) + World.bytes)
            }
            // When peers take what they get, nothing waits for ever.
            for _ in 0..<2_000 where !waiting.isEmpty {
                if let first = world.open.first { world.taken(first) }
                while let request = world.next() { waiting.remove(request.id) }
            }
            #expect(waiting.isEmpty)
        }
    }
}
