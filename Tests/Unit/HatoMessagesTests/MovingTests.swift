import Foundation
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

@Suite struct MovingTests {
    @Test func exportIsOneVersionPageByPage() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var tree = JSONObject()
            for number in 0..<25 { tree["k\(number)"] = ["v": .number(Double(number))] }
            _ = try await client.call(Messages.Set(path: "/a", value: .object(tree)))
            var request = Messages.Export(path: "/a", limit: 10)
            var rows: [[JSONValue]] = []
            var pages = 0
            repeat {
                let page = try await client.call(request)
                rows += page.rows
                pages += 1
                request.snapshot = page.snapshot
                request.after = page.after
                // What is written between the pages is not in them.
                _ = try await client.call(Messages.Set(path: "/a/k7", value: ["v": "later"]))
                _ = try await client.call(Messages.Set(path: TreePath("/a/z\(pages)"), value: 1))
            } while request.after != nil
            #expect(pages == 3)
            #expect(rows.count == 25)
            #expect(rows.contains(["/k7/v", 7]))
            let ended = await refusal { try await client.call(request) }
            #expect(ended?.reason == "export_not_found")
        }
    }

    @Test func handleIsOfOnePlaceOfOneDatabase() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let name = try DatabaseName("b")
            _ = try await client.call(Messages.Databases.Create(database: name))
            _ = try await client.call(Messages.Set(database: name, path: "/", value: ["x": 1, "y": 2]))
            var request = Messages.Export(database: name, path: "/", limit: 1)
            let page = try await client.call(request)
            (request.snapshot, request.after) = (page.snapshot, page.after)
            for other in [
                Messages.Export(path: "/", snapshot: page.snapshot, after: page.after),
                Messages.Export(database: name, path: "/x", snapshot: page.snapshot),
            ] {
                let refused = await refusal { try await client.call(other) }
                #expect(refused?.reason == "invalid_snapshot")
                #expect(refused?.data["parameter"] == "snapshot")
            }
            // Of the new database the snapshot has nothing: the export would seem to be at its end.
            _ = try await client.call(Messages.Databases.Drop(database: name))
            _ = try await client.call(Messages.Databases.Create(database: name))
            let ended = await refusal { try await client.call(request) }
            #expect(ended?.reason == "export_not_found")
        }
    }

    @Test func pageFitsIntoAResponseWhateverItsTextsTakeAsJSON() async throws {
        try await RunningMessages.with(change: {
            $0.server.limits.responseBytesMax = 8_000
            $0.limits.exportSnapshotsMax = 1
        }) { running in
            let client = running.administrator
            var tree: JSONObject = [:]
            for number in 10..<22 { tree["k\(number)"] = .string(String(repeating: "x", count: 150)) }
            // Twice as long as JSON, then six times.
            tree["k22"] = .string(String(repeating: "\"", count: 3_500))
            for number in 23..<60 { tree["k\(number)"] = .string(String(repeating: "\u{1}", count: 150)) }
            _ = try await client.call(Messages.Set(path: "/a", value: .object(tree)))
            var request = Messages.Export(path: "/a", limit: 1_000)
            var rows: [[JSONValue]] = []
            repeat {
                let page = try await client.call(request)
                rows += page.rows
                (request.snapshot, request.after) = (page.snapshot, page.after)
            } while request.after != nil
            #expect(rows == tree.members.map { [.string("/" + $0.name), $0.value] })
        }
    }

    @Test func exportThatCannotBeginHoldsNoSnapshot() async throws {
        try await RunningMessages.with(change: {
            $0.server.limits.responseBytesMax = 2_000
            $0.limits.exportSnapshotsMax = 1
        }) { running in
            let client = running.administrator
            _ = try await client.call(
                Messages.Set(path: "/a", value: ["b": .string(String(repeating: "\"", count: 1_500)), "c": 1]))
            for _ in 0..<2 {
                let refused = await refusal { try await client.call(Messages.Export(path: "/a")) }
                #expect(refused?.reason == "too_big")
            }
            _ = try await client.call(Messages.Export(path: "/a/c"))
        }
    }

    @Test func exportNamesTheParameterThatIsWrong() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            for (parameter, request) in [
                ("path", Messages.Export(path: "/a/.priority")), ("after", Messages.Export(path: "/a", after: "a.b")),
            ] {
                let error = await refusal { try await client.call(request) }
                #expect(error?.code == .invalidArgument)
                #expect(error?.data["parameter"] == .string(parameter))
            }
        }
    }

    @Test func exportedRowsMakeTheSameTree() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let tree: JSONValue = [
                "a": [".value": 5, ".priority": 1], "b": [".priority": "p", "x": true, "deep": ["10": "t", "9": "n"]],
                "é😀": "text", "n": -0.5,
            ]
            _ = try await client.call(Messages.Set(path: "/from", value: tree))
            let page = try await client.call(Messages.Export(path: "/from"))
            #expect(page.after == nil)
            _ = try await client.call(Messages.Import(path: "/to", rows: page.rows))
            let copy = try await client.call(Messages.Get(path: "/to", form: .export)).value
            #expect(copy == tree)
            _ = try await client.call(Messages.Import(path: "/tree", value: tree))
            let other = try await client.call(Messages.Get(path: "/tree", form: .export)).value
            #expect(other == tree)
        }
    }

    @Test func importOfNothingRemovesWhatIsThere() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/", value: ["a": ["x": 1], "b": 2]))
            _ = try await client.call(Messages.Import(path: "/a", value: .null))
            #expect(try await client.call(Messages.Get(path: "/")).value == ["b": 2])
            // Beside rows, null is no tree: the parameter is not there.
            let rows: JSONObject = ["path": "/c", "rows": [["/d", 1]], "value": nil]
            _ = try await client.call(method: Messages.Import.method, params: rows)
            #expect(try await client.call(Messages.Get(path: "/")).value == ["b": 2, "c": ["d": 1]])
        }
    }

    /// A page that ended between the priority of an object and its first value would lose it: it is set where nothing
    /// is.
    @Test func noLimitOfAPageLosesAPriority() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let tree: JSONValue = [
                ".priority": 0,
                "9": [".priority": "nine", "1": [".priority": -1, "x": [".value": true, ".priority": 4]]],
                "a": [
                    ".priority": 1, "b": [".priority": 2, "c": [".priority": 3, "d": [".value": 4, ".priority": 5]]],
                    "e": 6, "f": [".priority": 7, "g": "h"],
                ],
                "b": [".value": "last", ".priority": "p"],
            ]
            _ = try await client.call(Messages.Set(path: "/from", value: tree))
            let whole = try await client.call(Messages.Export(path: "/from"))
            #expect(whole.rows.count == 15)
            for limit in 1...whole.rows.count + 1 {
                let target = try TreePath("/to/\(limit)")
                var request = Messages.Export(path: "/from", limit: limit)
                var rows: [[JSONValue]] = []
                repeat {
                    let page = try await client.call(request)
                    rows += page.rows
                    _ = try await client.call(Messages.Import(path: target, rows: page.rows))
                    (request.snapshot, request.after) = (page.snapshot, page.after)
                } while request.after != nil
                #expect(rows == whole.rows, "limit \(limit)")
                let copy = try await client.call(Messages.Export(path: target))
                #expect(
                    EncodedJSON(.array(copy.rows.map(JSONValue.array)))
                        == EncodedJSON(.array(rows.map(JSONValue.array))), "limit \(limit)")
            }
        }
    }

    @Test func pageHasNoMoreRowsThanItsLimitWhereAPriorityAllowsIt() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let tree: JSONValue = ["a": 1, "b": [".priority": 1, "c": [".priority": 2, "d": 3]]]
            _ = try await client.call(Messages.Set(path: "/x", value: tree))
            let page = try await client.call(Messages.Export(path: "/x", limit: 3))
            #expect(page.rows == [["/a", 1]])
            #expect(page.after == "/a")
            let rest = Messages.Export(path: "/x", snapshot: page.snapshot, after: page.after, limit: 1)
            let last = try await client.call(rest)
            #expect(last.rows == [["/b/.priority", 1], ["/b/c/.priority", 2], ["/b/c/d", 3]])
            #expect(last.after == nil)
        }
    }

    @Test func largestPageOfAnExportIsOneImport() async throws {
        #expect(MessagesLimits().exportRowsMax == MessagesLimits().importRowsMax)
        try await RunningMessages.with { running in
            let client = running.administrator
            let rows: [[JSONValue]] = (0..<10_001).map { [.string("/k\($0)"), .number(Double($0))] }
            let refused = await refusal { try await client.call(Messages.Import(path: "/a", rows: rows)) }
            #expect(refused?.reason == "too_many_rows")
            let value = try await client.call(Messages.Get(path: "/a")).value
            #expect(value == .null, "a call that is refused writes nothing")
            let before = running.store.version
            let version = try await client.call(Messages.Import(path: "/a", rows: Array(rows.dropLast()))).version
            #expect(version == before + 1, "a call is one commit")
            let page = try await client.call(Messages.Export(path: "/a", limit: 10_000))
            #expect(page.after == nil)
            #expect(page.rows.count == 10_000)
            _ = try await client.call(Messages.Import(path: "/b", rows: page.rows))
        }
    }

    @Test func wrongRowIsNamed() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let refused = await refusal {
                try await client.call(Messages.Import(path: "/", rows: [["/a", 1], ["/b", ["x": 1]]]))
            }
            #expect(refused?.code == .invalidArgument)
            #expect(refused?.message.contains("Row 1") == true)
            let value = try await client.call(Messages.Get(path: "/")).value
            #expect(value == .null)
        }
    }

    @Test func limitsOfMovingHold() async throws {
        try await RunningMessages.with(change: {
            $0.limits.exportRowsMax = 5
            $0.limits.exportSnapshotsMax = 1
            $0.limits.importRowsMax = 2
        }) { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/a", value: ["x": 1, "y": 2]))
            let long = await refusal { try await client.call(Messages.Export(path: "/", limit: 6)) }
            #expect(long?.reason == "invalid_limit")
            let first = try await client.call(Messages.Export(path: "/", limit: 1))
            let second = await refusal { try await client.call(Messages.Export(path: "/", limit: 1)) }
            #expect(second?.reason == "too_many_exports")
            _ = try await client.call(
                Messages.Export(path: "/", snapshot: first.snapshot, after: first.after, limit: 5))
            _ = try await client.call(Messages.Export(path: "/", limit: 1))
            let rows: [[JSONValue]] = [["/b/1", 1], ["/b/2", 1], ["/b/3", 1]]
            let many = await refusal { try await client.call(Messages.Import(path: "/", rows: rows)) }
            #expect(many?.reason == "too_many_rows")
        }
    }

    @Test func exportThatRestsGivesWayToANewOne() throws {
        let store = try MemoryStore()
        var limits = MessagesLimits()
        limits.exportSnapshotsMax = 2
        let exports = ExportSnapshots(limits: limits)
        let place = ExportSnapshots.Source(name: .default, database: DatabaseID(rawValue: 1), path: .root)
        let rested = try exports.open(try store.snapshot(), of: place, now: 0)
        let paged = try exports.open(try store.snapshot(), of: place, now: 0)
        _ = try exports.snapshot(of: paged, place, now: 5_000)
        #expect(throws: MessagesError.self) { try exports.open(try store.snapshot(), of: place, now: 9_999) }
        _ = try exports.open(try store.snapshot(), of: place, now: 10_000)
        _ = try exports.snapshot(of: paged, place, now: 10_000)
        #expect(throws: MessagesError.self) { try exports.snapshot(of: rested, place, now: 10_000) }
    }

    @Test func idleExportEnds() throws {
        let store = try MemoryStore()
        var limits = MessagesLimits()
        limits.exportIdleMs = 1_000
        let exports = ExportSnapshots(limits: limits)
        let place = ExportSnapshots.Source(name: .default, database: DatabaseID(rawValue: 1), path: .root)
        let handle = try exports.open(try store.snapshot(), of: place, now: 0)
        _ = try exports.snapshot(of: handle, place, now: 900)
        _ = try exports.snapshot(of: handle, place, now: 1_800)
        #expect(throws: MessagesError.self) { try exports.snapshot(of: handle, place, now: 2_900) }
    }

    @Test func backupGoesUnderItsFolderOnly() async throws {
        let folder = URL.temporaryDirectory.appending(path: "hato-messages-tests-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await RunningMessages.with(change: { $0.backupFolder = BackupFolder(folder, service: "messages") }) {
            running in
            let client = running.administrator
            let version = try await client.call(Messages.Set(path: "/a", value: 1)).version
            let backup = try await client.call(Messages.Backup(name: BackupName("first")))
            #expect(backup.version >= version)
            #expect(FileManager.default.fileExists(atPath: folder + "/first"))
            #expect(
                await refusal { try await client.call(Messages.Backup(name: BackupName("first"))) }?.code
                    == .alreadyExists)
            for name in ["../x", ".hidden", "a/b", ""] {
                let refused = await refusal {
                    try await client.call(method: Messages.Backup.method, params: ["name": .string(name)])
                }
                #expect(refused?.code == .invalidArgument)
                #expect(refused?.data["parameter"] == "name")
            }
        }
        try await RunningMessages.with { running in
            let client = running.administrator
            #expect(
                await refusal { try await client.call(Messages.Backup(name: BackupName("x"))) }?.reason == "backups_off"
            )
        }
    }

    @Test func backupThatCannotBeWrittenSaysWhy() async throws {
        try await RunningMessages.with(change: { $0.backupFolder = BackupFolder("/dev/null/x", service: "messages") }) {
            running in
            let refused = await refusal {
                try await running.administrator.call(Messages.Backup(name: BackupName("first")))
            }
            #expect(refused?.code == .unavailable)
            #expect(refused?.reason == "backup_failed")
            #expect(refused?.message.contains("/dev/null/x: Not a directory") == true, "\(refused as Any)")
        }
    }

    @Test func backupIsAStoreOfItsOwn() async throws {
        let folder = URL.temporaryDirectory.appending(path: "hato-messages-tests-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await RunningMessages.with(change: { $0.backupFolder = BackupFolder(folder, service: "messages") }) {
            running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/a", value: ["b": 1]))
            _ = try await client.call(Messages.Backup(name: BackupName("copy")))
        }
        try await RunningMessages.with(store: try MemoryStore(restoring: folder + "/copy")) { running in
            let value = try await running.administrator.call(Messages.Get(path: "/")).value
            #expect(value == ["a": ["b": 1]])
        }
    }

    @Test func statsCountListenersFollowersAndDatabases() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let listener = try await client.subscribe(Messages.Listen(path: "/a"))
            let follower = try await client.subscribe(Messages.Follow())
            defer { withExtendedLifetime((listener, follower)) {} }
            let stats = try await client.call(Messages.Stats())
            #expect(stats.listeners == 1)
            #expect(stats.followers == 1)
            #expect(stats.databases == 1)
            #expect(stats.epoch == running.store.epoch.description)
            #expect(stats.version == running.store.version)
        }
    }

    @Test func oldChangesAreCompactedByAgeAndBySize() async throws {
        let time = TestClock(1_000_000)
        try await RunningMessages.with(change: { $0.now = { time.now } }) { running in
            let client = running.administrator
            var versions: [UInt64] = []
            for _ in 0..<20 {
                time.advance(by: 3_600_000)
                versions.append(try await client.call(Messages.Push(path: "/a", value: "x")).version)
            }
            var retention = ChangeRetention(MessagesLimits())
            #expect(try retention.cut(running.store, now: time.now) == nil)
            retention.ageMsMax = 5 * 3_600_000 + 1
            #expect(try retention.cut(running.store, now: time.now) == versions[13])
            retention.ageMsMax = .max / 2
            retention.bytesMax = running.store.keptCommits.bytes / 2
            let cut = try #require(try retention.cut(running.store, now: time.now))
            #expect((versions[5]...versions[14]).contains(cut))
        }
    }

    /// Index builds write many commits without a time, and a record may be damaged.
    @Test func recordsWithoutATimeStopNoCompaction() async throws {
        let time = TestClock(1_000_000)
        try await RunningMessages.with(change: { $0.now = { time.now } }) { running in
            var versions: [UInt64] = []
            for _ in 0..<8 {
                time.advance(by: 3_600_000)
                versions.append(try await running.administrator.call(Messages.Push(path: "/a", value: "x")).version)
                for _ in 0..<40 { _ = try await running.store.write { $0.put([0xEE].span, [1].span) } }
                _ = try await running.store.write { $0.record([0xFF]) }
            }
            var retention = ChangeRetention(MessagesLimits())
            retention.ageMsMax = 3 * 3_600_000 + 1
            let cut = try #require(try retention.cut(running.store, now: time.now))
            #expect((versions[3]..<versions[4]).contains(cut))
            // Without one record that can be read.
            try running.store.compactCommits(through: running.store.version - 1)
            retention.bytesMax = 0
            #expect(try retention.cut(running.store, now: time.now) == running.store.version)
        }
    }

    @Test func thereIsOneBackupAtATime() async throws {
        let folder = URL.temporaryDirectory.appending(path: "hato-messages-tests-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (begun, gate) = (TestClock(0), Latch())
        defer { gate.open() }
        let store = KeptStore(try MemoryStore()) {
            begun.advance(by: 1)
            gate.wait()
        }
        try await RunningMessages.with(
            store: store, change: { $0.backupFolder = BackupFolder(folder, service: "messages") }
        ) { running in
            let client = running.administrator
            async let first = client.call(Messages.Backup(name: BackupName("first")))
            try await eventually("the first has begun") { begun.now == 1 }
            let refused = await refusal { try await client.call(Messages.Backup(name: BackupName("second"))) }
            #expect(refused?.code == .unavailable && refused?.reason == "backup_running")
            #expect(try await client.call(Messages.Get(path: "/a")).value == .null, "a reader thread is left")
            gate.open()
            _ = try await first
            _ = try await client.call(Messages.Backup(name: BackupName("second")))
        }
    }
}

final class TestClock: Sendable {
    private let state: Mutex<Int64>
    init(_ start: Int64) { state = Mutex(start) }
    var now: Int64 { state.withLock { $0 } }
    func advance(by milliseconds: Int64) { state.withLock { $0 += milliseconds } }
}
