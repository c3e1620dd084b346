import Foundation
import Glibc
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization

/// `hato-messages` by itself (no process listens at the port of auth), which is killed at a given failpoint and
/// restarted with the same data. Each run has a port of its own, because another process may have taken the last one.
final class LoneMessages: Sendable {
    let folder: String
    let program: Program
    private let key: String
    private let settings: [String]
    /// Of the newest run.
    private let port = Mutex<Int>(0)

    var data: String { "\(folder)/data" }
    var log: String { (try? String(contentsOfFile: "\(folder)/messages.log", encoding: .utf8)) ?? "" }

    /// The folder is deleted when `body` has returned; when it throws, the folder is kept and named.
    static func run(_ settings: [String] = [], _ body: (LoneMessages) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-lone-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let messages = try LoneMessages(folder, settings)
        do {
            try await body(messages)
        } catch {
            print("fault test failed; its data and logs are in \(folder)")
            await messages.program.stop()
            throw error
        }
        await messages.program.stop()
        try FileManager.default.removeItem(atPath: folder)
    }

    private init(_ folder: String, _ settings: [String]) throws {
        self.folder = folder
        self.settings = settings
        key = UUID().uuidString + UUID().uuidString
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data((key + "\n").utf8), attributes: [.posixPermissions: 0o600])
        program = try Program("hato-messages", logFile: "\(folder)/messages.log")
    }

    /// The arguments of `serve`.
    var arguments: [String] {
        [
            "serve", "--data", data, "--port", "0", "--auth", "127.0.0.1:1",
            "--admin-key-file", "\(folder)/admin-key", "--exit-with-stdin",
        ] + settings
    }

    /// Returns the ready line.
    @discardableResult
    func start(failpoints: String? = nil) async throws -> JSONObject {
        let ready = try await program.start(arguments, failpoints: failpoints)
        guard let text = ready["listening"]?.string?.split(separator: ":").last, let number = Int(text) else {
            throw DeadlineExceeded("no address in the ready line of hato-messages")
        }
        port.withLock { $0 = number }
        return ready
    }

    /// An administrator's, for this run.
    func client() -> RPCClient {
        var configuration = RPCClientConfiguration(host: "127.0.0.1", port: port.withLock { $0 })
        configuration.reconnectDelayMax = .milliseconds(100)
        configuration.timeout = FaultSettings.patience
        return RPCClient(configuration.with(credential: key))
    }

    /// The report of `hato-messages verify` on the data while no service runs.
    func verify() async throws -> (code: Int32, result: JSONValue) {
        let ended = try await program.run(["verify", "--data", data, "--json"])
        guard let result = try? JSONParser.parse(ended.output) else {
            throw DeadlineExceeded("verify printed no report: \(ended.code) \(ended.log)")
        }
        return (ended.code, result)
    }

    /// Waits until every index is built.
    func indexesAreReady(_ client: RPCClient) async throws {
        _ = try await waiting(for: "the indexes") {
            let list = try await client.call(method: "messages.indexes.list").array ?? []
            return list.allSatisfy { $0["state"] == "ready" } ? true : nil
        }
    }
}
