import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// Tests with a file system of their own, which only root may mount.
@Suite("A RocksDB store on a bad disk", .serialized, .enabled("only root may mount a tmpfs") { SmallDisk.isPossible })
struct DiskTests {
    @Test func fullDiskEndsTheStoreAndLosesNoAcknowledgedCommit() async throws {
        try await SmallDisk.with(megabytes: 16) { disk in
            let store = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            let ends = Collected<StoreError>()
            store.observeCommits({ _ in }, ended: { ends.append($0) })
            var random = SeededRandom(seed: 3)
            var answered: UInt64 = 0
            var failure: (any Error)?
            while failure == nil, answered < 10_000 {
                let noise = random.noise(bytes: 100_000)
                let number = answered + 1
                do {
                    answered = try await store.write { transaction in
                        transaction.put(bytes("k\(number)"), noise)
                        transaction.put(bytes("last"), bytes(String(number)))
                    }.version
                } catch {
                    failure = error
                }
            }
            // The write fails, or RocksDB's own thread fails first: then everything before is durable.
            let known: String? =
                switch failure as? StoreError {
                case .outcomeUnknown(let cause): cause
                case .closed(let cause): cause
                default: nil
                }
            guard let cause = known else { throw Unexpected(failure) }
            #expect(cause.contains("No space left on device") || cause.contains("background work"), "\(cause)")
            // Later calls are refused at once with the same reason, and observers of the store are notified.
            await #expect(throws: StoreError.closed(cause: cause)) { try await store.put(["a": "1"]) }
            #expect(throws: StoreError.closed(cause: cause)) { try store.snapshot() }
            #expect(try await ends.first(1) == [.closed(cause: cause)])
            store.close()

            try disk.remount("size=64m")
            let again = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            #expect(again.version >= answered && answered > 0)
            #expect(try again.snapshot().text("last") == String(again.version))
            var rows: UInt64 = 0
            try again.snapshot().scan(KeyRange(prefix: bytes("k")), reverse: false) { _, _ in
                rows += 1
                return .next
            }
            #expect(rows == again.version)
            #expect(try await again.put(["a": "1"]) == again.version)
            again.close()
        }
    }

    /// A snapshot requested between the writes of a group makes RocksDB write first: a failure there fails the whole
    /// group.
    @Test func aDiskThatIsFullBeforeASnapshotFailsTheWholeGroup() async throws {
        try await SmallDisk.with(megabytes: 16) { disk in
            let store = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            var random = SeededRandom(seed: 4)
            var answered: UInt64 = 0
            var isFull = false
            while !isFull, answered < 10_000 {
                guard let gate = try? await Gate(holding: store) else {
                    isFull = true
                    continue
                }
                let results = Collected<UInt64?>()
                let noise = random.noise(bytes: 100_000)
                let number = answered + 1
                store.submit(
                    { $0.put(bytes("k\(number)"), noise) }, completion: { results.append(try? $0.get().version) })
                store.submitSnapshot(endsGroup: false) { results.append(try? $0.get().version) }
                gate.open()
                let found = try await results.first(2)
                #expect(found[0] == found[1])
                if let version = found[0] { answered = version } else { isFull = true }
            }
            #expect(isFull)
            store.close()
            try disk.remount("size=64m")
            let again = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            #expect(again.version >= answered && answered > 0)
            again.close()
        }
    }

    /// Neither another write nor a sync may follow: RocksDB would abort the process.
    @Test func nothingIsWrittenOrSyncedAfterAFailedWrite() async throws {
        try await SmallDisk.with(megabytes: 16) { disk in
            // So much that nothing is flushed meanwhile: the log is what does not fit.
            let memory = RocksDBMemory(blockCacheBytes: 4 << 20, memtableBytes: 128 << 20)
            let database = try RocksDatabase(folder: disk.path("database"), memory: memory)
            defer { database.close() }
            var random = SeededRandom(seed: 6)
            let (key, noise) = (bytes("k"), random.noise(bytes: 100_000))
            let batch = database.makeBatch()
            batch.put(key.span, noise.span)
            var failure: StoreError?
            do throws(StoreError) {
                for _ in 0..<1_000 { try database.write(batch) }
            } catch {
                failure = error
            }
            guard case .io(let text)? = failure else { throw Unexpected(failure) }
            #expect(text.contains("No space left on device"))
            #expect(throws: StoreError.io(text)) { try database.syncLog() }
            // Also when there is space again.
            try disk.remount("size=64m")
            #expect(throws: StoreError.io(text)) { try database.syncLog() }
            #expect(throws: StoreError.io(text)) { try database.setAboutStore("name", bytes("value")) }
        }
    }

