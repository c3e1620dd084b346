import ArgumentParser
import HatoCommand
import HatoMessages
import HatoModel
import HatoRocksDB
import HatoStorage

/// `verify`: asks the running service, or reads a data folder that no service has open.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: Messages.Verify.summary,
        discussion: """
            Asks the running service, which goes on serving. With --data it reads the folder itself, where no service \
            runs: every block comes from the disk, and nothing is written, whatever is wrong. Prints what was found and \
            ends with 1 if that is anything. For administrators.
            """)

    @OptionGroup var options: ClientOptions
    @Option(help: ArgumentHelp("A data folder that no service has open.", valueName: "dir"))
    var data: String?

    func run() async throws {
        if let data {
            let output = CommandOutput.standard(json: options.json)
            try await CommandSession.reporting(MessagesTarget.self, output) {
                try Self.report(try Self.verify(data, output), output)
            }
        } else {
            try await CommandSession.run(options, MessagesTarget.self) { client, output in
                let watch = Task { await Self.watch(client, output) }
                let outcome: Result<Messages.Verify.Result, any Error>
                do { outcome = .success(try await client.call(Messages.Verify())) } catch { outcome = .failure(error) }
                watch.cancel()
                await watch.value
                try Self.report(try outcome.get(), output)
            }
        }
    }

    /// Draws the progress of the service's check, from its metrics, until it is cancelled.
    private static func watch(_ client: CommandClient, _ output: CommandOutput) async {
        guard output.showsProgress else { return }
        var rows: RowCount?
        while (try? await Task.sleep(for: .milliseconds(500))) != nil {
            guard let text = try? await client.call(Service.Metrics()).text else { continue }
            func figure(_ name: String) -> Int {
                let line = text.split(separator: "\n").first { $0.hasPrefix("hato_messages_\(name) ") }
                return line?.split(separator: " ").last.flatMap { Double($0) }.flatMap { Int(exactly: $0) } ?? 0
            }
            let read = figure("verify_rows")
            guard read > 0 else { continue }
            // Once in the files, once by their meaning.
            let total = 2 * (figure("store_rows") + figure("store_kept_changes"))
            let bar = rows ?? RowCount(output, total: total)
            bar.show(read)
            rows = bar
        }
        rows?.finish()
    }

    private static func verify(_ data: String, _ output: CommandOutput) throws -> Messages.Verify.Result {
        // hato-dev keeps a store where a service keeps a folder with one.
        let own = RocksDBStore.folder(in: data)
        let folder = Files.exists(own) ? own : data
        let inspection: RocksDBInspection
        do {
            inspection = try RocksDBInspection(folder: folder, of: "messages")
        } catch .corrupted(let problem) {
            // Too damaged to be opened, which is a finding.
            let finding = Messages.Verify.Finding(.storage, problem)
            return Messages.Verify.Result(version: 0, findings: [finding], findingCount: 1, checked: .init())
        } catch {
            throw CommandFailure(.inputOutput, "\(error)")
        }
        defer { inspection.close() }
        let rows = RowCount(output)
        defer { rows.finish() }
        return try StoreVerification(
            inspection, findingsMax: MessagesLimits().verifyFindingsMax, progress: rows.show
        ).run()
    }

    private static func report(_ result: Messages.Verify.Result, _ output: CommandOutput) throws {
        let json = result.json
        var table = CommandTable(["kind", "database", "path", "index", "version", "problem"])
        for finding in json["findings"]?.array ?? [] { table.append(table.columns.map { finding[$0] ?? .null }) }
        try output.show(json, as: result.findings.isEmpty ? nil : table)
        let checked = result.checked
        output.complain(
            "version \(result.version): \(checked.databases) databases with \(checked.rows) rows, \(checked.indexes) "
                + "indexes with \(checked.indexRows) rows, \(checked.changes) changes; "
                + (result.findingCount == 0 ? "all is well" : "\(result.findingCount) findings"))
        if result.findingCount > 0 { throw ExitCode(CommandFailure.Code.refused.rawValue) }
    }
}

/// The progress bar, in a form that a closure can capture.
private final class RowCount {
    private var bar: ProgressBar
    private var shown = 0

    init(_ output: CommandOutput, total: Int? = nil) {
        bar = ProgressBar("verify: rows", total: total, output: output)
    }

    func show(_ rows: Int) {
        bar.advance(by: rows - shown)
        shown = rows
    }

    func finish() { bar.finish() }
}
