import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

@Suite struct IndexListingTests {
    private static let rules = #"{"rules": {".write": true, "chats": {"$c": {"messages": {".indexOn": "date"}}}}}"#

    /// The one index, built up to `path`; nil: not begun.
    private static func built(upTo path: TreePath?, _ database: Database) throws -> Database {
        guard var object = database.indexes.json.object, var indexes = object["indexes"]?.array,
            var first = indexes[0].object
        else { throw RecordError(record: "indexes") }
        first["building"] = .array((path.map { database.codec.key(of: $0) } ?? []).map { .number(Double($0)) })
        indexes[0] = .object(first)
        object["indexes"] = .array(indexes)
        return Database(database, buildingFurther: try #require(IndexCatalog(json: .object(object))))
    }

    @Test func progressIsThatOfTheCollectionsNotOfTheWholeTree() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            for name in ["a", "k", "z"] {
                _ = try await client.call(
                    Messages.Set(path: TreePath("/chats/\(name)/messages/m"), value: ["date": 1]))
            }
            // Most of the tree lies behind and before the chats.
            for path: TreePath in ["/0/x", "/users/x"] {
                _ = try await client.call(Messages.Set(path: path, value: 1))
            }
            let parts = running.service.parts
            let database = try Self.built(upTo: "/chats/k/messages/m", parts.catalogue.newest.database(.default))
            let listing = IndexListing(
                database: database, snapshot: try parts.store.snapshot(), counts: IndexCounts(now: { 0 }))
            let index = try #require(try listing.list().first)
            #expect(index.state == .building)
            #expect(index.progress > 0.2 && index.progress < 0.8, "\(index.progress)")
        }
    }

    @Test func progressAndEntriesGrowWithWhatIsDoneThoughOneKeyLiesFarOff() async throws {
        try await RunningMessages.with(rules: #"{"rules": {"people": {".indexOn": "age"}}}"#) { running in
            var people: JSONObject = ["zzz": ["age": 1]]
            for number in 100..<200 { people.append("a\(number)", ["age": .number(Double(number))]) }
            _ = try await running.administrator.call(Messages.Set(path: "/people", value: .object(people)))
            let parts = running.service.parts
            let snapshot = try parts.store.snapshot()
            var database = try Self.built(upTo: nil, parts.catalogue.newest.database(.default))
            var listed: [Messages.Indexes.Index] = []
            while let (definition, cursor) = database.indexes.building {
                let listing = IndexListing(database: database, snapshot: snapshot, counts: IndexCounts(now: { 0 }))
                listed += try listing.list()
                let builder = IndexBuilder(
                    definition, reader: StoreTreeReader(snapshot), codec: database.codec,
                    indexCodec: database.indexCodec)
                var indexes = database.indexes
                indexes.pageApplied(try builder.page(after: cursor, childrenMax: 10))
                database = Database(database, buildingFurther: try #require(IndexCatalog(json: indexes.json)))
            }
            #expect(listed.map { Int($0.entries) } == (0...10).map { $0 * 10 })
            for (page, index) in listed.enumerated() {
                #expect(abs(index.progress - Double(page) / 10) < 0.03, "\(index.progress) after page \(page)")
            }
        }
    }

    @Test func manyRowsAreCountedOnceAMinute() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            func add(_ range: Range<Int>) async throws {
                var children = JSONObject()
                for index in range { children.append("m\(index)", ["date": .number(Double(index))]) }
                _ = try await client.call(Messages.Update(path: "/chats/a/messages", values: children))
            }
            for start in [0, 5_500] { try await add(start..<start + 5_500) }
            let parts = running.service.parts
            let database = try parts.catalogue.newest.database(.default)
            let time = Mutex<Int64>(0)
            let counts = IndexCounts(now: { time.withLock { $0 } })
            func entries() throws -> UInt64? {
                try IndexListing(database: database, snapshot: parts.store.snapshot(), counts: counts).list().first?
                    .entries
            }
            #expect(try entries() == 11_000)
            try await add(11_000..<11_100)
            time.withLock { $0 = 59_999 }
            #expect(try entries() == 11_000)
            time.withLock { $0 = 60_000 }
            #expect(try entries() == 11_100)
        }
    }
}
