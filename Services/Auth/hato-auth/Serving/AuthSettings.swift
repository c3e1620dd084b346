import HatoAuth
import HatoRuntime

/// The settings of `hato-auth serve`.
enum AuthSettings {
    static let process = ServiceProcess(
        service: AuthTarget.service,
        declared: ServeSettings.declared(defaultPort: AuthTarget.port) + flags.map(\.setting) + numbers.map(\.setting))

    /// The configuration from the settings. Throws `SettingsError`.
    static func configuration(_ settings: Settings) throws -> AuthConfiguration {
        var configuration = AuthConfiguration()
        configuration.project = settings["project"]
        for flag in flags { flag.set(&configuration, settings.flag(flag.setting.name)) }
        for number in numbers { number.set(&configuration, settings.integer(number.setting.name)) }
        let bytes = configuration.scrypt.memoryBytes * configuration.hashingThreads
        guard bytes <= 8 << 30 else {
            throw SettingsError(
                "settings scrypt-log-n, scrypt-r and hashing-threads: together they take \(bytes >> 20) MiB of memory")
        }
        return configuration
    }

    // MARK: Table

    /// A setting and the member of the configuration that it sets.
    private struct Member<Value: Sendable>: Sendable {
        var setting: Setting
        var set: @Sendable (inout AuthConfiguration, Value) -> Void
    }

    private typealias Path<Value> = WritableKeyPath<AuthConfiguration, Value> & Sendable

    private static func flag(_ name: String, _ path: any Path<Bool>, _ help: String) -> Member<Bool> {
        let preset = AuthConfiguration()[keyPath: path]
        return Member(
            setting: Setting(name, .flag, default: "\(preset)", help: help), set: { $0[keyPath: path] = $1 })
    }

    private static func number<Value: FixedWidthInteger & Sendable>(
        _ name: String, _ path: any Path<Value>, _ range: ClosedRange<Int>, _ help: String
    ) -> Member<Int> {
        let preset = AuthConfiguration()[keyPath: path]
        return Member(
            setting: Setting(name, .integer(range), default: "\(preset)", help: help),
            set: { $0[keyPath: path] = Value(clamping: $1) })
    }

    private static let flags: [Member<Bool>] = [
        flag("refuse-common-passwords", \.refusesCommonPasswords, "refuse passwords that are tried first"),
        flag("hide-who-exists", \.hidesWhoExists, "return the same error for a wrong name and a wrong password"),
        flag("limit-loopback", \.limitsLoopback, "count attempts from this machine too"),
    ]

    private static let seconds = 0...3_153_600_000

    /// As many as there are processors, limited by the memory for hashing (`memory-bytes`) at their default cost.
    private static let hashingThreads: Member<Int> = {
        let preset = AuthConfiguration()
        var member = number("hashing-threads", \.hashingThreads, 1...256, "passwords hashed at a time")
        member.setting.memory = MemoryDerivation(
            .held, dividedBy: preset.scrypt.memoryBytes, atMost: preset.hashingThreads)
        return member
    }()

    private static let numbers: [Member<Int>] =
        [
            number("password-length-min", \.passwordLengthMin, 1...128, "characters a password has at least"),
            number("scrypt-log-n", \.scrypt.logN, 1...20, "cost of a password hash: log2 of scrypt's N"),
            number("scrypt-r", \.scrypt.r, 1...16, "scrypt's block size"),
            number("scrypt-p", \.scrypt.p, 1...16, "scrypt's parallelisation"),
            hashingThreads,
            number("token-lifetime-seconds", \.tokenLifetimeSeconds, 60...86_400, "life of an ID token"),
            number(
                "credential-age-seconds-max", \.credentialAgeSecondsMax, seconds,
                "oldest sign-in that may change e-mail or password; 0 turns it off"),
            number(
                "refresh-grace-seconds", \.refresh.graceSeconds, seconds,
                "how long a used refresh token brings its successor again"),
            number(
                "refresh-idle-seconds", \.refresh.idleSeconds, 60...3_153_600_000,
                "a session unused for this long is over"),
            number(
                "refresh-absolute-seconds", \.refresh.absoluteSeconds, seconds, "a session this old is over; 0: never"),
        ] + limits

    private static let limits: [Member<Int>] = [
        number("password-bytes-max", \.limits.passwordBytesMax, 64...65_536, "longest password, in bytes"),
        number("id-token-bytes-max", \.limits.idTokenBytesMax, 1_024...65_536, "longest ID token in a parameter"),
        number("email-bytes-max", \.limits.emailBytesMax, 6...254, "longest e-mail address, in bytes"),
        number("display-name-characters-max", \.limits.displayNameCharactersMax, 1...1024, "longest name"),
        number("photo-url-bytes-max", \.limits.photoUrlBytesMax, 16...8192, "longest address of a photo, in bytes"),
        number("custom-attributes-characters-max", \.limits.customAttributesCharactersMax, 2...4000, "longest claims"),
        number("password-queue-max", \.limits.passwordQueueMax, 0...100_000, "passwords waiting to be hashed"),
        number("sessions-per-account-max", \.limits.sessionsPerAccountMax, 1...10_000, "sessions of one account"),
        number("users-page-max", \.limits.usersPageMax, 1...1000, "accounts on one page"),
        number(
            "attempt-entries-max", \.limits.attemptEntriesMax, 100...10_000_000, "addresses and accounts remembered"),
        number("failures-free", \.limits.failuresFree, 1...100, "wrong passwords that cost an account nothing"),
        number(
            "lock-milliseconds-max", \.limits.lockMillisecondsMax, 0...86_400_000, "longest wait after wrong passwords"),
        number(
            "failure-memory-milliseconds", \.limits.failureMemoryMilliseconds, 0...2_592_000_000,
            "when they are forgotten"),
        number(
            "sign-ins-pending-per-account-max", \.limits.signInsPendingPerAccountMax, 1...10_000,
            "sign-ins of one account checked at a time"),
        number(
            "sign-ins-per-address-burst", \.limits.signInsPerAddress.burst, rate,
            "sign-ins of one address at once; 0: no limit"),
        number(
            "sign-ins-per-address-minute", \.limits.signInsPerAddress.perMinute, rate, "and a minute in the long run"),
        number(
            "sign-ups-per-address-burst", \.limits.signUpsPerAddress.burst, rate,
            "sign-ups of one address at once; 0: no limit"),
        number(
            "sign-ups-per-address-minute", \.limits.signUpsPerAddress.perMinute, rate, "and a minute in the long run"),
        number(
            "anonymous-per-address-burst", \.limits.anonymousSignUpsPerAddress.burst, rate,
            "anonymous sign-ups of one address at once; 0: no limit"),
        number(
            "anonymous-per-address-minute", \.limits.anonymousSignUpsPerAddress.perMinute, rate,
            "and a minute in the long run"),
        number(
            "refreshes-per-address-burst", \.limits.refreshesPerAddress.burst, rate,
            "refreshes of one address at once; 0: no limit"),
        number(
            "refreshes-per-address-minute", \.limits.refreshesPerAddress.perMinute, rate, "and a minute in the long run"
        ),
    ]

    private static let rate = 0...1_000_000
}
