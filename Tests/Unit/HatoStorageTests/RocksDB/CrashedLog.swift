import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

extension RocksDBOptions {
    /// Options with which the log is prepared early.
    static var prepared: RocksDBOptions {
        var options = RocksDBOptions.small
        options.preparedLogBytes = 1 << 20
        return options
    }
}

extension LogEnd {
    /// A store's newest log, and the end of RocksDB's bytes in it; nil when no zeros follow.
    static func newest(of store: String) throws -> (path: String, end: Int?) {
        let number = try #require(LogFiles.numbers(in: store + "/rocksdb").last)
        let path = LogFiles.path(number, in: store + "/rocksdb")
        return (path, try LogEnd.find(in: path)?.offset)
    }
}

extension RocksDBStore {
    /// Commit n writes the row `n/n` with the value n, some noise, and records n.
    func putNumbered(_ bytes: Int, using random: inout SeededRandom) async throws {
        let (number, noise) = (version + 1, random.noise(bytes: bytes))
        _ = try await write { transaction in
            transaction.put("n/\(number)", "\(number)")
            transaction.put(HatoStorageTests.bytes("noise/\(number)"), noise)
            transaction.record(HatoStorageTests.bytes("\(number)"))
        }
    }

    /// The same for commits of all these sizes, before one sync; each is a record of the log.
    func putGroup(_ sizes: [Int], using random: inout SeededRandom) async throws {
        let gate = try await Gate(holding: self)
        let answers = Collected<UInt64>()
        for size in sizes {
            let noise = random.noise(bytes: size)
            submit(
                { transaction in
                    // Reading what was just written makes the writer hand it to RocksDB.
                    _ = try transaction.rows(KeyRange(prefix: bytes("n/")))
                    let number = transaction.nextVersion
                    transaction.put("n/\(number)", "\(number)")
                    transaction.put(bytes("noise/\(number)"), noise)
                    transaction.record(bytes("\(number)"))
                }, completion: { answers.append((try? $0.get().version) ?? 0) })
        }
        gate.open()
        _ = try await answers.first(sizes.count)
    }

    /// Checks that the store holds exactly the commits up to its version.
    func checkNumbered(_ place: Comment) throws {
        let found = try snapshot().rows(KeyRange(prefix: bytes("n/")))
        #expect(Set(found) == Set((0..<version).map { "n/\($0 + 1)=\($0 + 1)" }), place)
    }
}

/// The possible results of a crash for writes that were not acknowledged: a store whose log is prepared, a copy of it,
/// and its log after four more writes, none of which was synced when the next was written.
struct CrashedLog {
    let folder: TemporaryFolder
    let copy: String
    let log: String
    /// The log when the copy was made, and later.
    let before: Data
    let after: Data
    /// The ends of the records: of the acknowledged ones, then of each other one.
    let ends: [Int]
    let answered: UInt64

    /// Another copy with this log.
    func store(_ name: String, log bytes: Data) throws -> String {
        let path = folder.path(name)
        try FileManager.default.copyItem(atPath: copy, toPath: path)
        try bytes.write(to: URL(fileURLWithPath: path + "/rocksdb/" + log))
        return path
    }

    /// The number of consecutive unanswered records that are as they were written.
    func wholeRecords(in bytes: Data) -> Int {
        zip(ends, ends.dropFirst()).prefix { bytes[$0..<$1] == after[$0..<$1] }.count
    }

    static func with(_ body: (CrashedLog, inout SeededRandom) async throws -> Void) async throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: .prepared)
            defer { store.close() }
            // Enough for the rest, too: this much is still prepared.
            try await eventually("a prepared log") {
                try await store.putNumbered(20_000, using: &random)
                // Finding the end reads the whole log.
                let (number, puts) = (LogFiles.numbers(in: path + "/rocksdb").last ?? 0, Int(store.version))
                let file = URL(fileURLWithPath: LogFiles.path(number, in: path + "/rocksdb"))
                guard try Data(contentsOf: file).count > puts * 20_000 + 250_000 else { return false }
                let (log, end) = try LogEnd.newest(of: path)
                return try end.map { try Data(contentsOf: URL(fileURLWithPath: log)).count - $0 > 250_000 } ?? false
            }
            let copy = folder.path("copy")
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            let answered = store.version
            let (log, end) = try LogEnd.newest(of: path)
            let before = try Data(contentsOf: URL(fileURLWithPath: log))
            var ends = [try #require(end)]
            try await store.putGroup([100_000, 700, 3, 40_000], using: &random)
            let last = try LogEnd.newest(of: path)
            #expect(last.path == log)
            let after = try Data(contentsOf: URL(fileURLWithPath: log))
            ends += try LogParts.ends(in: after, from: ends[0], through: try #require(last.end))
            #expect(ends.count == 5)
            let crash = CrashedLog(
                folder: folder, copy: copy, log: String(log.split(separator: "/").last ?? ""), before: before,
                after: after, ends: ends, answered: answered)
            try await body(crash, &random)
        }
    }

    /// Inspects the folder: it finds nothing wrong, or reports that the next start repairs it, and changes nothing.
    func expectInspection(_ path: String, _ bytes: Data) throws {
        do {
            let inspection = try RocksDBInspection(folder: path)
            defer { inspection.close() }
            #expect(inspection.version >= answered)
            #expect(inspection.problems == [])
        } catch {
            #expect("\(error)".contains("the end of the log is torn"))
        }
        #expect(try log(of: path) == bytes)
    }

    func log(of path: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: path + "/rocksdb/" + log))
    }

    /// Expects the refusal twice, and no changed file.
    func expectRefusal(
        _ path: String, _ bytes: Data, _ place: Comment, _ isRight: (StoreError) -> Bool
    ) throws {
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self, place) {
                try RocksDBStore.open(folder: path, options: .small).close()
            }
            guard let error else { return }
            #expect(isRight(error), "\(place): \(error)")
            #expect(try log(of: path) == bytes, place)
        }
    }

    func expectAllWhole(_ bytes: Data, _ name: String) throws {
        let path = try self.store(name, log: bytes)
        try expectInspection(path, bytes)
        let store = try RocksDBStore.open(folder: path, options: .small)
        defer { store.close() }
        #expect(store.version == answered + UInt64(wholeRecords(in: bytes)), "\(name)")
        try store.checkNumbered("\(name)")
        try FileManager.default.removeItem(atPath: path)
    }
}

/// The parts of the records of a log.
enum LogParts {
    /// The ends of the records.
    static func ends(in log: Data, from start: Int, through end: Int) throws -> [Int] {
        try heads(in: log, from: start, through: end).filter { log[$0 + 6] == 1 || log[$0 + 6] == 4 }
            .map { $0 + 7 + Int(log[$0 + 4]) + Int(log[$0 + 5]) << 8 }
    }

    /// The starts of the parts.
    static func heads(in log: Data, from start: Int = 0, through end: Int) throws -> [Int] {
        var (heads, place): ([Int], Int) = ([], start)
        while place < end {
            let rest = (32 << 10) - place % (32 << 10)
            if rest < 7 {
                place += rest
                continue
            }
            heads.append(place)
            place += 7 + Int(log[place + 4]) + Int(log[place + 5]) << 8
        }
        if place != end { throw Unexpected("no part ends at \(end)") }
        return heads
    }
}