    @Test func aReadOnlyFolderIsRefusedWithItsName() async throws {
        try await SmallDisk.with(megabytes: 16) { disk in
            let store = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            try await store.put(["a": "1"])
            store.close()
            try disk.remount("ro")
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: disk.path("store"), options: .small)
            }
            guard case .io(let text) = error else { throw Unexpected(error) }
            #expect(text.contains(disk.path("store")) && text.contains("Read-only file system"))
            let other = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: disk.path("other"), options: .small)
            }
            guard case .io(let text) = other else { throw Unexpected(other) }
            #expect(text.contains(disk.path("other")))
            try disk.remount("rw")
            let again = try RocksDBStore.open(folder: disk.path("store"), options: .small)
            #expect(again.version == 1)
            again.close()
        }
    }

    @Test func aBackupOnAnotherDiskIsWhole() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            try await store.put(["a": "1"])
            let rows = try store.prepareRows { target in
                for number in 0..<1_000 { target.put(bytes("b/\(number + 10_000)"), bytes(String(number))) }
            }
            _ = try await store.write { $0.take([rows]) }
            try await SmallDisk.with(megabytes: 16) { disk in
                #expect(try store.backup(to: disk.path("backup")) == 2)
                let copy = try RocksDBStore.open(folder: disk.path("backup"), options: .small)
                defer { copy.close() }
                #expect(try copy.snapshot().rows() == store.snapshot().rows())
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("store/copying")).isEmpty)
        }
    }

    @Test func aBackupThatDoesNotFitIsRefusedAndTheStoreGoesOn() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            var random = SeededRandom(seed: 5)
            let noise = random.noise(bytes: 2_000_000)
            _ = try await store.write { $0.put(bytes("noise"), noise) }
            try await SmallDisk.with(megabytes: 1) { disk in
                let error = #expect(throws: StoreError.self) { try store.backup(to: disk.path("backup")) }
                guard case .io(let text) = error else { throw Unexpected(error) }
                #expect(text.contains("No space left on device"))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("store/copying")).isEmpty)
            #expect(try await store.put(["a": "1"]) == 2)
        }
    }

    @Test func fullDiskIsReportedForANewStore() async throws {
        try await SmallDisk.with(megabytes: 1) { disk in
            try Data(repeating: 1, count: 1_040_000).write(to: URL(fileURLWithPath: disk.path("filler")))
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: disk.path("store"), options: .small)
            }
            guard case .io(let text) = error else { throw Unexpected(error) }
            #expect(text.contains("No space left on device"))
        }
    }
}

/// A tmpfs of a few megabytes. It is mounted by a system call: Foundation's `Process` crashes on Linux in a process
/// with more than some 1,300 open files.
struct SmallDisk {
    let folder: TemporaryFolder

    static var isPossible: Bool {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hato-mount-\(UUID().uuidString)").path
        guard geteuid() == 0, mkdir(folder, 0o700) == 0 else { return false }
        defer { rmdir(folder) }
        return (try? mount(folder, "size=1m")) != nil && unmount(folder)
    }

    static func with(megabytes: Int, _ body: (SmallDisk) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            try mount(folder.path, "size=\(megabytes)m")
            defer { _ = unmount(folder.path) }
            try await body(SmallDisk(folder: folder))
        }
    }

    func path(_ name: String) -> String { folder.path(name) }

    func remount(_ option: String) throws { try Self.mount(folder.path, option, isAgain: true) }

    private static func mount(_ folder: String, _ options: String, isAgain: Bool = false) throws {
        #if os(Linux)
            let isReadOnly = options == "ro"
            let flags = (isAgain ? UInt(MS_REMOUNT) : 0) | (isReadOnly ? UInt(MS_RDONLY) : 0)
            let data = isReadOnly || options == "rw" ? nil : options
            guard Glibc.mount("tmpfs", folder, "tmpfs", flags, data) == 0 else {
                throw Unexpected("mount \(options): \(String(cString: strerror(errno)))")
            }
        #else
            throw Unexpected("a tmpfs is there on Linux only")
        #endif
    }

    /// At once where nothing is open in it, else when the last file is closed.
    private static func unmount(_ folder: String) -> Bool {
        #if os(Linux)
            umount2(folder, Int32(MNT_DETACH)) == 0
        #else
            false
        #endif
    }
}
