import HatoAuth
import HatoModel
import HatoRuntime
import Logging

/// The settings of `hato-auth serve`.
enum AuthSettings {
    static let process = ServiceProcess(
        service: AuthTarget.service,
        declared: ServeSettings.declared(defaultPort: AuthTarget.port) + ownSettings)

    private static let ownSettings: [Setting] =
        [ServeSettings.keyEncryption, pepperFile] + ServeSettings.mail + [signUp, emailDomains, continueDomains]
        + flags.map(\.setting) + numbers.map(\.setting)
        + AuthLimits.all.map { Setting($0) }

    /// The configuration from the settings. Throws `SettingsError`.
    static func configuration(_ settings: Settings) throws -> AuthConfiguration {
        var configuration = AuthConfiguration()
        configuration.project = settings["project"]
        for flag in flags { flag.set(&configuration, settings.flag(flag.setting.name)) }
        for number in numbers { number.set(&configuration, settings.integer(number.setting.name)) }
        configuration.signUp = Auth.SignUpPolicy(rawValue: settings[signUp.name]) ?? .open
        configuration.emailDomains = try domains(settings)
        configuration.continueDomains = try hosts(settings)
        let given = changeable.filter { settings.source(of: $0.setting) != nil }
        configuration.fixedSettings = Set(given.map(\.member))
        configuration.limits = settings.limits(AuthLimits.self)
        let bytes = configuration.scrypt.memoryBytes * configuration.hashingThreads
        guard bytes <= 8 << 30 else {
            throw SettingsError(
                "settings scrypt-log-n, scrypt-r and hashing-threads: together they take \(bytes >> 20) MiB of memory")
        }
        return configuration
    }

    private static let pepperFile = Setting(
        "pepper-file", .file,
        help:
            "file outside the data folder that is mixed into passwords, a key of 32 bytes or more a line: the first hashes"
    )

    /// The keys in the file of the setting `pepper-file`. Throws `SettingsError`.
    static func pepper(_ start: ServiceProcess.Start) throws -> Pepper {
        guard let file = start.settings.text(pepperFile.name) else { return .none }
        do {
            let pepper = try Pepper(file: file)
            for warning in pepper.warnings { start.logger.warning("\(warning)") }
            return pepper
        } catch { throw SettingsError("setting \(pepperFile.name): \(error)") }
    }

    /// Throws `SettingsError`.
    private static func domains(_ settings: Settings) throws -> [String] {
        let texts = (settings.text(emailDomains.name) ?? "").split(separator: ",").map(String.init)
        guard let domains = AuthConfiguration.normalisedDomains(texts) else {
            throw SettingsError(
                "setting \(emailDomains.name): give at most 100 domains with commas, such as example.com,example.jp")
        }
        return domains
    }

    /// Throws `SettingsError`.
    private static func hosts(_ settings: Settings) throws -> [String] {
        let texts = (settings.text(continueDomains.name) ?? "").split(separator: ",").map(String.init)
        guard let hosts = AuthConfiguration.normalisedHosts(texts) else {
            throw SettingsError(
                "setting \(continueDomains.name): give at most 100 hosts with commas, such as chat.example.com")
        }
        return hosts
    }

    private static let continueDomains = Setting(
        "continue-domains", .text, default: "",
        help: "hosts of URLs that mails may link to (continueUrl), with commas between them; none when empty")
    private static let signUp = Setting(
        "sign-up", .choice(Auth.SignUpPolicy.allCases.map(\.rawValue)), default: "open",
        help: "which users make accounts: all, administrators and invited users, or administrators alone")
    private static let emailDomains = Setting(
        "email-domains", .text, default: "",
        help: "domains of e-mail addresses with which people sign up, with commas between them; all when empty")

