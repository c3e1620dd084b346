import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Hashes and checks passwords with scrypt, on a bounded pool.
///
/// Every check of a wrong password takes as long as one hash, also when there is none to compare with, and when the
/// stored one takes less: the duration does not reveal whether an account exists (spec auth §9). A stored hash of other
/// software that takes longer does reveal its account, until the first right password replaces it.
final class PasswordHasher: Sendable {
    typealias Derivation = @Sendable (_ password: [UInt8], _ salt: [UInt8], _ cost: ScryptCost) throws -> [UInt8]

    private let cost: ScryptCost
    private let pepper: Pepper
    private let pool: HashingPool
    /// For hashes that take more memory than those of this service: one at a time, and no thread of the others waits.
    private let largePool: HashingPool
    private let randomBytes: @Sendable (Int) -> [UInt8]
    private let derive: Derivation
    private let metrics: AuthMetrics
    private let threadTime: @Sendable () -> Duration
    /// The hash to check when there is no account.
    private let dummy: PasswordHash
    /// The processor time of a whole hash, averaged; nil before the first one.
    private let wholeTime = Mutex<Duration?>(nil)

    init(_ configuration: AuthConfiguration, _ environment: AuthEnvironment, _ metrics: AuthMetrics) {
        self.metrics = metrics
        cost = configuration.scrypt
        pepper = configuration.pepper
        func pool(threads: Int) -> HashingPool {
            HashingPool(
                threads: threads, queueMax: configuration.limits.passwordQueueMax,
                clientsMax: configuration.limits.attemptEntriesMax)
        }
        self.pool = pool(threads: configuration.hashingThreads)
        largePool = pool(threads: 1)
        randomBytes = environment.randomBytes
        derive = environment.derive
        threadTime = environment.threadTime
        dummy = PasswordHash(
            cost: configuration.scrypt, salt: environment.randomBytes(PasswordHash.saltBytes),
            hash: environment.randomBytes(PasswordHash.hashBytes), pepperID: configuration.pepper.currentID)
    }

    /// The number of passwords that wait for a thread.
    var waitingCount: Int { pool.waitingCount + largePool.waitingCount }

    /// The number of passwords that are being hashed.
    var hashingCount: Int { pool.runningCount + largePool.runningCount }

    /// Throws `AuthError.tooManyAttempts` when the queue has no place for it.
    /// - Parameter client: whose turn it is among those that wait (`HashingQueue`).
    func hash(_ password: Password, for client: HashingClient) async throws -> PasswordHash {
        let salt = randomBytes(PasswordHash.saltBytes)
        return try await run(on: pool, for: client) { [self] in
            let id = pepper.currentID
            return PasswordHash(cost: cost, salt: salt, hash: try whole(password, salt, id), pepperID: id)
        }
    }

    /// Whether a hash should be made anew at its next use.
    func isOutdated(_ hash: PasswordHash) -> Bool { hash.isOutdated(at: cost, pepper.currentID) }

    /// Whether the password matches `stored`; false without a stored one, after no less work. Throws
    /// `AuthError.tooManyAttempts` when the queue has no place for it.
    func isRight(_ password: Password, _ stored: PasswordHash?, for client: HashingClient) async throws -> Bool {
        let reference = stored ?? dummy
        let isLarge = reference.scheme.memoryBytes > cost.memoryBytes
        let isRight = try await run(on: isLarge ? largePool : pool, for: client) { [self] in
            let start = threadTime()
            let isRight = reference.matches(try derived(password, as: reference)) && stored != nil
            if !isRight, isOutdated(reference) { try fillUp(since: start) }
            return isRight
        }
        for pool in [pool, largePool] { pool.checked(client, isRight: isRight) }
        return isRight
    }

    // MARK: On a thread of the pool

    /// What `stored` is if the password is right; of another size when its scheme fails.
    private func derived(_ password: Password, as stored: PasswordHash) throws -> [UInt8] {
        guard case .scrypt(let own) = stored.scheme else {
            return try stored.scheme.derive(password.typedBytes, stored.salt, byteCount: stored.hash.count)
        }
        guard own != cost else { return try whole(password, stored.salt, stored.pepperID) }
        return try derive(try peppered(password, stored.pepperID), stored.salt, own)
    }

    /// Throws `PepperError` for a key that is missing: the service does not start without those that are needed.
    private func peppered(_ password: Password, _ id: String?) throws -> [UInt8] {
        guard let bytes = pepper.applied(to: password.bytes, id) else { throw PepperError(count: 1) }
        return bytes
    }

    /// A hash as this service makes it, and its time.
    private func whole(_ password: Password, _ salt: [UInt8], _ pepperID: String?) throws -> [UInt8] {
        let bytes = try peppered(password, pepperID)
        let start = threadTime()
        let hash = try derive(bytes, salt, cost)
        let time = threadTime() - start
        wholeTime.withLock { average in average = average.map { ($0 * 7 + time) / 8 } ?? time }
        return hash
    }

    /// Hashes until the thread has worked for as long as a whole hash takes, in steps of a part of one.
    private func fillUp(since start: Duration) throws {
        guard let wholeTime = wholeTime.withLock({ $0 }) else {
            _ = try whole(Password(""), dummy.salt, nil)
            return
        }
        let step = ScryptCost(logN: max(1, cost.logN - Self.logStepsOfLane), r: cost.r, p: 1)
        for _ in 0..<Self.stepsMax where threadTime() - start < wholeTime {
            _ = try derive([], dummy.salt, step)
        }
    }

    /// A step is an eighth of one of scrypt's lanes.
    private static let logStepsOfLane = 3
    /// More than any hash takes: 16 lanes, of which each step takes a 64th at least.
    private static let stepsMax = 1024

    private func run<Outcome: Sendable>(
        on pool: HashingPool, for client: HashingClient, _ work: @escaping @Sendable () throws -> Outcome
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
        try HashScheme.scrypt(password, salt, cost, byteCount: PasswordHash.hashBytes)
    }
}
