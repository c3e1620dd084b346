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
            let file = file ?? "-"
            guard let object = try JSONParser.parse(CommandInput.bytes(of: file)).object else {
                throw CommandFailure(.usage, "'\(file)' holds no JSON object")
            }
            return try Notifier.Triggers.Set.decode(object)
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
        @Option(help: "created, updated or deleted; created if it is not given.") var type: String?
        @Option(help: "What was there before, as JSON.") var before: String?
        @Option(help: "What is there after, as JSON.") var after: String?
        @Option(help: "The uid of the caller that writes.") var author: String?

        func request() throws -> Notifier.Triggers.Test {
            var request = Notifier.Triggers.Test(id: id, path: try TreePath(path))
            if let type {
                guard let type = Notifier.ChangeType(rawValue: type) else {
                    throw ValidationError("--type is created, updated or deleted.")
                }
                request.type = type
            }
            request.before = try before.map { try JSONParser.parse(Array($0.utf8)) }
            request.after = try after.map { try JSONParser.parse(Array($0.utf8)) }
            request.uid = author
            return request
        }
    }
}
