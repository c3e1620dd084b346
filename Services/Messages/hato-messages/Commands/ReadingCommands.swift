import ArgumentParser
import HatoCommand
import HatoModel
import HatoRPC

struct GetCommand: RequestCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(commandName: "get", abstract: Messages.Get.summary)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: DatabaseOption
    @Argument(help: "The path.") var path: String
    @Flag(help: "The names of the children without their data.") var shallow = false
    @Flag(help: "With priorities, without arrays.") var export = false
    @Flag(help: "The etag too.") var etag = false

    func validate() throws {
        if shallow, export { throw ValidationError("Give --shallow or --export, not both.") }
    }

    func request() throws -> Messages.Get {
        Messages.Get(
            database: try place.name(), path: try TreePath(path), form: shallow ? .shallow : export ? .export : .plain,
            etag: etag ? true : nil)
    }

    func table(_ result: JSONValue) -> CommandTable? {
        guard shallow, let children = result["value"]?.object else { return nil }
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
    @OptionGroup var place: DatabaseOption
    @OptionGroup var query: QueryOptions
    @Argument(help: "The path of the collection.") var path: String
    @Flag(help: "With priorities, without arrays.") var export = false

    func request() throws -> Messages.Get {
        Messages.Get(
            database: try place.name(), path: try TreePath(path), query: try query.query() ?? TreeQuery(order: .key),
            form: export ? .export : .plain)
    }

    /// A row for each child, a column for each member that any of them has.
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

struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen", abstract: Messages.Listen.summary,
        discussion: """
            Prints a line for each notification until it is interrupted. When the connection is lost it goes on from the \
            last notification as soon as the service answers again.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    @OptionGroup var place: DatabaseOption
    @OptionGroup var query: QueryOptions
    @Argument(help: "The path.") var path: String
    @Option(help: "Only what came after this version; with --epoch.") var since: UInt64?
    @Option(help: "The epoch the version belongs to.") var epoch: String?
    @Option(help: "Gather the changes of so many milliseconds.") var coalesceMs: Int?

    private func request() throws -> Messages.Listen {
        var request = Messages.Listen(database: try place.name(), path: try TreePath(path), query: try query.query())
        request.since = since
        request.epoch = epoch
        request.coalesceMs = coalesceMs
        return request
    }

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var listener = MessagesListener(try request()) { try await client.subscribe($0) }
            listener.whenLost = { error in
                let reason = error.reason ?? error.message
                output.complain("\(MessagesTarget.command): lost the connection (\(reason)); trying to go on")
            }
            var count = 0
            do {
                for try await event in listener {
                    try output.showLine(line(event))
                    count += 1
                    if count == stream.maxEvents { return }
                }
            } catch let cancelled as Messages.Cancelled {
                try output.showLine(line(cancelled))
                throw CommandFailure(.notAllowed, "the server ended the listener: \(cancelled.reason)")
            }
        }
    }

    private func line<Notification: RPCNotification>(_ notification: Notification) throws -> JSONValue {
        .object(["method": .string(Notification.method), "params": .object(try notification.encodedParams())])
    }
}

struct FollowCommand: StreamCommand {
    typealias Target = MessagesTarget
    static let configuration = CommandConfiguration(
        commandName: "follow", abstract: Messages.Follow.summary,
        discussion: "Prints a line for each commit until it is interrupted. For administrators.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    @OptionGroup var place: DatabaseOption
    @Option(help: "The last version that is known; 0: from the oldest that is kept. Without it: from now on.")
    var after: UInt64?
    @Option(help: "The epoch that version belongs to.") var epoch: String?
    @Option(help: "What to follow, e.g. /chats/{chat}/messages/{id}; may be repeated.") var pattern: [String] = []

    func request() throws -> Messages.Follow {
        Messages.Follow(
            database: try place.name(), after: after, epoch: epoch,
            patterns: pattern.isEmpty ? nil : try pattern.map { try FeedPattern($0) })
    }
}
