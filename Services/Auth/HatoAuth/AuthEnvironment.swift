public import HatoModel
import HatoRPC
public import Logging

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The external inputs of auth: the time, randomness, the log.
public struct AuthEnvironment: Sendable {
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64
    /// This many unpredictable bytes.
    public var randomBytes: @Sendable (Int) -> [UInt8]
    /// The log of the service.
    public var logger: Logger
    /// Log entries that any client can cause, throttled.
    let notices: ThrottledNotices
    /// Derives the hash of a password; tests replace it to count calls.
    var derive: PasswordHasher.Derivation = PasswordHasher.scrypt
    /// Gets mails in place of the configured destination, in tests.
    var mailDestination: (any MailDestination)?
    /// Gets the documents of providers in place of the network, in tests; its argument is a URL.
    var fetchDocument: (@Sendable (String) async throws -> [UInt8])?
    /// The processor time that the current thread has taken.
    var threadTime: @Sendable () -> Duration = systemThreadTime

    /// An environment with given inputs; tests pass their own clocks and randomness.
    public init(
        logger: Logger, now: @escaping @Sendable () -> Int64 = WallClock.milliseconds,
        randomBytes: @escaping @Sendable (Int) -> [UInt8] = { systemRandomBytes($0) }
    ) {
        self.logger = logger
        notices = ThrottledNotices(logger)
        self.now = now
        self.randomBytes = randomBytes
    }

    @Sendable private static func systemThreadTime() -> Duration {
        var time = timespec()
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Random bytes from the operating system.
    public static func systemRandomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

extension AuthEnvironment {
    /// 28 characters of A-Z, a-z, 0-9: 166 bits.
    func newUID() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        var characters: [UInt8] = []
        while characters.count < 28 {
            // Bytes from 248 on would make some characters more likely.
            for byte in randomBytes(28) where byte < 248 && characters.count < 28 {
                characters.append(alphabet[Int(byte) % alphabet.count])
            }
        }
        return String(decoding: characters, as: UTF8.self)
    }
}
