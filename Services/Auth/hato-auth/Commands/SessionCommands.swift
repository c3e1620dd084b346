import ArgumentParser
import HatoCommand
import HatoModel

struct SignUpCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(
        commandName: "sign-up", abstract: Auth.SignUp.summary,
        discussion: "Without --email and --username the account is anonymous.")

    @OptionGroup var options: ClientOptions
    @Option(help: "The e-mail address.") var email: String?
    @Option(help: "A name to sign in with: 3 to 32 of a-z, 0-9, _ and .") var username: String?
    @Option(help: "The name people see.") var displayName: String?
    @Option(
        help: ArgumentHelp(
            "The file whose first line is the ID token of an account that gets the credentials; - is stdin.",
            valueName: "file"))
    var idTokenFile: String?
    @Option(help: "The name of the device, in the list of sessions.") var label: String?
    @Option(help: "The language of the mail, where signUpAlwaysAccepts is on, such as ja.") var locale: String?
    @Option(help: "The URL where the page behind the link of that mail goes on.") var continueUrl: String?
    @Flag(help: "Only check the form.") var dryRun = false
    @OptionGroup var password: PasswordOption

    func request() throws -> Auth.SignUp {
        let idToken = try idTokenFile.map { try SecretInput.line("ID token", in: $0) }
        let isAnonymous = email == nil && username == nil && idToken == nil && password.passwordFile == nil
        var request = Auth.SignUp(
            email: email, password: isAnonymous ? nil : try password.value(), username: username,
            displayName: displayName)
        request.idToken = idToken
        request.label = label
        (request.locale, request.continueUrl) = (locale, continueUrl)
        request.dryRun = dryRun ? true : nil
        return request
    }
}

struct SignInCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(commandName: "sign-in", abstract: Auth.SignIn.summary)

    @OptionGroup var options: ClientOptions
    @Option(help: "The e-mail address.") var email: String?
    @Option(help: "The username, instead of the e-mail address.") var username: String?
    @Option(help: "The name of the device, in the list of sessions.") var label: String?
    @OptionGroup var password: PasswordOption

    func request() throws -> Auth.SignIn {
        var request = Auth.SignIn(email: email, username: username, password: try password.value())
        request.label = label
        return request
    }
}

struct RefreshCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(commandName: "refresh", abstract: Auth.Refresh.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var refreshToken: RefreshTokenOption

    func request() throws -> Auth.Refresh { Auth.Refresh(refreshToken: try refreshToken.value()) }
}

struct SignOutCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(commandName: "sign-out", abstract: Auth.SignOut.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var refreshToken: RefreshTokenOption

    func request() throws -> Auth.SignOut { Auth.SignOut(refreshToken: try refreshToken.value()) }
}

/// The sessions of an account.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "The sessions of the user of --token, or for administrators of any user.",
        subcommands: [List.self, End.self, Fork.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Lists the sessions of the user of --token, or for administrators of --uid.")

        @OptionGroup var options: ClientOptions
        @Option(help: "The uid, for administrators.") var uid: String?
        @Option(help: "Sessions a call.") var pageSize = 1_000

        func run() async throws {
            try await CommandSession.run(options, AuthTarget.self, takesOnly: true) { client, output in
                var request = Auth.Sessions.List(uid: uid)
                request.limit = pageSize
                var sessions: [JSONValue] = []
                repeat {
                    // As the service returned them, including members unknown to this version.
                    let page = try await client.call(method: Auth.Sessions.List.method, params: request.members)
                    sessions += page["sessions"]?.array ?? []
                    request.after = page["after"]?.string
                } while request.after != nil
                let result: JSONValue = ["sessions": .array(sessions)]
                if let member = options.only { return try output.show(member: member, of: result) }
                let table = CommandTable(
                    ["session", "label", "provider", "usedAt", "address", "current"], of: sessions)
                try output.show(result, as: output.isForPeople ? table : nil)
            }
        }
    }

    struct End: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "end", abstract: Auth.Sessions.End.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The session, as `sessions list` shows it.") var session: String?
        @Option(help: "The uid, for administrators.") var uid: String?
        @Flag(help: "All sessions but that of --token.") var others = false

        func request() throws -> Auth.Sessions.End {
            Auth.Sessions.End(uid: uid, session: session, others: others ? true : nil)
        }
    }

    struct Fork: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "fork", abstract: Auth.Sessions.Fork.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var refreshToken: RefreshTokenOption
        @Option(help: "The name of the device.") var label: String?

        func request() throws -> Auth.Sessions.Fork {
            Auth.Sessions.Fork(refreshToken: try refreshToken.value(), label: label)
        }
    }
}

/// The account of the ID token in --token.
struct AccountCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "The account of the ID token in --token.",
        subcommands: [Get.self, Update.self, Delete.self])

    struct Get: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "get", abstract: Auth.Account.Get.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Account.Get { Auth.Account.Get() }
    }

    struct Update: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "update", abstract: Auth.Account.Update.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: AccountFields

        func request() throws -> Auth.Account.Update {
            var request = Auth.Account.Update(
                email: fields.email, password: try fields.password(), displayName: fields.displayName,
                deleteAttributes: try fields.deletions())
            request.username = fields.username
            request.photoUrl = fields.photoUrl
            return request
        }
    }

    struct Delete: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "delete", abstract: Auth.Account.Delete.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Account.Delete { Auth.Account.Delete() }
    }
}

/// The attributes of an account that can be changed.
struct AccountFields: ParsableArguments {
    @Option(help: "The e-mail address.") var email: String?
    @Option(
        help: ArgumentHelp("The file whose first line is the password; - is stdin.", valueName: "file"))
    var passwordFile: String?
    @Option(help: "A name to sign in with.") var username: String?
    @Option(help: "The name people see.") var displayName: String?
    @Option(help: "The address of a photo.") var photoUrl: String?
    @Option(
        name: .customLong("delete"),
        help: "Take an attribute away: email, password, username, displayName, photoUrl. May be repeated.")
    var deleted: [String] = []

    func password() throws -> String? { try passwordFile.map { try SecretInput.line("password", in: $0) } }

    func deletions() throws -> [Auth.AccountAttribute]? {
        let attributes = try deleted.map { name in
            guard let attribute = Auth.AccountAttribute(rawValue: name) else {
                let all = Auth.AccountAttribute.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("--delete \(name): give one of \(all).")
            }
            return attribute
        }
        return attributes.isEmpty ? nil : attributes
    }
}
