import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

@Suite struct IndexListingTests {
    private static let rules = #"{"rules": {".write": true, "chats": {"$c": {"messages": {".indexOn": "date"}}}}}"#

    /// The index of messages, built up to `path`.
    private static func built(upTo path: TreePath, _ database: Database) throws -> Database {
        guard var object = database.indexes.json.object, var indexes = object["indexes"]?.array,
            var first = indexes[0].object
        else { throw RecordError(record: "indexes") }
        first["building"] = .array(database.codec.key(of: path).map { .number(Double($0)) })
        indexes[0] = .object(first)
        object["indexes"] = .array(indexes)
        return database.with(try #require(IndexCatalog(json: .object(object))))
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
            let database = try Self.built(upTo: "/chats/k/messages/m", parts.catalogue.forWriting(.default))
            let listing = IndexListing(
                database: database, snapshot: try parts.store.snapshot(), counts: IndexCounts(now: { 0 }))
            let index = try #require(try listing.list().first)
            #expect(index.state == .building)
            #expect(index.progress > 0.2 && index.progress < 0.8, "\(index.progress)")
        }
    }

    @Test func countOfABuildIsNotKeptForTheIndexThatIsReady() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            func add(_ range: Range<Int>) async throws {
                var children = JSONObject()
                for index in range { children.append("m\(index)", ["date": .number(Double(index))]) }
                _ = try await client.call(Messages.Update(path: "/chats/a/messages", values: children))
            }
            for start in [0, 5_500] { try await add(start..<start + 5_500) }
            let parts = running.service.parts
            let ready = try parts.catalogue.forWriting(.default)
            let building = try Self.built(upTo: "/chats/a/messages/m5", ready)
            let counts = IndexCounts(now: { 0 })
            func entries(_ database: Database) throws -> UInt64? {
                try IndexListing(database: database, snapshot: parts.store.snapshot(), counts: counts).list().first?
                    .entries
            }
            #expect(try entries(building) == 11_000)
            try await add(11_000..<11_100)
            #expect(try entries(building) == 11_000)
            #expect(try entries(ready) == 11_100)
        }
    }
}
