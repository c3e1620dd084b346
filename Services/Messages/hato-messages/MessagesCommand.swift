import ArgumentParser
import HatoCommand
import HatoModel
import HatoRocksDB
import HatoRuntime
import HatoStorage

/// Runs the messages service, and has a subcommand for each of its methods that people call by hand.
@main
struct MessagesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-messages", abstract: "A realtime tree of messages with queries, indexes and rules.",
        subcommands: [
            ServeCommand<MessagesTarget>.self, GetCommand.self, QueryCommand.self, SetCommand.self, PushCommand.self,
            UpdateCommand.self, RemoveCommand.self, ListenCommand.self, FollowCommand.self, RulesCommand.self,
            IndexCommand.self, DatabasesCommand.self, ExportCommand.self, ImportCommand.self, ImportChatsCommand.self,
            StatsCommand.self, BackupCommand.self, RestoreCommand<MessagesTarget>.self, VerifyCommand.self,
            CallCommand<MessagesTarget>.self,
            HealthCommand<MessagesTarget>.self, ConfigCommand<MessagesTarget>.self, VersionCommand<MessagesTarget>.self,
        ])
}

enum MessagesTarget: CommandTarget {
    static let service = "messages"
    static let port = 7702
    static let methods = Messages.methods
}

extension MessagesTarget: RestoringTarget {
    static func restore(_ backup: String, to data: String, _ options: NoRestoreOptions) throws -> JSONObject {
        let restored = try RocksDBStore.restore(backup: backup, of: service, to: data)
        return ["version": .number(Double(restored.version)), "epoch": .string(restored.epoch.description)]
    }
}

extension MessagesTarget: ServingTarget {
    static var settingsHelp: String { MessagesSettings.process.resolver.help }

    static func serve(_ settings: [String]) async -> Int32 {
        await MessagesSettings.process.run(settings) { try await RunningMessages.start($0) }
    }

    static func showSettings(_ settings: [String]) -> Int32 { MessagesSettings.process.showSettings(settings) }
}
