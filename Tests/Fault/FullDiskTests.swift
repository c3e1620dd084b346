import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// A disk that becomes full under pushes: the service refuses the writes that do not fit, logs why and ends; no
/// acknowledged write is lost.
@Suite("A service on a full disk", .timeLimit(.minutes(10)))
struct FullDiskTests {
    /// - Parameter words: of 16 characters in a push. The log is prepared if pushes are small.
    @Test(arguments: [5_000, 500])
    func pushesAreRefusedTheServiceEndsAndAcknowledgedPushesAreStored(words: Int) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-full-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let key = UUID().uuidString + UUID().uuidString
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data((key + "\n").utf8), attributes: [.posixPermissions: 0o600])
        let program = try Program("hato-messages", logFile: "\(folder)/messages.log")
        // No process listens at the port of auth: messages starts without it.
        let arguments = [
            "serve", "--data", "\(folder)/data", "--port", "0", "--auth", "127.0.0.1:1", "--admin-key-file",
            "\(folder)/admin-key", "--exit-with-stdin",
        ]
        let limits = Program.Limits(fileBytesMax: 4 << 20)
        let full = try await client(of: try await program.start(arguments, limits: limits), key)
        let (answered, refusal) = await pushUntilRefused(full, words)
        await full.close()
        #expect(answered.count > 10)
        #expect(refusal?.code == .unavailable)
        #expect(refusal?.reason == "outcome_unknown" && refusal?.isRetryable == false)
        #expect(await program.exitCode() == 74)
        let log = try String(contentsOfFile: "\(folder)/messages.log", encoding: .utf8)
        #expect(log.contains("the store has failed"))
        let says = log.contains("File too large") || log.contains("background work")
        #expect(says, "the log has the error of the disk, or names the file that has it")

        // With space again, it starts with its data.
        let roomy = try await client(of: try await program.start(arguments), key)
        let tree = try await roomy.call(method: "messages.get", params: ["path": "/full"])
        let found = try #require(tree["value"]?.object)
        for (number, key) in answered.enumerated() { #expect(found[key] == .string(Self.noise(number, words))) }
        // A refused push is in the store whole, or not at all.
        #expect(found.members.count <= answered.count + 1)
        _ = try await roomy.call(method: "messages.push", params: ["path": "/full", "value": "after"])
        let health = try await roomy.call(method: "service.health")
        #expect(health["checks"]?["store"] == "open")
        await roomy.close()
        await program.stop()
        try FileManager.default.removeItem(atPath: folder)
    }

    /// The keys of the acknowledged pushes, in order, and the error of the first other one.
    private func pushUntilRefused(_ client: RPCClient, _ words: Int) async -> (answered: [String], refusal: RPCError?) {
        var answered: [String] = []
        while answered.count < 2_000 {
            do {
                let result = try await client.call(
                    method: "messages.push",
                    params: ["path": "/full", "value": .string(Self.noise(answered.count, words))])
                answered.append(result["key"]?.string ?? "")
            } catch {
                return (answered, error as? RPCError)
            }
        }
        return (answered, nil)
    }

    private func client(of ready: JSONObject, _ key: String) async throws -> RPCClient {
        let address = try #require(ready["listening"]?.string)
        return RPCClient(try #require(RPCClientConfiguration(address: address)).with(credential: key))
    }

    /// Characters that do not compress well, the same for the same number.
    private static func noise(_ number: Int, _ words: Int) -> String {
        var random = SeededRandom(seed: UInt64(number))
        return (0..<words).map { _ in String(random.next(), radix: 16) }.joined()
    }
}
