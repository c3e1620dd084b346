import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import TestStores
import Testing

@testable import HatoMessages

/// What writes look back at in their turn, while all others wait.
@Suite struct WrittenPathsTests {
    private let text = JSONValue.string(String(repeating: "x", count: 50_000))

    @Test func conditionsOnAVersionReadNoRecord() async throws {
        let store = KeptStore(try MemoryStore())
        try await RunningMessages.with(store: store, change: { $0.limits.upkeepSeconds = 3_600 }) { running in
            let client = running.user("masuo")
            let version = try await client.call(Messages.Set(path: "/y", value: text)).version
            for number in 0..<100 {
                _ = try await client.call(Messages.Set(path: "/y", value: number % 2 == 0 ? 1 : text))
            }
            let before = store.recordsRead
            for path: TreePath in ["/y", "/y/z", "/"] {
                let refused = await refusal {
                    try await client.call(Messages.Set(path: path, value: 1, ifVersion: version))
                }
                #expect(refused?.reason == "version_mismatch")
            }
            for number in 0..<20 {
                let path = TreePath(uncheckedKeys: [TreeKey(unchecked: "z\(number)")])
                _ = try await client.call(Messages.Set(path: path, value: 1, ifVersion: version))
            }
            #expect(store.recordsRead == before)
        }
    }

    @Test func pushesWithATakenKeyReadOneRecordAtMost() async throws {
        let store = KeptStore(try MemoryStore())
        let rules = #"{"rules": {"in": {".write": "!data.exists()"}}}"#
        try await RunningMessages.with(rules: rules, store: store, change: { $0.limits.upkeepSeconds = 3_600 }) {
            running in
            let (client, other) = (running.user("masuo"), running.user("sazae"))
            let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
            let first = try await client.call(Messages.Push(path: "/in", value: ["text": text], key: key))
            for number in 0..<100 {
                _ = try await running.administrator.call(Messages.Set(path: "/n", value: .number(Double(number))))
            }
            let before = store.recordsRead
            for value: JSONValue in [1, ["text": 1], ["text": "x"]] {
                for client in [client, other] {
                    let refused = await refusal {
                        try await client.call(Messages.Push(path: "/in", value: value, key: key))
                    }
                    #expect(refused?.code == .permissionDenied)
                }
            }
            #expect(store.recordsRead == before)
            #expect(try await client.call(Messages.Push(path: "/in", value: ["text": text], key: key)) == first)
        }
    }

    /// A service that starts takes in the newest records.
    @Test func whatWasWrittenIsKnownAfterAStart() async throws {
        let store = KeptStore(try MemoryStore())
        let rules = #"{"rules": {"in": {".write": true}}}"#
        let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
        let push = Messages.Push(path: "/in", value: 7, key: key)
        var (first, version): (Messages.Push.Result?, UInt64) = (nil, 0)
        try await RunningMessages.with(rules: rules, store: store, change: { $0.limits.upkeepSeconds = 3_600 }) {
            running in
            first = try await running.user("masuo").call(push)
            version = try await running.administrator.call(Messages.Set(path: "/a", value: 1)).version
            // No change of the tree.
            _ = try await store.write { $0.put([0xEE].span, [1].span) }
            _ = try await running.administrator.call(Messages.Set(path: "/b", value: 1))
        }
        try await RunningMessages.with(rules: rules, store: store, change: { $0.limits.upkeepSeconds = 3_600 }) {
            running in
            let client = running.administrator
            #expect(try await running.user("masuo").call(push) == first)
            _ = try await client.call(Messages.Set(path: "/a", value: 2, ifVersion: version))
            let refused = await refusal {
                try await client.call(Messages.Set(path: "/b", value: 2, ifVersion: version))
            }
            #expect(refused?.reason == "version_mismatch")
            _ = try await store.write { $0.record([0xFF]) }
        }
        // What is behind a record that cannot be read is not known.
        try await RunningMessages.with(rules: rules, store: store, change: { $0.limits.upkeepSeconds = 3_600 }) {
            running in
            let client = running.administrator
            let refused = await refusal {
                try await client.call(Messages.Set(path: "/never", value: 2, ifVersion: version))
            }
            #expect(refused?.reason == "version_mismatch")
            _ = try await client.call(Messages.Set(path: "/never", value: 2, ifVersion: store.version))
        }
    }

    @Test func moreThanItHoldsCountsAsWritten() throws {
        let database = DatabaseID(rawValue: 1)
        var paths = WrittenPaths(start: 10, countMax: 100)
        #expect(paths.contains("/a", of: database, after: 9))
        #expect(!paths.contains("/a", of: database, after: 10))
        for version in 11...1_000 as ClosedRange<UInt64> {
            paths.append([try note(version, "/p/k\(version)", database)])
        }
        #expect(paths.contains("/a", of: database, after: 10), "forgotten")
        #expect(!paths.contains("/a", of: database, after: 980))
        #expect(paths.contains("/p", of: database, after: 999) && paths.contains("/", of: database, after: 999))
        #expect(paths.contains("/p/k1000", of: database, after: 999))
        #expect(paths.contains("/p/k1000/x", of: database, after: 999))
        #expect(!paths.contains("/p/k999", of: database, after: 999))
        #expect(!paths.contains("/p", of: DatabaseID(rawValue: 2), after: 999))
        func creation(_ path: TreePath, by uid: String, byteCount: Int = 1) -> UInt64? {
            paths.creation(at: path, of: database, by: uid, byteCount: byteCount)
        }
        #expect(creation("/p/k1000", by: "masuo") == 1_000)
        #expect(creation("/p/k1000", by: "masuo", byteCount: 2) == nil)
        #expect(creation("/p/k1000", by: "sazae") == nil)
        #expect(creation("/p/k11", by: "masuo") == nil, "forgotten")
        paths.append([try note(1_001, "/p/k1000", database, value: .string("another size"))])
        #expect(creation("/p/k1000", by: "masuo") == nil && creation("/p/k1000", by: "masuo", byteCount: 14) == 1_001)
    }

    @Test func commitsThatAreNotedTogetherWriteBelowTheSameNodes() throws {
        let (one, two) = (DatabaseID(rawValue: 1), DatabaseID(rawValue: 2))
        var paths = WrittenPaths(start: 10)
        paths.append([
            try note(11, "/a/x/1", one), try note(12, "/a/y/1", one), try note(13, "/a/x/2", two),
            try note(14, "/a/x/2", one), try note(15, "/b", one),
        ])
        let newest: [(path: TreePath, database: DatabaseID, version: UInt64)] = [
            ("/", one, 15), ("/a", one, 14), ("/a/x", one, 14), ("/a/y", one, 12), ("/b", one, 15), ("/a/x/1", one, 11),
            ("/", two, 13), ("/a", two, 13), ("/a/x", two, 13),
        ]
        for (path, database, version) in newest {
            #expect(paths.contains(path, of: database, after: version - 1), "\(path) in \(database)")
            #expect(!paths.contains(path, of: database, after: version), "\(path) in \(database)")
        }
    }

    private func note(
        _ version: UInt64, _ path: String, _ database: DatabaseID, value: TreeLeaf = .bool(true)
    ) throws -> CommitNote {
        let change = PathChange(path: try TreePath(path), before: .empty, after: .leaf(value), depths: (1, 2))
        let record = ChangeRecord(
            version: version, time: 0, uid: "masuo", database: String(database.rawValue), changes: [change])
        return try #require(try CommitNote.of(Commit(version: version, record: [0] + record.encoded)))
    }
}
