import Dispatch
import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct ShortReadTests {
    @Test func readBeyondItsRowsEndsAndIsAnsweredAmongTheLargeOnes() async throws {
        try await RunningMessages.with(change: { $0.limits.unreservedReadRowsMax = 20 }) { running in
            let client = running.administrator
            let value = JSONValue.object(
                JSONObject(uniqueMembers: (100..<200).map { .init("k\($0)", ["x": .number(Double($0))]) }))
            for member in value.object?.members ?? [] {
                // Each child is rows of its own.
                _ = try await client.call(
                    Messages.Set(
                        path: TreePath(uncheckedKeys: [TreeKey(unchecked: "a"), TreeKey(unchecked: member.name)]),
                        value: member.value))
            }
            #expect(try await client.call(Messages.Get(path: "/a")).value == value)
            var newest = Messages.Get(path: "/a")
            newest.query = TreeQuery(order: .key, limit: .last(2))
            #expect(try await client.call(newest).value == ["k198": ["x": 198], "k199": ["x": 199]])
        }
    }

    /// With one thread that reads, which never ends what it does.
    private func withHeldReader(
        rules: String = DefaultRules.signedIn,
        _ body: (RunningMessages, _ letGo: @Sendable () -> Void) async throws -> Void
    ) async throws {
        var limits = StoreLimits()
        limits.readerThreads = 1
        let store = try MemoryStore(limits: limits)
        let end = DispatchSemaphore(value: 0)
        try await RunningMessages.with(rules: rules, store: store) { running in
            defer { end.signal() }
            _ = try await running.administrator.call(Messages.Set(path: "/a/b", value: "x"))
            store.submitRead { end.wait() }
            try await body(running) { end.signal() }
        }
    }

    @Test func shortReadNeedsNoReadersThread() async throws {
        try await withHeldReader { running, _ in
            let client = running.user("u")
            for _ in 0..<3 {
                let value = try await client.call(Messages.Get(path: "/a")).value
                #expect(value == ["b": "x"])
            }
        }
    }

    @Test func longerReadWaitsForAReadersThread() async throws {
        try await withHeldReader { running, letGo in
            let client = running.user("u")
            let text = JSONValue.string(String(repeating: "y", count: 100_000))
            _ = try await client.call(Messages.Set(path: "/a/c", value: text))
            async let long = client.call(Messages.Get(path: "/a/c"))
            let other = running.user("v")
            let short = try await other.call(Messages.Get(path: "/a/b")).value
            #expect(short == "x")
            letGo()
            let value = try await long.value
            #expect(value == text)
        }
    }

    @Test func rulesThatTakeLongDecideOnAReadersThread() async throws {
        let looks = (0..<60).map { "root.child('q\($0)').val() == null" }.joined(separator: " && ")
        let rule = Array(repeating: "(\(looks))", count: 6).joined(separator: " && ")
        let rules = "{\"rules\": {\".read\": \"\(rule)\"}}"
        try await withHeldReader(rules: rules) { running, letGo in
            async let judged = running.user("u").call(Messages.Get(path: "/a/b"))
            let short = try await running.administrator.call(Messages.Get(path: "/a/b")).value
            #expect(short == "x")
            letGo()
            let value = try await judged.value
            #expect(value == "x")
        }
    }

    @Test func rowsOfAllItsScansAndLookUpsCount() async throws {
        let store = try MemoryStore()
        _ = try await store.write { rows in
            for number in UInt8(0)..<10 { rows.put([1, number], [number]) }
        }
        let snapshot = try store.snapshot()
        let short = ShortReadSnapshot(snapshot, rowsMax: 9, bytesMax: 64)
        func scan(_ snapshot: any StoreSnapshot) throws -> Int {
            var count = 0
            try snapshot.scan(KeyRange(lower: [1], upper: [1, 4]), reverse: false) { _, _ in
                count += 1
                return .next
            }
            return count
        }
        #expect(try scan(short) == 4)
        #expect(try scan(short.uncached) == 4)
        #expect(try short.get([UInt8]([1, 9]).span) == [9])
        #expect(throws: TreeError.self) { try short.get([UInt8]([1, 9]).span) }
        #expect(throws: TreeError.self) { try scan(short) }
    }
}
