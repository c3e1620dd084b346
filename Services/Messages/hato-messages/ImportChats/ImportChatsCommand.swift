import ArgumentParser
import Foundation
import HatoCommand
import HatoModel

struct ImportChatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import-chats", abstract: "Imports chat logs: lines of {\"room\",\"at\",\"sender\",\"text\"}.",
        discussion: """
            A message goes to /chats/{room}/messages/{id} as {date, senderId, senderName, text}; its room is made under \
            /chats and its sender under /users. Names that hold what keys must not are percent-escaped in keys. Ids are \
            made from the lines, so importing the same file twice changes nothing: of the "messages" in the file, \
            "alreadyThere" says how many were there before. The file may be gzipped.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var databaseOption: DatabaseOption
    @Argument(help: "The file; - is stdin.") var file: String
    @Flag(help: "Report a wrong line and continue.") var skipBadLines = false

    func run() async throws {
        try await CommandSession.run(options, MessagesTarget.self) { client, output in
            let database = try databaseOption.name()
            let size = (try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? nil
            let lines = try LineFile(path: file)
            var bar = ProgressBar("import", total: size, output: output)
            var report = Report()
            var batches = ChatBatches()
            var upload = ChatUpload(client: client, database: database)
            var read = 0
            while let line = try next(lines, &report, output) {
                batches.add(line)
                report.messages += 1
                guard batches.isFull else { continue }
                try await upload.send(batches.take())
                bar.advance(by: lines.bytesRead - read)
                read = lines.bytesRead
            }
            try await upload.send(batches.take())
            try await upload.finish()
            bar.advance(by: lines.bytesRead - read)
            bar.finish()
            try output.show([
                "messages": .number(Double(report.messages)),
                "alreadyThere": .number(Double(upload.alreadyThere + batches.repeated)),
                "rooms": .number(Double(batches.roomCount)),
                "senders": .number(Double(batches.senderCount)), "skippedLines": .number(Double(report.skipped)),
            ])
        }
    }

    private struct Report {
        var line = 0
        var messages = 0
        var skipped = 0
    }

    /// The next good line; nil at the end. A bad one ends the import, or is reported and skipped.
    private func next(_ lines: LineFile, _ report: inout Report, _ output: CommandOutput) throws -> ChatLine? {
        while let bytes = try lines.next() {
            report.line += 1
            if let bytes, bytes.allSatisfy({ $0 == UInt8(ascii: " ") }) { continue }
            do throws(ChatLineProblem) {
                guard let bytes else { throw ChatLineProblem("is \(LineFile.tooLong)") }
                return try ChatLine(bytes)
            } catch {
                let problem = "line \(report.line) of \(lines.name) \(error)"
                guard skipBadLines else {
                    throw CommandFailure(.inputOutput, problem + "; --skip-bad-lines goes on after such lines")
                }
                output.complain("hato-messages: \(problem); skipped")
                report.skipped += 1
            }
        }
        return nil
    }
}

/// Updates in flight, a few at a time: the service commits them together, and the connection is never idle.
struct ChatUpload {
    private static let inFlightMax = 8

    let client: CommandClient
    let database: DatabaseName?
    /// Messages of the written batches that existed before.
    private(set) var alreadyThere = 0
    private var earlier: EarlierMessages
    private var inFlight: [Task<Int, any Error>] = []

    init(client: CommandClient, database: DatabaseName?) {
        self.client = client
        self.database = database
        earlier = EarlierMessages(client: client, database: database)
    }

    mutating func send(_ batch: ChatBatches.Batch) async throws {
        guard !batch.values.isEmpty else { return }
        if inFlight.count >= Self.inFlightMax {
            let found = try await inFlight.removeFirst().value
            alreadyThere += found
        }
        var params: JSONObject = ["path": "/"]
        if let database { params.append("database", .string(database.rawValue)) }
        params.append("values", .object(batch.values))
        let (client, request, count) = (client, params, earlier.count(batch.messages))
        inFlight.append(
            Task {
                let found = try await count.value
                _ = try await client.call(method: Messages.Update.method, params: request)
                return found
            })
    }

    mutating func finish() async throws {
        for task in inFlight {
            let found = try await task.value
            alreadyThere += found
        }
        inFlight = []
    }
}
