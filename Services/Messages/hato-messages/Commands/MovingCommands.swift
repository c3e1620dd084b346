import ArgumentParser
import HatoCommand
import HatoModel

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Prints every value below a path, a line of JSON each: [path, value].",
        discussion: "All lines show one version. For administrators.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The path.") var path = "/"
    @Option(help: "Values a call.") var pageSize = 1_000

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            var request = Messages.Export(
                database: try databaseOption.name(), path: try TreePath(path), limit: pageSize)
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
            A file holds one JSON tree, as Firebase exports it, when its name ends in .json or .json.gz or it begins with \
            {; any other holds lines as `export` prints them. Both may be gzipped and of any size; - is stdin. A file is \
            read through once before anything is written, and refused with what is wrong in it; stdin is not. A \
            name that an object has twice is refused, and so is a line whose path is that of another line or lies below its \
            value: as far as the names of an object take 128 MiB, and the paths 256 MiB; beyond, the last one counts. Nodes \
            that are not in the file stay. Its pages are written one after the other: after a failure the first ones are \
            written, and importing the file again writes the same. For administrators.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The file; - is stdin.") var file: String
    @Option(help: "The path to write at.") var path = "/"
    @Flag(help: "Triggers do not fire; followers get only the fact of a write.") var disableTriggers = false

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            let (database, path) = (try databaseOption.name(), try TreePath(path))
            var total: Int?
            if file != "-" { total = try Self.countRows(of: file, output) }
            var upload = RowUpload(
                client: client, database: database, path: path, disableTriggers: disableTriggers)
            let rows = try RowFile(path: file, comparesRows: file == "-")
            var bar = ProgressBar("import", total: total, output: output)
            while let row = try rows.next() {
                try await upload.add(row)
                bar.advance()
            }
            let version = try await upload.finish()
            bar.finish()
            try output.show([
                "rows": .number(Double(upload.rowCount)), "version": version.map { .number(Double($0)) } ?? .null,
            ])
        }
    }

    /// Throws the problem of a wrong file before any of it is written.
    private static func countRows(of file: String, _ output: CommandOutput) throws -> Int {
        let rows = try RowFile(path: file, comparesRows: true)
        var bar = ProgressBar("check", total: nil, output: output)
        var count = 0
        while try rows.next() != nil {
            count += 1
            bar.advance()
        }
        bar.finish()
        return count
    }
}
