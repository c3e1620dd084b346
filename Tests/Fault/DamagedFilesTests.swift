import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Damaged files: their data is never served, errors name them, and `verify` finds the damage.
@Suite("Messages with damaged files", .serialized, .timeLimit(.minutes(20)))
struct DamagedFilesTests {
    private static let count = 200

    /// 2,000 characters that do not compress, the same for the same number.
    private static func noise(_ number: Int) -> JSONValue {
        var random = SeededRandom(seed: UInt64(number))
        return .string((0..<130).map { _ in String(random.next(), radix: 16) }.joined())
    }

    /// A service with data in both kinds of files: the log and, when it has been opened once more, tables.
    private func write(_ messages: LoneMessages, isInTables: Bool) async throws {
        try await messages.start()
        let client = messages.client()
        for number in 0..<Self.count {
            _ = try await client.call(
                method: "messages.set", params: ["path": .string("/n/\(number)"), "value": Self.noise(number)])
        }
        await client.close()
        await messages.program.stop()
        if isInTables {
            try await messages.start()
            await messages.program.stop()
        }
    }

    private func files(_ messages: LoneMessages, _ ending: String) throws -> [URL] {
        let folder = URL(fileURLWithPath: messages.data + "/store/rocksdb")
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == ending }
    }

    private func largest(_ messages: LoneMessages, _ ending: String) throws -> URL {
        // A compaction may remove one meanwhile.
        let sizes = try files(messages, ending).compactMap { file in
            (try? Data(contentsOf: file)).map { (file, $0.count) }
        }
        return try #require(sizes.max { $0.1 < $1.1 }?.0)
    }

    @Test func aFlippedBitInATableIsNeverServed() async throws {
        print("flipped bit test: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        var refused = 0
        for _ in 0..<FaultSettings.kills { refused += try await flipBit(using: &random) }
        print("\(FaultSettings.kills) stores with flipped bits; \(Self.count) reads each: \(refused) refused, 0 wrong")
    }

    /// Returns the number of refused reads.
    private func flipBit(using random: inout SeededRandom) async throws -> Int {
        let eighth = Int.random(in: 1...7, using: &random)
        var refused = 0
        try await LoneMessages.run { messages in
            try await write(messages, isInTables: true)
            for table in try files(messages, "sst") {
                let count = try Data(contentsOf: table).count
                if count < 100_000 { continue }
                try flipBit(of: table, at: count * eighth / 8)
            }
            let (code, result) = try await messages.verify()
            #expect(code == 1)
            let findings = result["findings"]?.array ?? []
            #expect(findings.contains { $0["kind"] == "storage" || $0["kind"] == "changes" }, "\(result.encodedText)")

            try await messages.start()
            let client = messages.client()
            for number in 0..<Self.count {
                do {
                    let found = try await client.call(
                        method: "messages.get", params: ["path": .string("/n/\(number)")])
                    #expect(found["value"] == Self.noise(number))
                } catch let error as RPCError {
                    #expect(error.code == .internalError)
                    refused += 1
                }
            }
            #expect(refused > 0 && refused < Self.count / 4, "\(eighth)/8")
            #expect(messages.log.contains("checksum mismatch"))
            let online = try await client.call(method: "messages.verify")
            #expect((online["findingCount"]?.number ?? 0) > 0)
            await client.close()
        }
        return refused
    }

    private func flipBit(of file: URL, at place: Int) throws {
        var bytes = try Data(contentsOf: file)
        bytes[place] ^= 0x04
        try bytes.write(to: file)
    }

    /// RocksDB does without a damaged filter, which hides no row. `verify` reports it, since the disk is not to be
    /// trusted.
    @Test func aFlippedBitInAFilterIsFoundAndHidesNothing() async throws {
        try await withBackups { messages, backups in
            try await write(messages, isInTables: true)
            // Tables of rows, and tables of changes.
            let tables = try files(messages, "sst").filter { try Data(contentsOf: $0).count > 100_000 }
            for table in tables {
                try flipBit(of: table, at: try #require(Self.filter(Data(contentsOf: table))) + 20)
            }
            let (code, result) = try await messages.verify()
            #expect(code == 1)
            let findings = result["findings"]?.array ?? []
            #expect(findings.count == tables.count, "\(result.encodedText)")
            for table in tables {
                let named = findings.filter { $0["problem"]?.string?.contains(table.lastPathComponent) == true }
                #expect(named.count == 1 && named[0]["kind"] == "storage", "\(result.encodedText)")
            }

            try await messages.start()
            let client = messages.client()
            for number in 0..<Self.count {
                let found = try await client.call(method: "messages.get", params: ["path": .string("/n/\(number)")])
                #expect(found["value"] == Self.noise(number))
            }
            let online = try await client.call(method: "messages.verify")
            #expect(online["findingCount"] == .number(Double(tables.count)))
            try await expectNoBackup(client, of: tables, in: backups)
            await client.close()
        }
    }

    /// The start of the filter, which a table stores behind its name: seven bits a byte, the lowest first.
    private static func filter(_ table: Data) -> Int? {
        let name = Data("fullfilter.rocksdb.BuiltinBloomFilter".utf8)
        guard let place = table.range(of: name)?.upperBound else { return nil }
        var (number, shift) = (0, 0)
        for byte in table[place...].prefix(5) {
            number |= Int(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 { return number }
        }
        return nil
    }

    @Test func aDamagedStoreIsNotBackedUpAndADamagedBackupIsNotRestored() async throws {
        try await withBackups { messages, backups in
            try await write(messages, isInTables: true)
            try await messages.start()
            let client = messages.client()
            _ = try await client.call(method: "messages.backup", params: ["name": "sound"])
            let table = try largest(messages, "sst")
            // On one disk the table and its copy may be the same file; a compaction may remove the table meanwhile.
            let copy = URL(fileURLWithPath: "\(backups)/sound/rocksdb/\(table.lastPathComponent)")
            let soundBytes = try? Data(contentsOf: copy)
            try flipBit(of: table, at: 5_000)
            try await expectNoBackup(client, of: [table], in: backups)
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups) == ["sound"])
            await client.close()
            await messages.program.stop()
            try soundBytes?.write(to: copy)

            let (sound, restored) = ("\(backups)/sound", messages.folder + "/restored")
            for file in try FileManager.default.contentsOfDirectory(atPath: sound + "/rocksdb") {
                let url = URL(fileURLWithPath: "\(sound)/rocksdb/\(file)")
                let bytes = try Data(contentsOf: url)
                if bytes.isEmpty { continue }
                try flipBit(of: url, at: bytes.count / 2)
                let ended = try await messages.program.run(["restore", sound, "--data", restored])
                #expect(ended.code == 74 && ended.log.contains("nothing was restored"), "\(ended.log)")
                #expect(ended.log.contains(url.path), "\(ended.log)")
                #expect(!FileManager.default.fileExists(atPath: restored))
                try bytes.write(to: url)
            }
            let ended = try await messages.program.run(["restore", sound, "--data", restored])
            #expect(ended.code == 0, "\(ended.log)")
            let checked = try await messages.program.run(["verify", "--data", restored, "--json"])
            #expect(checked.code == 0, "\(checked.log)")
        }
    }

    private func withBackups(_ body: (LoneMessages, _ backups: String) async throws -> Void) async throws {
        let backups = FileManager.default.temporaryDirectory.appendingPathComponent("hato-backup-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: backups) }
        try await LoneMessages.run(["--backup-dir", backups.path]) { try await body($0, backups.path) }
    }

    private func expectNoBackup(_ client: RPCClient, of tables: [URL], in backups: String) async throws {
        let error = await #expect(throws: RPCError.self) {
            try await client.call(method: "messages.backup", params: ["name": "damaged"])
        }
        #expect(error?.code == .failedPrecondition && error?.reason == "store_damaged")
        let text = error?.message ?? ""
        #expect(tables.contains { text.contains($0.path) }, "\(text)")
        #expect(!FileManager.default.fileExists(atPath: backups + "/damaged"))
    }

    /// The smallest tables contain the store's own records, without which the service does not start.
    @Test func verifyFindsAFlippedBitInTheSmallestTable() async throws {
        try await LoneMessages.run { messages in
            try await write(messages, isInTables: true)
            let sizes = try files(messages, "sst").map { ($0, try Data(contentsOf: $0)) }
            let (table, whole) = try #require(sizes.min { $0.1.count < $1.1.count })
            var bytes = whole
            bytes[20] ^= 0x04
            try bytes.write(to: table)
            let (code, result) = try await messages.verify()
            #expect(code == 1)
            let findings = result["findings"]?.array ?? []
            #expect(findings.contains { $0["kind"] == "storage" }, "\(result.encodedText)")
        }
    }

    @Test func aFlippedBitInTheLogStopsTheStart() async throws {
        try await LoneMessages.run { messages in
            try await write(messages, isInTables: false)
            let log = try largest(messages, "log")
            var bytes = try Data(contentsOf: log)
            bytes[bytes.count / 2] ^= 0x20
            try bytes.write(to: log)
            try await expectRefusal(messages, "damaged", "missing")
        }
    }

    @Test(arguments: ["log", "sst", "MANIFEST"])
    func aCutFileStopsTheStart(kind: String) async throws {
        try await LoneMessages.run { messages in
            try await write(messages, isInTables: kind != "log")
            let file = try kind == "MANIFEST" ? manifest(messages) : largest(messages, kind)
            let bytes = try Data(contentsOf: file)
            try bytes.prefix(bytes.count / 2).write(to: file)
            try await expectRefusal(messages, "damaged", "missing", keepsFiles: kind != "log")
        }
    }

    @Test func aMissingTableStopsTheStart() async throws {
        try await LoneMessages.run { messages in
            try await write(messages, isInTables: true)
            try FileManager.default.removeItem(at: largest(messages, "sst"))
            try await expectRefusal(messages, "No such file", "damaged")
        }
    }

    private func manifest(_ messages: LoneMessages) throws -> URL {
        let folder = URL(fileURLWithPath: messages.data + "/store/rocksdb")
        let all = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try #require(all.first { $0.lastPathComponent.hasPrefix("MANIFEST") })
    }

    /// The service does not start, its log has one of these texts, and `verify` finds something, the same before and
    /// after. `verify` changes no file. The start changes none either, except a log that ends too early, which RocksDB
    /// only then accepts as complete.
    private func expectRefusal(
        _ messages: LoneMessages, _ words: String..., keepsFiles: Bool = true
    ) async throws {
        let before = try contents(messages)
        let (code, result) = try await messages.verify()
        #expect(code == 1, "\(result.encodedText)")
        #expect(try Self.differences(before, contents(messages)) == [], "verify only reads")
        let ended = try await messages.program.run(messages.arguments)
        #expect(ended.code == 74)
        #expect(words.contains { ended.log.contains($0) }, "\(ended.log)")
        let changed = try Self.differences(before, contents(messages))
        if keepsFiles { #expect(changed == []) }
        let again = try await messages.verify()
        #expect(again.code == 1 && again.result["findings"] == result["findings"], "\(again.result.encodedText)")
    }

    /// The names of files that are missing or changed.
    private static func differences(_ before: [String: Data], _ after: [String: Data]) -> [String] {
        before.filter { after[$0.key] != $0.value }.keys.sorted()
    }

    /// Every file of the store, except RocksDB's own text log, which has no data of ours.
    private func contents(_ messages: LoneMessages) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        let folder = URL(fileURLWithPath: messages.data)
        for case let name as String in FileManager.default.enumerator(atPath: messages.data) ?? .init() {
            let file = folder.appendingPathComponent(name)
            if file.hasDirectoryPath || file.lastPathComponent.hasPrefix("LOG") { continue }
            guard let bytes = try? Data(contentsOf: file) else { continue }
            contents[name] = bytes
        }
        return contents
    }
}
