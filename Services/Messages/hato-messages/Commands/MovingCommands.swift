import ArgumentParser
import HatoCommand
import HatoModel

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Prints every value below a path, a line of JSON each: [path, value].",
        discussion: "All lines show one version. For administrators.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: DatabaseOption
    @Argument(help: "The path.") var path = "/"
    @Option(help: "Values a call.") var pageSize = 1_000

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var request = Messages.Export(database: try place.name(), path: try TreePath(path), limit: pageSize)
            var bar = ProgressBar("export", total: nil, output: output)
            while true {
                let page = try await client.call(request)
                var lines: [UInt8] = []
                for row in page.rows { lines += JSONValue.array(row).encoded + [UInt8(ascii: "\n")] }
                try output.show(bytes: lines)
                bar.advance(by: page.rows.count)
                request.snapshot = page.snapshot
                request.after = page.after
                if page.after == nil { break }
            }
            bar.finish()
        }
    }
}

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Writes what was exported, or a JSON tree, below a path.",
        discussion: """
            A file whose name ends in .json holds one tree, as Firebase exports it; any other file lines as `export` \
            prints them, perhaps gzipped; - is stdin. What is there and not in the file stays. For administrators.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: DatabaseOption
    @Argument(help: "The file; - is stdin.") var file: String
    @Option(help: "Where it goes.") var path = "/"
    @Flag(help: "Followers do not see it.") var disableTriggers = false

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var pages = ImportPages(
                client: client, database: try place.name(), path: try TreePath(path),
                disableTriggers: disableTriggers ? true : nil)
            var bar = ProgressBar("import", total: nil, output: output)
            if file.hasSuffix(".json") {
                let tree = try TreeNode(json: try ValueArgument.value("@" + file))
                for row in TreeRows.rows(of: tree) {
                    try await pages.add(row)
                    bar.advance()
                }
            } else {
                let lines = try LineFile(path: file)
                var number = 0
                while let line = try lines.next() {
                    number += 1
                    guard let line else {
                        throw CommandFailure(.inputOutput, "line \(number) of \(lines.name) is \(LineFile.tooLong)")
                    }
                    guard !line.isEmpty else { continue }
                    guard let row = try? JSONParser.parse(line).array else {
                        throw CommandFailure(
                            .inputOutput, "line \(number) of \(lines.name) is no row, such as [\"/title\",\"磯野家\"]")
                    }
                    try await pages.add(row)
                    bar.advance()
                }
            }
            let version = try await pages.finish()
            bar.finish()
            try output.show([
                "rows": .number(Double(pages.rowCount)), "version": version.map { .number(Double($0)) } ?? .null,
            ])
        }
    }
}

/// Rows on their way to the service, a page a call.
private struct ImportPages {
    private static let rowsMax = 1_000
    private static let bytesMax = 1 << 20

    let client: CommandClient
    let database: DatabaseName?
    let path: TreePath
    let disableTriggers: Bool?
    private(set) var rowCount = 0
    private var rows: [[JSONValue]] = []
    private var bytes = 0
    private var version: UInt64?

    init(client: CommandClient, database: DatabaseName?, path: TreePath, disableTriggers: Bool?) {
        self.client = client
        self.database = database
        self.path = path
        self.disableTriggers = disableTriggers
    }

    mutating func add(_ row: [JSONValue]) async throws {
        // The priority of a leaf stays on the page of its leaf.
        let isPriority = row.first?.string?.hasSuffix("/.priority") ?? false
        if rows.count >= Self.rowsMax || bytes >= Self.bytesMax, !isPriority { try await send() }
        rows.append(row)
        rowCount += 1
        bytes += JSONValue.array(row).encoded.count
    }

    /// The version of the last page; nil when there was none.
    mutating func finish() async throws -> UInt64? {
        try await send()
        return version
    }

    private mutating func send() async throws {
        guard !rows.isEmpty else { return }
        let request = Messages.Import(database: database, path: path, rows: rows, disableTriggers: disableTriggers)
        version = try await client.call(request).version
        rows = []
        bytes = 0
    }
}

/// The rows of a tree as `messages.export` would give them.
enum TreeRows {
    static func rows(of node: TreeNode) -> [[JSONValue]] {
        var rows: [[JSONValue]] = []
        append(node, at: "", to: &rows)
        return rows
    }

    private static func append(_ node: TreeNode, at path: String, to rows: inout [[JSONValue]]) {
        if let leaf = node.leaf { rows.append([.string(path.isEmpty ? "/" : path), leaf.json]) }
        if let priority = node.priority { rows.append([.string(path + "/.priority"), priority.leaf.json]) }
        if let children = node.children {
            for child in children { append(child.node, at: "\(path)/\(child.key)", to: &rows) }
        }
    }
}
