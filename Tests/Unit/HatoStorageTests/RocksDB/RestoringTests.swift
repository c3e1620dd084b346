import Foundation
import HatoRocksDB
import HatoStorage
import HatoTesting
import Testing

@Suite("Restoring a backup")
struct RestoringTests {
    private static let rows = (0..<500).map { ("k\($0)", String(repeating: "value \($0) ", count: 20)) }

    /// A backup named `first` of the service `messages`, and the store's epoch.
    private func writeBackup(in folder: TemporaryFolder) async throws -> (path: String, epoch: StoreEpoch) {
        let store = try RocksDBStore.open(folder: folder.path("live"), options: .small)
        defer { store.close() }
        for row in Self.rows { try await store.put([row.0: row.1], record: "record of \(row.0)") }
        let backups = BackupFolder(folder.path("backups"), service: "messages")
        #expect(try backups.write("first", of: store) == 500)
        try await store.put(["k0": "changed after the backup"])
        return (folder.path("backups/first"), store.epoch)
    }

    private func restore(_ backup: String, to data: String, of service: String = "messages") throws
        -> RocksDBStore.Restored
    {
        try RocksDBStore.restore(backup: backup, of: service, to: data, options: .small)
    }

    private func names(_ path: String) -> [String]? { try? FileManager.default.contentsOfDirectory(atPath: path) }

    private func content(of data: String) throws -> [String] {
        let store = try RocksDBStore.open(folder: RocksDBStore.folder(in: data), options: .small)
        defer { store.close() }
        #expect(try store.commits(after: 0, limit: 1_000).count == 500)
        return try store.snapshot().rows()
    }

    private var expected: [String] { Self.rows.map { "\($0.0)=\($0.1)" }.sorted() }

