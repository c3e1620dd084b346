import HatoModel
import HatoTesting
import Synchronization
import Testing

@testable import HatoNotifier

/// What is read for the firings of a feed, and what is kept of it.
@Suite struct FeedReadingsTests {
    private struct Unreadable: Error {}

    /// Readings of one byte of a budget each.
    private final class Reader: Sendable {
        let budget = ByteBudget(9)
        private let counts = Mutex<(begun: Int, ended: Int)>((0, 0))
        private let fails: Bool

        init(fails: Bool = false) { self.fails = fails }

        var begun: Int { counts.withLock { $0.begun } }
        var ended: Int { counts.withLock { $0.ended } }

        func readings() -> FeedReadings {
            FeedReadings(ended: { self.counts.withLock { $0.ended += 1 } }) { _ in
                self.counts.withLock { $0.begun += 1 }
                if self.fails { throw Unreadable() }
                return FeedReadings.Found(
                    value: .node(nil), time: 0, reservations: [try await self.budget.reserve(1)])
            }
        }
    }

    private func need(_ name: String) throws -> FeedReadings.Need { .recipients(try TreePath("/\(name)")) }

    @Test func whatNoTriggerWaitsForHoldsNothingOfTheBudget() async throws {
        let reader = Reader()
        let (readings, need) = (reader.readings(), try need("a"))
        readings.begin([], ahead: [.init(need: need, time: 1)])
        try await eventually("it is read ahead") { reader.ended == 1 }
        try await eventually("nothing is held") { reader.budget.free == 9 }
        #expect(try readings.take().isEmpty)
        readings.begin([need])
        try await eventually("it is read") { reader.ended == 2 }
        #expect(reader.budget.free == 8)
        // It is there: nothing is read again.
        readings.begin([need])
        #expect(try readings.take().count == 1)
        readings.begin([need])
        try await eventually("it is read again") { reader.ended == 3 }
        readings.begin([])
        #expect(try readings.take().isEmpty && reader.budget.free == 9)
        await readings.stop()
        #expect(reader.begun == 3)
    }

    @Test func aReadingAheadThatFailsEndsNothing() async throws {
        let reader = Reader(fails: true)
        let (readings, need) = (reader.readings(), try need("a"))
        readings.begin([], ahead: [.init(need: need, time: 1)])
        try await eventually("it failed") { reader.ended == 1 }
        #expect(try readings.take().isEmpty)
        readings.begin([need])
        try await eventually("it failed again") { reader.ended == 2 }
        #expect(throws: Unreadable.self) { try readings.take() }
        await readings.stop()
    }

    @Test func nothingIsReadAheadTwiceForAFiring() async throws {
        let reader = Reader()
        let (readings, need) = (reader.readings(), try need("a"))
        for (time, ended) in [(5, 1), (6, 2)] as [(UInt64, Int)] {
            for _ in 0..<3 {
                readings.begin([], ahead: [.init(need: need, time: 4), .init(need: need, time: time)])
                try await eventually("it was read") { reader.ended == ended }
            }
        }
        await readings.stop()
        #expect(reader.begun == 2)
    }
}
