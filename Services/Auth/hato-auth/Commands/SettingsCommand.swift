import ArgumentParser
import HatoCommand
import HatoModel

/// The settings that can be changed while the service runs.
struct SettingsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings", abstract: "The settings for signing up and in, changed while the service runs.",
        subcommands: [Get.self, Set.self])

    struct Get: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "get", abstract: Auth.Settings.Get.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Settings.Get { Auth.Settings.Get() }
    }

    struct Set: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "set", abstract: Auth.Settings.Set.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "Which users make accounts: open, invited or closed.") var signUp: String?
        @Flag(inversion: .prefixedNo, help: "Whether people make anonymous accounts.") var anonymous: Bool?
        @Flag(inversion: .prefixedNo, help: "Whether people sign up and sign in with a password.")
        var passwordSignIn: Bool?
        @Option(
            help: ArgumentHelp(
                "The domains of e-mail addresses that may sign up; an empty text for all.", valueName: "domain,domain"))
        var emailDomains: String?
        @Flag(inversion: .prefixedNo, help: "Whether a wrong name and a wrong password give the same error.")
        var hidesWhoExists: Bool?
        @Flag(inversion: .prefixedNo, help: "Whether a sign-up says the same for every e-mail address.")
        var signUpAlwaysAccepts: Bool?
        @Option(help: "The minimum length of new passwords, in characters.") var passwordLengthMin: Int?
        @Option(help: "Seconds after a sign-in in which credentials may be changed; 0: always.")
        var recentSignInSeconds: Int64?

        func request() throws -> Auth.Settings.Set {
            var request = Auth.Settings.Set()
            request.signUp = try signUp.map { text in
                guard let policy = Auth.SignUpPolicy(rawValue: text) else {
                    throw ValidationError("--sign-up \(text): give one of open, invited, closed.")
                }
                return policy
            }
            request.anonymous = anonymous
            request.passwordSignIn = passwordSignIn
            request.emailDomains = emailDomains.map { $0.split(separator: ",").map(String.init) }
            request.hidesWhoExists = hidesWhoExists
            request.signUpAlwaysAccepts = signUpAlwaysAccepts
            request.passwordLengthMin = passwordLengthMin
            request.recentSignInSeconds = recentSignInSeconds
            return request
        }
    }
}
