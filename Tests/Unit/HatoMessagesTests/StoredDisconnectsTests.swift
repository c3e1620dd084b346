import Foundation
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Testing

@testable import HatoMessages

/// What connections have left when the process ends before they do: the next one writes it.
@Suite struct StoredDisconnectsTests {
    private static let rules = """
        {"rules": {
          "users": {"$u": {".write": "auth.uid == $u", ".read": true}},
          "claims": {".write": "auth.token.admin == true"},
          "public": {".write": true}
        }}
        """

    @Test func nextStartWritesWhatTheFormerRunWasLeft() async throws {
        let time = TestClock(1_000_000)
        let change: (inout MessagesConfiguration) -> Void = { $0.now = { time.now } }
        try await RunningMessages.with(rules: Self.rules, change: change) { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a/status","value":{"state":"online"}"#, of: "messages")
            try await line.ask(
                "set", #""path":"/users/a/status","value":{"state":"offline","since":{".sv":"timestamp"}}"#)
            try await line.ask("set", #""path":"/users/a/typing","value":true"#, of: "messages")
            try await line.ask("remove", #""path":"/users/a/typing""#)
            try await line.ask("set", #""path":"/users/a/taken/back","value":1"#)
            try await line.ask("cancel", #""path":"/users/a/taken""#)
            let other = try await RawLines.connect(running, as: "b")
            try await other.ask("update", #""path":"/","values":{"users/b/x":1,"public/x":{"y":[1,null,"磯"]}}"#)
            try await other.ask("set", #""path":"/public/x/.priority","value":2"#)
            time.advance(by: 5_000)
            let former = try await running.killed()
            try await RunningMessages.with(store: former, change: change) { next in
                let client = next.administrator
                let users: JSONValue = ["a": ["status": ["since": 1_005_000, "state": "offline"]], "b": ["x": 1]]
                let value = try await client.call(Messages.Get(path: "/users")).value
                #expect(value == users)
                let exported = try await client.call(Messages.Get(path: "/public", form: .export)).value
                #expect(exported == ["x": [".priority": 2, "y": ["0": 1, "2": "磯"]]])
                #expect(try next.keptRows().isEmpty)
                await client.close()
            }
        }
    }

    @Test func eachOnDisconnectWriteIsAuthorisedAsTheCallerThatSetIt() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let first = try await RawLines.connect(running, as: "a")
            try await first.ask("set", #""path":"/users/a/x","value":1"#)
            try await first.ask("set", #""path":"/users/c/x","value":1,"auth":"user:c""#)
            try await first.ask("set", #""path":"/public/x","value":1"#)
            // From here on only writes that came with a credential of their own have a user.
            try await first.ask("end", "", of: "session")
            let second = try await RawLines.connect(running, as: "a")
            try await second.ask("set", #""path":"/users/a/y","value":1"#)
            try await second.ask("set", #""path":"/public/y","value":1"#)
            try await second.ask("authenticate", #""auth":"user:b""#, of: "session")
            try await second.ask("set", #""path":"/users/b/y","value":1"#)
            let third = try await RawLines.connect(running, as: nil)
            let claims = #""auth":"admin","as":{"uid":"d","token":{"admin":true}}"#
            try await third.ask("authenticate", claims, of: "session")
            try await third.ask("set", #""path":"/claims/x","value":1"#)
            let former = try await running.killed()
            try await RunningMessages.with(store: former) { next in
                let client = next.administrator
                let users: JSONValue = ["b": ["y": 1], "c": ["x": 1]]
                let value = try await client.call(Messages.Get(path: "/")).value
                #expect(value == ["claims": ["x": 1], "public": ["x": 1, "y": 1], "users": users])
                #expect(try next.keptRows().isEmpty)
                await client.close()
            }
        }
    }

    @Test func variableOfAnAdministratorIsKeptAsItIs() async throws {
        let rules = """
            {"rules": {
              "guests": {".write": "auth.role === 'guest' && auth.token == null"},
              "numbers": {".write": "auth.level > 2"},
              "members": {".write": "auth.uid === 'a'"}
            }}
            """
        try await RunningMessages.with(rules: rules) { running in
            let line = try await RawLines.connect(running, as: nil)
            func variable(_ text: String) -> String { #","auth":"admin","as":{"variable":\#(text)}"# }
            try await line.ask("set", #""path":"/guests/x","value":1"# + variable(#"{"uid":"a","role":"guest"}"#))
            // Of the same uid, and not the same: what it has set stays its own.
            try await line.ask("set", #""path":"/numbers/x","value":1"# + variable(#"{"uid":"a","level":3}"#))
            try await line.ask("set", #""path":"/members/x","value":1"# + variable(#"{"uid":"a"}"#))
            let refused = try await line.response("set", #""path":"/guests/y","value":1"# + variable(#"{"uid":"a"}"#))
            #expect(refused["error"]?["code"] == -32002)
            let session = try await RawLines.connect(running, as: nil)
            try await session.ask(
                "authenticate", #""auth":"admin","as":{"variable":{"level":9}}"#, of: "session")
            try await session.ask("set", #""path":"/numbers/y","value":1"#)
            let former = try await running.killed()
            try await RunningMessages.with(store: former) { next in
                let client = next.administrator
                let value = try await client.call(Messages.Get(path: "/")).value
                #expect(value == ["guests": ["x": 1], "members": ["x": 1], "numbers": ["x": 1, "y": 1]])
                #expect(try next.keptRows().isEmpty)
                await client.close()
            }
        }
    }

    /// The row of a large place stays as it is while small calls go into it.
    @Test func smallCallsIntoALargePlaceComeBackInTheirOrder() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let line = try await RawLines.connect(running, as: "a")
            let long = String(repeating: "x", count: 10_000)
            try await line.ask("set", #""path":"/public","value":{"a":{"b":1,".priority":7},"long":"\#(long)"}"#)
            let row = DisconnectRecord.key(
                ofEntryAt: "/public", in: DatabaseID(rawValue: 1), connection: try running.leavingConnection())
            let before = try running.store.snapshot().get(row)
            #expect(before != nil)
            // The last child takes its parent along, and with it the priority.
            for (path, value) in [("a/b", "null"), ("a/c", "1"), ("d", "1"), ("d", #"{"e":2}"#), ("d/.priority", "3")] {
                try await line.ask("set", #""path":"/public/\#(path)","value":\#(value)"#)
            }
            #expect(try running.store.snapshot().get(row) == before)
            let expected: JSONValue = ["a": ["c": 1], "d": [".priority": 3, "e": 2], "long": .string(long)]
            try await RunningMessages.with(store: try await running.killed()) { next in
                let client = next.administrator
                let value = try await client.call(Messages.Get(path: "/public", form: .export)).value
                #expect(value == expected)
                #expect(try next.keptRows().isEmpty)
                await client.close()
            }
            line.end(.closed)
            try await running.waitFor(["public": ["a": ["c": 1], "d": ["e": 2], "long": .string(long)]])
            try await eventually("nothing is kept") { try running.keptRows().isEmpty }
        }
    }

    @Test func whatIsWrittenOrTakenBackLeavesNoRow() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("update", #""path":"/","values":{"users/a/x":1,"users/a/y":2,"public/x":{"y":1,"z":2}}"#)
            try await line.ask("set", #""path":"/public/x","value":3,"auth":"user:b""#)
            #expect(try running.keptRows().count == 5)
            try await line.ask("cancel", #""path":"/public""#)
            #expect(try running.keptRows().count == 3)
            try await line.ask("cancel", #""path":"/users""#)
            #expect(try running.keptRows().isEmpty)
            try await line.ask("set", #""path":"/users/a/x","value":1"#)
            try await line.ask("set", #""path":"/public/end","value":1"#)
            // The rules refuse one of them: that is gone too.
            _ = try await running.administrator.call(
                Messages.Rules.Set(rules: #"{"rules": {"public": {".write": true}}}"#))
            line.end(.closed)
            try await running.waitFor(["public": ["end": 1]])
            #expect(try running.keptRows().isEmpty)
        }
    }

    /// Else it would stay in the store, and the next start would write it over what came later.
    @Test func whatCannotBeReadHoldsUpNothingElse() async throws {
        let store = try UnreadableStore()
        try await RunningMessages.with(rules: Self.rules, store: store) { running in
            let client = running.administrator
            // The row before a new one shows that its parent exists; without it, the row after it is read.
            _ = try await client.call(Messages.Set(path: "/public/0", value: 0))
            _ = try await client.call(Messages.Set(path: "/public/unreadable/b", value: 0))
            let line = try await RawLines.connect(running, as: "a")
            for place in ["a", "unreadable/b", "c", "d"] {
                try await line.ask("set", #""path":"/public/\#(place)","value":1"#)
            }
            store.hide("unreadable")
            line.end(.closed)
            try await running.waitFor(["public": ["0": 0, "a": 1, "c": 1, "d": 1, "unreadable": ["b": 0]]])
            try await eventually("nothing is kept") { try running.keptRows().isEmpty }
            await client.close()
        }
    }

    @Test func onDisconnectWritesOfADroppedDatabaseAreDeleted() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            let name = try DatabaseName("b")
            _ = try await client.call(Messages.Databases.Create(database: name))
            let line = try await RawLines.connect(running, as: "admin")
            try await line.ask("set", #""database":"b","path":"/x","value":1"#)
            _ = try await client.call(Messages.Databases.Drop(database: name))
            _ = try await client.call(Messages.Databases.Create(database: name))
            let former = try await running.killed()
            try await RunningMessages.with(store: former) { next in
                let client = next.administrator
                let value = try await client.call(Messages.Get(database: name, path: "/x")).value
                #expect(value == .null)
                #expect(try next.keptRows().isEmpty)
                await client.close()
            }
            // In the same run, what is left anew takes the place of what was left for the old one.
            try await line.ask("set", #""database":"b","path":"/y","value":1"#)
            #expect(try running.keptRows().count == 2)
            await client.close()
        }
    }

    @Test func registrationsAreNoChangesOfTheTree() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            let etag = try await client.call(Messages.Get(path: "/", etag: true)).etag
            let before = running.store.version
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a/x","value":1"#)
            #expect(running.store.version == before + 1)
            #expect(try running.store.commits(after: before, limit: 10).allSatisfy { $0.record.isEmpty })
            #expect(try await client.call(Messages.Get(path: "/", etag: true)).etag == etag)
            #expect(try await client.call(Messages.Export(path: "/")).rows.isEmpty)
            try await line.ask("cancel", #""path":"/""#)
            await client.close()
        }
    }

    @Test func damagedRemainsStopTheStart() async throws {
        let store = try MemoryStore()
        try await RunningMessages.with(store: store) { running in
            let key = DisconnectRecord.key(ofEntryAt: "/a", in: DatabaseID(rawValue: 1), connection: 7)
            _ = try await running.store.write { $0.put(key, [9]) }
            await #expect(throws: RecordError.self) {
                try await RunningMessages.with(store: running.killed()) { _ in }
            }
        }
    }
}

extension RunningMessages {
    /// The store as it would be found if the process were killed now.
    fileprivate func killed() async throws -> MemoryStore {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hato-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try store.backup(to: folder)
        return try MemoryStore(restoring: folder)
    }

    /// The number of the connection that has left something.
    fileprivate func leavingConnection() throws -> UInt64 {
        let key = try #require(try keptRows().first)
        guard case .caller(let connection, _) = try DisconnectRecord.Key(key) else { throw EndOfEvents() }
        return connection
    }

    /// Keys of what connections have left in the store.
    fileprivate func keptRows() throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try store.snapshot().scan(StoreKeys.disconnects, reverse: false) { key, _ in
            keys.append(key.withUnsafeBufferPointer { Array($0) })
            return .next
        }
        return keys
    }
}
