import NIOCore
import Testing

@testable import HatoRPC

/// Which lines and which peers are too slow for those that wait for their memory.
struct StallTests {
    // MARK: Lines

    private static let kilobyte = 1_024

    /// The looks, one a second, at which a line counts as stalled.
    private func stalled(
        _ counts: [Int], reserved: Int = 128 << 10, isExempt: Bool = false, heldUp: Set<Int> = []
    ) -> [Int] {
        var stall = LineStall(count: 0)
        let limits = RPCLimits()
        return counts.indices.filter { index in
            stall.sampled(
                .init(
                    count: counts[index] * Self.kilobyte, reserved: reserved, isExempt: isExempt,
                    mightGrow: !heldUp.contains(index)), limits)
        }
    }

    @Test func lineHasToKeepItsRateOverFiveSeconds() {
        // 32 KiB a second.
        #expect(stalled([32, 64, 96, 128, 160, 192, 224]) == [])
        #expect(stalled([160, 160, 160, 160, 160, 320, 320, 320]) == [])
        #expect(stalled([100, 100, 100, 100, 159, 260, 260]) == [4])
    }

    @Test func lineThatHoldsMuchHasToComeFaster() {
        // 4 MiB in ten seconds.
        #expect(stalled([410, 820, 1_230, 1_640, 2_050], reserved: 4 << 20) == [])
        #expect(stalled([400, 800, 1_200, 1_600, 2_000], reserved: 4 << 20) == [4])
    }

    @Test func lineThatAllOthersWaitForIsLookedAtEachSecond() {
        // The first look begins the first whole second.
        #expect(stalled([0, 0], isExempt: true) == [1])
        #expect(stalled([0, 31], isExempt: true) == [1])
        #expect(stalled([0, 32, 287], isExempt: true) == [])
        #expect(stalled([0, 32, 255], isExempt: true) == [2])
        #expect(stalled([0, 256, 512, 768, 1_024, 1_280, 1_536, 1_792], isExempt: true) == [])
        #expect(stalled([0, 300, 600, 900, 1_200, 1_200, 1_200, 1_200], isExempt: true) == [6, 7])
    }

    @Test func lineThatWasHeldUpBeginsAnew() {
        #expect(stalled([0, 0, 0, 0, 0, 0, 0, 0, 0], heldUp: [3]) == [8])
        #expect(stalled([0, 0, 0, 0], isExempt: true, heldUp: [1]) == [2, 3])
    }

    // MARK: Peers

    private static func limits() -> RPCLimits {
        var limits = RPCLimits()
        limits.stalledPeerSecondsMax = 5
        limits.awaitedReadSecondsMax = 100
        limits.stalledPeerBytesPerSecond = 100
        limits.awaitedEventSecondsMax = 15
        return limits
    }

    @Test func peerThatTakesTooLittleHasStalled() {
        let limits = Self.limits()
        var stall = PeerStall()
        func looked(taken: Int) -> Bool {
            stall.sampled(taken: taken, limits)
            return stall.isBehind(by: 5, limits)
        }
        var looks = [looked(taken: 0)]
        stall.filled(taken: 1_000)
        stall.filled(taken: 9_000)
        looks += [looked(taken: 1_500), looked(taken: 1_500)]
        stall.drained()
        looks.append(looked(taken: 1_500))
        #expect(looks == [false, false, true, false], "nothing waited, slow, stalled, nothing waited")
    }

    @Test func peerIsBehindByWhatItMissedUntilItCatchesUp() {
        var limits = Self.limits()
        limits.awaitedReadSecondsMax = 5
        var stall = PeerStall()
        stall.filled(taken: 0)
        // 100 bytes each second.
        let taken = [100, 150, 200, 200, 200, 200, 200, 200, 800, 900]
        var behind: [Int] = []
        for bytes in taken {
            stall.sampled(taken: bytes, limits)
            behind.append((1...6).last { stall.isBehind(by: $0, limits) } ?? 0)
        }
        #expect(behind == [0, 0, 1, 2, 3, 4, 5, 5, 0, 0])
    }

    /// The looks, one a second, at which a peer that has results up to an end keeps them; it must take 100 bytes a
    /// second, and all in 10 seconds.
    private func keepingResults(_ looks: [(taken: Int, end: Int, isAwaited: Bool)]) -> [Int] {
        var results = PeerStall.AwaitedResults()
        var limits = Self.limits()
        limits.awaitedReadSecondsMax = 10
        return looks.indices.filter { index in
            let look = looks[index]
            let held = PeerStall.HeldMemory(sent: look.taken, end: look.end, isAwaited: look.isAwaited)
            return results.areOverdue(at: held, taken: look.taken, limits)
        }
    }

    @Test func peerHasToTakeResultsFromTheThirdSecondOn() {
        #expect(keepingResults(Array(repeating: (0, 900, true), count: 5)) == [3, 4])
        // It begins slowly, stops for a second, and keeps its rate all the same.
        let slow = [0, 10, 60, 210, 210, 310, 410, 520].map { (taken: $0, end: 2_000, isAwaited: true) }
        #expect(keepingResults(slow) == [])
        let long = (0...12).map { (taken: $0 * 100, end: 2_000, isAwaited: true) }
        #expect(keepingResults(long) == [10, 11, 12])
    }

    @Test func onlyTheTimeInWhichOthersWaitForResultsCounts() {
        let alone = Array(repeating: (taken: 0, end: 900, isAwaited: false), count: 20)
        let awaited = Array(repeating: (taken: 0, end: 900, isAwaited: true), count: 3)
        #expect(keepingResults(alone + awaited + alone + awaited) == [])
        #expect(keepingResults(alone + awaited + awaited) == [23, 24, 25])
    }

    /// The looks, one in five seconds, at which a peer that holds events up to an end has kept one for 15 seconds.
    private func keeping(_ looks: [(sent: Int, end: Int, isAwaited: Bool)?]) -> [Int] {
        var keeping = PeerStall.HoldingTime()
        let limits = Self.limits()
        return looks.indices.filter { index in
            let held = looks[index].map { PeerStall.HeldMemory(sent: $0.sent, end: $0.end, isAwaited: $0.isAwaited) }
            return keeping.sampled(at: held, limits) >= 15
        }
    }

    @Test func peerHasToTakeTheEventsItHeldWhenOthersBeganToWait() {
        // However many bytes it takes: the event at its end is in memory until the last one.
        #expect(keeping([(0, 900, true), (300, 900, true), (600, 900, true), (899, 900, true)]) == [3])
        #expect(keeping([(0, 900, true), (300, 900, true), (900, 1_900, true), (1_000, 1_900, true)]) == [])
        // What came later begins a time of its own.
        #expect(keeping([(0, 900, true), (600, 1_500, true), (900, 1_500, true), (1_000, 1_500, true)]) == [])
    }

    @Test func peerKeepsEventsWhileNoOtherWaits() {
        #expect(keeping(Array(repeating: (0, 900, false), count: 20)) == [])
        #expect(keeping([(0, 900, true), (0, 900, true), nil, (0, 900, true), (0, 900, true), (0, 900, true)]) == [])
        #expect(keeping([(0, 900, true), (0, 900, true), (0, 900, false), (0, 900, true), (0, 900, true)]) == [])
    }
}
