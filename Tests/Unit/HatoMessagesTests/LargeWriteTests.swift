import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// Writes that are made ready before their turn: in every respect but their time they are like others.
@Suite struct LargeWriteTests {
    private func children(_ range: Range<Int>, _ value: JSONValue = 1) -> JSONObject {
        JSONObject(uniqueMembers: range.map { .init("k\($0 + 100_000)", value) })
    }

    private func large(_ value: JSONValue = 1) -> JSONValue { .object(children(0..<3_000, value)) }

    /// More rows than are written one by one.
    private func veryLarge(_ value: JSONValue = 1) -> JSONValue { .object(children(0..<9_000, value)) }

    @Test func theyKeepTheOrderOfTheirConnection() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            let value = String(decoding: large().encoded, as: UTF8.self)
            for (id, path, value) in [
                (2, "/a", "\"before\""), (3, "/a", value), (4, "/a/k100000", "\"after\""), (5, "/a", value),
                (6, "/a/k100001", "\"last\""),
            ] {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(id),"method":"messages.set","params":{"path":"\#(path)","value":\#(value)}}"#
                )
            }
            try await line.send(
                #"{"jsonrpc":"2.0","id":7,"method":"messages.get","params":{"path":"/a/k100000"}}"#)
            for id in 1...6 {
                let answer = try await line.next()
                #expect(answer["id"] == .number(Double(id)))
                #expect(answer["error"] == nil)
            }
            #expect(try await line.next()["result"]?["value"] == 1)
            let node = try await running.administrator.call(Messages.Get(path: "/a")).value.object
            #expect(node?.count == 3_000)
            #expect(node?["k100001"] == "last")
        }
    }

    @Test func largeOnesOfManyClientsLoseNothing() async throws {
        try await RunningMessages.with { running in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        let client = running.user("u\(number)")
                        for round in 0..<3 {
                            let start = (number * 3 + round) * 3_000
                            // All of them under parents that the first of them makes.
                            _ = try await client.call(
                                Messages.Update(path: "/p/q", values: children(start..<start + 3_000)))
                            _ = try await client.call(Messages.Push(path: "/p/r", value: 1))
                        }
                    }
                }
                try await group.waitForAll()
            }
            let client = running.administrator
            #expect(try await client.call(Messages.Get(path: "/p/q")).value.object?.count == 36_000)
            #expect(try await client.call(Messages.Get(path: "/p/r")).value.object?.count == 12)
        }
    }

    @Test func incrementsOfOthersCount() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let increment: JSONValue = [".sv": ["increment": 1]]
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for _ in 0..<10 {
                        var values = children(0..<3_000)
                        values["count"] = increment
                        _ = try await client.call(Messages.Update(path: "/a", values: values))
                    }
                }
                group.addTask {
                    let other = running.user("u")
                    for _ in 0..<200 { _ = try await other.call(Messages.Set(path: "/a/count", value: increment)) }
                }
                try await group.waitForAll()
            }
            #expect(try await client.call(Messages.Get(path: "/a/count")).value == 210)
        }
    }

    @Test func conditionsHoldForThem() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/a", value: large()))
            var get = Messages.Get(path: "/a")
            get.etag = true
            let etag = try #require(try await client.call(get).etag)
            let refused = await refusal {
                try await client.call(Messages.Set(path: "/a", value: large(2), ifMatch: "null_etag"))
            }
            #expect(refused?.reason == "etag_mismatch")
            #expect(refused?.data["etag"] == .string(etag))
            let set = try await client.call(Messages.Set(path: "/a", value: veryLarge(2), ifMatch: etag))
            #expect(set.etag == (try await client.call(get).etag))
            let again = await refusal { try await client.call(Messages.Set(path: "/a", value: large(), ifMatch: etag)) }
            #expect(again?.data["etag"] == set.etag.map { .string($0) })
            let old = await refusal {
                try await client.call(Messages.Set(path: "/a", value: large(), ifVersion: set.version - 1))
            }
            #expect(old?.reason == "version_mismatch")
            _ = try await client.call(Messages.Set(path: "/a", value: large(), ifVersion: set.version))
            #expect(try await client.call(Messages.Get(path: "/a")).value == large())
        }
    }

    /// A small update that removes many rows keeps the order of its connection too.
    @Test func manyRowsAreRemovedBeforeTheTurnOfAWrite() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let text = JSONValue.string(String(repeating: "x", count: 100))
            for node in 0..<20 {
                _ = try await client.call(
                    Messages.Set(path: try TreePath("/a/n\(node)"), value: .object(children(0..<1_000, text))))
            }
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            let removals = (0..<20).map { #""n\#($0)":null"# }.joined(separator: ",")
            for (id, request) in [
                (2, #"set","params":{"path":"/a/n0/z","value":1}"#),
                (3, #"update","params":{"path":"/a","values":{\#(removals)}}"#),
                (4, #"set","params":{"path":"/a/n1/z","value":1}"#),
            ] {
                try await line.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"messages.\#(request)}"#)
            }
            for id in 1...4 {
                let answer = try await line.next()
                #expect(answer["id"] == .number(Double(id)))
                #expect(answer["error"] == nil)
            }
            #expect(try await client.call(Messages.Get(path: "/a")).value == ["n1": ["z": 1]])
        }
    }

    /// A small write that is compared with a large node keeps the order of its connection too.
    @Test func aLargeNodeIsHashedBeforeTheTurnOfAWrite() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let text = JSONValue.string(String(repeating: "x", count: 400))
            _ = try await client.call(Messages.Set(path: "/a", value: large(text)))
            var get = Messages.Get(path: "/a")
            get.etag = true
            let etag = try #require(try await client.call(get).etag)
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            for (id, member) in [(2, #""ifMatch":"\#(etag)","value":{"b":1}"#), (3, #""ifMatch":"x","value":2"#)] {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(id),"method":"messages.set","params":{"path":"/a",\#(member)}}"#)
            }
            try await line.send(#"{"jsonrpc":"2.0","id":4,"method":"messages.set","params":{"path":"/a/c","value":3}}"#)
            for id in 1...4 {
                let answer = try await line.next()
                #expect(answer["id"] == .number(Double(id)))
                #expect((answer["error"] == nil) == (id != 3))
            }
            #expect(try await client.call(Messages.Get(path: "/a")).value == ["b": 1, "c": 3])
        }
    }

    @Test func aPushWithAKeyOfTheClientsMayBeRepeated() async throws {
        try await RunningMessages.with { running in
            let client = running.user("u")
            let key = try PushKey("-NjEtLV-000000000001")
            let first = try await client.call(Messages.Push(path: "/a", value: veryLarge(), key: key))
            let second = try await client.call(Messages.Push(path: "/a", value: veryLarge(), key: key))
            #expect(first.key == second.key)
            #expect(running.store.version == first.version)
            let other = await refusal { try await client.call(Messages.Push(path: "/a", value: large(3), key: key)) }
            #expect(other?.code == .alreadyExists)
        }
    }

    @Test func rulesAndWrongValuesRefuseThem() async throws {
        let rules = #"{"rules": {".read": true, "open": {".write": "newData.child('k100000').val() != 7"}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let client = running.user("u")
            _ = try await client.call(Messages.Set(path: "/open", value: veryLarge()))
            #expect(
                await refusal { try await client.call(Messages.Set(path: "/open", value: large(7))) }?.code
                    == .permissionDenied)
            #expect(
                await refusal { try await client.call(Messages.Set(path: "/shut", value: large())) }?.code
                    == .permissionDenied)
            var wrong = children(0..<3_000)
            wrong["a.b"] = 1
            let refused = await refusal { try await client.call(Messages.Set(path: "/open", value: .object(wrong))) }
            #expect(refused?.reason == "invalid_key")
            #expect(try await client.call(Messages.Get(path: "/open")).value == veryLarge())
        }
    }

    @Test func usersAndAddressesTakeTurnsAndAdministratorsTakeThoseOfTheService() {
        func client(of caller: Caller, isByAdministrator: Bool = false) -> String? {
            let write = Write(
                database: .default, mutation: .set(1, at: "/a"), caller: caller, isByAdministrator: isByAdministrator)
            return LargeWrites.client(of: write, from: "address 192.0.2.1")
        }
        #expect(client(of: .nobody) == "address 192.0.2.1")
        #expect(client(of: .user(Caller.User(uid: "a"))) == "user a")
        #expect(client(of: .variable(["uid": "a"])) == "address 192.0.2.1", "it is no user")
        #expect(client(of: .administrator) == nil)
        #expect(client(of: .user(Caller.User(uid: "a")), isByAdministrator: true) == nil)
    }

    /// Listing thousands of rules takes long; responses of other writes do not wait for that.
    @Test func traceOfALargeRefusalIsBuiltByAReaderThread() async throws {
        let rules = #"{"rules": {".write": true, "$place": {"$key": {".validate": "newData.val() != 7"}}}}"#
        try await RunningMessages.with(rules: rules, change: { $0.limits.refusalTraceMax = 20 }) { running in
            var values = children(0..<3_000)
            values["z"] = 7
            let text = String(decoding: JSONValue.object(values).encoded, as: UTF8.self)
            let gate = Latch()
            defer { gate.open() }
            for _ in 0..<StoreLimits().readerThreads { running.store.submitRead { gate.wait() } }
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}}"#)
            #expect(try await line.next()["id"] == 1)
            let version = running.store.version
            try await line.send(
                #"{"jsonrpc":"2.0","id":2,"method":"messages.set","params":{"path":"/a","value":\#(text),"as":{"uid":"u"}}}"#
            )
            try await line.send(#"{"jsonrpc":"2.0","id":3,"method":"messages.set","params":{"path":"/b","value":1}}"#)
            let isTold = Atomic(false)
            async let answer = {
                defer { isTold.store(true, ordering: .relaxed) }
                return try await line.next()
            }()
            // It holds the turn of its connection until it is refused; what comes behind it is written after that.
            try await eventually("the write behind it") { running.store.version > version }
            let wasTold = isTold.load(ordering: .relaxed)
            #expect(!wasTold)
            gate.open()
            let error = try await answer["error"]
            #expect(error?["data"]?["reason"] == "permission_denied" && error?["data"]?["path"] == "/a")
            // All 3,000 values come before the one that is refused, and a grant before them.
            let trace = error?["data"]?["trace"]?.array
            #expect(trace?.count == 20 && error?["data"]?["traceLeftOut"] == 2_982)
            #expect(trace?.last?["path"] == "/a/z" && trace?.last?["result"] == false)
            #expect(try await line.next()["result"] != nil)
        }
    }

    /// Listeners, followers, indexes and the record: what was prepared is sent like what was written row by row.
    @Test func preparedWritesReachListenersFollowersAndIndexes() async throws {
        let rules = #"{"rules": {".read": true, ".write": true, "c": {".indexOn": "n"}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let client = running.administrator
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/c/k100005")))
            _ = try await events.next()
            var feed = FeedReader(try await client.subscribe(Messages.Follow(patterns: ["/c/{id}"])))
            var values = JSONObject()
            for index in 0..<6_000 {
                values.append(
                    "k\(index + 100_000)", ["n": .number(Double(6_000 - index)), ".priority": .number(Double(index))])
            }
            let version = try await client.call(Messages.Set(path: "/c", value: .object(values))).version
            #expect(try await events.next() == [.put("/", [".priority": 5, "n": 5_995])])
            #expect(try await feed.next().version == version)
            let lowest = try TreeQuery(["orderBy": "n", "limitToFirst": 2])
            #expect(try await client.call(Messages.Get(path: "/c", query: lowest)).keys == ["k105999", "k105998"])
            let byPriority = try TreeQuery(["orderBy": "$priority", "limitToLast": 1])
            #expect(try await client.call(Messages.Get(path: "/c", query: byPriority)).keys == ["k105999"])
            // In the place of another large one: its rows go, in the tree and in the index.
            _ = try await client.call(Messages.Set(path: "/c", value: .object(children(0..<9_000, ["n": 1]))))
            #expect(try await events.next() == [.put("/", ["n": 1])])
            #expect(try await client.call(Messages.Get(path: "/c", query: lowest)).keys == ["k100000", "k100001"])
            #expect(try await client.call(Messages.Get(path: "/c", query: byPriority)).keys == ["k108999"])
            _ = try await client.call(Messages.Remove(path: "/c"))
            #expect(try await client.call(Messages.Get(path: "/c", query: lowest)).keys == [])
            #expect(try await client.call(Messages.Get(path: "/")).value == .null)
        }
    }
}
