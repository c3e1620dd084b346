import Testing

@testable import HatoRuntime

struct OpenFilesTests {
    @Test(arguments: [
        (1_048_576, 4_608, 1, 4_608, 1_043_968), (256, 4_608, 1, 128, 128), (1_024, 100, 3, 100, 308),
        (1, 4_608, 3, 0, 1), (0, 0, 1, 0, 1), (Int.max, 4_608, 1, 4_608, Int.max - 4_608),
    ])
    func connectionsGetWhatTheReserveLeaves(
        limit: Int, wanted: Int, servers: Int, reserve: Int, connectionsMax: Int
    ) {
        let plan = OpenFilesPlan(limit: limit, reserve: wanted, servers: servers)
        #expect(plan.reserve == reserve)
        #expect(plan.connectionsMax == connectionsMax)
    }

    @Test func limitIsRaisedAsFarAsTheSystemAllows() {
        let first = OpenFilesLimit.raised()
        #expect(first.now >= first.before)
        #expect(OpenFilesLimit.raised() == OpenFilesLimit(before: first.now, now: first.now))
    }
}