    @Test func aRestoredStoreHoldsTheStateOfTheBackupInAHistoryOfItsOwn() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, epoch) = try await writeBackup(in: folder)
            let first = try restore(backup, to: folder.path("a/b/data"))
            #expect(first.version == 500)
            #expect(first.epoch != epoch)
            #expect(try content(of: folder.path("a/b/data")).sorted() == expected)
            // The backup is unchanged: it can be restored again, with yet another epoch.
            let second = try restore(backup, to: folder.path("other"))
            #expect(second.epoch != first.epoch)
            let store = try RocksDBStore.open(folder: RocksDBStore.folder(in: folder.path("other")), options: .small)
            #expect(store.epoch == second.epoch)
            store.close()
        }
    }

    @Test func restoredFilesAreAccessibleToTheirOwnerOnly() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            let data = folder.path("data")
            _ = try restore(backup, to: data)
            let copied = try #require(names(backup + "/rocksdb")).filter { $0.hasSuffix(".sst") }
            #expect(!copied.isEmpty)
            // Restoring opens the copy, and RocksDB may have merged a file away.
            let kept = try #require(names(data + "/store/rocksdb")).filter(copied.contains)
            for file in kept.map({ "\(data)/store/rocksdb/\($0)" }) + ["\(data)/store/format"] {
                #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
            }
            for path in [data, data + "/store", data + "/store/rocksdb"] {
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
            }
        }
    }

    @Test func aFolderInUseOrNotEmptyIsLeftAlone() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            let used = folder.path("used")
            let store = try RocksDBStore.open(folder: RocksDBStore.folder(in: used), options: .small)
            let error = #expect(throws: StoreError.self) { try restore(backup, to: used) }
            #expect("\(try #require(error))".contains("is in use by a running service"))
            store.close()
            let closed = #expect(throws: StoreError.self) { try restore(backup, to: used) }
            #expect("\(try #require(closed))".contains("is not empty (it holds store)"))

            let full = folder.path("full")
            try FileManager.default.createDirectory(atPath: full, withIntermediateDirectories: true)
            try Data("x".utf8).write(to: URL(filePath: full + "/letter.txt"))
            let foreign = #expect(throws: StoreError.self) { try restore(backup, to: full) }
            #expect("\(try #require(foreign))".contains("letter.txt"))
            #expect(names(full) == ["letter.txt"])

            let file = #expect(throws: StoreError.self) { try restore(backup, to: full + "/letter.txt") }
            #expect("\(try #require(file))".contains("letter.txt"))
        }
    }

    @Test func interruptedRestoreIsRepeated() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            let data = folder.path("data")
            for path in ["lost+found", "store.restoring/rocksdb"] {
                try FileManager.default.createDirectory(atPath: "\(data)/\(path)", withIntermediateDirectories: true)
            }
            try Data("half".utf8).write(to: URL(filePath: data + "/store.restoring/rocksdb/CURRENT"))
            _ = try restore(backup, to: data)
            #expect(try content(of: data).sorted() == expected)
            #expect(names(data)?.sorted() == ["lost+found", "store"])
        }
    }

    @Test func folderThatIsNoBackupOfTheServiceIsRefusedByName() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            func refusal(_ backup: String, of service: String = "messages") throws -> String {
                let error = #expect(throws: StoreError.self) {
                    try restore(backup, to: folder.path("data"), of: service)
                }
                #expect(names(folder.path("data")) == nil)
                return "\(try #require(error))"
            }
            #expect(try refusal(backup, of: "auth").contains("is a backup of messages, not of auth"))
            #expect(try refusal(folder.path("nowhere")).contains("nowhere"))
            #expect(try refusal(folder.path("backups")).contains("is no backup"))
            #expect(try refusal(folder.path("live")).contains("no backup but a store in use"))
            try Data("hato-store 99\n".utf8).write(to: URL(filePath: backup + "/format"))
            #expect(try refusal(backup).contains("format 99 by a newer version"))
        }
    }

    /// A flipped bit, and a truncated, longer or missing file, one file after the other: the restore names it, and
    /// leaves nothing.
    @Test(arguments: ["flip", "cut", "append", "remove"])
    func aDamagedBackupIsRefusedWholly(damage: String) async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            let files = try #require(names(backup + "/rocksdb")).map { "rocksdb/\($0)" }
            for file in files + ["answered", "copy", "format", "service"] {
                let url = URL(filePath: "\(backup)/\(file)")
                let sound = try Data(contentsOf: url)
                if sound.isEmpty, damage == "flip" || damage == "cut" { continue }
                switch damage {
                case "remove": try FileManager.default.removeItem(at: url)
                case "cut": try sound.prefix(sound.count / 2).write(to: url)
                case "append": try (sound + Data("garbage".utf8)).write(to: url)
                default:
                    var bytes = sound
                    bytes[bytes.count / 3] ^= 0x10
                    try bytes.write(to: url)
                }
                let error = #expect(throws: StoreError.self, "\(file)") { try restore(backup, to: folder.path("data")) }
                #expect(names(folder.path("data")) == nil)
                #expect("\(try #require(error))".contains(file) || !files.contains(file), "\(file): \(error as Any)")
                try sound.write(to: url)
            }
            _ = try restore(backup, to: folder.path("data"))
            #expect(try content(of: folder.path("data")).sorted() == expected)
        }
    }

    @Test func fileThatIsNoPartOfABackupIsNamed() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            for name in ["notes.txt", "prepared", "format.new"] {
                try Data("foreign".utf8).write(to: URL(filePath: "\(backup)/\(name)"))
                #expect(
                    throws: StoreError.io(
                        "\(backup)/\(name) is no part of the backup; move it elsewhere, then restore again")
                ) { try restore(backup, to: folder.path("data")) }
                #expect(names(folder.path("data")) == nil)
                try FileManager.default.removeItem(atPath: "\(backup)/\(name)")
            }
            _ = try restore(backup, to: folder.path("data"))
            #expect(try content(of: folder.path("data")).sorted() == expected)
        }
    }

    @Test func aDamagedBackupIsNotOpenedEither() async throws {
        try await TemporaryFolder.with { folder in
            let (backup, _) = try await writeBackup(in: folder)
            try Data("foreign".utf8).write(to: URL(filePath: backup + "/rocksdb/000099.log"))
            #expect(throws: StoreError.corrupted("\(backup)/rocksdb/000099.log is no part of the backup")) {
                try RocksDBStore.open(folder: backup, options: .small)
            }
            try FileManager.default.removeItem(atPath: backup + "/rocksdb/000099.log")
            try RocksDBStore.open(folder: backup, options: .small).close()
        }
    }

    /// Writes continue while the backup is made: the copy is one state of them, the returned version, and no log of
    /// RocksDB holds a part of it, which could be lost silently.
    @Test func backupUnderLoadHoldsExactlyTheVersionOfItsResult() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("live"), options: .small)
            defer { store.close() }
            let noise = String(repeating: "noise ", count: 500)
            let backups = BackupFolder(folder.path("backups"), service: "messages")
            let writers = Task {
                try await withThrowingTaskGroup { group in
                    for writer in 0..<4 {
                        group.addTask {
                            var number = 0
                            while !Task.isCancelled {
                                try await store.put(["w\(writer).\(number)": noise], record: noise)
                                number += 1
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            for name in ["a", "b", "c"] {
                try await eventually("300 commits") { store.version >= 300 }
                let (durable, answered) = (store.version, try #require(try backups.write(name, of: store)))
                #expect(answered >= durable)
                let logs = try #require(names("\(backups.path)/\(name)/rocksdb")).filter { $0.hasSuffix(".log") }
                for log in logs {
                    let path = "\(backups.path)/\(name)/rocksdb/\(log)"
                    #expect(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int == 0)
                }
                #expect(try restore("\(backups.path)/\(name)", to: folder.path(name)).version == answered)
                let copy = try RocksDBStore.open(folder: RocksDBStore.folder(in: folder.path(name)), options: .small)
                #expect(try copy.snapshot().rows().count == Int(answered))
                copy.close()
            }
            writers.cancel()
            try await writers.value
        }
    }
}

@Suite("The folder of backups")
struct BackupFolderTests {
    @Test(arguments: StoreWorld.allCases)
    func aNameIsTakenOnceAndNothingHalfDoneIsLeft(world: StoreWorld) async throws {
        try await world.withStore { store, folder in
            try await store.put(["a": "1"])
            let backups = BackupFolder(folder.path("deep/backups"), service: "auth")
            #expect(try backups.write("x", of: store) == 1)
            #expect(try backups.write("x", of: store) == nil)
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups.path) == ["x"])
            store.close()
            #expect(throws: StoreError.self) { try backups.write("y", of: store) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups.path) == ["x"])
        }
    }

    @Test func leftoversOfACrashAreRemoved() async throws {
        try await StoreWorld.memory.withStore { store, folder in
            let backups = BackupFolder(folder.path("backups"), service: "auth")
            backups.removeLeftovers()
            #expect(try backups.write("x", of: store) == 0)
            for path in [".y.77.new/draft/rocksdb", ".hidden/z"] {
                try FileManager.default.createDirectory(
                    atPath: "\(backups.path)/\(path)", withIntermediateDirectories: true)
            }
            backups.removeLeftovers()
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups.path).sorted() == [".hidden", "x"])
        }
    }
}
