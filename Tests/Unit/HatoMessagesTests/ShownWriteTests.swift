import HatoModel
import HatoRPC
import HatoTesting
import HatoTree
import Testing

@testable import HatoMessages

/// `etag: true` and `echo: true` of writes: the response shows what was written.
@Suite struct ShownWriteTests {
    private static let rules = """
        {"rules": {
          "open": {".read": true, ".write": true},
          "inbox": {".write": true, "$user": {".read": "auth.uid == $user"}}
        }}
        """

    private func with(_ body: (RunningMessages, TestClock) async throws -> Void) async throws {
        let time = TestClock(1_700_000_000_000)
        try await RunningMessages.with(rules: Self.rules, change: { $0.now = { time.now } }) { running in
            try await body(running, time)
        }
    }

    @Test func setShowsItsEtagAndItsValue() async throws {
        try await with { running, _ in
            let client = running.user("masuo")
            let value: JSONValue = [
                "list": ["a", nil, "b"], "at": [".sv": "timestamp"], "n": [".value": 5, ".priority": 1], "empty": [:],
                "gone": nil,
            ]
            let written: JSONValue = ["at": 1_700_000_000_000, "list": ["a", nil, "b"], "n": 5]
            let set = try await client.call(Messages.Set(path: "/open/a", value: value, etag: true, echo: true))
            let read = try await client.call(Messages.Get(path: "/open/a", etag: true))
            #expect(set.value == written && read.value == written)
            #expect(set.etag == read.etag && set.etag != nil)
            let again = Messages.Set(path: "/open/a", value: value, etag: true, echo: true)
            #expect(try await client.call(again) == set, "also where nothing changes")
            let conditional = try await client.call(
                Messages.Set(path: "/open/a", value: "x", ifMatch: set.etag, echo: true))
            #expect(conditional.value == "x" && conditional.etag != nil)
            let byVersion = Messages.Set(path: "/open/a", value: "x", ifVersion: conditional.version, etag: true)
            #expect(try await client.call(byVersion).etag == conditional.etag)
            let removed = try await client.call(Messages.Set(path: "/open/a", value: nil, etag: true, echo: true))
            #expect(removed.etag == SimpleHash.nullEtag)
            #expect(try #require(removed.value) == .null)
            let plain = try await client.call(Messages.Set(path: "/open/a", value: 1))
            #expect(plain.etag == nil && plain.value == nil)
        }
    }

    @Test func priorityIsShownAsItsValue() async throws {
        try await with { running, _ in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/open/a", value: 1))
            let path = try TreePath("/open/a/.priority")
            let set = try await client.call(Messages.Set(path: path, value: [".sv": "timestamp"], echo: true))
            #expect(set.value == 1_700_000_000_000)
        }
    }

    @Test func updateShowsItsValuesByTheNamesOfTheRequest() async throws {
        try await with { running, _ in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/open/a", value: ["n": 5, "gone": 1]))
            let update = Messages.Update(
                path: "/open/a",
                values: ["n": [".sv": ["increment": 2]], "/b/c": [".sv": "timestamp"], "gone": nil, "list": ["x"]],
                echo: true)
            let result = try await client.call(update)
            #expect(result.values == ["n": 7, "/b/c": 1_700_000_000_000, "gone": nil, "list": ["x"]])
            #expect(result.values?.members.map(\.name) == ["n", "/b/c", "gone", "list"])
            #expect(try await client.call(Messages.Update(path: "/open/a", values: ["n": 1])).values == nil)
            #expect(try await client.call(Messages.Update(path: "/open", values: [:], echo: true)).values == [:])
        }
    }

    @Test func pushShowsWhatItsFirstTryHasWritten() async throws {
        try await with { running, time in
            for path in ["/open", "/inbox"] as [TreePath] {
                let client = running.user("masuo")
                let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
                let push = Messages.Push(
                    path: path, value: ["at": [".sv": "timestamp"]], key: key, etag: true, echo: true)
                let first = try await client.call(push)
                #expect(first.value == ["at": .number(Double(time.now))])
                #expect(first.etag == SimpleHash.etag(try TreeNode(json: try #require(first.value))))
                time.advance(by: 1_000)
                #expect(try await client.call(push) == first, "\(path)")
                var plain = push
                (plain.etag, plain.echo) = (nil, nil)
                let repeated = try await client.call(plain)
                #expect(repeated.etag == nil && repeated.value == nil && repeated.version == first.version)
                let other = try await client.call(Messages.Push(path: path, value: 1, etag: true))
                #expect(other.etag != nil && other.value == nil)
            }
        }
    }

