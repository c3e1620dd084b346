import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// The preparer with a writer that writes its files like RocksDB writes its log.
@Suite("Preparing a log")
struct LogPreparerTests {
    private static let pattern = Array(
        [[UInt8]](repeating: (1...251).map { $0 }, count: (16 << 20) / 251 + 1).joined())

    /// One file of a log that is written from its start; no byte of it is zero.
    private struct Written {
        let path: String
        let file: OpenFile
        var size = 0

        init(_ number: UInt64, in folder: TemporaryFolder) throws {
            path = LogFiles.path(number, in: folder.path)
            file = try OpenFile(path, access: .createEmpty)
        }

        /// Returns the number of chunks of zeros it waited for.
        @discardableResult
        mutating func append(_ bytes: Int, with preparer: LogPreparer) throws -> Int {
            let waits = preparer.willWrite(bytes)
            try file.write(LogPreparerTests.pattern.span.extracting(size..<size + bytes), at: size)
            size += bytes
            preparer.didWrite()
            preparer.didSync()
            return waits
        }

        var sizeOnDisk: Int {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return attributes?[.size] as? Int ?? 0
        }

        func check(_ place: Comment) throws {
            let found = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(found.prefix(size) == Data(LogPreparerTests.pattern[..<size]), place)
            #expect(found.dropFirst(size).allSatisfy { $0 == 0 }, place)
        }
    }

