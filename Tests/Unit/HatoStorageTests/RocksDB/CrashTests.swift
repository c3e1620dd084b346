import Foundation
import HatoRocksDB
import HatoStorage
import HatoTesting
import Synchronization
import Testing

/// `kill -9` in the middle of writing, repeatedly on one folder.
///
/// The writer is a separate process (an exit test) that kills itself from another thread at a random moment; it appends
/// each acknowledged version to a file, one line each, with a plain `write`: the operating system keeps that across the
/// kill.
@Suite("A RocksDB store whose process is killed")
struct CrashTests {
    private static var rounds: Int { ProcessInfo.processInfo.environment["HATO_FAULT_ROUNDS"].flatMap(Int.init) ?? 3 }

    @Test func everyAcknowledgedCommitIsThereAndNoHalfOnes() async throws {
        let seed =
            ProcessInfo.processInfo.environment["HATO_FAULT_SEED"].flatMap(UInt64.init) ?? .random(in: 0..<1_000_000)
        print("crash test: HATO_FAULT_SEED=\(seed)")
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            var (epoch, sum): (StoreEpoch?, UInt64) = (nil, 0)
            for round in 1...Self.rounds {
                let microseconds = UInt32.random(in: 1_000..<400_000, using: &random)
                await #expect(processExitsWith: .signal(SIGKILL)) {
                    [path = folder.path as String, microseconds = microseconds as UInt32] in
                    try await writeUntilKilled(in: path, after: microseconds)
                }
                let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
                defer { store.close() }
                if let epoch { #expect(store.epoch == epoch) }
                epoch = store.epoch
                let answered = try acknowledgedVersions(in: folder)
                #expect(store.version >= answered.max() ?? 0, "seed \(seed) round \(round)")
                try check(store, answered, "seed \(seed) round \(round)")
                sum = store.version
            }
            print("crash test: \(sum) commits in \(Self.rounds) rounds")
        }
    }

    /// Commit n wrote the rows `a/n` and `b/n`, both with the value n, counted itself in `count`, and recorded n.
    private func check(_ store: RocksDBStore, _ answered: [UInt64], _ place: Comment) throws {
        let snapshot = try store.snapshot()
        let version = store.version
        #expect(Set(answered).count == answered.count, place)
        #expect(try snapshot.text("count") ?? "0" == String(version), place)
        for letter in ["a", "b"] {
            let rows = try snapshot.rows(KeyRange(prefix: bytes(letter + "/")))
            #expect(Set(rows) == Set((0..<version).map { "\(letter)/\($0 + 1)=\($0 + 1)" }), place)
        }
        let (taken, takers) = (
            try snapshot.rows(KeyRange(prefix: bytes("p/"))), try snapshot.rows(KeyRange(prefix: bytes("q/")))
        )
        #expect(taken.map { $0.dropFirst() } == takers.map { $0.dropFirst() }, place)
        var position: UInt64 = 0
        while position < version {
            let commits = try store.commits(after: position, limit: 1_000)
            for commit in commits {
                position += 1
                #expect(commit.version == position, place)
                #expect(commit.record == bytes(String(position)), place)
            }
            if commits.isEmpty { throw Unexpected("no commit after \(position)") }
        }
    }

    private func acknowledgedVersions(in folder: TemporaryFolder) throws -> [UInt64] {
        guard let text = try? String(contentsOfFile: folder.path("answered"), encoding: .utf8) else { return [] }
        // A kill may cut the last line short.
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { UInt64($0) }
    }
}

private func writeUntilKilled(in folder: String, after microseconds: UInt32) async throws {
    let answers = open(folder + "/answered", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    let noise = [UInt8](repeating: 0x5A, count: 4_000)
    let store = try RocksDBStore.open(folder: folder + "/store", options: .small)
    let deadline = ContinuousClock.now + .microseconds(Int(microseconds))
    let killer = Thread {
        while ContinuousClock.now < deadline { usleep(200) }
        kill(getpid(), SIGKILL)
    }
    killer.start()
    await withTaskGroup(of: Void.self) { group in
        for writer in 0..<16 {
            group.addTask {
                var step = 0
                while true {
                    step += 1
                    if writer == 0, step % 50 == 0 { try? store.compactCommits(through: 0) }
                    // Every fifth commit of one writer has its rows in a file.
                    let name = "\(ProcessInfo.processInfo.processIdentifier)-\(step)"
                    let isPrepared = writer == 1 && step % 5 == 0
                    let prepared = isPrepared ? try? store.prepareRows { $0.put(bytes("p/" + name), []) } : nil
                    let version = try? await store.write { transaction in
                        let count = try transaction.text("count").flatMap { Int($0) } ?? 0
                        let version = transaction.nextVersion
                        transaction.put("a/\(version)", "\(version)")
                        transaction.put("count", String(count + 1))
                        transaction.put("b/\(version)", "\(version)")
                        // Large enough that the log is prepared, and that a write can be torn.
                        transaction.put(bytes("noise"), noise)
                        if let prepared {
                            transaction.put("q/" + name, "")
                            transaction.take([prepared])
                        }
                        transaction.record(bytes("\(version)"))
                    }.version
                    guard let version else { return }
                    let line = Array("\(version)\n".utf8)
                    _ = write(answers, line, line.count)
                }
            }
        }
    }
}
