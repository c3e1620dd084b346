import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Testing

@testable import HatoMessages

/// What followers are sent of commits that are too large to be sent whole (protocol §5): every match, without its
/// nodes.
@Suite struct LargeCommitTests {
    private let pattern: FeedPattern = "/chats/{chat}/messages/{id}"

    private func messages(_ numbers: Range<Int>, _ bytes: Int, _ letter: String = "x") -> JSONValue {
        let text = JSONValue.string(String(repeating: letter, count: bytes))
        return .object(
            JSONObject(uniqueMembers: numbers.map { .init("m\($0 + 10_000)", ["text": text, "to": "u"]) }))
    }

    /// What a live follower was sent, after a replay has sent the same.
    private func sent(
        _ running: RunningMessages, _ patterns: [FeedPattern]?, _ write: (RPCClient) async throws -> UInt64
    ) async throws -> [Messages.Change.Entry] {
        let client = running.administrator
        var feed = FeedReader(try await client.subscribe(Messages.Follow(patterns: patterns)))
        let before = running.store.version
        let version = try await write(client)
        let live = try await feed.next()
        #expect(live.version == version)
        let again = Messages.Follow(after: before, epoch: running.store.epoch.description, patterns: patterns)
        var replayed = FeedReader(try await client.subscribe(again))
        let later = try await replayed.next()
        #expect(later.version == version)
        #expect(later.changes == live.changes)
        await client.close()
        return live.changes
    }

    @Test func removalOfThreeMegabytesIsOneChangeForEachMessage() async throws {
        try await RunningMessages.with { running in
            let chat: JSONValue = ["messages": messages(0..<900, 3_500), "title": "t"]
            _ = try await running.administrator.call(Messages.Set(path: "/chats/c", value: chat))
            let changes = try await sent(running, [pattern]) {
                try await $0.call(Messages.Remove(path: "/chats/c")).version
            }
            #expect(changes.count == 900)
            #expect(changes.first?.path == "/chats/c/messages/m10000")
            #expect(changes.first?.params == ["chat": "c", "id": "m10000"])
            #expect(Set(changes.map(\.path)).count == 900)
            #expect(
                changes.allSatisfy {
                    $0.type == .deleted && $0.truncated == true && $0.many == nil && $0.before == nil
                        && $0.after == .null
                })
        }
    }

    @Test func replacingThreeMegabytesListsOnlyTheDifferences() async throws {
        try await RunningMessages.with { running in
            let old = messages(0..<600, 5_000).object ?? [:]
            _ = try await running.administrator.call(Messages.Set(path: "/chats/c/messages", value: .object(old)))
            var new = messages(200..<400, 5_000).object ?? [:]
            for member in (messages(400..<500, 5_000, "y").object ?? [:]).members { new[member.name] = member.value }
            for member in (messages(600..<900, 5_000).object ?? [:]).members { new[member.name] = member.value }
            let changes = try await sent(running, [pattern]) {
                try await $0.call(Messages.Set(path: "/chats/c/messages", value: .object(new))).version
            }
            func numbers(_ type: Messages.Change.EntryType) -> [Int] {
                changes.filter { $0.type == type }.compactMap { Int($0.path.dropFirst("/chats/c/messages/m1".count)) }
            }
            #expect(numbers(.deleted) == Array(0..<200) + Array(500..<600))
            #expect(numbers(.updated) == Array(400..<500))
            #expect(numbers(.created) == Array(600..<900))
            #expect(changes.allSatisfy { $0.truncated == true && $0.many == nil })
        }
    }

    @Test func nothingOfALargeWriteIsSentWhole() async throws {
        try await RunningMessages.with { running in
            let changes = try await sent(running, [pattern, "/chats/{chat}"]) {
                try await $0.call(Messages.Set(path: "/chats/c/messages", value: messages(0..<900, 5_000))).version
            }
            #expect(changes.count == 901)
            #expect(changes.allSatisfy { $0.after == nil && $0.truncated == true && $0.type == .created })
            let alone = try await sent(running, nil) {
                let text = JSONValue.string(String(repeating: "x", count: 3_000_000))
                return try await $0.call(Messages.Set(path: "/text", value: text)).version
            }
            #expect(alone.map(\.path) == ["/text"])
            #expect(alone[0].after == nil)
            #expect(alone[0].truncated == true)
        }
    }

    @Test func changesOfOneUpdateHaveValuesUpToOneMegabyte() async throws {
        try await RunningMessages.with { running in
            let values = messages(0..<900, 5_000).object ?? [:]
            let changes = try await sent(running, [pattern]) {
                try await $0.call(Messages.Update(path: "/chats/c/messages", values: values)).version
            }
            #expect(changes.count == 900)
            let whole = changes.filter { $0.truncated == nil }
            #expect(whole.count == changes.prefix { $0.truncated == nil }.count)
            #expect((150...250).contains(whole.count))
            #expect(changes.filter { $0.truncated == true }.allSatisfy { $0.after == nil && $0.before == .null })
        }
    }

    @Test func beyondAThousandMatchesOneChangeStandsForAll() async throws {
        try await RunningMessages.with { running in
            let value = messages(0..<1_001, 3_000)
            let changes = try await sent(running, [pattern, "/chats/{chat}/title"]) {
                try await $0.call(Messages.Set(path: "/chats", value: ["c": ["messages": value, "title": "t"]])).version
            }
            #expect(changes.map(\.path) == ["/chats", "/chats/c/title"])
            #expect(changes.map(\.many) == [true, nil])
        }
    }

    @Test func removalWithTooManyKeysListsTheUpperNodes() async throws {
        try await RunningMessages.with { running in
            // More values than a skeleton may have.
            let row = JSONValue.object(JSONObject(uniqueMembers: (0..<45).map { .init("f\($0)", "0123456789") }))
            let rows = JSONValue.object(JSONObject(uniqueMembers: (0..<800).map { .init("m\($0 + 1_000)", row) }))
            _ = try await running.administrator.call(
                Messages.Set(path: "/chats", value: ["a": ["messages": rows], "b": ["title": "t"]]))
            let field: FeedPattern = "/chats/{chat}/messages/{id}/{field}"
            let changes = try await sent(running, ["/chats/{chat}", pattern, field]) {
                try await $0.call(Messages.Remove(path: "/chats")).version
            }
            #expect(changes.prefix(2).map(\.path) == ["/chats/a", "/chats/b"])
            #expect(changes.filter { $0.pattern == pattern.description && $0.many == nil }.count == 800)
            let last = try #require(changes.last)
            #expect(last.pattern == field.description)
            #expect(last.many == true)
            #expect(changes.count == 803)
        }
    }
}
