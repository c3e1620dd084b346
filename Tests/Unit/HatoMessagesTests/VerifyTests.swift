import Dispatch
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import TestStores
import Testing

@testable import HatoMessages
@testable import HatoTree

/// Stores that are deliberately damaged behind the service's back: `messages.verify` names what is wrong, and where.
@Suite("Verifying a store")
struct VerifyTests {
    private static let rules = """
        {"rules": {".read": true, ".write": true, "chats": {"$chat": {".indexOn": ["date", ".value"]}}}}
        """

    /// A service with ten messages, some with priorities, in two rooms.
    private func withMessages(_ body: (RunningMessages, RPCClient, Database) async throws -> Void) async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            for number in 0..<10 {
                let value: JSONValue = [
                    "date": .number(Double(number)), "text": "t", ".priority": number % 3 == 0 ? 5 : .null,
                ]
                _ = try await client.call(
                    Messages.Set(path: try TreePath("/chats/c\(number % 2)/m\(number)"), value: value))
            }
            try await eventually("the indexes are ready") {
                try await client.call(Messages.Indexes.List()).allSatisfy { $0.state == .ready }
            }
            let database = try Self.database(of: running.store)
            try await body(running, client, database)
            await client.close()
        }
    }

    private static func database(of store: any Store) throws -> Database {
        try Catalogue(store, RulesMeter(MessagesLimits(), MessagesMetrics())).newest.database(.default)
    }

    private func damage(
        _ running: RunningMessages, _ body: @escaping @Sendable (any StoreTransaction) throws -> Void
    ) async throws {
        _ = try await running.store.write(body)
    }

    @Test func aSoundStoreHasNoFindings() async throws {
        try await withMessages { _, client, _ in
            let result = try await client.call(Messages.Verify())
            #expect(result.findings == [])
            #expect(result.findingCount == 0)
            #expect(result.checked.databases == 1)
            // Those with a priority have a row for each value; each of the others is one row.
            #expect(result.checked.rows == 4 * 3 + 6)
            #expect(result.checked.indexes == 2)
            #expect(result.checked.indexRows == 10 * 2 + 4)
            #expect(result.checked.changes == Int(result.version))
        }
    }

    @Test func onlyAnAdministratorMayAsk() async throws {
        try await withMessages { running, _, _ in
            let refused = await refusal { try await running.user("masuo").call(Messages.Verify()) }
            #expect(refused?.code == .permissionDenied)
        }
    }

    @Test func aSecondCheckAtATimeIsRefusedAndMayBeRepeatedLater() async throws {
        let store = HeldChecks(try MemoryStore())
        try await RunningMessages.with(store: store) { running in
            let client = running.administrator
            async let first = client.call(Messages.Verify())
            try await eventually("the first check reads") { store.isReading }
            let refused = await refusal { try await client.call(Messages.Verify()) }
            store.release()
            #expect(refused?.code == .unavailable)
            #expect(refused?.reason == "verify_running")
            #expect(refused?.isRetryable == true)
            _ = try await first
            await client.close()
        }
    }

    @Test func aMissingIndexRowIsNamedWithItsChildAndIndex() async throws {
        try await withMessages { running, client, database in
            let definition = try #require(database.indexes.definitions.first { $0.on == "date" })
            let row = indexRow(database, definition.id, "/chats/c1", .leaf(.number(3)), "m3")
            try await damage(running) { $0.delete(row.span) }
            let result = try await client.call(Messages.Verify())
            #expect(result.findingCount == 1)
            #expect(result.findings.first?.kind == .index)
            #expect(result.findings.first?.database == "default")
            #expect(result.findings.first?.path == "/chats/c1/m3")
            #expect(result.findings.first?.index == "/chats/{chat} on date")
        }
    }

    @Test func anIndexRowTooManyIsFoundFromTheOtherSide() async throws {
        try await withMessages { running, client, database in
            let definition = try #require(database.indexes.definitions.first { $0.on == "date" })
            let nobody = indexRow(database, definition.id, "/chats/c1", .leaf(.number(3)), "ghost")
            let elsewhere = indexRow(database, definition.id, "/chats/c1", .leaf(.number(77)), "m3")
            try await damage(running) { transaction in
                for row in [nobody, elsewhere] { transaction.put(row.span, [UInt8]().span) }
            }
            let result = try await client.call(Messages.Verify())
            #expect(Set(result.findings.map(\.path)) == ["/chats/c1/ghost", "/chats/c1/m3"])
            #expect(result.findings.allSatisfy { $0.index == "/chats/{chat} on date" })
        }
    }

    @Test func aChangedRowOfTheTreeDisagreesWithItsIndex() async throws {
        try await withMessages { running, client, database in
            let key = database.codec.key(of: "/chats/c1/m3/date")
            try await damage(running) { $0.put(key, TreeLeafCodec.encode(.number(4))) }
            let result = try await client.call(Messages.Verify())
            // Its row is missing where it should be, and another lies where it should not.
            #expect(result.findings.map(\.path) == ["/chats/c1/m3", "/chats/c1/m3"])
        }
    }

    @Test func anIndexRowOfAPriorityIsChecked() async throws {
        try await withMessages { running, client, database in
            let row = indexRow(database, IndexKeyCodec.priorities, "/chats/c0", .leaf(.number(5)), "m0")
            let ghost = indexRow(database, IndexKeyCodec.priorities, "/chats/c0", .leaf(.number(5)), "m2")
            try await damage(running) {
                $0.delete(row.span)
                $0.put(ghost.span, [UInt8]().span)
            }
            let result = try await client.call(Messages.Verify())
            #expect(result.findings.map(\.path) == ["/chats/c0/m0/.priority", "/chats/c0/m2"])
            #expect(result.findings.allSatisfy { $0.kind == .index })
        }
    }

    @Test func rowsThatNoWriteLeavesAreNamed() async throws {
        try await withMessages { running, client, database in
            let unreadable = database.codec.key(of: "/chats/c0/m0/text")
            let below = database.codec.key(of: "/chats/c0/m2/text/deeper")
            let lonely = database.codec.key(of: try TreePath("/lonely/.priority"))
            try await damage(running) { transaction in
                transaction.put(unreadable, [9, 9])
                transaction.put(below, TreeLeafCodec.encode(.bool(true)))
                transaction.put(lonely, TreeLeafCodec.encode(.number(1)))
            }
            let result = try await client.call(Messages.Verify())
            let tree = result.findings.filter { $0.kind == .tree }
            #expect(tree.map(\.path) == ["/chats/c0/m0/text", "/chats/c0/m2/text/deeper", "/lonely/.priority"])
        }
    }

    @Test func verifyNamesRowsWithoutAnOwner() async throws {
        try await withMessages { running, client, database in
            let undeclared = database.indexCodec.prefix(of: 99) + [1, 2]
            try await damage(running) { transaction in
                transaction.put([0x77, 1], [])
                transaction.put(StoreKeys.tree(of: DatabaseID(rawValue: 55)) + [1], [])
                transaction.put(undeclared, [])
            }
            let result = try await client.call(Messages.Verify())
            #expect(
                Set(result.findings.map(\.problem)) == [
                    "a row has a key that nothing here writes", "there are rows of database 55, which does not exist",
                    "there are rows of index 99, which no rules declare",
                ])
        }
    }

    @Test func aChangeThatCannotBeReadIsNamedWithItsVersion() async throws {
        try await withMessages { running, client, _ in
            let version = try await running.store.write { transaction in
                transaction.put([0x02], [0, 0, 0, 2])
                transaction.record([0, 77, 1])
            }.version
            let result = try await client.call(Messages.Verify())
            #expect(result.findings.map(\.kind) == [.changes])
            #expect(result.findings.first?.version == version)
        }
    }

    @Test func anIndexInBuildingMayLackWhatLiesAhead() async throws {
        let store = try MemoryStore()
        try await RunningMessages.with(rules: Self.rules, store: store) { running in
            let client = running.administrator
            for number in 0..<10 {
                _ = try await client.call(
                    Messages.Set(path: try TreePath("/chats/c0/m\(number)/date"), value: .number(Double(number))))
            }
            let database = try Self.database(of: store)
            let half = try Self.halfBuilt(database)
            let definition = half.definitions[0]
            let (ahead, behind) = (
                indexRow(database, definition.id, "/chats/c0", .leaf(.number(9)), "m9"),
                indexRow(database, definition.id, "/chats/c0", .leaf(.number(0)), "m0")
            )
            try await damage(running) { transaction in
                Database(database, buildingFurther: half).putIndexes(into: transaction)
                transaction.delete(ahead.span)
            }
            #expect(try await client.call(Messages.Verify()).findings == [])
            try await damage(running) { $0.delete(behind.span) }
            #expect(try await client.call(Messages.Verify()).findings.map(\.path) == ["/chats/c0/m0"])
            await client.close()
        }
    }

    /// The first index built up to /chats/c0/m5.
    private static func halfBuilt(_ database: Database) throws -> IndexCatalog {
        var json = database.indexes.json
        guard var object = json.object, var indexes = object["indexes"]?.array, var first = indexes[0].object else {
            throw DeadlineExceeded("a catalogue is an object with indexes")
        }
        let cursor = database.codec.key(of: "/chats/c0/m5")
        first["building"] = .array(cursor.map { .number(Double($0)) })
        indexes[0] = .object(first)
        object["indexes"] = .array(indexes)
        json = .object(object)
        return try #require(IndexCatalog(json: json))
    }

    private func indexRow(
        _ database: Database, _ id: UInt32, _ collection: TreePath, _ value: SortValue, _ key: String
    ) -> [UInt8] {
        IndexKeyCodec.row(
            database.indexCodec.prefix(of: id, collection: collection.keys),
            SortKey(value, TreeKey(unchecked: key)))
    }
}

/// A store whose check for damage waits until it is released.
private final class HeldChecks: WrappedStore {
    let store: any Store
    private let gate = DispatchSemaphore(value: 0)
    private let reading = Atomic(false)

    init(_ store: any Store) { self.store = store }

    var isReading: Bool { reading.load(ordering: .acquiring) }

    func release() { gate.signal() }

    func findDamage(_ step: (Int) -> Void) throws(StoreError) -> [StoreError] {
        reading.store(true, ordering: .releasing)
        _ = gate.wait(timeout: .now() + 240)
        return try store.findDamage(step)
    }
}
