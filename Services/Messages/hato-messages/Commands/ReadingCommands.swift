import ArgumentParser
import HatoCommand
import HatoModel
import HatoRPC

/// How a value is written.
struct FormOptions: ParsableArguments {
    @Flag(help: "The names of the children without their data.") var shallow = false
    @Flag(help: "With priorities, without arrays.") var export = false

    func validate() throws {
        if shallow, export { throw ValidationError("Give --shallow or --export, not both.") }
    }

    var form: Messages.Get.Form { shallow ? .shallow : export ? .export : .plain }
}

struct GetCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "get", abstract: Messages.Get.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path.") var path: String
    @OptionGroup var form: FormOptions
    @Flag(help: "The etag too.") var etag = false

    func request() throws -> Messages.Get {
        Messages.Get(
            database: try databaseOption.name(), path: try TreePath(path),
            form: form.form, etag: etag ? true : nil)
    }

    func table(_ result: JSONValue) -> CommandTable? {
        guard form.shallow, let children = result["value"]?.object else { return nil }
        var table = CommandTable(["child"])
        for child in children.members { table.append([.string(KeyEscaping.unescape(child.name))]) }
        return table
    }
}

struct QueryCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(
        commandName: "query", abstract: "Reads the children of a node that a query selects, in its order.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @OptionGroup var query: QueryOptions
    @Argument(help: "The path of the collection.") var path: String
    @OptionGroup var form: FormOptions

    func request() throws -> Messages.Get {
        Messages.Get(
            database: try databaseOption.name(), path: try TreePath(path),
            query: try query.query() ?? TreeQuery(order: .key),
            form: form.form)
    }

    /// A row for each child, a column for each member of any of them.
    func table(_ result: JSONValue) -> CommandTable? {
        guard let value = result["value"]?.object, let keys = result["keys"]?.array?.compactMap(\.string) else {
            return nil
        }
        var columns: [String] = []
        for child in value.members {
            for member in child.value.object?.members ?? [] where !columns.contains(member.name) {
                columns.append(member.name)
            }
        }
        let isFlat = columns.isEmpty
        var table = CommandTable(["key"] + (isFlat ? ["value"] : columns))
        for key in keys {
            let child = value[key] ?? .null
            let cells = isFlat ? [child] : columns.map { child[$0] ?? .null }
            table.append([.string(KeyEscaping.unescape(key))] + cells)
        }
        return table
    }
}
