import Synchronization
import Testing

@testable import HatoPush

@Suite(.timeLimit(.minutes(10))) struct BodyTimeLimitTests {
    /// Waits until it is cancelled.
    private static func hang() async -> [UInt8] {
        let (never, end) = AsyncStream<Void>.makeStream()
        for await _ in never {}
        withExtendedLifetime(end) {}
        return [7]
    }

    @Test func whatIsReadInTimeIsReturned() async {
        let limit = BodyTimeLimit(.seconds(36_000))
        for byte in UInt8(0)..<100 { #expect(await limit.bytes { [byte] } == [byte]) }
    }

    @Test func whatTakesTooLongIsCancelledNotBeforeItsTime() async {
        let limit = BodyTimeLimit(.milliseconds(400))
        // The timer runs again after nothing was read.
        for _ in 0..<2 {
            let began = ContinuousClock.now
            #expect(await limit.bytes(Self.hang) == [7])
            #expect(ContinuousClock.now - began >= .milliseconds(350))
        }
    }

    @Test func oneThatHangsHoldsUpNoOtherOne() async {
        let limit = BodyTimeLimit(.seconds(36_000))
        let hanging = Task { await limit.bytes(Self.hang) }
        for byte in UInt8(0)..<10 { #expect(await limit.bytes { [byte] } == [byte]) }
        hanging.cancel()
        #expect(await hanging.value == [7])
    }

    @Test func aTaskThatIsCancelledBeforeItReadsWaitsForNoTimer() async {
        let limit = BodyTimeLimit(.seconds(36_000))
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            for await _ in begun {}
            return await limit.bytes(Self.hang)
        }
        task.cancel()
        begin.finish()
        #expect(await task.value == [7])
    }
}
