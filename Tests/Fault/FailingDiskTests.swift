import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Disks that fail: a write that cannot be made durable is refused, and the service ends with the reason; a read that
/// fails is an error and has no other effect.
@Suite("Messages on a failing disk", .serialized, .timeLimit(.minutes(20)))
struct FailingDiskTests {
    @Test(arguments: [
        ("commit.beforeApply", 40), ("commit.afterApply", 40), ("commit.beforeSync", 40), ("commit.afterSync", 40),
        ("commit.beforeTake", 3), ("commit.afterTake", 3),
    ])
    func afterAFailedCommitTheServiceEndsAndNoAcknowledgedWriteIsLost(failpoint: String, passingsMax: Int) async throws
    {
        let seed = UInt64(FaultSettings.seed)
        print("failing disk test, \(failpoint): HATO_FAULT_SEED=\(seed)")
        var random = SeededRandom(seed: seed)
        try await LoneMessages.run { messages in
            let history = RecordedHistory()
            let witness = Witness(history)
            // The first commit makes the database: no load runs during it.
            try await messages.start()
            await messages.program.stop()
            for _ in 0..<FaultSettings.kills {
                let logged = messages.log.count
                let count = Int.random(in: 1...passingsMax, using: &random)
                try await messages.start(failpoints: "\(failpoint)=error@\(count)")
                let watching = try await witness.attend(messages.client())
                try await RandomLoad(history: history, seed: random.next()).run { messages.client() }
                #expect(await messages.program.exitCode() == 74)
                try await watching.value
                let log = messages.log.dropFirst(logged)
                #expect(log.contains("the store has failed"))
                #expect(log.contains("failpoint \(failpoint): Input/output error"))
            }
            try await messages.start()
            let summary = try await FailpointKillTests.check(failpoint, messages, history, witness)
            #expect(summary.losses == 0)
            print("\(FaultSettings.kills) errors at \(failpoint); \(summary.text)")
        }
    }

    @Test func aReadThatFailsIsAnErrorAndTheServiceGoesOn() async throws {
        try await LoneMessages.run { messages in
            try await messages.start()
            let client = messages.client()
            for number in 0..<20 {
                _ = try await client.call(
                    method: "messages.set", params: ["path": .string("/n\(number)"), "value": .number(Double(number))])
            }
            await client.close()
            await messages.program.stop()
            // Starting reads, too.
            try await messages.start(failpoints: "store.read=error@40")
            let reader = messages.client()
            var refused = 0
            for number in 0..<200 {
                do {
                    let found = try await reader.call(
                        method: "messages.get", params: ["path": .string("/n\(number % 20)")])
                    #expect(found["value"] == .number(Double(number % 20)))
                    #expect(refused == 0, "a failing disk goes on failing")
                } catch let error as RPCError {
                    #expect(error.code == .internalError)
                    refused += 1
                }
            }
            #expect(refused > 0)
            #expect(messages.log.contains("this process will fail as it orders: store.read=error@40"))
            #expect(messages.log.contains("failpoint store.read: Input/output error"))
            #expect(try await reader.call(method: "service.health")["checks"]?["store"] == "open")
            await reader.close()
        }
    }

    @Test func aWrongFailpointStopsTheStartAndIsNamed() async throws {
        try await LoneMessages.run { messages in
            for (order, problem) in [
                ("commit.beforeSink=kill", "there is no failpoint 'commit.beforeSink'"),
                ("commit.beforeSync=explode", "cannot 'explode'"),
                ("commit.beforeSync=kill@0", "does not say when"),
                ("commit.afterAnswer=error", "only kill is possible"), ("commit.beforeSync", "is no order"),
            ] {
                let ended = try await messages.program.run(messages.arguments, failpoints: order)
                #expect(ended.code == 78)
                #expect(ended.log.contains("HATO_FAILPOINTS") && ended.log.contains(problem), "\(ended.log)")
            }
        }
    }

    @Test func aFolderThatCannotBeWrittenStopsTheStart() async throws {
        try await LoneMessages.run { messages in
            try await messages.start()
            await messages.program.stop()
            guard let ended = try await ReadOnlyFolder.run(messages) else {
                return print("no way here to make a folder that root cannot write")
            }
            #expect(ended.code == 78)
            #expect(ended.log.contains("setting data: nothing can be written"), "\(ended.log)")
        }
    }
}

/// A data folder without write permission: by its mode, or for root by a mount of its own.
private enum ReadOnlyFolder {
    /// Nil if the machine does not allow that.
    static func run(_ messages: LoneMessages) async throws -> Program.Ended? {
        let script: String
        if geteuid() == 0 {
            script = """
                mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99
                exec "$@"
                """
        } else {
            script = "chmod 500 \"$0\"; \"$@\"; code=$?; chmod 700 \"$0\"; exit $code"
        }
        guard let program = BuiltProgram.path("hato-messages") else { throw DeadlineExceeded("hato-messages is built") }
        let shell = ["/bin/sh", "-c", script, messages.data, program] + messages.arguments
        let command = geteuid() == 0 ? ["/usr/bin/unshare", "--mount"] + shell : shell
        guard FileManager.default.isExecutableFile(atPath: command[0]) else { return nil }
        let ended = try await Program(path: command[0], logFile: messages.folder + "/read-only.log")
            .run(Array(command.dropFirst()))
        return ended.code == 99 || ended.log.contains("unshare") ? nil : ended
    }
}
