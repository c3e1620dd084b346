import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

@Suite struct IdentityTests {
    @Test func listenerEndsWithItsToken() async throws {
        let time = TestClock(WallClock.milliseconds())
        try await RunningMessages.with(change: { $0.server.now = { time.now } }) { running in
            let client = running.client("until:\(time.now + 300)")
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            _ = try await events.next()
            time.advance(by: 1_000)
            let last = try await events.nextNotification()
            #expect(last?.method == Messages.Cancelled.method)
            #expect(last?.params["reason"] == "token_expired")
        }
    }

    @Test func listenersOfAnotherIdentityAreAuthorisedAgain() async throws {
        let rules = #"{"rules": {"users": {"$u": {".read": "auth.uid == $u", ".write": true}}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let line = try await RawLines.connect(running)
            func authenticate(_ name: String) async throws {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":0,"method":"session.authenticate","params":{"auth":"user:\#(name)"}}"#)
            }
            try await authenticate("a")
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"path":"/users/a"}}"#)
            for _ in 0..<3 { _ = try await line.next() }
            // The same user again keeps the listener.
            try await authenticate("a")
            try await line.send(
                #"{"jsonrpc":"2.0","id":2,"method":"messages.set","params":{"path":"/users/a/n","value":1}}"#)
            _ = try await line.next()
            #expect(try await line.next()["method"] == "messages.event")
            _ = try await line.next()
            try await authenticate("b")
            var cancelled = false
            for _ in 0..<2 {
                let message = try await line.next()
                if message["method"] == "messages.cancelled" {
                    cancelled = true
                    #expect(message["params"]?["reason"] == "permission_denied")
                }
            }
            #expect(cancelled)
            line.close()
        }
    }

    /// A user who authenticates again keeps read access only as long as the rules grant it.
    @Test func userWhoAuthenticatesAgainLosesReadAccessWithTheRules() async throws {
        let rules = #"{"rules": {"users": {"$u": {".read": "auth.uid == $u", ".write": true}}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let line = try await RawLines.connect(running)
            for _ in 0..<2 {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":0,"method":"session.authenticate","params":{"auth":"user:a"}}"#)
                _ = try await line.next()
            }
            try await line.send(#"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"path":"/users/a"}}"#)
            for _ in 0..<2 { _ = try await line.next() }
            try await line.send(
                #"{"jsonrpc":"2.0","id":2,"method":"session.authenticate","params":{"auth":"user:a"}}"#)
            _ = try await line.next()
            _ = try await running.administrator.call(
                Messages.Rules.Set(rules: #"{"rules": {".write": true}}"#))
            #expect(try await line.next()["method"] == "messages.cancelled")
            line.close()
        }
    }

    @Test func administratorActsAsAnotherUser() async throws {
        let rules = #"{"rules": {"users": {"$u": {".read": "auth.uid == $u"}}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let client = running.administrator
            let own: JSONObject = ["path": "/users/a", "auth": "admin", "as": ["uid": "a"]]
            _ = try await client.call(method: "messages.get", params: own)
            let other: JSONObject = ["path": "/users/a", "auth": "admin", "as": ["uid": "b"]]
            #expect(
                await refusal { try await client.call(method: "messages.get", params: other) }?.code
                    == .permissionDenied)
            let nobody: JSONObject = ["path": "/users/a", "auth": "admin", "as": nil]
            #expect(
                await refusal { try await client.call(method: "messages.get", params: nobody) }?.code
                    == .permissionDenied)
        }
    }

    @Test func metricsAndHealthShowTheStateOfTheService() async throws {
        try await RunningMessages.with(change: {
            $0.metricsText = { "hato_messages_commits_total 1\n" }
            $0.keys = { .degraded("none yet") }
        }) { running in
            let client = running.administrator
            let health = try await client.call(method: "service.health")
            #expect(health["status"] == "degraded")
            #expect(
                health["checks"] == [
                    "store": "open", "keys": "none yet", "waitingWrites": 0,
                    "accounts": "setting outgoing-key-file is missing: not followed",
                ])
            let metrics = try await client.call(method: "service.metrics")
            #expect(metrics["text"]?.string?.contains("hato_messages_commits_total 1") == true)
        }
    }

    @Test func serviceWhoseStoreHasEndedSaysSo() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/a", value: 1))
            running.store.close()
            let refused = await refusal { try await client.call(Messages.Set(path: "/a", value: 2)) }
            #expect(refused?.code == .unavailable)
            let health = try await client.call(method: "service.health")
            #expect(health["status"] == "stopping")
            #expect(health["checks"]?["store"] == "closed; the log says why")
        }
    }
}
