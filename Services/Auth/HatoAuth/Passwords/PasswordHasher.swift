import Crypto
import CryptoExtras
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Hashes and checks passwords with scrypt, on a bounded pool.
///
/// Every check costs one derivation, also when there is no hash to compare with: the duration does not reveal whether
/// an account exists (spec auth §9).
final class PasswordHasher: Sendable {
    typealias Derivation = @Sendable (_ password: [UInt8], _ salt: [UInt8], _ cost: ScryptCost) throws -> [UInt8]

    let cost: ScryptCost
    private let pool: HashingPool
    private let randomBytes: @Sendable (Int) -> [UInt8]
    private let derive: Derivation
    private let metrics: AuthMetrics
    /// The hash to check when there is no account.
    private let dummy: PasswordHash

    init(_ configuration: AuthConfiguration, _ environment: AuthEnvironment, _ metrics: AuthMetrics) {
        self.metrics = metrics
        cost = configuration.scrypt
        pool = HashingPool(
            threads: configuration.hashingThreads, queueMax: configuration.limits.passwordQueueMax,
            clientsMax: configuration.limits.attemptEntriesMax)
        randomBytes = environment.randomBytes
        derive = environment.derive
        dummy = PasswordHash(
            cost: configuration.scrypt, salt: environment.randomBytes(PasswordHash.saltBytes),
            hash: environment.randomBytes(PasswordHash.hashBytes))
    }

    /// The number of passwords that wait for a thread.
    var waitingCount: Int { pool.waitingCount }

    /// The number of passwords that are being hashed.
    var hashingCount: Int { pool.runningCount }

    /// Throws `AuthError.tooManyAttempts` when the queue has no place for it.
    /// - Parameter client: whose turn it is among those that wait (`HashingQueue`).
    func hash(_ password: Password, for client: HashingClient) async throws -> PasswordHash {
        let salt = randomBytes(PasswordHash.saltBytes)
        return try await run(for: client) { [cost, derive] in
            PasswordHash(cost: cost, salt: salt, hash: try derive(password.bytes, salt, cost))
        }
    }

    /// Whether the password matches `stored`; false without a stored one, after the same work. Throws
    /// `AuthError.tooManyAttempts` when the queue has no place for it.
    func isRight(_ password: Password, _ stored: PasswordHash?, for client: HashingClient) async throws -> Bool {
        let reference = stored ?? dummy
        let isRight = try await run(for: client) { [derive] in
            let derived = try derive(password.bytes, reference.salt, reference.cost)
            return reference.matches(derived) && stored != nil
        }
        pool.checked(client, isRight: isRight)
        return isRight
    }

    private func run<Outcome: Sendable>(
        for client: HashingClient, _ work: @escaping @Sendable () throws -> Outcome
    ) async throws -> Outcome {
        do {
            return try await pool.run(for: client) { [metrics] in
                let start = ContinuousClock.now
                defer { metrics.hashed(in: ContinuousClock.now - start) }
                return try work()
            }
        } catch is HashingPool.Refused {
            metrics.count(.passwordQueueFull)
            throw AuthError.tooManyAttempts(retryAfterMilliseconds: 1000)
        }
    }

    static let scrypt: Derivation = { password, salt, cost in
        let key = try KDF.Scrypt.deriveKey(
            from: password, salt: salt, outputByteCount: PasswordHash.hashBytes, rounds: 1 << cost.logN,
            blockSize: cost.r, parallelism: cost.p)
        return key.withUnsafeBytes { Array($0) }
    }
}
