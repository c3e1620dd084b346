import ArgumentParser
import HatoCommand
import HatoModel

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox", abstract: "What waits, and what became of notifications.",
        subcommands: [Counts.self, Status.self, List.self, Show.self, FollowCommand.self],
        defaultSubcommand: Counts.self)

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
        @OptionGroup var page: FieldOptions<StatusFields>

        func request() throws -> Notifier.Status { try page.request(with: ["notification": .string(notification)]) }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(
                ["delivery", "device", "uid", "state", "attempts", "reason"], of: result["deliveries"]?.array ?? [])
        }
    }

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Outbox.List.summary,
            discussion: "Example: hato-notifier outbox list --uid u1 --state pending")

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Outbox.List>>

        func request() throws -> Notifier.Outbox.List { try fields.request() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(
                ["delivery", "device", "uid", "state", "attempts", "reason"], of: result["deliveries"]?.array ?? [])
        }
    }

    struct Show: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: "Shows the deliveries of a notification with every attempt that is kept.")

        @OptionGroup var options: ClientOptions
        @Argument(help: "The notification.") var notification: String
        @OptionGroup var page: FieldOptions<StatusFields>

        func request() throws -> Notifier.Status { try page.request(with: ["notification": .string(notification)]) }

        /// A line for each attempt, the oldest first; one for a delivery without any.
        func table(_ result: JSONValue) -> CommandTable? {
            let lines = (result["deliveries"]?.array ?? []).flatMap { delivery -> [JSONValue] in
                let attempts = (delivery["history"]?.array ?? []) + [delivery["lastAttempt"]].compactMap(\.self)
                return (attempts.isEmpty ? [nil] : attempts.map(Optional.some)).map { attempt in
                    var line: JSONObject = [:]
                    for name in ["delivery", "device", "state", "reason"] { line[name] = delivery[name] }
                    for name in ["at", "status", "id", "error"] { line[name] = attempt?[name] }
                    return .object(line)
                }
            }
            return CommandTable(["delivery", "device", "state", "reason", "at", "status", "id", "error"], of: lines)
        }
    }
}

enum StatusFields: OptionFields {
    typealias Object = Notifier.Status
    static let omitted: Set<String> = ["notification"]
}

/// Also `outbox follow`.
struct FollowCommand: StreamCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "follow", abstract: Notifier.Follow.summary,
        discussion: "Prints a line for each event. Example: hato-notifier follow --after 0 --max-events 10")

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    @OptionGroup var fields: FieldOptions<AllFields<Notifier.Follow>>

    func request() throws -> Notifier.Follow { try fields.request() }
}

/// One of the values that an option may have.
func choice<Choice: FieldChoice>(_ text: String) throws -> Choice {
    if let choice = Choice(rawValue: text) { return choice }
    throw ValidationError("Give one of \(Choice.allCases.map(\.rawValue).joined(separator: ", ")).")
}

struct DeadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead", abstract: "Deliveries that were given up.",
        subcommands: [List.self, Replay.self, Drop.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Dead.List.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Dead.List>>

        func request() throws -> Notifier.Dead.List { try fields.request() }

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
