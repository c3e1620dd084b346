import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The state of a log prepared with zeros after a crash: no acknowledged write is lost or refused, and damage is not
/// taken for the end of a crash.
@Suite("Messages killed with a prepared log", .serialized, .timeLimit(.minutes(20)))
struct TornLogTests {
    private static let count = 300

    /// 2,000 characters that do not compress, the same for the same number.
    private static func noise(_ number: Int) -> JSONValue {
        var random = SeededRandom(seed: UInt64(number))
        return .string((0..<130).map { _ in String(random.next(), radix: 16) }.joined())
    }

    private struct Log {
        let file: URL
        var bytes: Data
        /// The end of its records.
        let end: Int
    }

    /// Many small commits, so that the log is prepared, then `kill -9`.
    private func writeAndKill(_ messages: LoneMessages, failpoints: String? = nil) async throws -> Log {
        try await messages.start(failpoints: failpoints)
        let client = messages.client()
        for number in 0..<Self.count {
            _ = try await client.call(
                method: "messages.set", params: ["path": .string("/n/\(number)"), "value": Self.noise(number)])
        }
        #expect(try await client.call(method: "service.health")["checks"]?["store"] == "open")
        await client.close()
        await messages.program.kill()
        let folder = URL(fileURLWithPath: messages.data + "/store/rocksdb")
        let logs = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "log" }.sorted { $0.lastPathComponent < $1.lastPathComponent }
        let file = try #require(logs.last)
        let bytes = try Data(contentsOf: file)
        return Log(file: file, bytes: bytes, end: Self.end(of: bytes))
    }

    /// Blocks of 32 KiB, and in them parts of records: 4 bytes of checksum, 2 of length, one of kind, which is never 0.
    private static func end(of log: Data) -> Int {
        var place = 0
        while log.count - place >= 7 {
            let rest = (32 << 10) - place % (32 << 10)
            if rest < 7 {
                place += rest
            } else if log[place + 6] == 0 {
                return place
            } else {
                place += 7 + Int(log[place + 4]) + Int(log[place + 5]) << 8
            }
        }
        return log.count
    }

    private func expectEverything(_ messages: LoneMessages) async throws {
        try await messages.start()
        let client = messages.client()
        for number in 0..<Self.count {
            let found = try await client.call(method: "messages.get", params: ["path": .string("/n/\(number)")])
            #expect(found["value"] == Self.noise(number))
        }
        await client.close()
        await messages.program.stop()
        let (code, result) = try await messages.verify()
        #expect(code == 0, "\(result.encodedText)")
    }

    @Test func aTornRecordIsCutWhereverTheStartIsKilled() async throws {
        print("torn log test: HATO_FAULT_SEED=\(FaultSettings.seed)")
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        try await LoneMessages.run { messages in
            let log = try await writeAndKill(messages)
            #expect(log.bytes.count > log.end + 100_000, "zeros follow")
            var torn = log.bytes
            // Some of the first part of a record is there; the part goes to the end of its block.
            let blockRest = (32 << 10) - log.end % (32 << 10)
            let head = log.end + (blockRest < 7 ? blockRest : 0)
            let length = (32 << 10) - head % (32 << 10) - 7
            var there: [UInt8] = [0x11, 0x22, 0x33, 0x44, UInt8(length & 0xFF), UInt8(length >> 8), 2]
            for _ in 0..<length / 2 { there.append(UInt8.random(in: 1...255, using: &random)) }
            torn.replaceSubrange(head..<head + there.count, with: there)
            try torn.write(to: log.file)

            let verified = try await messages.program.run(["verify", "--data", messages.data, "--json"])
            #expect(verified.code == 74 && verified.log.contains("the end of the log is torn"), "\(verified.log)")
            for failpoint in ["open.beforeCut", "open.afterCut"] {
                #expect(try Data(contentsOf: log.file) == torn, "nothing is changed before it is cut")
                await #expect(throws: DeadlineExceeded.self) {
                    try await messages.start(failpoints: "\(failpoint)=kill")
                }
                #expect(await messages.program.diedAtFailpoint())
            }
            #expect(try Data(contentsOf: log.file) == log.bytes.prefix(log.end))
            try await expectEverything(messages)
        }
    }

    /// Half a kilobyte that was on disk is lost, also where the `answered` file is older.
    @Test func aLostSectorIsNoTornRecord() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        try await LoneMessages.run { messages in
            try await messages.start()
            await messages.program.stop()
            let answered = URL(fileURLWithPath: messages.data + "/store/answered")
            let old = try Data(contentsOf: answered)
            let log = try await writeAndKill(messages)
            for _ in 0..<FaultSettings.kills {
                let sector = Int.random(in: 0..<log.end - 50_000, using: &random) / 512 * 512
                var bytes = log.bytes
                bytes.resetBytes(in: sector..<sector + 512)
                try bytes.write(to: log.file)
                for witness in [try Data(contentsOf: answered), old] {
                    try witness.write(to: answered)
                    let ended = try await messages.program.run(messages.arguments)
                    #expect(ended.code == 74 && ended.log.contains("missing"), "\(sector): \(ended.log)")
                    #expect(try Data(contentsOf: log.file) == bytes)
                }
            }
            try log.bytes.write(to: log.file)
            try await expectEverything(messages)
        }
    }

    @Test func aFlippedBitIsNoTornRecord() async throws {
        print("flipped bit of the log test: HATO_FAULT_SEED=\(FaultSettings.seed)")
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        try await LoneMessages.run { messages in
            let log = try await writeAndKill(messages)
            for round in 0..<max(3, FaultSettings.kills) {
                // Also the last records, which zeros follow.
                let place = Int.random(in: (round % 2 == 0 ? 0 : log.end - 3_000)..<log.end, using: &random)
                var bytes = log.bytes
                bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                try bytes.write(to: log.file)
                let ended = try await messages.program.run(messages.arguments)
                #expect(ended.code == 74, "\(place): \(ended.log)")
                #expect(ended.log.contains("damaged") || ended.log.contains("missing"), "\(place): \(ended.log)")
                #expect(try Data(contentsOf: log.file) == bytes)
            }
            try log.bytes.write(to: log.file)
            try await expectEverything(messages)
        }
    }

    /// The log loses only the time that preparing would have saved.
    @Test func zerosThatCannotBeWrittenFailNoWrite() async throws {
        try await LoneMessages.run { messages in
            let log = try await writeAndKill(messages, failpoints: "log.afterZeros=error")
            #expect(log.end > 500_000)
            try await expectEverything(messages)
        }
    }

    @Test func aLogThatIsNotPreparedEndsWithItsFile() async throws {
        try await LoneMessages.run(["--prepared-log-bytes", "0"]) { messages in
            let log = try await writeAndKill(messages)
            #expect(log.bytes.count == log.end)
            try await expectEverything(messages)
        }
    }
}
