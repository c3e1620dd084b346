import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-messages listen` and `follow` while their service stops and starts.
@Suite(.timeLimit(.minutes(10)))
struct ListeningAgain {
    /// Starts a command of `hato-messages`, restarts its service with two writes while the command is not connected,
    /// and makes a last write. Returns the end of the command and the lines it printed.
    ///
    /// - Parameter linesAfterRestart: the number of lines before the last write.
    private func restarting(
        _ arguments: [String], linesAfterRestart: Int
    ) async throws -> (end: Executable.Ended, lines: [JSONValue]) {
        let folder = try TemporaryFolder()
        let serve = ["--data", "\(folder.path)/data", "--auth", "127.0.0.1:1"]
        let first = try await ServingProgram("hato-messages", serve, in: folder)
        try await set("x", at: first)
        let printed = try folder.write("printed", "")
        let environment = [
            "HATO_MESSAGES_SERVER": first.address, "HATO_ADMIN_KEY_FILE": "\(folder.path)/admin-key",
        ]
        async let ended = Executable.run("hato-messages", arguments, environment, streams: .init(output: printed))
        try await eventually("the first line is printed") { try lines(printed).count == 1 }
        await first.stop()

        // Written while the command is not connected.
        let elsewhere = try await ServingProgram("hato-messages", serve, in: folder)
        try await set("y", at: elsewhere)
        try await set("z", at: elsewhere)
        await elsewhere.stop()

        let port = try #require(first.address.split(separator: ":").last.map(String.init))
        let again = try await ServingProgram("hato-messages", serve + ["--port", port], in: folder)
        try await eventually("the missed changes are printed") { try lines(printed).count == linesAfterRestart }
        try await set("last", at: again)
        let end = try await ended
        await again.stop()
        #expect(end.code == 0, "\(end.error)")
        return (end, try lines(printed))
    }

    @Test func commandGoesOnAfterARestartOfItsService() async throws {
        let (end, events) = try await restarting(["listen", "/a", "--max-events", "3"], linesAfterRestart: 2)
        #expect(end.error.split(separator: "\n").count { $0.contains("lost the connection") } == 1, "\(end.error)")
        #expect(events.allSatisfy { $0["method"] == "messages.event" })
        try #require(events.count == 3)
        let entries = events.map { $0["params"]?["events"]?.array ?? [] }
        #expect(entries.first?.first?["data"] == ["x": true])
        #expect(entries[1] == [["type": "patch", "path": "/", "data": ["y": true, "z": true]]])
        #expect(entries[2] == [["type": "put", "path": "/last", "data": true]])
    }

    @Test func followerGoesOnAfterARestartOfItsService() async throws {
        let (_, changes) = try await restarting(
            ["follow", "--pattern", "/a/{key}", "--after", "0", "--max-events", "4"], linesAfterRestart: 3)
        #expect(changes.allSatisfy { $0["method"] == "messages.change" })
        let entries = changes.map { $0["params"]?["changes"]?.array?.first }
        #expect(entries.map { $0?["path"]?.string } == ["/a/x", "/a/y", "/a/z", "/a/last"])
        // In its original form: a missing value is visible.
        #expect(entries.allSatisfy { $0?["before"] == JSONValue.null })
    }

    private func set(_ name: String, at program: ServingProgram) async throws {
        let client = try program.client()
        _ = try await client.call(Messages.Set(path: try TreePath("/a/\(name)"), value: true))
        await client.close()
    }

    private func lines(_ file: String) throws -> [JSONValue] {
        try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map {
            try JSONParser.parse(String($0))
        }
    }
}
