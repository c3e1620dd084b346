import ArgumentParser
import HatoAuth
import HatoCommand
import HatoModel
import HatoRocksDB
import HatoRuntime
import HatoStorage

/// The command `hato-auth`: runs the auth service and calls its methods.
@main
struct AuthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-auth", abstract: "Accounts and the tokens that prove them.",
        subcommands: [
            ServeCommand<AuthTarget>.self, SignUpCommand.self, SignInCommand.self, RefreshCommand.self,
            SignOutCommand.self, SessionsCommand.self,
            AccountCommand.self, UsersCommand.self, KeysCommand.self, SettingsCommand.self,
            ProvidersCommand.self, MailCommand.self, MailboxCommand.self, CustomTokenCommand.self, SignersCommand.self,
            AuditCommand.self,
            BackupCommand.self,
            RestoreCommand<AuthTarget>.self, CallCommand<AuthTarget>.self, HealthCommand<AuthTarget>.self,
            ConfigCommand<AuthTarget>.self, VersionCommand<AuthTarget>.self,
        ])
}

enum AuthTarget: CommandTarget {
    static let service = "auth"
    static let port = 7701
    static let methods = Auth.methods
}

extension AuthTarget: RestoringTarget {
    struct RestoreOptions: ParsableArguments {
        @Flag(
            help: """
                Keep the sessions and all keys of the backup: sessions and signing keys that were ended since are \
                valid again, also those of a thief, sessions that were refreshed since end at their next refresh, \
                and ID tokens of providers that signed in since do so once more until they expire.
                """)
        var keepSessions = false
    }

    static let restoreDiscussion = """


        A backup does not know what was ended after it. So all sessions end, and the next start makes new keys: no ID \
        token and no refresh token from before is valid, and no ID token of a provider that was issued before that \
        start. All users must sign in again; anonymous ones cannot.
        """

    static func restore(_ backup: String, to data: String, _ options: RestoreOptions) throws -> JSONObject {
        var storeOptions = RocksDBOptions()
        storeOptions.restoredWithout = AuthService.rowsOfCodes
        if !options.keepSessions { storeOptions.restoredWithout += AuthService.rowsOfSessionsAndKeys }
        let restored = try RocksDBStore.restore(backup: backup, of: service, to: data, options: storeOptions)
        return ["version": .number(Double(restored.version)), "epoch": .string(restored.epoch.description)]
    }
}

extension AuthTarget: ServingTarget {
    static var settingsHelp: String { AuthSettings.process.resolver.help }

    static func serve(_ settings: [String]) async -> Int32 {
        await AuthSettings.process.run(settings) { try await RunningAuth.start($0) }
    }

    static func showSettings(_ settings: [String]) -> Int32 { AuthSettings.process.showSettings(settings) }
}
