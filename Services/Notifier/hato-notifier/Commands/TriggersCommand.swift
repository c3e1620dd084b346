import ArgumentParser
import HatoCommand
import HatoModel
import HatoNotifier

struct TriggersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "triggers", abstract: "What makes notifications of changes in the message database.",
        subcommands: [List.self, Set.self, Remove.self, Test.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Triggers.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Triggers.List { .init() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["id", "database", "pattern", "on", "recipients"], of: result["triggers"]?.array ?? [])
        }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Triggers.Set.summary,
            discussion: """
                --shipped chat needs a category: categories set --shipped quick-replies. The file holds the trigger as \
                JSON, e.g. {"id":"chat-message","pattern":"/chats/{chat}/messages/{id}",\
                "on":["created"],"recipients":{"uidsAt":"/chats/{chat}/members"},"notification":\
                {"title":"{after.senderName}さんからのメッセージ","body":"{after.text}"}}
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - reads it from stdin.") var file: String?
        @Option(help: "In place of a file, a trigger that comes along: chat or latest-message.") var shipped: String?

        func validate() throws {
            guard (file == nil) != (shipped == nil) else {
                throw ValidationError("Give a file, or a trigger that comes along with --shipped.")
            }
        }

        func request() throws -> Notifier.Triggers.Set {
            if let shipped { return try ShippedTriggers(name: shipped).request() }
            return try CommandInput.request(Notifier.Triggers.Set.self, of: file ?? "-")
        }
    }

    struct Remove: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Triggers.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The trigger.") var id: String

        func request() throws -> Notifier.Triggers.Remove { .init(id: id) }
    }

    struct Test: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Triggers.Test.summary,
            discussion: """
                Without --type, --before and --after, the change is that what stands at the path was created. \
                Examples: hato-notifier triggers test chat-message /chats/c1/messages/m1 --author masuo; \
                hato-notifier triggers test chat-message /chats/c1/messages/m1 \
                --after '{"senderName":"マスオ","text":"ただいま"}'
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The trigger.") var id: String
        @Argument(help: "Where the change happens.") var path: String
        @OptionGroup var fields: FieldOptions<TrialFields>
        @Option(help: Self.value("before")) var before: String?
        @Option(help: Self.value("after")) var after: String?
        @Option(help: "The uid of the author of the change.") var author: String?

        private static func value(_ when: String) -> ArgumentHelp {
            ArgumentHelp(
                "The value \(when) the change, as JSON; - reads it from stdin, @FILE from a file.", valueName: "json")
        }

        func request() throws -> Notifier.Triggers.Test {
            // Before one of them is read.
            if before == "-", after == "-" { throw CommandInput.twoOnStdin("--before", "--after") }
            var members: JSONObject = ["id": .string(id), "path": .string(path)]
            if let before { members["before"] = try ValueArgument.value(before, "--before") }
            if let after { members["after"] = try ValueArgument.value(after, "--after") }
            if let author { members["uid"] = .string(author) }
            return try fields.request(with: members)
        }
    }
}

enum TrialFields: OptionFields {
    typealias Object = Notifier.Triggers.Test
    static let omitted: Set<String> = ["id", "path", "before", "after", "uid"]
}
