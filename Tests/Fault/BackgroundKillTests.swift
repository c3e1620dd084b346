import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-messages` is killed during its background work: deleting old changes, writing a backup.
@Suite("Messages killed during background work", .serialized, .timeLimit(.minutes(20)))
struct BackgroundKillTests {
    @Test(arguments: ["changes.beforeForget", "changes.afterMark", "changes.afterForget"])
    func deletingChangesLosesNothingElse(failpoint: String) async throws {
        for _ in 0..<FaultSettings.kills { try await forget(failpoint) }
        print("\(FaultSettings.kills) kills at \(failpoint); losses: 0")
    }

    private func forget(_ failpoint: String) async throws {
        try await LoneMessages.run(["--upkeep-seconds", "1", "--change-bytes-max", "2000"]) { messages in
            try await messages.start(failpoints: "\(failpoint)=kill")
            var answered = try await push(messages, until: { await $0.diedAtFailpoint() })
            let (code, result) = try await messages.verify()
            #expect(code == 0, "\(result.encodedText)")
            try await messages.start()
            let client = messages.client()
            for number in 0..<5 {
                let key = try await pushOne(client, number)
                answered.insert(key)
            }
            let found = try await client.call(method: "messages.get", params: ["path": "/log", "shallow": true])
            let keys = Set(found["value"]?.object?.members.map(\.name) ?? [])
            #expect(answered.isSubset(of: keys))
            #expect(keys.count <= answered.count + 1)
            // Kept changes can be read; others are refused.
            let epoch = try await waiting(for: "changes to be forgotten") {
                let stats = try await client.call(method: "messages.stats")
                return (stats["oldestChange"]?.number ?? 0) > 2 ? stats["epoch"] : nil
            }
            let refused = await #expect(throws: RPCError.self) {
                _ = try await client.subscribe(method: "messages.follow", params: ["after": 1, "epoch": epoch])
            }
            #expect(refused?.reason == "compacted")
            await client.close()
        }
    }

    private func push(
        _ messages: LoneMessages, until died: @escaping @Sendable (Program) async -> Bool
    ) async throws -> Set<String> {
        let client = messages.client()
        var answered: Set<String> = []
        do {
            while answered.count < 100_000 { answered.insert(try await pushOne(client, answered.count)) }
        } catch let error as RPCError where error.code == .unavailable {}
        await client.close()
        #expect(await died(messages.program))
        return answered
    }

    private func pushOne(_ client: RPCClient, _ number: Int) async throws -> String {
        let value = JSONValue.string("\(number) \(String(repeating: "鳩", count: 20))")
        let result = try await client.call(method: "messages.push", params: ["path": "/log", "value": value])
        return result["key"]?.string ?? ""
    }

    @Test(arguments: ["backup.beforeCopy", "backup.afterCopy", "backup.beforeRename", "backup.afterRename"])
    func aBackupIsWholeOrAbsent(failpoint: String) async throws {
        for _ in 0..<FaultSettings.kills { try await backUp(failpoint) }
        print("\(FaultSettings.kills) kills at \(failpoint); losses: 0")
    }

    private func backUp(_ failpoint: String) async throws {
        let backups = FileManager.default.temporaryDirectory.appendingPathComponent("hato-backup-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: backups) }
        try await LoneMessages.run(["--backup-dir", backups.path]) { messages in
            try await messages.start(failpoints: "\(failpoint)=kill")
            let client = messages.client()
            var answered: [String] = []
            for number in 0..<50 { answered.append(try await pushOne(client, number)) }
            await #expect(throws: RPCError.self) {
                try await client.call(method: "messages.backup", params: ["name": "first"])
            }
            await client.close()
            #expect(await messages.program.diedAtFailpoint())
            let isThere = failpoint == "backup.afterRename"
            #expect(FileManager.default.fileExists(atPath: backups.path + "/first") == isThere)

            try await messages.start()
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups.path) == (isThere ? ["first"] : []))
            let name = isThere ? "first" : "second"
            if !isThere {
                let again = messages.client()
                _ = try await again.call(method: "messages.backup", params: ["name": .string(name)])
                await again.close()
            }
            let restored = messages.folder + "/restored"
            let ended = try await messages.program.run([
                "restore", "\(backups.path)/\(name)", "--data", restored, "--json",
            ])
            #expect(ended.code == 0, "\(ended.log)")
            let checked = try await messages.program.run(["verify", "--data", restored, "--json"])
            #expect(checked.code == 0, "\(checked.log)")
            let result = try JSONParser.parse(checked.output)
            #expect(result["checked"]?["rows"]?.number == Double(answered.count))
        }
    }
}
