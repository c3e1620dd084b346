import ArgumentParser
import HatoCommand
import HatoModel

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "What waits, and what became of notifications.",
        subcommands: [Counts.self, Status.self, Follow.self], defaultSubcommand: Counts.self)

    struct Counts: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Stats.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Stats { .init() }
    }

    struct Status: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Status.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The notification.") var notification: String

        func request() throws -> Notifier.Status { .init(notification: notification) }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(
                ["delivery", "device", "uid", "state", "attempts", "reason"], of: result["deliveries"]?.array ?? [])
        }
    }

    struct Follow: StreamCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Follow.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var stream: StreamOptions
        @Option(help: "Go on after this position; 0: from the oldest kept.") var after: Int?

        func request() throws -> Notifier.Follow { .init(after: after) }
    }
}

struct DeadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead", abstract: "Deliveries that were given up.",
        subcommands: [List.self, Replay.self, Drop.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Dead.List.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "Where the page begins: after of the previous page.") var after: String?
        @Option(help: "At most so many.") var limit: Int?

        func request() throws -> Notifier.Dead.List { .init(after: after, limit: limit) }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["delivery", "device", "uid", "title", "reason", "attempts"], of: result["dead"]?.array ?? [])
        }
    }

    struct Replay: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Dead.Replay.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The deliveries.") var deliveries: [String] = []
        @Flag(help: "All of them.") var all = false

        func request() throws -> Notifier.Dead.Replay {
            .init(deliveries: deliveries.isEmpty ? nil : deliveries, all: all ? true : nil)
        }
    }

    struct Drop: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Dead.Drop.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The deliveries.") var deliveries: [String] = []
        @Flag(help: "All of them.") var all = false

        func request() throws -> Notifier.Dead.Drop {
            .init(deliveries: deliveries.isEmpty ? nil : deliveries, all: all ? true : nil)
        }
    }
}

struct BackupCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: Notifier.Backup.summary,
        discussion: "The service writes it, under its --backup-dir; `hato-notifier restore` makes a data folder of it.")

    @OptionGroup var options: ClientOptions
    @Argument(help: "The name of the backup.") var name: String

    func request() throws -> Notifier.Backup { .init(name: try BackupName(name)) }
}
