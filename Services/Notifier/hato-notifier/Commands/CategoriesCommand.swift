import ArgumentParser
import HatoCommand
import HatoModel
import HatoNotifier

struct CategoriesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "categories", abstract: "The actions of notifications.",
        subcommands: [List.self, Set.self, Get.self, Remove.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Categories.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Categories.List { .init() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["id", "actions"], of: result["categories"]?.array ?? [])
        }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Categories.Set.summary,
            discussion: """
                The file holds the category as JSON, e.g. {"id":"MARRY_ME","actions":[{"id":"ACCEPT","title":"承認",\
                "effect":{"push":{"path":"/proposals","value":{"uid":"{uid}"}}}},{"id":"REFUSE","title":"拒否",\
                "activation":"foreground","destructive":true}]}
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - reads it from stdin.") var file: String?
        @Option(help: "In place of a file, a category that comes along: quick-replies.") var shipped: String?

        func validate() throws {
            guard (file == nil) != (shipped == nil) else {
                throw ValidationError("Give a file, or a category that comes along with --shipped.")
            }
        }

        func request() throws -> Notifier.Categories.Set {
            if let shipped { return try ShippedCategories(name: shipped).request() }
            let file = file ?? "-"
            guard let object = try JSONParser.parse(CommandInput.bytes(of: file)).object else {
                throw CommandFailure(.usage, "'\(file)' holds no JSON object")
            }
            return try Notifier.Categories.Set.decode(object)
        }
    }

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Categories.Get.summary)

        @OptionGroup var options: ClientOptions
        @Option(help: "That of a former result.") var etag: String?

        func request() throws -> Notifier.Categories.Get { .init(etag: etag) }
    }

    struct Remove: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Categories.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The category.") var id: String

        func request() throws -> Notifier.Categories.Remove { .init(id: id) }
    }
}
