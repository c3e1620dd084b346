import HatoModel
import HatoStorage

/// The settings that administrators have set (`auth.settings.set`), as the store keeps them; nil: not set.
struct StoredSettings: Sendable, Hashable {
    static let passwordLengths = 1...128
    static let recentSeconds: ClosedRange<Int64> = 0...3_153_600_000

    var signUp: Auth.SignUpPolicy?
    var anonymous: Bool?
    var passwordSignIn: Bool?
    var codeSignIn: Bool?
    var continueDomains: [String]?
    var emailDomains: [String]?
    var hidesWhoExists: Bool?
    var signUpAlwaysAccepts: Bool?
    var passwordLengthMin: Int?
    var recentSignInSeconds: Int64?

    /// These settings with the changes of a request. Throws `AuthError.invalidFields`.
    func changed(by request: Auth.Settings.Set) throws(AuthError) -> StoredSettings {
        var problems: [FieldProblem] = []
        var settings = self
        settings.signUp = request.signUp ?? signUp
        settings.anonymous = request.anonymous ?? anonymous
        settings.passwordSignIn = request.passwordSignIn ?? passwordSignIn
        settings.codeSignIn = request.codeSignIn ?? codeSignIn
        settings.hidesWhoExists = request.hidesWhoExists ?? hidesWhoExists
        settings.signUpAlwaysAccepts = request.signUpAlwaysAccepts ?? signUpAlwaysAccepts
        settings.passwordLengthMin = request.passwordLengthMin ?? passwordLengthMin
        settings.recentSignInSeconds = request.recentSignInSeconds ?? recentSignInSeconds
        if let domains = request.continueDomains {
            let normalised = AuthConfiguration.normalisedHosts(domains)
            settings.continueDomains = normalised
            if normalised == nil {
                problems.append(
                    FieldProblem(
                        "continueDomains", "INVALID_SETTING",
                        "At most \(AuthConfiguration.domainsMax) hosts such as chat.example.com are allowed"))
            }
        }
        if let domains = request.emailDomains {
            let normalised = AuthConfiguration.normalisedDomains(domains)
            settings.emailDomains = normalised
            if normalised == nil {
                problems.append(
                    FieldProblem(
                        "emailDomains", "INVALID_SETTING",
                        "At most \(AuthConfiguration.domainsMax) domains such as example.com are allowed"))
            }
        }
        if let length = request.passwordLengthMin, !Self.passwordLengths.contains(length) {
            problems.append(
                FieldProblem("passwordLengthMin", "INVALID_SETTING", "The length should be from 1 to 128, such as 15"))
        }
        if let seconds = request.recentSignInSeconds, !Self.recentSeconds.contains(seconds) {
            problems.append(
                FieldProblem(
                    "recentSignInSeconds", "INVALID_SETTING",
                    "The seconds should be from 0 to \(Self.recentSeconds.upperBound), such as 300"))
        }
        if !problems.isEmpty { throw .invalidFields(problems) }
        return settings
    }

    /// The configuration with these settings, except those that are fixed there.
    func applied(to start: AuthConfiguration) -> AuthConfiguration {
        var configuration = start
        func set<Value>(_ name: String, _ value: Value?, _ path: WritableKeyPath<AuthConfiguration, Value>) {
            guard let value, !start.fixedSettings.contains(name) else { return }
            configuration[keyPath: path] = value
        }
        set("signUp", signUp, \.signUp)
        set("anonymous", anonymous, \.allowsAnonymous)
        set("passwordSignIn", passwordSignIn, \.allowsPasswordSignIn)
        set("codeSignIn", codeSignIn, \.allowsCodeSignIn)
        set("continueDomains", continueDomains, \.continueDomains)
        set("emailDomains", emailDomains, \.emailDomains)
        set("hidesWhoExists", hidesWhoExists, \.hidesWhoExists)
        set("signUpAlwaysAccepts", signUpAlwaysAccepts, \.signUpAlwaysAccepts)
        set("passwordLengthMin", passwordLengthMin, \.passwordLengthMin)
        set("recentSignInSeconds", recentSignInSeconds, \.credentialAgeSecondsMax)
        // Otherwise the reset of a password would show what the sign-up hides.
        if configuration.signUpAlwaysAccepts { configuration.hidesWhoExists = true }
        return configuration
    }
}

extension StoredSettings: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(),
        .optional("signUp", \.signUp),
        .optional("anonymous", \.anonymous),
        .optional("passwordSignIn", \.passwordSignIn),
        .optional("codeSignIn", \.codeSignIn),
        .optional("continueDomains", \.continueDomains),
        .optional("emailDomains", \.emailDomains),
        .optional("hidesWhoExists", \.hidesWhoExists),
        .optional("signUpAlwaysAccepts", \.signUpAlwaysAccepts),
        .optional("passwordLengthMin", \.passwordLengthMin),
        .optional("recentSignInSeconds", \.recentSignInSeconds))

    /// Those of a store; none are set in a new one. Throws `RecordError` and the errors of the store.
    static func find(in rows: some StoreReading) throws -> StoredSettings {
        guard let row = try rows.row(AuthKey.settings) else { return StoredSettings() }
        return try RecordCodec.decode(Self.self, row, of: "settings", unknown: .rejected)
    }

    func put(in rows: some StoreWriting) { rows.putRow(AuthKey.settings, RecordCodec.encode(self)) }
}
