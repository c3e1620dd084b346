import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoMessages

/// The limits of spec realtime-database §1 and protocol §1 that are the tree's own, row by row: what is just right is
/// taken, one more is refused, by name, and leaves nothing. (Lines, batches, nesting and connections are the wire's,
/// see HatoRPCTests; responses and rules see `LimitTests`.)
@Suite struct TreeLimitTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var method = "messages.set"
        /// Taken; nil: nothing of this kind is right.
        var right: JSONObject?
        var wrong: JSONObject
        var reason: String
        var parameter: String
        /// What the message must say.
        var says: String
        var code = RPCError.Code.invalidArgument

        var testDescription: String { name }
    }

    private static func text(_ count: Int, _ character: String = "k") -> String {
        String(repeating: character, count: count)
    }

    private static func set(_ path: String, _ value: JSONValue = 1) -> JSONObject {
        ["path": .string(path), "value": value]
    }

    private static func nested(_ depth: Int) -> JSONValue { (0..<depth).reduce(1) { value, _ in ["d": value] } }

    private static func path(_ depth: Int) -> String { "/" + (0..<depth).map { _ in "p" }.joined(separator: "/") }

    private static let keys: [Row] = [
        Row(
            name: "a key of a value has 768 bytes", right: set("/a", .object([text(768): 1])),
            wrong: set("/a", .object([text(769): 1])), reason: "invalid_key", parameter: "value", says: "has 769 bytes"),
        Row(
            name: "a key is counted in UTF-8", right: set("/a", .object([text(192, "😀"): 1])),
            wrong: set("/a", .object([text(193, "😀"): 1])), reason: "invalid_key", parameter: "value",
            says: "has 772 bytes"),
        Row(
            name: "a key of a path has 768 bytes", right: set("/" + text(768)), wrong: set("/" + text(769)),
            reason: "invalid_key", parameter: "path", says: "has 769 bytes"),
        Row(
            name: "a key is not empty", right: set("//a///b/"), wrong: set("/a", ["": 1]), reason: "invalid_key",
            parameter: "value", says: "is empty"),
        Row(
            name: "a key that begins with a dot is no data", right: set("/a", [".priority": 1, "b": 1]),
            wrong: set("/a", [".info": 1]), reason: "invalid_key", parameter: "value", says: "begins with a dot"),
        Row(
            name: "only .priority may end a path", right: set("/a/.priority"), wrong: set("/.info/connected"),
            reason: "invalid_key", parameter: "path", says: "contains \".\""),
        Row(
            name: "a query names a child by a path of keys", method: "messages.get", right: ["path": "/a"],
            wrong: ["path": "/a", "query": ["orderBy": "a.b"]], reason: "orderBy must be a valid JSON encoded path",
            parameter: "query", says: "orderBy"),
    ]

    private static let wrongCharacters: [(String, String)] =
        [".", "#", "$", "[", "]"].map { ($0, "contains \"\($0)\"") }
        + ["\u{01}", "\u{1F}", "\u{7F}"].map { ($0, "control character") }

    private static let characters: [Row] = wrongCharacters.flatMap { (character: String, says: String) -> [Row] in
        [
            Row(
                name: "no \(character.debugDescription) in a key", wrong: set("/a", .object(["b\(character)c": 1])),
                reason: "invalid_key", parameter: "value", says: says),
            Row(
                name: "no \(character.debugDescription) in a path", wrong: set("/a/b\(character)c"),
                reason: "invalid_key", parameter: "path", says: says),
        ]
    }

    private static let otherCharacters: [Row] = [
        Row(
            name: "no slash in a key", wrong: set("/a", ["b/c": 1]), reason: "invalid_key", parameter: "value",
            says: "contains \"/\""),
        Row(
            name: "everything else is a key", right: set("/ :@%~é😀'\"\\"), wrong: set("/#"), reason: "invalid_key",
            parameter: "path", says: "#"),
    ]

    private static let sizes: [Row] = [
        Row(
            name: "a path has 32 keys", right: set(path(32)), wrong: set(path(33)), reason: "too_deep",
            parameter: "path",
            says: "33 keys; 32 is the deepest"),
        Row(
            name: "a value ends at the 32nd key", right: set(path(30), nested(2)), wrong: set(path(30), nested(3)),
            reason: "too_deep", parameter: "value", says: "32 keys are the deepest"),
        Row(
            name: "an array is a level", right: set(path(31), [1]), wrong: set(path(31), [[1]]), reason: "too_deep",
            parameter: "value", says: "32 keys are the deepest"),
        Row(
            name: "a place of an update lies no deeper", method: "messages.update",
            right: ["path": .string(path(30)), "values": ["a/b": 1]],
            wrong: ["path": .string(path(30)), "values": ["a/b/c": 1]], reason: "too_deep", parameter: "values",
            says: "33 keys"),
        Row(
            name: "a pushed child lies no deeper", method: "messages.push", right: set(path(31)), wrong: set(path(32)),
            reason: "too_deep", parameter: "path", says: "33 keys"),
        Row(
            name: "the text of a path has 32 KiB", right: set("/" + text(32 * 1_024 - 2, "/") + "a"),
            wrong: set("/" + text(32 * 1_024, "/") + "a"), reason: "invalid_path", parameter: "path",
            says: "at most 32768 bytes"),
        Row(
            name: "a string has 10 MiB", right: set("/a", .string(text(10 << 20))),
            wrong: set("/a", .string(text(10 << 20 + 1))), reason: "string_too_long", parameter: "value",
            says: "10485760 are allowed"),
        Row(
            name: "a string is counted in UTF-8", right: set("/a", .string(text(5 << 20, "é"))),
            wrong: set("/a", .string(text(5 << 20 + 1, "é"))), reason: "string_too_long", parameter: "value",
            says: "10485762 bytes"),
        Row(
            name: "a priority is no longer than a string", right: set("/a/.priority", .string(text(1_000))),
            wrong: set("/a/.priority", .string(text(10 << 20 + 1))), reason: "string_too_long", parameter: "value",
            says: "10485760 are allowed"),
        Row(
            name: "a write has so many values", right: set("/a", .array(Array(repeating: 1, count: 20))),
            wrong: set("/a", .array(Array(repeating: 1, count: 21))), reason: "too_many_values", parameter: "value",
            says: "at most 20 values"),
        Row(
            name: "a write of many places has so many values", method: "messages.update",
            right: ["path": "/", "values": ["a": .array(Array(repeating: 1, count: 19)), "b": nil, "c": 1]],
            wrong: ["path": "/", "values": ["a": .array(Array(repeating: 1, count: 19)), "b": 1, "c": 1]],
            reason: "too_many_values", parameter: "values", says: "at most 20 values"),
        Row(
            name: "an update has so many paths", method: "messages.update",
            right: ["path": "/", "values": ["a": 1, "b": 1, "c": 1]],
            wrong: ["path": "/", "values": ["a": 1, "b": 1, "c": 1, "d": 1]], reason: "too_many_paths",
            parameter: "values", says: "at most 3 paths"),
    ]

    private static let wrongLimits: [(String, JSONValue, String)] = [
        ("limitToFirst", 0, "limitToFirst must be positive"), ("limitToLast", -1, "limitToLast must be positive"),
        ("limitToFirst", 1.5, "limitToFirst must be an integer"),
        ("limitToLast", "5", "limitToLast must be an integer"),
        ("limitToFirst", 1_000_001, "limitToFirst must be at most 1000000"),
        ("limitToLast", 2_147_483_647, "limitToLast must be at most 1000000"),
        ("limitToFirst", 4_611_686_018_427_387_392, "limitToFirst must be at most 1000000"),
        ("limitToLast", 1e300, "limitToLast must be at most 1000000"),
        ("limitToLast", -1e300, "limitToLast must be positive"),
    ]

    private static let queries: [Row] = wrongLimits.map { (name: String, value: JSONValue, reason: String) -> Row in
        Row(
            name: "\(reason), not \(value)", method: "messages.get",
            right: ["path": "/a", "query": ["orderBy": "$key", "limitToFirst": 1_000_000]],
            wrong: ["path": "/a", "query": .object(["orderBy": "$key", name: value])], reason: reason,
            parameter: "query",
            says: "e.g.")
    }

    @Test(arguments: keys + characters + otherCharacters + sizes + queries)
    func oneMoreThanTheLimitIsRefusedByName(row: Row) async throws {
        try await RunningMessages.with(change: {
            $0.limits.writeValuesMax = 20
            $0.limits.updatePathsMax = 3
        }) { running in
            let client = running.administrator
            let everything = Messages.Get(path: .root, form: .export)
            let before = try await client.call(everything).value
            let refused = await refusal { try await client.call(method: row.method, params: row.wrong) }
            #expect(refused?.code == row.code)
            #expect(refused?.reason == row.reason)
            #expect(refused?.data["parameter"] == .string(row.parameter))
            #expect(refused?.message.contains(row.says) == true, "\(refused?.message ?? "taken")")
            #expect(try await client.call(everything).value == before, "nothing is written")
            if let right = row.right { _ = try await client.call(method: row.method, params: right) }
        }
    }

    // MARK: Rates

    private func write(_ client: RPCClient, _ value: JSONValue = 1) async -> RPCError? {
        await refusal { try await client.call(Messages.Set(path: "/a", value: value)) }
    }

    @Test func aClientMayWriteSoOftenASecond() async throws {
        let time = TestClock(1_000_000)
        try await RunningMessages.with(change: {
            $0.now = { time.now }
            $0.limits.clientWritesPerSecondMax = 5
        }) { running in
            let (masuo, sazae) = (running.user("masuo"), running.user("sazae"))
            for _ in 0..<5 { #expect(await write(masuo) == nil) }
            let refused = await write(masuo)
            #expect(refused?.code == .resourceExhausted)
            #expect(refused?.reason == "too_many_writes")
            #expect(refused?.data["retryable"] == true)
            #expect(refused?.data["retryAfterMs"] == 200)
            #expect(
                await write(running.user("masuo")) == refused, "another connection of the same user is the same client")
            #expect(await write(sazae) == nil)
            #expect(await write(running.administrator) == nil)
            _ = try await masuo.call(Messages.Get(path: "/a"))
            time.advance(by: 199)
            #expect(await write(masuo)?.data["retryAfterMs"] == 1)
            time.advance(by: 1)
            #expect(await write(masuo) == nil)
            #expect(await write(masuo)?.data["retryAfterMs"] == 200)
            time.advance(by: 3_600_000)
            for _ in 0..<5 { #expect(await write(masuo) == nil) }
            #expect(await write(masuo)?.reason == "too_many_writes", "what was not used is not saved up")
            for _ in 0..<5 { _ = try await sazae.call(Messages.OnDisconnect.Remove(path: "/x")) }
            let later = await refusal { try await sazae.call(Messages.OnDisconnect.Remove(path: "/x")) }
            #expect(later?.reason == "too_many_writes", "what is left to be written is a write")
        }
    }

    @Test func forwardedWritesCountForTheAddressesOfTheirClients() async throws {
        let time = TestClock(1_000_000)
        let rules = #"{"rules": {".read": true, ".write": true}}"#
        try await RunningMessages.with(
            rules: rules,
            change: {
                $0.now = { time.now }
                $0.limits.clientWritesPerSecondMax = 2
            }
        ) { running in
            let gateway = running.client(nil)
            _ = try await gateway.call(method: "session.forward", params: ["auth": "admin", "from": "192.0.2.9"])
            func write(from address: String?, _ more: JSONObject = [:]) async -> RPCError? {
                var params: JSONObject = ["path": "/a", "value": 1]
                params["from"] = address.map { .string($0) }
                for member in more.members { params[member.name] = member.value }
                return await refusal { [params] in try await gateway.call(method: "messages.set", params: params) }
            }
            for address in ["203.0.113.7", "203.0.113.8", nil] {
                for _ in 0..<2 { #expect(await write(from: address) == nil) }
                #expect(await write(from: address)?.reason == "too_many_writes")
            }
            #expect(await write(from: "192.0.2.9")?.reason == "too_many_writes", "that of the connection")
            #expect(await write(from: "203.0.113.7", ["auth": "user:masuo"]) == nil, "a user has a limit of its own")
            #expect(await write(from: "203.0.113.7", ["auth": "admin"]) == nil)
            await gateway.close()
        }
    }

    @Test func aClientMayWriteSoManyBytesAMinute() async throws {
        let time = TestClock(1_000_000)
        try await RunningMessages.with(change: {
            $0.now = { time.now }
            $0.limits.clientBytesPerMinuteMax = 60_000
        }) { running in
            let client = running.user("masuo")
            let value = JSONValue.string(String(repeating: "x", count: 90_000))
            #expect(await write(client, value) == nil, "one write may be larger than what is left")
            let refused = await write(client)
            #expect(refused?.code == .resourceExhausted)
            #expect(refused?.reason == "too_many_bytes")
            let wait = try #require(refused?.data["retryAfterMs"]?.number)
            // 90,000 bytes and their envelope less the 60,000 there were, at one a millisecond.
            #expect((30_000...30_300).contains(wait))
            time.advance(by: Int64(wait) - 1)
            #expect(await write(client)?.reason == "too_many_bytes")
            time.advance(by: 1)
            #expect(await write(client) == nil)
        }
    }

    @Test func idleClientsAreDroppedWhenTheyAreMany() throws {
        var limits = MessagesLimits()
        limits.clientWritesPerSecondMax = 2
        let quotas = WriteQuotas(limits)
        for number in 0..<70_000 { try quotas.take("user \(number)", bytes: 1, now: Int64(number) * 10) }
        #expect(quotas.clientCount <= 65_536)
        try quotas.take("user 69999", bytes: 1, now: 699_990)
        #expect(throws: MessagesError.self) { try quotas.take("user 69999", bytes: 1, now: 699_990) }
        // A clock that was set back neither fills nor empties.
        #expect(throws: MessagesError.self) { try quotas.take("user 69999", bytes: 1, now: 0) }
    }

    /// Many other clients, none of which has all it may have again.
    @Test(arguments: [(writes: 2, bytes: 0), (writes: 0, bytes: 100)])
    func aClientThatHasToWaitIsRememberedWhileManyOthersWrite(limit: (writes: Int, bytes: Int)) throws {
        var limits = MessagesLimits()
        limits.clientWritesPerSecondMax = limit.writes
        limits.clientBytesPerMinuteMax = limit.bytes
        let quotas = WriteQuotas(limits)
        for number in 0..<65_535 { try quotas.take("user \(number)", bytes: 50, now: 0) }
        for _ in 0..<2 { try quotas.take("debtor", bytes: 50, now: 0) }
        for number in 70_000..<100_000 { try quotas.take("user \(number)", bytes: 50, now: 0) }
        #expect(throws: MessagesError.self) { try quotas.take("debtor", bytes: 1, now: 0) }
    }

    @Test func withoutASettingThereIsNoRate() async throws {
        let limits = MessagesLimits()
        #expect(WriteQuotas(limits).isOff)
        try await RunningMessages.with(change: { $0.now = { 1_000_000 } }) { running in
            let client = running.user("masuo")
            for _ in 0..<200 { #expect(await write(client) == nil) }
        }
    }
}
