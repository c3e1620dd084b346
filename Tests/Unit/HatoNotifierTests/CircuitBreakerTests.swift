import HatoPush
import Testing

@testable import HatoNotifier

@Suite struct CircuitBreakerTests {
    private let silent = DeliveryOutcome.failed(DeliveryResponse(error: "no response"), retryAfter: nil)
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
    private let refused = DeliveryOutcome.providerRefused(
        DeliveryResponse(status: 403, error: "InvalidProviderToken"), retryAfter: nil)

    @Test func aProviderIsNotCalledAfterTwentyFailuresInARow() {
        var breaker = CircuitBreaker()
        for _ in 0..<19 { breaker.attemptEnded(silent, CircuitBreaker.Times(began: 0, ended: 0), random: 0.5) }
        breaker.attemptEnded(delivered, CircuitBreaker.Times(began: 0, ended: 0), random: 0.5)
        for _ in 0..<19 { breaker.attemptEnded(silent, CircuitBreaker.Times(began: 0, ended: 0), random: 0.5) }
        #expect(breaker.room(beside: 3, max: 10, at: 0) == 7)
        breaker.attemptEnded(silent, CircuitBreaker.Times(began: 0, ended: 0), random: 0.5)
        #expect(breaker.room(beside: 0, max: 10, at: 0) == 0 && breaker.open?.problem == "no response")
    }

    @Test func afterThePauseOneAttemptDecides() throws {
        var breaker = CircuitBreaker()
        breaker.attemptEnded(refused, CircuitBreaker.Times(began: 1_000, ended: 1_000), random: 0)
        let open = try #require(breaker.open)
        #expect(open.since == 1_000 && open.until == 1_000 + 7_500)
        #expect(breaker.room(beside: 0, max: 10, at: open.until - 1) == 0)
        #expect(breaker.room(beside: 0, max: 10, at: open.until) == 1)
        #expect(breaker.room(beside: 1, max: 10, at: open.until) == 0)
        breaker.attemptEnded(refused, CircuitBreaker.Times(began: open.until, ended: open.until), random: 0)
        let again = try #require(breaker.open)
        #expect(again.since == 1_000 && again.until == open.until + 15_000)
        breaker.attemptEnded(delivered, CircuitBreaker.Times(began: again.until, ended: again.until), random: 0)
        #expect(breaker.open == nil && breaker.room(beside: 0, max: 10, at: again.until) == 10)
    }

    @Test func attemptsThatHadBegunMakeNoLongerPause() throws {
        var breaker = CircuitBreaker()
        for _ in 0..<200 { breaker.attemptEnded(silent, CircuitBreaker.Times(began: 10, ended: 10), random: 0) }
        let times = CircuitBreaker.Times(began: 9, ended: 8_000)
        for outcome in [silent, refused] { breaker.attemptEnded(outcome, times, random: 0) }
        #expect(try #require(breaker.open).until == 7_510)
    }

    @Test func pausesGrowToAQuarterOfAnHour() throws {
        var (breaker, now) = (CircuitBreaker(), Int64(0))
        for _ in 0..<30 {
            breaker.attemptEnded(refused, CircuitBreaker.Times(began: now, ended: now), random: 0.999)
            now = try #require(breaker.open).until
        }
        let former = now
        breaker.attemptEnded(refused, CircuitBreaker.Times(began: now, ended: now), random: 0.999)
        #expect((850_000...900_000).contains(try #require(breaker.open).until - former))
    }

    @Test func aDeviceThatIsTooBusyIsNoFailureOfTheProvider() {
        var breaker = CircuitBreaker()
        let busy = DeliveryOutcome.failed(DeliveryResponse(status: 429), retryAfter: .seconds(60))
        for _ in 0..<100 { breaker.attemptEnded(busy, CircuitBreaker.Times(began: 0, ended: 0), random: 0) }
        #expect(breaker.open == nil)
    }
}
