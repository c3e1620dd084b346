import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Writes under way when the disk fails: the caller learns that their outcome is not known, and that they may be
/// repeated only where this does no harm (protocol §3).
@Suite("Writes whose outcome is not known", .serialized, .timeLimit(.minutes(20)))
struct OutcomeTests {
    /// A call, and whether it may be sent again.
    struct Row: Sendable {
        var method: String
        var params: JSONObject
        var isRetryable: Bool

        init(_ method: String, _ params: JSONObject, isRetryable: Bool) {
            self.method = method
            self.params = params
            self.isRetryable = isRetryable
        }
    }

    @Test func everyWriteOfMessagesReportsAnUnknownOutcome() async throws {
        let increment: JSONValue = [".sv": ["increment": 1]]
        var large: JSONObject = ["n": increment]
        for number in 0..<3_000 { large.append("k\(number)", 1) }
        try await Self.run(
            "hato-messages", ["--auth", "127.0.0.1:1"],
            [
                Row("messages.set", ["path": "/n", "value": increment], isRetryable: false),
                Row("messages.set", ["path": "/s", "value": 1], isRetryable: true),
                Row("messages.set", ["path": "/t", "value": [".sv": "timestamp"]], isRetryable: true),
                Row("messages.set", ["path": "/c", "value": increment, "ifMatch": "null_etag"], isRetryable: true),
                Row("messages.set", ["path": "/large", "value": .object(large)], isRetryable: false),
                Row("messages.update", ["path": "/u", "values": ["a": 1, "b/c": increment]], isRetryable: false),
                Row("messages.update", ["path": "/u", "values": ["d": 1]], isRetryable: true),
                Row("messages.push", ["path": "/p", "value": 1], isRetryable: false),
                Row("messages.push", ["path": "/p", "value": 1, "key": "-OdKq3xw2kZ0aXbC4dEf"], isRetryable: true),
                Row("messages.remove", ["path": "/s"], isRetryable: true),
                Row("messages.rules.set", ["rules": #"{"rules": {".read": true}}"#], isRetryable: true),
                Row("messages.databases.create", ["database": "second"], isRetryable: false),
                Row("messages.onDisconnect.set", ["path": "/o", "value": 1], isRetryable: true),
            ])
    }

    @Test func everyWriteOfAuthReportsAnUnknownOutcome() async throws {
        try await Self.run(
            "hato-auth", [],
            [
                Row("auth.users.create", ["uid": "u1", "email": "u1@example.com"], isRetryable: false),
                Row("auth.users.update", ["uid": "u1", "displayName": "波平"], isRetryable: true),
                Row("auth.users.delete", ["uid": "u1"], isRetryable: false),
            ])
    }

    @Test func everyWriteOfNotifierReportsAnUnknownOutcome() async throws {
        let device: JSONObject = ["platform": "webhook", "url": "http://127.0.0.1:9/hook", "uid": "u1"]
        var known = device
        known["secret"] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let text: JSONValue = ["title": "お知らせ"]
        try await Self.run(
            "hato-notifier", ["--auth", "127.0.0.1:1", "--messages", "127.0.0.1:1", "--allow-private-webhooks"],
            [
                Row("notifier.devices.register", device, isRetryable: false),
                Row("notifier.devices.register", known, isRetryable: true),
                // Last: the next run commits its write first and would deliver it.
                Row("notifier.send", ["to": ["uids": ["u1"]], "notification": text], isRetryable: false),
            ])
    }

    /// Makes each call in a run of its own whose first sync fails.
    private static func run(_ name: String, _ settings: [String], _ rows: [Row]) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-outcome-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let key = UUID().uuidString + UUID().uuidString
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data((key + "\n").utf8), attributes: [.posixPermissions: 0o600])
        let program = try Program(name, logFile: "\(folder)/log")
        let arguments =
            [
                "serve", "--data", "\(folder)/data", "--port", "0", "--admin-key-file", "\(folder)/admin-key",
                "--exit-with-stdin",
            ] + settings
        // A new store is written to before the first request.
        _ = try await program.start(arguments)
        await program.stop()
        for row in rows {
            let ready = try await program.start(arguments, failpoints: "commit.beforeSync=error")
            let port = try #require(ready["listening"]?.string?.split(separator: ":").last.flatMap { Int($0) })
            let client = RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: key))
            do {
                let result = try await client.call(method: row.method, params: row.params)
                Issue.record("\(row.method) succeeded: \(result)")
            } catch let error as RPCError {
                #expect(error.code == .unavailable, "\(row.method) \(error)")
                #expect(error.reason == "outcome_unknown", "\(row.method) \(error)")
                #expect(error.isRetryable == row.isRetryable, "\(row.method) \(error)")
            }
            await client.close()
            #expect(await program.exitCode() == 74)
        }
        await program.stop()
    }
}