    /// The sum would show the stored number.
    @Test func incrementIsShownToThoseWhoMayReadIt() async throws {
        try await with { running, _ in
            _ = try await running.administrator.call(
                Messages.Set(path: "/inbox", value: ["masuo": ["n": 40], "sazae": ["n": 50]]))
            let client = running.user("masuo")
            let increment: JSONValue = [".sv": ["increment": 2]]
            let own = Messages.Set(path: "/inbox/masuo/n", value: increment, etag: true, echo: true)
            #expect(try await client.call(own).value == 42)
            let others = Messages.Set(path: "/inbox/sazae/n", value: increment, etag: true, echo: true)
            let hidden = try await client.call(others)
            #expect(hidden.value == nil && hidden.etag == nil)
            let mixed = try await client.call(
                Messages.Update(path: "/inbox", values: ["masuo/n": increment, "sazae/n": increment], echo: true))
            #expect(mixed.values == nil)
            let allOwn = try await client.call(
                Messages.Update(path: "/inbox", values: ["masuo/n": increment, "sazae/x": 1], echo: true))
            #expect(allOwn.values == ["masuo/n": 46, "sazae/x": 1])
            let many = JSONObject(
                uniqueMembers: (0..<20).map { JSONObject.Member("masuo/m\($0)", increment) })
            #expect(try await client.call(Messages.Update(path: "/inbox", values: many, echo: true)).values == nil)
            let below = JSONObject(uniqueMembers: (0..<20).map { JSONObject.Member("m\($0)", increment) })
            let readable = try await client.call(Messages.Update(path: "/inbox/masuo", values: below, echo: true))
            #expect(readable.values?["m19"] == 4)
            let stored = try await running.administrator.call(Messages.Get(path: "/inbox/sazae")).value
            #expect(stored == ["n": 54, "x": 1], "they are written all the same")
            let administrator = try await running.administrator.call(others)
            #expect(administrator.value == 56 && administrator.etag != nil)
        }
    }

    @Test func largeWritesAreShownToo() async throws {
        try await with { running, _ in
            let client = running.user("masuo")
            let value = JSONValue.object(
                JSONObject(uniqueMembers: (0..<5_000).map { JSONObject.Member("k\($0)", .number(Double($0))) }))
            let set = try await client.call(Messages.Set(path: "/open/a", value: value, etag: true, echo: true))
            #expect(set.value == value)
            #expect(try await client.call(Messages.Get(path: "/open/a", etag: true)).etag == set.etag)
            let values = try #require(value.object)
            let update = try await client.call(Messages.Update(path: "/open/b", values: values, echo: true))
            #expect(update.values == values)
        }
    }

    /// Lines may be longer than responses.
    @Test func whatIsLargerThanAResponseMayBeIsNotShown() async throws {
        try await RunningMessages.with(change: { $0.server.limits.responseBytesMax = 100_000 }) { running in
            let client = running.user("masuo")
            let value = JSONValue.array(Array(repeating: 1_234_567.890123456, count: 6_000))
            let push = try await client.call(Messages.Push(path: "/a", value: value, etag: true, echo: true))
            #expect(push.value == nil && push.etag != nil)
            let values = JSONObject(uniqueMembers: (0..<6_000).map { JSONObject.Member("k\($0)", 1_234_567.890123456) })
            let update = try await client.call(Messages.Update(path: "/b", values: values, echo: true))
            #expect(update.values == nil)
            let less = JSONValue.array(Array(repeating: 1_234_567.890123456, count: 3_000))
            #expect(try await client.call(Messages.Set(path: "/c", value: less, echo: true)).value == less)
        }
    }
}
