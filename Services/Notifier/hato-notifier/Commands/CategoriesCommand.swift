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
            return try CommandInput.request(Notifier.Categories.Set.self, of: file ?? "-")
        }
    }

    struct Get: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Categories.Get.summary)

        @OptionGroup var options: ClientOptions
        @OptionGroup var fields: FieldOptions<AllFields<Notifier.Categories.Get>>

        func request() throws -> Notifier.Categories.Get { try fields.request() }

        func table(_ result: JSONValue) -> CommandTable? {
            result["categories"]?.array.map { CommandTable(["id", "actions"], of: $0) }
        }
    }

    struct Remove: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Categories.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The category.") var id: String

        func request() throws -> Notifier.Categories.Remove { .init(id: id) }
    }
}