    @Test func zerosNeverOverwriteWhatIsWritten() async throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            let preparer = LogPreparer(folder: folder.path, aheadBytesMax: 4 << 20)
            defer { preparer.close() }
            var done: [Written] = []
            for number in 1...6 as ClosedRange<UInt64> {
                var log = try Written(number, in: folder)
                let end = Int.random(in: 1...8, using: &random) << 20
                while log.size < end {
                    let most = Int.random(in: 0..<200, using: &random) == 0 ? 4 << 20 : 30_000
                    try log.append(Int.random(in: 1...most, using: &random), with: preparer)
                }
                // The last writes of one file and the first of the next overlap, as they do in the store.
                done.append(log)
            }
            var log = try Written(7, in: folder)
            try await eventually("zeros behind what was written") {
                if log.size < 15 << 20 { try log.append(50_000, with: preparer) }
                return log.sizeOnDisk > log.size
            }
            preparer.close()
            for log in done + [log] { try log.check("seed \(seed)") }
        }
    }

    /// Whatever the size of the write: it waits only for zeros that are being written.
    @Test func aLargeWriteWaitsForOneChunkAtMost() async throws {
        try await TemporaryFolder.with { folder in
            let preparer = LogPreparer(folder: folder.path, aheadBytesMax: 8 << 20)
            defer { preparer.close() }
            for number in 1...12 as ClosedRange<UInt64> {
                var log = try Written(number, in: folder)
                while log.size < 2 << 20 { try log.append(30_000, with: preparer) }
                for _ in 0..<3 {
                    let waits = try log.append(4 << 20, with: preparer)
                    #expect(waits <= 1)
                    // So that recent writes are small again.
                    for _ in 0..<3 { try log.append(20_000, with: preparer) }
                }
                try log.check("log \(number)")
            }
        }
    }

    /// Bytes in the log that were not counted must stay.
    @Test func uncountedBytesAreNotOverwritten() async throws {
        try await TemporaryFolder.with { folder in
            let preparer = LogPreparer(folder: folder.path, aheadBytesMax: 4 << 20)
            defer { preparer.close() }
            var log = try Written(1, in: folder)
            log.size = 8 << 20
            try log.file.write(Self.pattern.span.extracting(0..<log.size), at: 0)
            for _ in 0..<100 { try log.append(20_000, with: preparer) }
            var next = try Written(2, in: folder)
            try await eventually("zeros behind what was written") {
                if next.size < 15 << 20 { try next.append(20_000, with: preparer) }
                return next.sizeOnDisk > next.size
            }
            preparer.close()
            try log.check("the first")
            try next.check("the next")
        }
    }

    /// RocksDB closes and deletes files as soon as it does not need them.
    @Test func aFileThatGoesAwayIsLeftAloneAndTheNextOneIsPrepared() async throws {
        try await TemporaryFolder.with { folder in
            let preparer = LogPreparer(folder: folder.path, aheadBytesMax: 1 << 20)
            defer { preparer.close() }
            for number in 1...3 as ClosedRange<UInt64> {
                var log = try Written(number, in: folder)
                try await eventually("zeros behind what was written") {
                    if log.size < 15 << 20 { try log.append(20_000, with: preparer) }
                    return log.sizeOnDisk > log.size
                }
                try FileManager.default.removeItem(atPath: log.path)
            }
            preparer.close()
            #expect(LogFiles.numbers(in: folder.path) == [])
        }
    }

    @Test func preparedBytesAreAheadAndNoMoreThanTheLogHas() {
        let planner = PreparingPlanner(aheadBytesMax: 4 << 20)
        #expect(planner.next(written: 0, prepared: 0) == nil)
        #expect(planner.next(written: PreparingPlanner.gapBytes - 1, prepared: 0) == nil)
        var random = SeededRandom(seed: 7)
        var prepared = 0
        var written = 0
        while written < 32 << 20 {
            written += Int.random(in: 1...200_000, using: &random)
            while let chunk = planner.next(written: written, prepared: prepared) {
                #expect(chunk.lowerBound >= prepared && chunk.lowerBound >= written + PreparingPlanner.gapBytes)
                #expect(!chunk.isEmpty && chunk.count <= PreparingPlanner.chunkBytes)
                #expect(chunk.upperBound <= written + min(written, 4 << 20) + 4096)
                prepared = chunk.upperBound
            }
        }
        #expect(prepared > written + (3 << 20))
    }

    @Test func largeWritesAreNotPreparedFor() {
        let planner = PreparingPlanner(aheadBytesMax: 4 << 20)
        #expect(planner.pays(bytes: 1_000_000, writes: 10))
        #expect(!planner.pays(bytes: 1_000_000, writes: 3))
        #expect(!planner.pays(bytes: 1_000_000, writes: 0))
    }

    @Test func theChecksumIsThatOfTheStandard() {
        // RFC 3720, B.4: 32 bytes of zeros have 8A9136AA.
        let (zeros, crc) = ([UInt8](repeating: 0, count: 32), UInt32(0x8A91_36AA))
        #expect(CRC32C.masked(of: zeros[...]) == ((crc >> 15) | (crc << 17)) &+ 0xA282_EAD8)
    }

    @Test func theChecksumDetectsAFlippedBitAndAWrongLength() {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for count in [1, 2, 7, 300] {
            let bytes = random.noise(bytes: count)
            let sum = CRC32C.masked(of: bytes[...])
            #expect(!CRC32C.isMasked(sum, ofOneBitOff: bytes[...]))
            for _ in 0..<20 {
                var flipped = bytes
                flipped[Int.random(in: 0..<count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                #expect(CRC32C.isMasked(sum, ofOneBitOff: flipped[...]), "seed \(seed)")
                let bit = UInt32(1) << UInt32.random(in: 0..<32, using: &random)
                #expect(CRC32C.isMasked(sum ^ bit, ofOneBitOff: bytes[...]), "seed \(seed)")
                flipped[0] ^= 0x77
                #expect(!CRC32C.isMasked(sum, ofOneBitOff: flipped[...]), "seed \(seed)")
            }
            let more = bytes + random.noise(bytes: 40)
            #expect(CRC32C.isMasked(sum, ofStartOf: more[...]))
            #expect(!CRC32C.isMasked(sum &+ 1, ofStartOf: more[...]), "seed \(seed)")
        }
    }
}
