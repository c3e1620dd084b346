import NIOCore
import Testing

@testable import HatoRPC

@Suite("Reads that a loop runs itself")
struct LoopReadsTests {
    private var reads = LoopReads()

    /// Milliseconds.
    private mutating func mayRun(at now: Int64, until end: Int64? = nil) -> Bool {
        let mayRun = reads.mayRun(at: .uptimeNanoseconds(0) + .milliseconds(now))
        if mayRun { reads.hasRun(at: .uptimeNanoseconds(0) + .milliseconds(end ?? now)) }
        return mayRun
    }

    @Test mutating func oneOfATurnRuns() {
        for turn in Int64(1)...3 {
            let first = mayRun(at: turn)
            #expect(first && reads.isFirst)
            reads.turnEnded()
        }
        let (first, second) = (mayRun(at: 4), mayRun(at: 4))
        #expect(first && !second && !reads.isFirst)
    }

    @Test mutating func noneRunsAfterATurnWithSeveral() {
        for _ in 0..<2 { _ = mayRun(at: 1) }
        reads.turnEnded()
        let next = mayRun(at: 2)
        reads.turnEnded()
        let afterNext = mayRun(at: 3)
        #expect(!next && afterNext)
    }

    @Test mutating func noneRunsForAWhileAfterALongOne() {
        _ = mayRun(at: 0, until: 10)
        reads.turnEnded()
        let soon = mayRun(at: 1_009)
        reads.turnEnded()
        let later = mayRun(at: 1_010, until: 1_000_000)
        reads.turnEnded()
        // Also after the longest one only for some seconds.
        let afterTheLongest = mayRun(at: 1_005_000)
        #expect(!soon && later && afterTheLongest)
    }
}
