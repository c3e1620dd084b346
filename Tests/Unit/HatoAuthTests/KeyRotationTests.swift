import HatoModel
import Testing

@testable import HatoAuth

/// The rotation of signing keys without a command.
struct KeyRotationTests {
    private let day: Int64 = 86_400

    private func kid(_ bench: AuthBench) -> String { bench.service.ring.current.kid }

    @Test func theNextKeyFollowsAfterNinetyDays() async throws {
        let bench = try await AuthBench.open()
        let (first, next) = (kid(bench), bench.service.ring.next.kid)
        bench.pass(seconds: 90 * day - 1)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == first)
        bench.pass(seconds: 1)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == next && bench.service.publishedKeys.map(\.kid).contains(first))
        await bench.service.keepUpOnce()
        #expect(kid(bench) == next)
        bench.pass(seconds: 90 * day - 1)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == next)
        bench.pass(seconds: 1)
        await bench.service.keepUpOnce()
        #expect(kid(bench) != next)
    }

    @Test func theTimeSurvivesARestart() async throws {
        let bench = try await AuthBench.open()
        bench.pass(seconds: 50 * day)
        _ = try await bench.service.keys.rotateKeys()
        let second = kid(bench)
        let restarted = try await AuthBench.open(since: bench)
        bench.pass(seconds: 89 * day)
        await restarted.service.keepUpOnce()
        #expect(kid(restarted) == second)
        bench.pass(seconds: day)
        await restarted.service.keepUpOnce()
        #expect(kid(restarted) != second)
    }

    @Test func zeroDaysRotateNothing() async throws {
        let bench = try await AuthBench.open { $0.keyRotationDays = 0 }
        let first = kid(bench)
        bench.pass(seconds: 1_000 * day)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == first)
    }

    @Test func aKeyThatWasJustPublishedDoesNotSignYet() async throws {
        let bench = try await AuthBench.open()
        let first = kid(bench)
        bench.pass(seconds: 91 * day)
        // The services have not fetched the newcomer.
        _ = try await bench.service.keys.revokeKey(bench.service.ring.next.kid)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == first)
        bench.pass(seconds: 3_600)
        await bench.service.keepUpOnce()
        #expect(kid(bench) != first)
    }

    @Test func aClockThatWasWrongStopsNoRotation() async throws {
        let bench = try await AuthBench.open()
        bench.pass(seconds: 10_000 * day)
        await bench.service.keepUpOnce()
        bench.pass(seconds: -9_000 * day)
        let current = kid(bench)
        await bench.service.keepUpOnce()
        let next = kid(bench)
        #expect(next != current)
        await bench.service.keepUpOnce()
        #expect(kid(bench) == next)
    }
}
