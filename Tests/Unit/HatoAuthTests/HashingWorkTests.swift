import HatoModel
import HatoStorage
import Logging
import Synchronization
import Testing

@testable import HatoAuth

/// The work of checking a password against hashes of other software.
struct HashingWorkTests {
    /// A thread whose time is the work of the hashes that it computes.
    private final class Work: Sendable {
        let done = Mutex(0)
        var value: Int { done.withLock { $0 } }

        func environment() -> AuthEnvironment {
            var environment = AuthEnvironment(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            environment.derive = { [self] password, salt, cost in
                done.withLock { $0 += cost.work }
                return [UInt8](repeating: 0, count: PasswordHash.hashBytes)
            }
            environment.threadTime = { [self] in .nanoseconds(value) }
            return environment
        }
    }

    private func hasher(_ work: Work) -> (PasswordHasher, ScryptCost) {
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 10, r: 8, p: 5)
        return (PasswordHasher(configuration, work.environment(), AuthMetrics()), configuration.scrypt)
    }

    @Test func wrongPasswordForAForeignHashTakesNoLessWorkThanTheDummy() async throws {
        let work = Work()
        let (hasher, cost) = hasher(work)
        let client = HashingClient.administrators
        for text in ForeignHashTests.texts {
            let before = work.value
            let isRight = try await hasher.isRight(Password("wrong"), PasswordHash(text), for: client)
            #expect(!isRight)
            let filled = work.value - before
            #expect(filled >= cost.work && filled <= cost.work * 41 / 40, "\(text): \(filled) of \(cost.work)")
        }
        let before = work.value
        #expect(try await !hasher.isRight(Password("wrong"), nil, for: client))
        #expect(work.value - before == cost.work)
    }

    @Test func wrongPasswordForACheaperHashOfThisServiceIsFilledUpToo() async throws {
        let work = Work()
        let (hasher, cost) = hasher(work)
        let cheap = PasswordHash(
            cost: ScryptCost(logN: 9, r: 8, p: 1), salt: [1], hash: [UInt8](repeating: 1, count: 32))
        for _ in 0..<2 {
            let before = work.value
            #expect(try await !hasher.isRight(Password("wrong"), cheap, for: .administrators))
            #expect(work.value - before >= cost.work)
        }
    }

    /// Also hashes of this service's own scheme, which an import brings or an earlier setting made.
    @Test func hashesThatNeedMoreMemoryAreCheckedOneAtATime() async throws {
        let together = Mutex((now: 0, most: 0))
        var environment = AuthEnvironment(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let large = ScryptCost(logN: 17, r: 8, p: 1)
        environment.derive = { _, _, cost in
            guard cost == large else { return [UInt8](repeating: 0, count: PasswordHash.hashBytes) }
            together.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            let end = ContinuousClock.now + .milliseconds(100)
            // Until another has begun.
            while together.withLock({ $0.most }) < 2, ContinuousClock.now < end {}
            together.withLock { $0.now -= 1 }
            return [UInt8](repeating: 0, count: PasswordHash.hashBytes)
        }
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 10, r: 8, p: 5)
        configuration.hashingThreads = 4
        let hasher = PasswordHasher(configuration, environment, AuthMetrics())
        let stored = PasswordHash(cost: large, salt: [1], hash: [UInt8](repeating: 1, count: PasswordHash.hashBytes))
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<4 {
                group.addTask {
                    try await hasher.isRight(Password("wrong"), stored, for: HashingClient(name: "\(number)"))
                }
            }
            for try await isRight in group { #expect(!isRight) }
        }
        #expect(together.withLock { $0.most } == 1)
    }

    @Test func rightPasswordIsNotFilledUp() async throws {
        let work = Work()
        let (hasher, _) = hasher(work)
        let text = try #require(ForeignHashTests.texts.last)
        #expect(
            try await hasher.isRight(
                Password(ForeignHashTests.password), PasswordHash(text), for: .administrators))
        #expect(work.value == 0)
    }
}
