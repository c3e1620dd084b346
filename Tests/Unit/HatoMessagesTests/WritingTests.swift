import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoMessages

@Suite struct WritingTests {
    @Test func pushedChildIsReadBack() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            let pushed = try await client.call(
                Messages.Push(path: "/chats/c1/messages", value: ["senderId": "masuo", "text": "ただいま"]))
            let read = try await client.call(Messages.Get(path: TreePath("/chats/c1/messages/\(pushed.key)")))
            #expect(read.value == ["senderId": "masuo", "text": "ただいま"])
            #expect(read.version >= pushed.version)
        }
    }

    @Test func pushKeyMadeByTheServiceHasTheServiceTime() async throws {
        try await RunningMessages.with(change: { $0.now = { 1_700_000_000_000 } }) { running in
            var keys: [PushKey] = []
            for uid in ["masuo", "masuo", "sazae"] {
                let pushed = try await running.user(uid).call(Messages.Push(path: "/a", value: .string(uid)))
                #expect(pushed.key.text.hasPrefix("-NjEtLV-"), "\(pushed.key)")
                #expect(pushed.key.milliseconds == 1_700_000_000_000)
                keys.append(pushed.key)
            }
            #expect(keys[0] < keys[1] && keys[1] < keys[2], "\(keys)")
            let read = try await running.administrator.call(Messages.Get(path: "/a", query: TreeQuery(order: .key)))
            #expect(read.keys == keys.map(\.text))
        }
    }

    @Test func pushIsRepeatedWithoutEffectUnderTheSameKey() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
            let first = try await client.call(Messages.Push(path: "/a", value: "x", key: key))
            let second = try await client.call(Messages.Push(path: "/a", value: "x", key: key))
            #expect(first == second)
            let other = await refusal { try await client.call(Messages.Push(path: "/a", value: "y", key: key)) }
            #expect(other?.code == .alreadyExists)
            #expect(try await client.call(Messages.Get(path: "/a")).value == [key.text: "x"])
        }
    }

    @Test func repeatedPushGetsTheVersionOfTheFirst() async throws {
        let rules = #"{"rules": {"a": {".read": true, ".write": true}, "inbox": {".write": true}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let (client, other, administrator) = (running.user("masuo"), running.user("sazae"), running.administrator)
            let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
            let (open, hidden) = (
                Messages.Push(path: "/a", value: "x", key: key), Messages.Push(path: "/inbox", value: "x", key: key)
            )
            let (first, hiddenFirst) = (try await client.call(open), try await client.call(hidden))
            for number in 0..<100 {
                _ = try await administrator.call(Messages.Set(path: "/a/n", value: .number(Double(number))))
            }
            #expect(try await client.call(open) == first)
            #expect(try await other.call(open) == first, "the same is there for all users who may read it")
            #expect(try await administrator.call(hidden) == hiddenFirst)
            #expect(try await client.call(hidden) == hiddenFirst)
            #expect(try await client.call(Messages.Get(path: "/a/n")).value == 99)
            // The records are for pushes of others; what is no longer known is not made up.
            try running.store.compactCommits(through: running.store.version - 1)
            #expect(try await client.call(open) == first)
            #expect(try await other.call(open).version == running.store.version)
        }
    }

    /// A caller with write access and without read access learns nothing by writing the stored value.
    @Test(
        arguments: [
            ["/inbox/pin", 4_711], ["/inbox/pin", [".sv": ["increment": 0]]], ["/inbox/none", nil],
        ] as [JSONValue])
    func versionShowsCallersWithoutReadAccessNoChange(write: JSONValue) async throws {
        guard case .array(let parts) = write, let path = parts[0].string else { return }
        try await RunningMessages.with(rules: #"{"rules": {"inbox": {".write": true}}}"#) { running in
            _ = try await running.administrator.call(Messages.Set(path: "/inbox/pin", value: 4_711))
            let set = Messages.Set(path: try TreePath(path), value: parts[1])
            let before = running.store.version
            #expect(try await running.user("masuo").call(set).version == before + 1)
            #expect(try await running.administrator.call(set).version == before + 1, "nothing has changed")
            #expect(try await running.administrator.call(Messages.Get(path: "/inbox")).value == ["pin": 4_711])
        }
    }

    @Test func updateReplacesDeepPathsInOneCommit() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/", value: ["a": ["x": 1, "y": 2], "b": 3]))
            let before = running.store.version
            let update = try await client.call(
                Messages.Update(path: "/", values: ["a/x": 10, "c/d/e": true, "b": nil]))
            #expect(update.version == before + 1)
            #expect(
                try await client.call(Messages.Get(path: "/")).value
                    == ["a": ["x": 10, "y": 2], "c": ["d": ["e": true]]])
        }
    }

    @Test func emptyUpdateChangesNothing() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            let before = running.store.version
            let update = try await client.call(Messages.Update(path: "/a", values: [:]))
            #expect(update.version == before)
            #expect(running.store.version == before)
        }
    }

    @Test func etagGuardsAWrite() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            let created = try await client.call(Messages.Set(path: "/a", value: 1, ifMatch: "null_etag"))
            #expect(created.etag != nil)
            let refused = await refusal {
                try await client.call(Messages.Set(path: "/a", value: 2, ifMatch: "null_etag"))
            }
            #expect(refused?.code == .failedPrecondition)
            #expect(refused?.data["etag"]?.string == created.etag)
            #expect(refused?.data["value"] == 1)
            let read = try await client.call(Messages.Get(path: "/a", etag: true))
            #expect(read.etag == created.etag)
            _ = try await client.call(Messages.Remove(path: "/a", ifMatch: read.etag))
            #expect(try await client.call(Messages.Get(path: "/a")).value == .null)
        }
    }

    /// A condition that holds shows as much as one that does not: neither is compared without read access to the path.
    @Test func conditionShowsCallersWithoutReadAccessNothing() async throws {
        let rules = #"{"rules": {"a": {".write": true, "open": {".read": true}}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let (administrator, writer) = (running.administrator, running.user("masuo"))
            _ = try await administrator.call(Messages.Set(path: "/a", value: ["secret": 5, "open": 6]))
            let stored = try await administrator.call(Messages.Get(path: "/a/secret", etag: true))
            func tries(_ path: TreePath) -> [Messages.Set] {
                [
                    Messages.Set(path: path, value: 1, ifMatch: stored.etag),
                    Messages.Set(path: path, value: 1, ifMatch: "null_etag"),
                    Messages.Set(path: path, value: 1, ifMatch: "aaaaaaaaaaaaaaaaaaaaaaaaaaA="),
                    Messages.Set(path: path, value: 1, ifVersion: 0),
                    Messages.Set(path: path, value: 1, ifVersion: stored.version),
                    Messages.Set(path: path, value: 1, ifVersion: 1_000_000_000),
                ]
            }
            for path: TreePath in ["/a/secret", "/a/secret/.priority", "/a/nothing", "/a"] {
                for set in tries(path) {
                    let refused = await refusal { try await writer.call(set) }
                    #expect(refused == .permissionDenied(path: path.node.text), "\(set)")
                }
                let removal = Messages.Remove(path: path, ifMatch: stored.etag)
                #expect(await refusal { try await writer.call(removal) } == .permissionDenied(path: path.node.text))
            }
            // An administrator with `as` gets the rules that were evaluated.
            let spoken = await refusal {
                var params = Messages.Remove(path: "/a/secret", ifMatch: stored.etag).members
                params["as"] = ["uid": "masuo"]
                return try await administrator.call(method: "messages.remove", params: params)
            }
            #expect(spoken?.code == .permissionDenied)
            #expect(spoken?.data["trace"]?.array?.isEmpty == true, "no rule grants to read it: none was asked")
            let wrong = await refusal { try await writer.call(tries("/a/open")[1]) }
            #expect(wrong?.reason == "etag_mismatch")
            #expect(wrong?.data["value"] == 6)
            #expect(try await administrator.call(Messages.Get(path: "/a")).value == ["open": 6, "secret": 5])
        }
    }
    /// A connection may have a thousand such errors under way, which nothing reserves.
    @Test func refusedConditionBringsASmallValueOnly() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let values: [(JSONValue, Bool)] = [
                (.string(String(repeating: "x", count: 4_000)), true),
                (.string(String(repeating: "x", count: 4_200)), false),
                (.string(String(repeating: "\u{1}", count: 1_000)), false),
            ]
            for (value, isBrought) in values {
                _ = try await client.call(Messages.Set(path: "/a", value: value))
                let refused = await refusal {
                    try await client.call(Messages.Set(path: "/a", value: 1, ifMatch: "null_etag"))
                }
                #expect(refused?.reason == "etag_mismatch")
                #expect(refused?.data["value"] == (isBrought ? .some(value) : .none))
                #expect(refused?.data["etag"]?.string?.isEmpty == false)
            }
        }
    }

    @Test func pushShowsCallersWithoutReadAccessNothing() async throws {
        try await RunningMessages.with(rules: #"{"rules": {"inbox": {".write": "auth != null"}}}"#) { running in
            let (administrator, writer) = (running.administrator, running.user("masuo"))
            let taken = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
            _ = try await administrator.call(Messages.Push(path: "/inbox", value: "secret", key: taken))
            let answers = [
                await refusal { try await writer.call(Messages.Push(path: "/inbox", value: "secret", key: taken)) },
                await refusal { try await writer.call(Messages.Push(path: "/inbox", value: "guess", key: taken)) },
            ]
            #expect(answers[0]?.reason == "key_exists")
            #expect(answers[0] == answers[1])

            // What he pushed himself he may repeat, whatever became of it.
            let own = PushKey(milliseconds: 1_700_000_000_001, random: (1, 2))
            let push = Messages.Push(path: "/inbox", value: ["text": "mine", "date": [".sv": "timestamp"]], key: own)
            let first = try await writer.call(push)
            #expect(try await writer.call(push) == first)
            _ = try await administrator.call(Messages.Set(path: TreePath("/inbox/\(own)"), value: "edited"))
            #expect(try await writer.call(push).key == own)
            for other: JSONValue in ["edited", ["text": "other", "date": 1]] {
                let refused = await refusal {
                    try await writer.call(Messages.Push(path: "/inbox", value: other, key: own))
                }
                #expect(refused?.reason == "key_exists")
            }
            let stranger = await refusal { try await running.user("sazae").call(push) }
            #expect(stranger?.reason == "key_exists")
        }
    }

    @Test func versionGuardsAWrite() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            let first = try await client.call(Messages.Set(path: "/a/b", value: 1)).version
            _ = try await client.call(Messages.Set(path: "/other", value: 1))
            let second = try await client.call(Messages.Set(path: "/a", value: 2, ifVersion: first)).version
            #expect(
                await refusal { try await client.call(Messages.Set(path: "/a/b", value: 3, ifVersion: first)) }?.reason
                    == "version_mismatch")
            _ = try await client.call(Messages.Set(path: "/a", value: 4, ifVersion: second))
        }
    }

    @Test func versionZeroMeansThatNothingWasEverWritten() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            func write(_ path: TreePath, _ database: DatabaseName? = nil) async -> String? {
                let set = Messages.Set(database: database, path: path, value: 1, ifVersion: 0)
                return await refusal { try await client.call(set) }?.reason
            }
            #expect(await write("/a/b") == nil)
            #expect(await write("/a/c") == nil)
            for written: TreePath in ["/a/b", "/a", "/", "/a/b/c"] {
                #expect(await write(written) == "version_mismatch", "\(written)")
            }
            _ = try await client.call(Messages.Remove(path: "/a/b"))
            #expect(await write("/a/b") == "version_mismatch", "what is gone was written")
            // A database that is made later has a history of its own.
            let name = try DatabaseName("other")
            _ = try await client.call(Messages.Databases.Create(database: name))
            #expect(await write("/a", name) == nil)
            #expect(await write("/a", name) == "version_mismatch")
            _ = try await client.call(Messages.Set(database: name, path: "/last", value: 1))
            // Records need not be kept for that.
            try running.store.compactCommits(through: running.store.version - 1)
            #expect(await write("/never", name) == nil)
            #expect(await write("/never", name) == "version_mismatch")
        }
    }

    @Test func versionThatNeverWasGuardsNothing() async throws {
        try await RunningMessages.with { running in
            let set = Messages.Set(path: "/a", value: 5, ifVersion: 1_000_000_000)
            let refused = await refusal { try await running.administrator.call(set) }
            #expect(refused?.code == .failedPrecondition)
            #expect(refused?.reason == "unknown_version")
            let stored = try await running.administrator.call(Messages.Get(path: "/a"))
            #expect(stored.value == .null)
        }
    }

    @Test func rulesAuthoriseWrites() async throws {
        let rules = #"{"rules": {"users": {"$u": {".read": "auth != null", ".write": "auth.uid == $u"}}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/users/masuo/name", value: "マスオ"))
            let refused = await refusal { try await client.call(Messages.Set(path: "/users/sazae/name", value: "x")) }
            #expect(refused?.code == .permissionDenied)
            #expect(refused?.data["path"] == "/users/sazae/name")
            let partly = await refusal {
                try await client.call(Messages.Update(path: "/users", values: ["masuo/a": 1, "sazae/a": 1]))
            }
            #expect(partly?.code == .permissionDenied)
            #expect(
                await refusal { try await running.client(nil).call(Messages.Get(path: "/users/masuo")) }?.code
                    == .permissionDenied)
            #expect(try await running.user("sazae").call(Messages.Get(path: "/users/masuo")).value == ["name": "マスオ"])
            _ = try await running.administrator.call(Messages.Set(path: "/anything", value: 1))
        }
    }

    @Test func readSeesThePendingWritesOfItsConnection() async throws {
        try await RunningMessages.with { running in
            let client = running.user("masuo")
            _ = try await client.call(Messages.Set(path: "/n", value: 0))
            try await withThrowingTaskGroup { group in
                for number in 1...200 {
                    // One after the other onto the wire, none waiting for a response.
                    let write = Messages.Set(path: "/n", value: .number(Double(number)))
                    let order = PipelinedOrder(client)
                    group.addTask { try await order.writeThenRead(write, expecting: Double(number)) }
                    try await group.next()
                }
            }
        }
    }
}

/// A write and a read behind it, sent together.
struct PipelinedOrder {
    let client: RPCClient
    init(_ client: RPCClient) { self.client = client }

    func writeThenRead(_ write: Messages.Set, expecting: Double) async throws {
        let params = try JSONObject.encoded(write)
        let read = try JSONObject.encoded(Messages.Get(path: write.path))
        let client = client
        let value: JSONValue = try await withCheckedThrowingContinuation { continuation in
            client.send(method: Messages.Set.method, params: params) { _ in }
            client.send(method: Messages.Get.method, params: read) { result in
                continuation.resume(with: Result { try JSONParser.parse(result.get())["value"] ?? .null })
            }
        }
        #expect(value == .number(expecting))
    }
}

extension JSONObject {
    static func encoded(_ request: some RPCRequest) throws -> EncodedJSON {
        var writer = JSONWriter()
        writer.write(request.members)
        return EncodedJSON(writer)
    }
}
