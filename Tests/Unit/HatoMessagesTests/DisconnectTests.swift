import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// What connections leave to be written, up to the end of an ordinary connection; `HalfOpenTests` has the others.
@Suite struct DisconnectTests {
    @Test(arguments: [RawLines.End.closed, .halfClosed, .reset])
    func endOfTheConnectionWritesWhatItLeft(end: RawLines.End) async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/users/a")))
            #expect(try await events.next() == [.put("/", nil)])
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a/online","value":true"#, of: "messages")
            #expect(try await events.next() == [.put("/online", true)])
            try await line.ask("set", #""path":"/users/a/online","value":false"#)
            try await line.ask("remove", #""path":"/users/a/typing""#)
            line.end(end)
            #expect(try await events.next() == [.put("/online", false)])
            await client.close()
        }
    }

    @Test func everythingIsOneCommitAfterTheConnectionsWrites() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/a", value: ["old": 1, "gone": 1, "kept": 1]))
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            _ = try await events.next()
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("update", #""path":"/a","values":{"old":2,"deep/x":2,"gone":null}"#)
            try await line.ask("set", #""path":"/a/deep","value":{"x":3}"#)
            try await line.ask("set", #""path":"/a/deep/y","value":4"#)
            // Its last request is done first, though no client waits for the response.
            try await line.send(
                #"{"jsonrpc":"2.0","method":"messages.set","params":{"path":"/a/old","value":9}}"#)
            line.end(.halfClosed)
            var seen = try await events.next()
            while seen.last == .put("/old", 9) { seen = try await events.next() }
            #expect(seen == [.patch("/", ["deep": ["x": 3, "y": 4], "gone": nil, "old": 2])])
            let value = try await client.call(Messages.Get(path: "/a")).value
            #expect(value == ["old": 2, "kept": 1, "deep": ["x": 3, "y": 4]])
        }
    }

    @Test func whatIsTakenBackIsNotWritten() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/a","value":{"x":1,"y":{"p":1,"q":1}}"#)
            try await line.ask("cancel", #""path":"/a/y/p""#)
            try await line.ask("set", #""path":"/b/c","value":1"#)
            try await line.ask("set", #""path":"/b/d","value":1"#)
            try await line.ask("cancel", #""path":"/b""#)
            try await line.ask("set", #""path":"/end","value":1"#)
            let tree = try await running.treeAfter(line)
            #expect(tree == ["a": ["x": 1, "y": ["q": 1]], "end": 1])
        }
    }

    @Test func serverValuesAreThoseOfTheEnd() async throws {
        let time = TestClock(1_000_000)
        try await RunningMessages.with(change: { $0.now = { time.now } }) { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/count", value: 1))
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask(
                "update",
                #""path":"/","values":{"at":{".sv":"timestamp"},"also":{".sv":"timestamp"},"#
                    + #""count":{".sv":{"increment":1}}}"#)
            _ = try await client.call(Messages.Set(path: "/count", value: 41))
            time.advance(by: 5_000)
            try await line.ask("set", #""path":"/end","value":1"#)
            #expect(try await running.treeAfter(line) == ["also": 1_005_000, "at": 1_005_000, "count": 42, "end": 1])
        }
    }

    @Test func hundredsOfPlacesAreOneCommit() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running, as: "a")
            for number in 0..<500 { try await line.ask("set", #""path":"/p/k\#(number)/on","value":\#(number)"#) }
            let before = running.store.version
            try await line.ask("set", #""path":"/end","value":1"#)
            let tree = try await running.treeAfter(line)
            #expect(tree["p"]?.object?.count == 500)
            // What was left last, and the end.
            #expect(running.store.version == before + 2)
        }
    }

    @Test func followerGetsTheCallerOfAnOnDisconnectWrite() async throws {
        try await RunningMessages.with { running in
            let pattern = try FeedPattern("/users/{user}")
            let client = running.administrator
            var feed = FeedReader(
                try await client.subscribe(Messages.Follow(after: nil, patterns: [pattern])))
            let line = try await RawLines.connect(running, as: "masuo")
            try await line.ask("set", #""path":"/users/masuo","value":"away""#)
            line.end(.closed)
            let change = try #require(try await feed.next().changes.first)
            #expect(change.uid == "masuo")
            #expect(change.type == .created)
            #expect(change.after == "away")
            await client.close()
        }
    }

    @Test func databasesAreApartAndADroppedOneHasNoWrites() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            for name in ["b", "c"] {
                _ = try await client.call(Messages.Databases.Create(database: DatabaseName(name)))
            }
            let line = try await RawLines.connect(running, as: "admin")
            try await line.ask("set", #""database":"b","path":"/x","value":1"#)
            try await line.ask("set", #""database":"c","path":"/x","value":2"#)
            try await line.ask("set", #""path":"/end","value":1"#)
            _ = try await client.call(Messages.Databases.Drop(database: DatabaseName("c")))
            _ = try await client.call(Messages.Databases.Create(database: DatabaseName("c")))
            #expect(try await running.treeAfter(line) == ["end": 1])
            // The default database comes last of a name, so the others are done.
            #expect(try await client.call(Messages.Get(database: DatabaseName("b"), path: "/x")).value == 1)
            #expect(try await client.call(Messages.Get(database: DatabaseName("c"), path: "/x")).value == .null)
        }
    }

    // MARK: Rights

    static let rules = """
        {"rules": {
          "open": {".write": "auth != null"},
          "users": {"$u": {".write": "auth.uid == $u", ".read": true}},
          "public": {".write": true}
        }}
        """

    @Test func rulesAuthoriseTheCall() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let line = try await RawLines.connect(running, as: "a")
            let refused = try await line.response("set", #""path":"/users/b/x","value":1"#)
            #expect(refused["error"]?["code"] == -32002)
            #expect(refused["error"]?["data"]?["path"] == "/users/b/x")
            let partly = try await line.response("update", #""path":"/users","values":{"a/x":1,"b/x":1}"#)
            #expect(partly["error"]?["code"] == -32002)
            try await line.ask("set", #""path":"/open/end","value":1"#)
            #expect(try await running.treeAfter(line, "/open/end") == ["open": ["end": 1]])
        }
    }

    @Test func whatTheRulesRefuseAtTheEndIsLeftOutAlone() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let line = try await RawLines.connect(running, as: "a")
            for number in 0..<5 { try await line.ask("set", #""path":"/users/a/k\#(number)","value":1"#) }
            try await line.ask("update", #""path":"/","values":{"open/x":1,"public/x":1,"open/y":1,"public/end":1}"#)
            let stricter = Self.rules.replacing("auth != null", with: "false")
            _ = try await running.administrator.call(Messages.Rules.Set(rules: stricter))
            let users: JSONValue = ["a": ["k0": 1, "k1": 1, "k2": 1, "k3": 1, "k4": 1]]
            line.end(.closed)
            try await running.waitFor(["public": ["end": 1, "x": 1], "users": users])
        }
    }

    @Test func signedOutConnectionWritesWithoutAUser() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a/x","value":1"#)
            // With a credential of its own, a call does not depend on the connection's.
            try await line.ask("set", #""path":"/users/c/x","value":1,"auth":"user:c""#)
            try await line.ask("set", #""path":"/public/end","value":1"#)
            try await line.ask("end", "", of: "session")
            line.end(.closed)
            try await running.waitFor(["public": ["end": 1], "users": ["c": ["x": 1]]])
        }
    }

    @Test func otherIdentityTakesOver() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let client = running.administrator
            var feed = FeedReader(
                try await client.subscribe(Messages.Follow(patterns: [FeedPattern("/open/{x}")])))
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a/x","value":1"#)
            try await line.ask("set", #""path":"/open/x","value":1"#)
            try await line.ask("authenticate", #""auth":"user:b""#, of: "session")
            try await line.ask("set", #""path":"/users/b/x","value":1"#)
            line.end(.closed)
            let change = try #require(try await feed.next().changes.first)
            #expect(change.uid == "b")
            try await running.waitFor(["open": ["x": 1], "users": ["b": ["x": 1]]])
            await client.close()
        }
    }

    @Test func callerCannotChangeTheWritesOfAnotherCaller() async throws {
        let looser = Self.rules.replacing("auth.uid == $u", with: "auth != null")
        try await RunningMessages.with(rules: looser) { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/users/a","value":{"x":1}"#)
            try await line.ask("set", #""path":"/users/a/y","value":2,"auth":"user:b""#)
            try await line.ask("set", #""path":"/public/end","value":1,"auth":"user:b""#)
            _ = try await running.administrator.call(Messages.Rules.Set(rules: Self.rules))
            line.end(.closed)
            try await running.waitFor(["public": ["end": 1], "users": ["a": ["x": 1]]])
        }
    }

    @Test func connectionWithAnExpiredTokenHasNoUserUntilTheNext() async throws {
        let time = TestClock(WallClock.milliseconds())
        let change: (inout MessagesConfiguration) -> Void = {
            $0.now = { time.now }
            $0.server.now = { time.now }
        }
        try await RunningMessages.with(rules: Self.rules, change: change) { running in
            let first = try await RawLines.connect(running, as: nil)
            let second = try await RawLines.connect(running, as: nil)
            for (line, name) in [(first, "first"), (second, "second")] {
                try await line.ask("authenticate", #""auth":"until:\#(time.now + 10_000)""#, of: "session")
                try await line.ask("set", #""path":"/users/mortal/\#(name)","value":1"#)
                try await line.ask("set", #""path":"/public/\#(name)","value":1"#)
            }
            time.advance(by: 20_000)
            try await second.ask("authenticate", #""auth":"until:\#(time.now + 10_000)""#, of: "session")
            first.end(.closed)
            try await running.waitFor(["public": ["first": 1]])
            second.end(.closed)
            try await running.waitFor(["public": ["first": 1, "second": 1], "users": ["mortal": ["second": 1]]])
        }
    }

    // MARK: Wrong input

    @Test func wrongInputIsRefusedByName() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running, as: "a")
            let wrong: [(String, String, Int, String)] = [
                ("set", #""path":"/a.b","value":1"#, -32008, "path"),
                ("set", #""path":"/a""#, -32602, "value"),
                ("set", #""path":"/a","value":{".sv":"later"}"#, -32008, "value"),
                ("update", #""path":"/a","values":{"b":1,"b/c":2}"#, -32008, "values"),
                ("update", #""path":"/a","values":1"#, -32602, "values"),
                ("remove", #""path":"/a","value":1"#, -32602, "value"),
                ("cancel", #""path":"/a/.priority""#, -32008, "path"),
                ("cancel", #""path":"/a","ifMatch":"x""#, -32602, "ifMatch"),
            ]
            for (method, params, code, parameter) in wrong {
                let error = try await line.response(method, params)["error"]
                #expect(error?["code"]?.number == Double(code), "\(method) \(params)")
                #expect(error?["data"]?["parameter"]?.string == parameter, "\(method) \(params)")
            }
            let missing = try await line.response("set", #""path":"/a","value":1,"database":"none""#)
            #expect(missing["error"]?["data"]?["reason"] == "database_not_found")
        }
    }

    // MARK: The service

    @Test func connectionThatLeftSomethingIsNotIdle() async throws {
        try await RunningMessages.with(change: { $0.server.limits.idleSecondsMax = 8 }) { running in
            let line = try await leaving(#""path":"/a","value":1"#, on: running)
            let done = try await leaving(#""path":"/b","value":1"#, on: running)
            try await done.ask("cancel", #""path":"/b""#)
            #expect(try await done.next()["error"]?["data"]?["reason"] == "idle")
            await #expect(throws: EndOfEvents.self) { try await done.next() }
            try await line.ask("cancel", #""path":"/a""#)
        }
    }

    /// A connection that has left something. On a slow machine it may be idle for too long before it gets there.
    private func leaving(_ params: String, on running: RunningMessages) async throws -> RawLines {
        var left: RawLines?
        try await eventually("a connection leaves something") {
            let line = try await RawLines.connect(running, as: "a")
            do {
                let error = try await line.response("set", params)["error"]
                if error?["data"]?["reason"] == "idle" { return false }
                #expect(error == nil)
            } catch is EndOfEvents { return false }
            left = line
            return true
        }
        return try #require(left)
    }

    @Test func stopOfTheServiceEndsItsConnections() async throws {
        let store = try MemoryStore()
        let written = Mutex<[String]>([])
        try await RunningMessages.with(store: store) { running in
            let line = try await RawLines.connect(running, as: "a")
            try await line.ask("set", #""path":"/a","value":1"#)
            try await line.ask("set", #""path":"/b","value":1,"auth":"user:b""#)
            store.observeCommits { group in
                for commit in group.commits {
                    let note = try? CommitNote.of(commit)
                    written.withLock { $0 += note?.changes.map(\.path.text) ?? [] }
                }
            } ended: { _ in
            }
        }
        #expect(written.withLock { $0 } == ["/a", "/b"])
    }
}

extension RawLines {
    /// A connection of a user, of `admin`, or without a credential.
    static func connect(_ running: RunningMessages, as name: String?) async throws -> RawLines {
        let line = try await connect(running)
        guard let name else { return line }
        let credential = name == "admin" ? name : "user:\(name)"
        try await line.ask("authenticate", #""auth":"\#(credential)""#, of: "session")
        return line
    }

    /// Calls a method and returns the next line that is a response.
    func response(_ method: String, _ params: String, of room: String = "messages.onDisconnect") async throws
        -> JSONValue
    {
        try await send(#"{"jsonrpc":"2.0","id":1,"method":"\#(room).\#(method)","params":{\#(params)}}"#)
        while true {
            let line = try await next()
            if line["id"] != nil { return line }
        }
    }

    /// The same for a call that must succeed.
    func ask(_ method: String, _ params: String, of room: String = "messages.onDisconnect") async throws {
        let answer = try await response(method, params, of: room)
        #expect(answer["error"] == nil, "\(room).\(method) \(params)")
    }
}

extension RunningMessages {
    /// Ends a connection that left something at `last`, and returns the tree once that is there.
    func treeAfter(_ line: RawLines, _ last: TreePath = "/end") async throws -> JSONValue {
        let client = administrator
        line.end(.closed)
        var events = EventReader(try await client.subscribe(Messages.Listen(path: last)))
        while try await events.next() == [.put("/", nil)] {}
        return try await client.call(Messages.Get(path: "/")).value
    }

    /// Waits until the tree is this.
    func waitFor(_ expected: JSONValue) async throws {
        let client = administrator
        let deadline = ContinuousClock.now + .seconds(60)
        var value: JSONValue
        repeat {
            value = try await client.call(Messages.Get(path: "/")).value
            if value == expected { return }
        } while ContinuousClock.now < deadline
        #expect(value == expected)
    }
}
