import ArgumentParser
import HatoCommand
import HatoModel

struct SetCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "set", abstract: Messages.Set.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path.") var path: String
    @Argument(help: ValueArgument.help) var value: String
    @Option(help: "Only if the node still has this etag; null_etag: only if nothing is there.") var ifMatch: String?
    @Option(help: "Only if nothing there has changed since this version.") var ifVersion: UInt64?

    func request() throws -> Messages.Set {
        Messages.Set(
            database: try databaseOption.name(), path: try TreePath(path), value: try ValueArgument.value(value),
            ifMatch: ifMatch,
            ifVersion: ifVersion)
    }
}

struct PushCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "push", abstract: Messages.Push.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path of the collection.") var path: String
    @Argument(help: ValueArgument.help) var value: String
    @Option(help: "A push key made before: the same push again changes nothing.") var key: String?

    func request() throws -> Messages.Push {
        Messages.Push(
            database: try databaseOption.name(), path: try TreePath(path), value: try ValueArgument.value(value),
            key: try key.map { try PushKey($0) })
    }
}

struct UpdateCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "update", abstract: Messages.Update.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path.") var path: String
    @Argument(help: ArgumentHelp("New values by relative path, a JSON object; - or @FILE.", valueName: "json"))
    var values: String

    func request() throws -> Messages.Update {
        Messages.Update(
            database: try databaseOption.name(), path: try TreePath(path), values: try ValueArgument.object(values))
    }
}

struct RemoveCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "remove", abstract: Messages.Remove.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path.") var path: String
    @Option(help: "Only if the node still has this etag.") var ifMatch: String?

    func request() throws -> Messages.Remove {
        Messages.Remove(database: try databaseOption.name(), path: try TreePath(path), ifMatch: ifMatch)
    }
}
