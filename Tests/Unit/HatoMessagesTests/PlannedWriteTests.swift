import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct PlannedWriteTests {
    /// More places are read than the right of a listener may rest on.
    private static let rules = #"{"rules": {".write": true, "b": {"$k": {".validate": "!data.exists()"}}}}"#

    @Test func writeThatReadManyPlacesIsOutdatedByThoseOnly() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let administrator = running.administrator
            var children = JSONObject()
            for index in 0..<12_000 { children.append("k\(index)", 1) }
            let caller = Caller.user(Caller.User(uid: "masuo"))
            let write = Write(database: .default, mutation: .set(.object(children), at: "/b"), caller: caller)
            // The first write of all would make the root, which other writes rest on.
            _ = try await administrator.call(Messages.Set(path: "/x/first", value: 1))
            let parts = running.service.parts
            let planned = try #require(try PlannedWrite(write, parts))

            func check() throws -> AheadPlan? {
                let database = try parts.catalogue.newest.database(.default)
                let history = CommitHistory(
                    database: database.id, firstVersion: 0, store: parts.store, pending: PendingChanges(), uid: "masuo")
                // A turn without the database's cache, which only writes may fill.
                let turn = WritePlanner(codec: database.codec).turn(
                    reading: StoreTreeReader(try parts.store.snapshot()))
                return try planned.check(in: database, history, planned.resolved, turn)
            }
            _ = try await administrator.call(Messages.Set(path: "/x/p", value: 1))
            #expect(try check() != nil)
            _ = try await administrator.call(Messages.Set(path: "/b/k11999", value: 1))
            #expect(throws: PlannedWrite.Outdated.self) { try check() }
        }
    }
}
