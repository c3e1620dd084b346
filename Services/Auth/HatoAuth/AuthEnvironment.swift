public import HatoModel
import HatoRPC
public import Logging

/// What auth takes from the world: the time, chance, the log.
public struct AuthEnvironment: Sendable {
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64
    /// So many bytes nobody can guess.
    public var randomBytes: @Sendable (Int) -> [UInt8]
    /// The log of the service.
    public var logger: Logger
    /// What anybody can make auth log.
    let notices: ThrottledNotices
    /// How a password becomes a hash; tests count here.
    var derive: PasswordHasher.Derivation = PasswordHasher.scrypt

    /// An environment whose parts are given; tests give clocks and randomness of their own.
    public init(
        logger: Logger, now: @escaping @Sendable () -> Int64 = WallClock.milliseconds,
        randomBytes: @escaping @Sendable (Int) -> [UInt8] = { systemRandomBytes($0) }
    ) {
        self.logger = logger
        notices = ThrottledNotices(logger)
        self.now = now
        self.randomBytes = randomBytes
    }

    /// From the operating system's source.
    public static func systemRandomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

extension AuthEnvironment {
    /// 28 of A-Z, a-z, 0-9: 166 bits.
    func newUID() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        var characters: [UInt8] = []
        while characters.count < 28 {
            // Bytes from 248 on would make some characters likelier.
            for byte in randomBytes(28) where byte < 248 && characters.count < 28 {
                characters.append(alphabet[Int(byte) % alphabet.count])
            }
        }
        return String(decoding: characters, as: UTF8.self)
    }
}
