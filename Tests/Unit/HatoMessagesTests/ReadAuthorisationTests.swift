import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// Rights to read end when what they rest on changes, and cost nothing else.
@Suite struct ReadAuthorisationTests {
    private static let rules = """
        {"rules": {
          "chats": {"$chat": {
            ".read": "data.child('members').child(auth.uid).exists() && root.child('open').val() != false",
            ".write": true
          }},
          "shop": {".read": "now < data.child('until').val()"},
          "mine": {"$u": {".read": "auth.uid == $u"}}
        }}
        """

    @Test func formerMemberGetsNoFurtherEvent() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let admin = running.administrator
            _ = try await admin.call(Messages.Set(path: "/chats/c/members", value: ["a": true, "b": true]))
            let client = running.user("a")
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/chats/c/messages")))
            #expect(try await events.next() == [.put("/", nil)])
            let other = running.user("b")
            var others = EventReader(try await other.subscribe(Messages.Listen(path: "/chats/c/messages")))
            _ = try await others.next()
            _ = try await admin.call(Messages.Set(path: "/chats/c/messages/m1", value: "seen"))
            #expect(try await events.next() == [.put("/m1", "seen")])
            _ = try await admin.call(
                Messages.Update(path: "/chats/c", values: ["members/a": nil, "messages/m2": "secret"]))
            #expect(try await events.nextNotification()?.method == Messages.Cancelled.method)
            #expect(events.last?.params["reason"] == "permission_denied")
            #expect(try await others.next() == [.put("/m1", "seen")])
            #expect(try await others.next() == [.put("/m2", "secret")])
            // What is read elsewhere counts as well.
            _ = try await admin.call(Messages.Set(path: "/open", value: false))
            #expect(try await others.nextNotification()?.method == Messages.Cancelled.method)
            #expect(try await admin.call(Messages.Stats()).listeners == 0)
        }
    }

    /// A comparison of `val()` with null rests on whether there are children, too.
    @Test func rightThatNeedsNothingThereEndsWhenChildrenCome() async throws {
        let rules = """
            {"rules": {"a": {".read": "root.child('closed').val() == null", ".write": "data.val() == null"},
              "b": {".read": "root.child('closed/now').val() != null"}}}
            """
        try await RunningMessages.with(rules: rules) { running in
            let (admin, client) = (running.administrator, running.user("m"))
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            #expect(try await events.next() == [.put("/", nil)])
            // What a write found out about a place is forgotten when children come.
            _ = try await client.call(Messages.Set(path: "/a", value: ["k": 1]))
            #expect(try await events.next() == [.put("/", ["k": 1])])
            let overwriting = await refusal { try await client.call(Messages.Set(path: "/a", value: 2)) }
            #expect(overwriting?.code == .permissionDenied)
            _ = try await admin.call(Messages.Set(path: "/closed/now/by", value: "admin"))
            #expect(try await events.nextNotification()?.method == Messages.Cancelled.method)
            // The other way: an object that goes takes the right with it.
            var others = EventReader(try await client.subscribe(Messages.Listen(path: "/b")))
            #expect(try await others.next() == [.put("/", nil)])
            _ = try await admin.call(Messages.Remove(path: "/closed/now/by"))
            #expect(try await others.nextNotification()?.method == Messages.Cancelled.method)
            _ = try await admin.call(Messages.Remove(path: "/a/k"))
            _ = try await client.call(Messages.Set(path: "/a", value: 2))
        }
    }

    @Test func ownCancellationComesBeforeTheOwnResponse() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            _ = try await running.administrator.call(Messages.Set(path: "/chats/c/members/a", value: true))
            let line = try await RawLines.connect(running)
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"user:a"}}"#)
            try await line.send(#"{"jsonrpc":"2.0","id":2,"method":"messages.listen","params":{"path":"/chats/c"}}"#)
            for _ in 0..<3 { _ = try await line.next() }
            try await line.send(
                #"{"jsonrpc":"2.0","id":3,"method":"messages.remove","params":{"path":"/chats/c/members/a"}}"#)
            #expect(try await line.next()["method"] == "messages.cancelled")
            #expect(try await line.next()["id"] == 3)
            line.close()
        }
    }

    @Test func rightThatRestsOnTheTimeEndsWithIt() async throws {
        let time = Mutex<Int64>(1_000)
        try await RunningMessages.with(rules: Self.rules, change: { $0.now = { time.withLock { $0 } } }) { running in
            _ = try await running.administrator.call(Messages.Set(path: "/shop/until", value: 2_000))
            let client = running.user("a")
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/shop")))
            #expect(try await events.next() == [.put("/", ["until": 2_000])])
            time.withLock { $0 = 3_000 }
            #expect(try await events.nextNotification()?.method == Messages.Cancelled.method)
            let refused = await refusal { try await client.subscribe(Messages.Listen(path: "/shop")) }
            #expect(refused?.code == .permissionDenied)
        }
    }

    @Test func otherRulesEndOnlyTheRightsTheyDoNotGive() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let (a, b) = (running.user("a"), running.user("b"))
            var first = EventReader(try await a.subscribe(Messages.Listen(path: "/mine/a")))
            var second = EventReader(try await b.subscribe(Messages.Listen(path: "/mine/b")))
            _ = try await (first.next(), second.next())
            let rules = #"{"rules": {"mine": {"a": {".read": true}}}}"#
            _ = try await running.administrator.call(Messages.Rules.Set(rules: rules))
            #expect(try await second.nextNotification()?.method == Messages.Cancelled.method)
            _ = try await running.administrator.call(Messages.Set(path: "/mine/a", value: 1))
            #expect(try await first.next() == [.put("/", 1)])
        }
    }
}