    /// Settings that `auth.settings.set` changes unless they are given at the start, and its members.
    private static let changeable = [
        (setting: "sign-up", member: "signUp"), (setting: "anonymous", member: "anonymous"),
        (setting: "password-sign-in", member: "passwordSignIn"), (setting: "code-sign-in", member: "codeSignIn"),
        (setting: "continue-domains", member: "continueDomains"), (setting: "email-domains", member: "emailDomains"),
        (setting: "hide-who-exists", member: "hidesWhoExists"),
        (setting: "sign-up-always-accepts", member: "signUpAlwaysAccepts"),
        (setting: "password-length-min", member: "passwordLengthMin"),
        (setting: "credential-age-seconds-max", member: "recentSignInSeconds"),
    ]

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
        flag(
            "refuse-common-passwords", \.refusesCommonPasswords,
            "refuse common passwords, repetitions, sequences and the user's own names"),
        flag("anonymous", \.allowsAnonymous, "let people make anonymous accounts, where sign-up is open"),
        flag("password-sign-in", \.allowsPasswordSignIn, "let people sign up and sign in with a password"),
        flag("code-sign-in", \.allowsCodeSignIn, "let people sign in with a code of a mail"),
        flag("hide-who-exists", \.hidesWhoExists, "return the same error for a wrong name and a wrong password"),
        flag(
            "sign-up-always-accepts", \.signUpAlwaysAccepts,
            "say the same for every e-mail address that signs up, and the rest by mail; needs a mail server"),
        flag(
            "allow-private-providers", \.allowsPrivateProviders,
            "let providers be on this machine, over plain http too, and in private networks"),
        flag(
            "limit-loopback", \.limitsLoopback,
            "count attempts from loopback addresses too; if not, nothing limits what one client there guesses"),
    ]

    private static let seconds = 0...3_153_600_000

    /// As many as there are processors, limited by the memory for hashing (`memory-bytes`) at their default cost.
    private static let hashingThreads: Member<Int> = {
        let preset = AuthConfiguration()
        var member = number("hashing-threads", \.hashingThreads, 1...256, "passwords hashed at a time")
        member.setting.memory = MemoryDerivation(
            .held, dividedBy: preset.scrypt.memoryBytes, atMost: preset.hashingThreads)
        member.setting.defaultInWords =
            "the number of processors, fewer if 16 MiB for each do not fit into 1/6 of memory-bytes"
        return member
    }()

    /// Such hashes are checked one at a time (`PasswordHasher`).
    private static let importedHashMemory: Member<Int> = {
        let preset = AuthConfiguration()
        var member = number(
            "imported-hash-memory-bytes-max", \.importedHashMemoryBytesMax, 1 << 20...256 << 20,
            "most memory that a password hash of auth.users.import may need")
        member.setting.memory = MemoryDerivation(.held, atMost: preset.importedHashMemoryBytesMax)
        return member
    }()

    private static let numbers: [Member<Int>] =
        [
            number("password-length-min", \.passwordLengthMin, 1...128, "minimum of characters of a password"),
            number("scrypt-log-n", \.scrypt.logN, 1...20, "cost of a password hash: log2 of scrypt's N"),
            number("scrypt-r", \.scrypt.r, 1...16, "scrypt's block size"),
            number("scrypt-p", \.scrypt.p, 1...16, "scrypt's parallelisation"),
            hashingThreads, importedHashMemory,
            number("code-digits", \.codeDigits, 6...10, "digits of the codes in mails"),
            number(
                "token-lifetime-seconds", \.tokenLifetimeSeconds,
                60...Int(AuthConfiguration.tokenLifetimeSecondsMax), "seconds for which an ID token is valid"),
            number(
                "key-rotation-days", \.keyRotationDays, 0...3_650,
                "days after which the next signing key replaces the current one; 0: only `hato-auth keys rotate` does"),
            number(
                "credential-age-seconds-max", \.credentialAgeSecondsMax, seconds,
                "seconds after a sign-in in which e-mail and password may be changed; 0: always"),
            number(
                "refresh-grace-seconds", \.refresh.graceSeconds, seconds,
                "seconds in which a used refresh token returns the newest token again"),
            number(
                "refresh-late-seconds", \.refresh.lateSeconds, seconds,
                "seconds in which a used refresh token, whose successor was never presented, returns it; 0: as above"),
            number(
                "refresh-idle-seconds", \.refresh.idleSeconds, 60...3_153_600_000,
                "seconds without use after which a session ends"),
            number(
                "refresh-absolute-seconds", \.refresh.absoluteSeconds, seconds,
                "seconds after which a session ends; 0: never"),
            number(
                "anonymous-days", \.anonymousDays, 0...36_500,
                "days without use after which an anonymous account is deleted; 0: never"),
            number(
                "keep-events-seconds", \.keepEventsSeconds, 3_600...315_360_000,
                "seconds that the events of auth.follow are kept for followers that resume"),
            number(
                "keep-audit-days", \.keepAuditDays, 0...3_650,
                "days that the entries of auth.audit.list are kept; 0: none are written"),
        ]
}
