import HatoTesting
import Testing

@testable import HatoStorage

@Suite("Turns at the writer")
struct PlanningOrderTests {
    private final class NamedWrite: StoreWrite {
        let client: String?
        let number: Int

        init(_ client: String?, _ number: Int) {
            self.client = client
            self.number = number
        }

        func write(in _: any StoreTransaction) {}
        func ended(_: Result<UInt64, any Error>) {}
    }

    private static func writes(of client: String?, _ numbers: Range<Int>) -> [Submission] {
        numbers.map { .write(NamedWrite(client, $0)) }
    }

    private static func write(_ submission: Submission) throws -> NamedWrite {
        guard case .write(let write) = submission else { throw UnexpectedSubmission() }
        return try #require(write as? NamedWrite)
    }

    private struct UnexpectedSubmission: Error {}

    /// Plans everything.
    ///
    /// - Parameter arrivals: what has arrived when the planning thread looks.
    private static func planned(
        _ order: inout PlanningOrder, arrivals: [[Submission]] = [], after time: (NamedWrite) -> Int = { _ in 0 }
    ) throws -> [NamedWrite] {
        var (planned, arrivals) = ([NamedWrite](), arrivals[...])
        order.arrange()
        while let submission = order.first {
            let write = try write(submission)
            planned.append(write)
            order.removeFirst(after: time(write))
            if order.isDue {
                var arriving = arrivals.popFirst() ?? []
                order.add(&arriving)
                #expect(arriving.isEmpty)
            }
        }
        order.removePlanned()
        return planned
    }

    @Test func aClientWaitsForOneWriteOfEachOtherClient() throws {
        var order = PlanningOrder()
        order.arrived = Self.writes(of: "a", 0..<1_000) + Self.writes(of: "b", 0..<1_000) + Self.writes(of: "c", 0..<2)
        let planned = try Self.planned(&order)
        #expect(planned.map(\.client).prefix(6) == ["a", "b", "c", "a", "b", "c"])
        for client in ["a", "b"] {
            #expect(planned.filter { $0.client == client }.map(\.number) == Array(0..<1_000))
        }
        #expect(order.first == nil && order.rest.isEmpty)
    }

    @Test func whatArrivesWhileOthersTakeTurnsGetsATurn() throws {
        var order = PlanningOrder()
        order.arrived = Self.writes(of: "a", 0..<1_000) + Self.writes(of: "b", 0..<1_000)
        let arrivals = [
            Self.writes(of: "c", 0..<1), [], Self.writes(of: "a", 1_000..<1_001) + Self.writes(of: "c", 1..<2),
        ]
        let planned = try Self.planned(&order, arrivals: arrivals)
        let places = planned.indices.filter { planned[$0].client == "c" }
        let interval = PlanningOrder.arrivalInterval
        #expect(places.count == 2 && places[0] <= interval + 3 && places[1] <= 3 * interval + 4)
        #expect(planned.filter { $0.client == "a" }.map(\.number) == Array(0...1_000))
    }

    /// The usual case costs nothing.
    @Test func fewWritesAndThoseOfOneClientArePlannedAsTheyCame() throws {
        var order = PlanningOrder()
        order.arrived = Self.writes(of: "a", 0..<12) + Self.writes(of: "b", 0..<3)
        #expect(try Self.planned(&order).map(\.client) == Array(repeating: "a", count: 12) + ["b", "b", "b"])
        for client in ["a", nil] {
            order.arrived = Self.writes(of: client, 0..<500)
            order.arrange()
            #expect(order.arrived.count == 500)
            #expect(try Self.planned(&order).map(\.number) == Array(0..<500))
        }
    }

    /// One client has sent many writes that take long; others come while they are planned.
    @Test func aClientWaitsForAboutOneWriteThatTakesLong() throws {
        for others in [1, 20] {
            var order = PlanningOrder()
            order.arrived = (0..<others).flatMap { Self.writes(of: "slow\($0)", 0..<100) }
            let arrivals =
                Array(repeating: [], count: 30) + [Self.writes(of: "quick", 0..<1)] + Array(repeating: [], count: 30)
                + [Self.writes(of: "quick", 1..<2)]
            let planned = try Self.planned(&order, arrivals: arrivals) {
                $0.client == "quick" ? 10_000 : PlanningOrder.arrivalTime
            }
            let places = planned.indices.filter { planned[$0].client == "quick" }
            #expect(places.count == 2 && places[0] <= 33 && places[1] <= 66, "\(others): \(places)")
            for number in 0..<others {
                #expect(planned.filter { $0.client == "slow\(number)" }.map(\.number) == Array(0..<100))
            }
        }
    }

    /// More always waits: an array that is emptied when all is planned would never be.
    @Test func whatIsPlannedIsNotKept() throws {
        for clients in [["a"], [nil], ["a", "b"]] {
            var order = PlanningOrder()
            var written: [WeakWrite] = []
            for round in 0..<1_000 {
                var arriving = clients.flatMap { Self.writes(of: $0, 2 * round..<2 * round + 2) }
                written += try arriving.map { WeakWrite(write: try Self.write($0)) }
                order.add(&arriving)
                // As many as came, but for some at the beginning.
                for _ in 0..<(round < 10 ? 1 : 2 * clients.count) where order.first != nil {
                    order.removeFirst(after: PlanningOrder.arrivalTime)
                }
                #expect(written.count { $0.write != nil } <= 2 * order.rest.count + 4)
                written.removeAll { $0.write == nil }
            }
            #expect(order.rest.count > 5)
        }
    }

    private struct WeakWrite {
        weak var write: NamedWrite?
    }

    @Test func nothingIsLostWhenPlanningEnds() {
        var order = PlanningOrder()
        order.arrived = Self.writes(of: "a", 0..<50) + Self.writes(of: nil, 0..<50)
        order.arrange()
        for _ in 0..<7 { order.removeFirst(after: 0) }
        #expect(order.rest.count == 93)
        order = PlanningOrder()
        order.arrived = Self.writes(of: "a", 0..<50)
        order.arrange()
        for _ in 0..<7 { order.removeFirst(after: 0) }
        #expect(order.rest.count == 43)
    }
}
