import NIOCore
import Testing

@testable import HatoRPC

@Suite struct PeerSilenceTests {
    /// Looks every five seconds, as the default limits of 20 + 4 × 10 s make it.
    private func vanished(_ looks: [(isAwaited: Bool, quietSeconds: Int64)]) -> Int? {
        var silence = PeerSilence()
        let start = NIODeadline.now()
        for (index, sample) in looks.enumerated() {
            let sample = PeerSilence.Sample(isAwaited: sample.isAwaited, quiet: .seconds(sample.quietSeconds))
            if silence.looked(sample, at: start + .seconds(Int64(index) * 5), RPCLimits()) { return index }
        }
        return nil
    }

    @Test func defaultLimitsFindAVanishedPeerWithinAMinute() {
        #expect(PeerSilence.limit(RPCLimits()) == .seconds(60))
        #expect(PeerSilence.interval(RPCLimits()) == .seconds(5))
    }

    @Test func peerThatOwesAnAcknowledgementAllTheTimeHasVanished() {
        // The first sample that counts comes at most 10 s after the last sign, the last one 50 s later.
        #expect(vanished((0..<30).map { (true, 5 + 5 * $0) }) == 10)
    }

    @Test func peerThatAcknowledgesIsThere() {
        #expect(vanished((0..<100).map { _ in (true, 0) }) == nil)
        // Long silence, but nothing is owed: keep-alive's business.
        #expect(vanished((0..<100).map { (false, 5 * $0) }) == nil)
        // A shut window is asked ever more rarely; in between nothing is owed.
        #expect(vanished((0..<100).map { ($0 % 5 == 0, 115) }) == nil)
    }
}
