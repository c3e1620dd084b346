import ArgumentParser
import HatoCommand
import HatoModel

struct TopicsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics", abstract: "Users that are notified together.",
        subcommands: [List.self, Subscribe.self, Unsubscribe.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Topics.List.summary,
            discussion: "Example: hato-notifier topics list --topic news")

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Topics.List>>

        func request() throws -> Notifier.Topics.List { try fields.request() }

        func table(_ result: JSONValue) -> CommandTable? {
            guard let uids = result["uids"]?.array else {
                return CommandTable(["topic", "users"], of: result["topics"]?.array ?? [])
            }
            return CommandTable(["uid"], of: uids.map { ["uid": $0] })
        }
    }

    struct Subscribe: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Topics.Subscribe.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The topic.") var topic: String
        @Option(help: "The user (administrators).") var uid: String?

        func request() throws -> Notifier.Topics.Subscribe { .init(topic: topic, uid: uid) }
    }

    struct Unsubscribe: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Topics.Unsubscribe.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The topic.") var topic: String
        @Option(help: "The user (administrators).") var uid: String?

        func request() throws -> Notifier.Topics.Unsubscribe { .init(topic: topic, uid: uid) }
    }
}
