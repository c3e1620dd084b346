import ArgumentParser
import HatoCommand
import HatoModel

/// The mails that wait for the mail server, and those that it refused.
struct MailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mail", abstract: "The mails that wait for the mail server, and those that it refused.",
        subcommands: [List.self, Replay.self, Drop.self])

    struct List: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Auth.Mail.List.summary)

        @OptionGroup var options: ClientOptions
        @Flag(help: "Only mails that are not sent again by themselves.") var dead = false
        @Option(help: "The `after` of the previous page.") var after: String?
        @Option(help: "The maximum number of mails, 1 to 1,000.") var limit: Int?

        func request() throws -> Auth.Mail.List {
            var request = Auth.Mail.List()
            request.state = dead ? .dead : nil
            request.after = after
            request.limit = limit
            return request
        }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["mail", "to", "type", "state", "attempts", "error"], of: result["mails"]?.array ?? [])
        }
    }

    struct Replay: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "replay", abstract: Auth.Mail.Replay.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The mail, as `mail list` shows it.") var mail: String?
        @Flag(help: "The oldest 1,000 dead mails whose codes are still valid.") var all = false

        func request() throws -> Auth.Mail.Replay { Auth.Mail.Replay(mail: mail, all: all ? true : nil) }
    }

    struct Drop: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "drop", abstract: Auth.Mail.Drop.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The mail, as `mail list` shows it.") var mail: String?
        @Flag(help: "The oldest 1,000 dead mails.") var all = false

        func request() throws -> Auth.Mail.Drop { Auth.Mail.Drop(mail: mail, all: all ? true : nil) }
    }
}

/// The mails in the folder that gets them instead of a server.
struct MailboxCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(commandName: "mailbox", abstract: Auth.Mailbox.List.summary)

    @OptionGroup var options: ClientOptions
    @Option(help: "Only mails to this address.") var to: String?
    @Option(help: "The `after` of the previous page.") var after: String?
    @Option(help: "The maximum number of mails, 1 to 100.") var limit: Int?

    func request() throws -> Auth.Mailbox.List {
        var request = Auth.Mailbox.List(to: to)
        request.after = after
        request.limit = limit
        return request
    }
}

extension UsersCommand {
    struct Invite: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "invite", abstract: Auth.Users.Invite.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The e-mail address.") var email: String
        @Option(help: "The id of the user; a random one without it.") var uid: String?
        @Option(help: "The name people see.") var displayName: String?
        @Option(help: "The language of the mail, such as ja.") var locale: String?
        @Option(help: "The URL where the page behind the link goes on.") var continueUrl: String?
        @Flag(help: "Send no mail, and show the code.") var returnCode = false

        func request() throws -> Auth.Users.Invite {
            var request = Auth.Users.Invite(email: email)
            request.uid = uid
            request.displayName = displayName
            request.locale = locale
            request.continueUrl = continueUrl
            request.returnCode = returnCode ? true : nil
            return request
        }
    }
}
