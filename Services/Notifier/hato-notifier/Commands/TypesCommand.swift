import ArgumentParser
import HatoCommand
import HatoModel

struct TypesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "types", abstract: "What the data of notifications must hold.",
        subcommands: [List.self, Set.self, Remove.self])

    struct List: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Types.List.summary)

        @OptionGroup var options: ClientOptions

        func request() throws -> Notifier.Types.List { .init() }

        func table(_ result: JSONValue) -> CommandTable? {
            CommandTable(["type", "required", "optional", "template"], of: result["types"]?.array ?? [])
        }
    }

    struct Set: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(
            abstract: Notifier.Types.Set.summary,
            discussion: """
                The file holds the type as JSON, e.g. {"type":"product_detail","required":{"product_id":"id"},\
                "template":{"title":"新着商品","body":"{product_id}"}}
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - reads it from stdin.") var file: String

        func request() throws -> Notifier.Types.Set { try CommandInput.request(Notifier.Types.Set.self, of: file) }
    }

    struct Remove: RequestCommand {
        typealias Target = NotifierTarget
        static let configuration = CommandConfiguration(abstract: Notifier.Types.Remove.summary)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The type.") var type: String

        func request() throws -> Notifier.Types.Remove { .init(type: type) }
    }
}
