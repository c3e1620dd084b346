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
        @Option(help: "List the users of this topic (administrators).") var topic: String?
        @Option(help: "List the topics of this user (administrators).") var uid: String?
        @Option(help: "Where the page begins: after of the previous page.") var after: String?
        @Option(help: "At most so many.") var limit: Int?

        func request() throws -> Notifier.Topics.List { .init(topic: topic, uid: uid, after: after, limit: limit) }

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
