import Testing

@testable import HatoNotifier

@Suite struct BackoffTests {
    private let policy = BackoffPolicy()

    @Test func theRangeDoublesFromOneSecondToTenMinutes() {
        let almostOne = 1.0.nextDown
        let longest = (1...14).map { policy.delay(afterAttempt: $0, random: almostOne, floor: nil) }
        let expected: [Int64] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600].map { $0 * 1_000 }
        for (given, whole) in zip(longest, expected) { #expect(whole - given <= 1) }
        #expect((1...14).allSatisfy { policy.delay(afterAttempt: $0, random: 0, floor: nil) == 0 })
        #expect(policy.delay(afterAttempt: 3, random: 0.5, floor: nil) == 2_000)
    }

    @Test func whatTheReceiverAskedForIsTheLeast() {
        #expect(policy.delay(afterAttempt: 1, random: 0, floor: .seconds(90)) == 90_000)
        #expect(policy.delay(afterAttempt: 10, random: 0.5, floor: .seconds(90)) == 256_000)
    }

    @Test func noNumberOfAttemptsOverflows() {
        for attempt in [0, 1, 41, 63, 64, 1_000, .max] {
            #expect((0...600_000).contains(policy.delay(afterAttempt: attempt, random: 0.999, floor: nil)))
        }
    }
}
