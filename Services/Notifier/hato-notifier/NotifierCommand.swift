import ArgumentParser
import HatoCommand
import HatoModel
import HatoRocksDB
import HatoRuntime
import HatoStorage

/// Runs the notifier and does by hand what it offers.
@main
struct NotifierCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hato-notifier", abstract: "Notifications and the devices they go to.",
        subcommands: [
            ServeCommand<NotifierTarget>.self, DevicesCommand.self, AppsCommand.self, CategoriesCommand.self,
            TypesCommand.self, TriggersCommand.self, TopicsCommand.self, BadgesCommand.self, PreferencesCommand.self,
            QuickRepliesCommand.self, RespondCommand.self, WithdrawCommand.self, SendCommand.self,
            SendToDeviceCommand.self, OutboxCommand.self, DeadCommand.self, FollowCommand.self, ReceiveCommand.self,
            BackupCommand.self, RestoreCommand<NotifierTarget>.self, CallCommand<NotifierTarget>.self,
            HealthCommand<NotifierTarget>.self, ConfigCommand<NotifierTarget>.self, VersionCommand<NotifierTarget>.self,
        ])
}

enum NotifierTarget: CommandTarget {
    static let service = "notifier"
    static let port = 7703
    static let methods = Notifier.methods
}

extension NotifierTarget: RestoringTarget {
    static func restore(_ backup: String, to data: String, _ options: NoRestoreOptions) throws -> JSONObject {
        let restored = try RocksDBStore.restore(backup: backup, of: service, to: data)
        return ["version": .number(Double(restored.version)), "epoch": .string(restored.epoch.description)]
    }
}

extension NotifierTarget: ServingTarget {
    static var settingsHelp: String { NotifierSettings.process.resolver.help }

    static func serve(_ settings: [String]) async -> Int32 {
        await NotifierSettings.process.run(settings) { try await RunningNotifier.start($0) }
    }

    static func showSettings(_ settings: [String]) -> Int32 { NotifierSettings.process.showSettings(settings) }
}
