import ArgumentParser
import HatoCommand
import HatoModel

struct RulesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules", abstract: "Security rules, for administrators.",
        subcommands: [Get.self, Set.self, RulesTestCommand.self])

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "get", abstract: "Prints the rules as they were written.")

        @OptionGroup var options: ClientOptions
        @OptionGroup var databaseOption: DatabaseOption
        @Flag(help: "As JSON, without comments.") var strict = false

        func run() async throws {
            try await CommandSession.run(options, MessagesTarget.self, takesOnly: true) { client, output in
                let request = Messages.Rules.Get(database: try databaseOption.name(), strict: strict ? true : nil)
                let result = try await client.call(request)
                if let member = options.only {
                    try output.show(member: member, of: ["rules": .string(result.rules)])
                } else if options.json {
                    try output.show(["rules": .string(result.rules)])
                } else {
                    try output.show(text: result.rules)
                }
            }
        }
    }

    struct Set: RequestCommand {
        typealias Target = MessagesTarget
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: Messages.Rules.Set.summary,
            discussion: "Problems of the rules are printed as FILE:line:column: message, and nothing changes.")

        @OptionGroup var options: ClientOptions
        @OptionGroup var databaseOption: DatabaseOption
        @Argument(help: "The file that holds the rules.") var file: String
        @Flag(help: "Only say whether the rules are right.") var dryRun = false

        func request() throws -> Messages.Rules.Set {
            let text = String(decoding: try CommandInput.bytes(of: file), as: UTF8.self)
            return Messages.Rules.Set(database: try databaseOption.name(), rules: text, dryRun: dryRun ? true : nil)
        }

        func failure(_ error: RPCError) -> CommandFailure { CommandFailure(error, ofRulesIn: file) }
    }
}

struct IndexCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index", abstract: "Indexes, for administrators.", subcommands: [List.self],
        defaultSubcommand: List.self)

    struct List: RequestCommand {
        typealias Target = MessagesTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Messages.Indexes.List.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var databaseOption: DatabaseOption

        func request() throws -> Messages.Indexes.List { Messages.Indexes.List(database: try databaseOption.name()) }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["pattern", "on", "state", "entries", "progress"], of: result.array ?? [])
        }
    }
}

struct DatabasesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "databases", abstract: "Databases, for administrators.",
        subcommands: [List.self, Create.self, Drop.self], defaultSubcommand: List.self)

    struct List: RequestCommand {
        typealias Target = MessagesTarget
        static let configuration = CommandConfiguration(commandName: "list", abstract: Messages.Databases.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Messages.Databases.List { Messages.Databases.List() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["name", "createdAt"], of: result["databases"]?.array ?? [])
        }
    }

    struct Create: RequestCommand {
        typealias Target = MessagesTarget
        static let configuration = CommandConfiguration(
            commandName: "create", abstract: Messages.Databases.Create.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "Its name: a-z, 0-9 and -.") var name: String
        @Option(help: "A file with its rules; without it users may do nothing.") var rules: String?

        func request() throws -> Messages.Databases.Create {
            Messages.Databases.Create(
                database: try DatabaseName(name),
                rules: try rules.map { String(decoding: try CommandInput.bytes(of: $0), as: UTF8.self) })
        }

        func failure(_ error: RPCError) -> CommandFailure {
            rules.map { CommandFailure(error, ofRulesIn: $0) } ?? CommandFailure(error)
        }
    }

    struct Drop: RequestCommand {
        typealias Target = MessagesTarget
        static let configuration = CommandConfiguration(
            commandName: "drop", abstract: Messages.Databases.Drop.summary,
            discussion: "It asks first; a script gives --yes.")

        @OptionGroup var options: ClientOptions
        @Argument(help: "Its name.") var name: String
        @Flag(help: "Do not ask.") var yes = false

        var question: String? {
            yes ? nil : "The database \"\(name)\" and everything in it will be gone for good. Drop it?"
        }

        func request() throws -> Messages.Databases.Drop { Messages.Databases.Drop(database: try DatabaseName(name)) }
    }
}

struct StatsCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "stats", abstract: Messages.Stats.summary)

    @OptionGroup var options: ClientOptions

    func request() throws -> Messages.Stats { Messages.Stats() }
}

struct BackupCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: Messages.Backup.summary,
        discussion: "The service writes it, under its --backup-dir; `hato-messages restore` makes a data folder of it.")

    @OptionGroup var options: ClientOptions
    @Argument(help: "The name of the copy.") var name: String

    func request() throws -> Messages.Backup { Messages.Backup(name: try BackupName(name)) }
}
