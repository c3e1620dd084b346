import ArgumentParser
import HatoCommand
import HatoModel
import HatoRocksDB
import HatoStorage

/// Runs the auth service and does by hand what it offers.
@main
struct AuthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-auth", abstract: "Accounts and the tokens that prove them.",
        subcommands: [
            ServeCommand.self, SignUpCommand.self, SignInCommand.self, RefreshCommand.self, SignOutCommand.self,
            AccountCommand.self, UsersCommand.self, KeysCommand.self, BackupCommand.self,
            RestoreCommand<AuthTarget>.self, CallCommand<AuthTarget>.self, HealthCommand<AuthTarget>.self,
            ConfigCommand.self, VersionCommand<AuthTarget>.self,
        ])
}

enum AuthTarget: CommandTarget {
    static let service = "auth"
    static let port = 7701
    static let methods = Auth.methods
}

extension AuthTarget: RestoringTarget {
    static func restore(_ backup: String, to data: String) throws -> JSONObject {
        let restored = try RocksDBStore.restore(backup: backup, of: service, to: data)
        return ["version": .number(Double(restored.version)), "epoch": .string(restored.epoch.description)]
    }
}
