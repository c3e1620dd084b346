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
