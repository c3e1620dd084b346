import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

@Suite("A torn log")
struct TornLogTests {
    /// The process dies in the middle of a write: zeros follow.
    @Test func halfWrittenRecordIsNotThere() async throws {
        try await CrashedLog.with { crash, random in
            let (first, last) = (crash.ends[0], crash.ends[crash.ends.count - 1])
            let places = crash.ends.flatMap { [$0 + 1, $0 + 6, $0 + 7, $0 + 8] }
            let others = (0..<12).map { _ in Int.random(in: first..<last, using: &random) }
            for place in places.dropLast(4) + others {
                var bytes = crash.after
                bytes.resetBytes(in: place..<bytes.count)
                try crash.expectAllWhole(bytes, "half at \(place)")
            }
        }
    }

    /// The machine dies: any subset of the unsynced sectors is on disk.
    @Test func nothingThatFollowsALostSectorIsThere() async throws {
        try await CrashedLog.with { crash, random in
            let (first, last) = (crash.ends[0], crash.ends[crash.ends.count - 1])
            for round in 0..<12 {
                var bytes = crash.after
                let lost = round < 6 ? 1 : Int.random(in: 2..<200, using: &random)
                for _ in 0..<lost {
                    let sector = Int.random(in: first..<last, using: &random) / 512 * 512
                    bytes.resetBytes(in: max(sector, first)..<min(sector + 512, bytes.count))
                }
                let path = try crash.store("lost \(round)", log: bytes)
                let store = try RocksDBStore.open(folder: path, options: .small)
                #expect(store.version == crash.answered + UInt64(crash.wholeRecords(in: bytes)), "round \(round)")
                try store.checkNumbered("round \(round)")
                // Records that were cut do not come back.
                try await store.putNumbered(50_000, using: &random)
                store.close()
                let again = try RocksDBStore.open(folder: path, options: .small)
                try again.checkNumbered("round \(round), again")
                again.close()
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    @Test func lostSectorOfAcknowledgedCommitsIsRefusedAndTheLogKept() async throws {
        try await CrashedLog.with { crash, _ in
            var bytes = crash.before
            let sector = crash.ends[0] / 2 / 512 * 512
            bytes.resetBytes(in: sector..<sector + 512)
            let path = try crash.store("damaged", log: bytes)
            try crash.expectRefusal(path, bytes, "a lost sector") {
                guard case .lostCommits(answered: crash.answered, let found) = $0 else { return false }
                return found < crash.answered
            }
            var options = RocksDBOptions.small
            options.acceptsLostCommits = true
            let store = try RocksDBStore.open(folder: path, options: options)
            try store.checkNumbered("what is left")
            store.close()
        }
    }

    /// Later records say that it had been synced.
    @Test func lostSectorIsRefusedAlsoWhenTheAcknowledgedVersionIsStale() async throws {
        try await CrashedLog.with { crash, random in
            for round in 0..<4 {
                var bytes = crash.after
                // The last of the acknowledged records may have been in the sync that was interrupted.
                let sector = Int.random(in: 0..<crash.ends[0] - 50_000, using: &random) / 512 * 512
                bytes.resetBytes(in: sector..<sector + 512)
                let path = try crash.store("lost \(round)", log: bytes)
                try AcknowledgedFile.create(path + "/answered", version: 1)
                try crash.expectRefusal(path, bytes, "a lost sector at \(sector)") {
                    guard case .lostCommits(let synced, let found) = $0 else { return false }
                    return synced == crash.answered && found < synced
                }
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    /// Also when the `answered` file has come back older than the damage.
    @Test(arguments: [false, true])
    func aFlippedBitIsDamageAndNotTorn(isAnsweredStale: Bool) async throws {
        try await CrashedLog.with { crash, random in
            let end = crash.ends[crash.ends.count - 1]
            // Only zeros follow.
            var whole = crash.after
            whole.resetBytes(in: end..<whole.count)
            let (place, bit) = (Int.random(in: 0..<end, using: &random), UInt8.random(in: 0..<8, using: &random))
            let heads = try LogParts.heads(in: whole, through: end)
            let last = try #require(heads.last)
            let flips: [(Int, UInt8)] = [
                (place, 1 << bit), (last + 6, 0x40), (last + 4, 1), (last + 5, 1), (end - 1, 0x80),
            ]
            for (place, bits) in flips {
                var bytes = whole
                bytes[place] ^= bits
                let path = try crash.store("flipped \(place)", log: bytes)
                try AcknowledgedFile.create(
                    path + "/answered", version: isAnsweredStale ? 1 : crash.answered + UInt64(crash.ends.count - 1))
                try crash.expectRefusal(path, bytes, "\(place) of \(end), \(bits)") {
                    switch $0 {
                    case .corrupted: true
                    case .lostCommits: !isAnsweredStale
                    default: false
                    }
                }
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    /// In a record that was written completely, no flipped bit of a head, or of a part that ends in zeros, makes it
    /// look torn.
    @Test func noFlippedBitLooksTorn() async throws {
        try await CrashedLog.with { crash, random in
            let path = try crash.store("flipped", log: crash.after)
            let file = try OpenFile(path + "/rocksdb/" + crash.log, access: .write)
            let end = crash.ends[crash.ends.count - 1]
            let heads = try LogParts.heads(in: crash.after, through: end)
            var places = heads.suffix(3).flatMap { Array($0..<$0 + 8) } + [end - 1]
            for _ in 0..<40 { places.append(Int.random(in: crash.ends[0]..<end, using: &random)) }
            for place in places {
                for bit in 0..<8 where place < end {
                    try file.write([crash.after[place] ^ 1 << UInt8(bit)].span, at: place)
                    #expect(try TornLog.find(in: path + "/rocksdb") == nil, "bit \(bit) of \(place)")
                }
                try file.write([crash.after[place]].span, at: place)
            }
        }
    }

    /// A process that dies before or after the cut leaves the same result; no file is left beside the log. (The fault
    /// tests kill a service there.)
    @Test(arguments: [false, true])
    func aCrashBesideTheCutLosesNothing(isCut: Bool) async throws {
        try await CrashedLog.with { crash, _ in
            let first = crash.ends[0]
            var bytes = crash.after
            bytes.resetBytes(in: (first + 50_000) / 512 * 512..<bytes.count)
            let path = try crash.store("torn", log: bytes)
            let torn = try #require(try TornLog.find(in: path + "/rocksdb"))
            try torn.layOut(in: path + "/copying/log")
            if isCut { try torn.cut() }
            #expect(try crash.log(of: path) == (isCut ? bytes.prefix(first) : bytes))
            let store = try RocksDBStore.open(folder: path, options: .small)
            defer { store.close() }
            #expect(store.version == crash.answered)
            try store.checkNumbered("cut: \(isCut)")
            #expect(!FileManager.default.fileExists(atPath: path + "/copying"))
        }
    }

    /// Rows in a table were synced in the log before: so this is no crash, whatever the `answered` file says.
    @Test func aTornLogWithTablesAheadOfItIsRefused() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            var random = SeededRandom(seed: 4)
            let store = try RocksDBStore.open(folder: path, options: RocksDBOptions.prepared)
            defer { store.close() }
            try await eventually("a prepared log") {
                try await store.putNumbered(20_000, using: &random)
                return try LogEnd.newest(of: path).end != nil
            }
            let log = try LogEnd.newest(of: path)
            let end = try #require(log.end)
            // Flushes the rows; the records of commits are still in the log only.
            try store.database.writeOutRows(from: bytes("n"), through: bytes("o"))
            let copy = folder.path("copy")
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            try AcknowledgedFile.create(copy + "/answered", version: 1)
            let name = "/rocksdb/" + (log.path.split(separator: "/").last ?? "")
            var bytes = try Data(contentsOf: URL(fileURLWithPath: copy + name))
            let sector = (end - 10_000) / 512 * 512
            bytes.resetBytes(in: sector..<bytes.count)
            try bytes.write(to: URL(fileURLWithPath: copy + name))
            #expect(try TornLog.find(in: copy + "/rocksdb") != nil)
            for _ in 0..<2 {
                let error = #expect(throws: StoreError.self) {
                    try RocksDBStore.open(folder: copy, options: .small).close()
                }
                guard case .corrupted? = error else { throw Unexpected(error) }
                #expect(try Data(contentsOf: URL(fileURLWithPath: copy + name)) == bytes)
            }
        }
    }

    /// Bytes that look like the heads of records at every place make the search for marks no slower than its bound.
    @Test func theSearchForMarksBehindAHoleIsBounded() async throws {
        try await CrashedLog.with { crash, _ in
            var bytes = crash.after
            // Nothing after the hole in this block is found before the bytes that look like heads.
            let hole = (crash.ends[0] + 50_000) / 512 * 512
            let tail = (hole / LogEnd.blockBytes + 1) * LogEnd.blockBytes - 8_192
            bytes.resetBytes(in: hole..<tail)
            bytes.replaceSubrange(tail..<bytes.count, with: Data(repeating: 3, count: bytes.count - tail))
            let path = crash.folder.path("log")
            try bytes.write(to: URL(fileURLWithPath: path))
            let end = try #require(try LogEnd.find(in: path, searchedBytesMax: 4 << 20))
            #expect(end.offset == crash.ends[0] && end.isTorn)
            #expect((4 << 20...5 << 20).contains(end.searchedBytes))
            // The marks in blocks that begin with a record are found all the same.
            bytes = crash.after
            bytes.resetBytes(in: hole..<hole + 512)
            try bytes.write(to: URL(fileURLWithPath: path))
            let searched = try #require(try LogEnd.find(in: path))
            let bounded = try #require(try LogEnd.find(in: path, searchedBytesMax: 0))
            #expect(searched.synced == crash.answered)
            #expect(bounded.synced == crash.answered && bounded.searchedBytes == 0)
        }
    }

    /// Nothing follows a torn file: otherwise synced data was lost.
    @Test func aTornLogFollowedByMoreIsLeftAlone() async throws {
        try await CrashedLog.with { crash, _ in
            var bytes = crash.after
            bytes.resetBytes(in: (crash.ends[0] + 50_000) / 512 * 512..<bytes.count)
            let path = try crash.store("torn", log: bytes)
            #expect(try TornLog.find(in: path + "/rocksdb")?.offset == crash.ends[0])
            let number = try #require(LogFiles.numbers(in: path + "/rocksdb").last)
            let next = URL(fileURLWithPath: LogFiles.path(number + 1, in: path + "/rocksdb"))
            try Data(count: 5_000).write(to: next)
            #expect(try TornLog.find(in: path + "/rocksdb")?.offset == crash.ends[0])
            try crash.before.prefix(200).write(to: next)
            #expect(try TornLog.find(in: path + "/rocksdb") == nil)
            try FileManager.default.removeItem(at: next)
            // Nor after a damaged one.
            var older = crash.before
            older[crash.ends[0] / 2] ^= 1
            try older.write(to: URL(fileURLWithPath: LogFiles.path(number - 1, in: path + "/rocksdb")))
            #expect(try TornLog.find(in: path + "/rocksdb") == nil)
        }
    }
}
