import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct ShortReadTests {
    @Test func readBeyondItsRowsContinuesAmongTheLargeReads() async throws {
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
        #expect(!short.isExhausted)
        #expect(throws: TreeError.self) { try short.get([UInt8]([1, 9]).span) }
        #expect(throws: TreeError.self) { try scan(short) }
        #expect(short.isExhausted)
    }
}
