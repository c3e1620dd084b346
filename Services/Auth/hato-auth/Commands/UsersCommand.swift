import ArgumentParser
import HatoCommand
import HatoModel

/// The commands of administrators for accounts.
struct UsersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Accounts, for administrators.",
        subcommands: [
            List.self, Get.self, Create.self, Invite.self, Update.self, Disable.self, Enable.self, Revoke.self,
            Delete.self,
            Import.self, Export.self,
        ])

    struct List: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Auth.Users.List.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "Begin after this uid.") var after: String?
        @Option(help: "At most so many, up to 1000.") var limit: Int?
        @Flag(help: "Print the number of all accounts, too.") var total = false

        func request() throws -> Auth.Users.List {
            var request = Auth.Users.List(after: after, limit: limit)
            request.total = total ? true : nil
            return request
        }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["uid", "email", "username", "displayName", "disabled"], of: result["users"]?.array ?? [])
        }
    }

    struct Get: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "get", abstract: Auth.Users.Get.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String?
        @Option(help: "The e-mail address, instead of the uid.") var email: String?
        @Option(help: "The username, instead of the uid.") var username: String?
        @Option(help: "The phone number, such as +819012345678, instead of the uid.") var phoneNumber: String?
        @Option(help: "A provider such as google.com, instead of the uid, with --provider-uid.") var provider: String?
        @Option(help: "The user's id at that provider.") var providerUid: String?

        func request() throws -> Auth.Users.Get {
            var request = Auth.Users.Get(uid: uid, email: email, username: username)
            request.phoneNumber = phoneNumber
            (request.provider, request.providerUid) = (provider, providerUid)
            return request
        }
    }

    struct Create: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "create", abstract: Auth.Users.Create.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "The uid; one is made without it.") var uid: String?
        @Option(help: "Claims of the ID tokens, a JSON object.") var customAttributes: String?
        @Flag(help: "The e-mail address is known to be the user's.") var emailVerified = false
        @Option(help: "The phone number, such as +819012345678.") var phoneNumber: String?
        @OptionGroup var fields: AccountFields

        func request() throws -> Auth.Users.Create {
            var request = Auth.Users.Create()
            request.uid = uid
            request.email = fields.email
            request.emailVerified = emailVerified ? true : nil
            request.password = try fields.password()
            request.username = fields.username
            request.displayName = fields.displayName
            request.photoUrl = fields.photoUrl
            request.phoneNumber = phoneNumber
            request.customAttributes = customAttributes
            return request
        }
    }

    struct Update: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "update", abstract: Auth.Users.Update.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String
        @Option(help: "Claims of the ID tokens, a JSON object; {} takes them away.") var customAttributes: String?
        @Flag(inversion: .prefixedNo, help: "Whether the e-mail address is known to be the user's.")
        var emailVerified: Bool?
        @Option(help: "The phone number, such as +819012345678.") var phoneNumber: String?
        @Option(
            name: .customLong("delete-provider"),
            help:
                "Take the identity of a provider away, such as google.com, or the phone number: phone. May be repeated."
        )
        var deletedProviders: [String] = []
        @Option(help: "A provider such as google.com whose user signs in to the account, with --provider-uid.")
        var linkProvider: String?
        @Option(help: "The user's id at that provider.") var providerUid: String?
        @OptionGroup var fields: AccountFields

        func request() throws -> Auth.Users.Update {
            var request = Auth.Users.Update(uid: uid)
            request.email = fields.email
            request.emailVerified = emailVerified
            request.password = try fields.password()
            request.username = fields.username
            request.displayName = fields.displayName
            request.photoUrl = fields.photoUrl
            request.phoneNumber = phoneNumber
            request.deleteProviders = deletedProviders.isEmpty ? nil : deletedProviders
            request.customAttributes = customAttributes
            request.deleteAttributes = try fields.deletions()
            guard (linkProvider == nil) == (providerUid == nil) else {
                throw ValidationError("--link-provider and --provider-uid belong together.")
            }
            if let linkProvider, let providerUid {
                request.linkProviderUserInfo = Auth.Account.Provider(providerId: linkProvider, rawId: providerUid)
            }
            return request
        }
    }

    struct Disable: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "disable", abstract: "Refuses an account and ends its sessions.")

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String

        func request() throws -> Auth.Users.Update {
            var request = Auth.Users.Update(uid: uid)
            request.disabled = true
            return request
        }
    }

    struct Enable: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "enable", abstract: "Lets a disabled account in again.")

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String

        func request() throws -> Auth.Users.Update {
            var request = Auth.Users.Update(uid: uid)
            request.disabled = false
            return request
        }
    }

    struct Revoke: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "revoke", abstract: Auth.Users.Revoke.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String

        func request() throws -> Auth.Users.Revoke { Auth.Users.Revoke(uid: uid) }
    }

    struct Delete: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "delete", abstract: Auth.Users.Delete.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The uid.") var uid: String

        func request() throws -> Auth.Users.Delete { Auth.Users.Delete(uid: uid) }
    }
}

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "The keys that sign ID tokens.",
        subcommands: [List.self, Rotate.self, Revoke.self])

    struct List: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Auth.Keys.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Keys { Auth.Keys() }
    }

    struct Rotate: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(commandName: "rotate", abstract: Auth.Keys.Rotate.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Auth.Keys.Rotate { Auth.Keys.Rotate() }
    }

    struct Revoke: RequestCommand {
        typealias Target = AuthTarget
        static let configuration = CommandConfiguration(
            commandName: "revoke", abstract: "Ends a signing key that others may know.",
            discussion: Auth.Keys.Revoke.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The key, as `keys list` shows it.") var kid: String

        func request() throws -> Auth.Keys.Revoke { Auth.Keys.Revoke(kid: kid) }
    }
}

struct BackupCommand: RequestCommand {
    typealias Target = AuthTarget
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: Auth.Backup.summary,
        discussion: "The service writes it, under its --backup-dir; `hato-auth restore` makes a data folder of it.")

    @OptionGroup var options: ClientOptions
    @Argument(help: "The name of the backup.") var name: String

    func request() throws -> Auth.Backup { Auth.Backup(name: try BackupName(name)) }
}
