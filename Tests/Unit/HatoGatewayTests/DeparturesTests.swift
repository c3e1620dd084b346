import Testing

@testable import HatoGateway

/// When sessions end as the gateway stops.
@Suite struct DeparturesTests {
    private static let second: Int64 = 1_000_000_000

    private static func pause(_ count: Int, _ nanoseconds: Int64) -> Int64 {
        Departures.pause(count: count, within: nanoseconds)
    }

    @Test func allLeaveWithinTheirTime() {
        for count in [0, 1, 7, 1_000, 8_000, 1_000_000] {
            let pause = Self.pause(count, 5 * Self.second)
            #expect(pause > 0 && pause * Int64(max(0, count - 1)) < 5 * Self.second)
        }
        #expect(Self.pause(8_000, 5 * Self.second) == 625_000)
    }

    @Test func fewLeaveSoonAndWithoutTimeAllAtOnce() {
        #expect(Self.pause(3, 5 * Self.second) == 5_000_000)
        #expect(Self.pause(3, 0) == 0 && Self.pause(3, -1) == 0)
    }
}
