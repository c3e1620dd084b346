import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

@Suite struct FollowingTests {
    private let messages = "/chats/{chat}/messages/{id}"

    @Test func followerSeesCreationsUpdatesAndDeletions() async throws {
        try await RunningMessages.with { running in
            let (administrator, client) = (running.administrator, running.user("masuo"))
            var feed = FeedReader(try await administrator.subscribe(try follow()))
            let pushed = try await client.call(Messages.Push(path: "/chats/c1/messages", value: ["text": "a", "n": 1]))
            let created = try await feed.next()
            #expect(created.version == pushed.version)
            #expect(created.epoch == running.store.epoch.description)
            let entry = try #require(created.changes.first)
            #expect(created.changes.count == 1)
            #expect(entry.pattern == messages)
            #expect(entry.params == ["chat": "c1", "id": pushed.key.text])
            #expect(entry.path == "/chats/c1/messages/\(pushed.key)")
            #expect(entry.type == .created)
            #expect(entry.after == ["text": "a", "n": 1])
            #expect(entry.uid == "masuo")
            #expect(entry.partial == nil)

            _ = try await client.call(Messages.Set(path: TreePath(entry.path + "/text"), value: "b"))
            let part = try #require(try await feed.next().changes.first)
            #expect(part.type == .updated)
            #expect(part.partial == true)
            #expect(part.path == entry.path)
            #expect(part.before == ["text": "a"])
            #expect(part.after == ["text": "b"])

            _ = try await client.call(Messages.Set(path: TreePath(entry.path), value: ["text": "c"]))
            let whole = try #require(try await feed.next().changes.first)
            #expect(whole.type == .updated)
            #expect(whole.partial == nil)
            #expect(whole.before == ["text": "b", "n": 1])

            _ = try await client.call(Messages.Remove(path: "/chats"))
            let deleted = try #require(try await feed.next().changes.first)
            #expect(deleted.type == .deleted)
            #expect(deleted.before == ["text": "c"])
        }
    }

    @Test func severalWritesBelowOneNodeAreOneChange() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m", value: ["a": 1, "b": 2, "c": 3]))
            var feed = FeedReader(try await client.subscribe(try follow()))
            _ = try await client.call(
                Messages.Update(path: "/chats/c/messages", values: ["m/a": 10, "m/b": nil, "other": "x"]))
            let changes = try await feed.next().changes
            #expect(changes.map(\.path) == ["/chats/c/messages/m", "/chats/c/messages/other"])
            #expect(changes[0].before == ["a": 1, "b": 2])
            #expect(changes[0].after == ["a": 10])
            #expect(changes[0].uid == nil)
        }
    }

    @Test func changeOfOnlyAPriorityListsTheNodeThatHasIt() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let message: JSONValue = [".priority": 1, "text": "a", "by": ["name": "鳩"]]
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m", value: message))
            var feed = FeedReader(try await client.subscribe(try follow()))
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m/.priority", value: 2))
            let version = running.store.version
            _ = try await client.call(Messages.Remove(path: "/chats/c/messages/m/.priority"))
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m/text/.priority", value: 3))
            _ = try await client.call(
                Messages.Update(path: "/chats/c/messages/m", values: [".priority": 4, "text": "b"]))
            var later = FeedReader(try await client.subscribe(try follow(after: version - 1)))
            for change in [try await feed.next(), try await later.next()] {
                #expect(change.version == version)
                let entry = try #require(change.changes.first)
                #expect(entry.type == .updated && entry.partial == nil && entry.path == "/chats/c/messages/m")
                #expect(entry.before == message)
                #expect(entry.after == [".priority": 2, "text": "a", "by": ["name": "鳩"]])
            }
            let removed = try #require(try await feed.next().changes.first)
            #expect(removed.before == [".priority": 2, "text": "a", "by": ["name": "鳩"]])
            #expect(removed.after == ["text": "a", "by": ["name": "鳩"]])
            let below = try #require(try await feed.next().changes.first)
            #expect(below.partial == true)
            #expect(below.before == ["text": "a"])
            #expect(below.after == ["text": [".value": "a", ".priority": 3]])
            let both = try #require(try await feed.next().changes.first)
            #expect(both.partial == true)
            #expect(both.before == ["text": [".value": "a", ".priority": 3]])
            #expect(both.after == [".priority": 4, "text": "b"])
        }
    }

    @Test func leafReplacedByAWriteBelowItIsListed() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/chats/c/messages", value: ["m": "leaf", "n": ["x": true]]))
            var feed = FeedReader(try await client.subscribe(try follow()))
            let version = try await client.call(Messages.Set(path: "/chats/c/messages/m/a/b", value: 1)).version
            _ = try await client.call(
                Messages.Update(path: "/chats/c/messages/n", values: ["x/one": 1, "x/two": 2, "y": 3]))
            var later = FeedReader(try await client.subscribe(try follow(after: version - 1)))
            for change in [try await feed.next(), try await later.next()] {
                let entry = try #require(change.changes.first)
                #expect(entry.type == .updated && entry.partial == true && entry.path == "/chats/c/messages/m")
                #expect(entry.before == "leaf")
                #expect(entry.after == ["a": ["b": 1]])
            }
            for change in [try await feed.next(), try await later.next()] {
                let entry = try #require(change.changes.first)
                #expect(entry.before == ["x": true])
                #expect(entry.after == ["x": ["one": 1, "two": 2], "y": 3])
            }
        }
    }

    @Test func leafThatBecomesAnObjectIsListedWithThePriorityThatItKeeps() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let leaf: JSONValue = [".value": true, ".priority": 3]
            let messages: JSONValue = ["m": [".value": "leaf", ".priority": 5], "n": ["x": leaf], "o": ["x": leaf]]
            _ = try await client.call(Messages.Set(path: "/chats/c/messages", value: messages))
            var feed = FeedReader(try await client.subscribe(try follow()))
            let version = try await client.call(Messages.Set(path: "/chats/c/messages/m/a/b", value: 1)).version
            // Whichever of a node's places the request names first.
            _ = try await client.call(
                Messages.Update(path: "/chats/c/messages/n", values: ["x/.priority": nil, "x/one": 1]))
            _ = try await client.call(
                Messages.Update(path: "/chats/c/messages/o", values: ["x/one": 1, "x/two": 2, "x/.priority": 4]))
            var later = FeedReader(try await client.subscribe(try follow(after: version - 1)))
            for change in [try await feed.next(), try await later.next()] {
                let entry = try #require(change.changes.first)
                #expect(entry.type == .updated && entry.path == "/chats/c/messages/m")
                #expect(entry.before == [".value": "leaf", ".priority": 5])
                #expect(entry.after == [".priority": 5, "a": ["b": 1]])
            }
            for after: JSONValue in [["x": ["one": 1]], ["x": [".priority": 4, "one": 1, "two": 2]]] {
                for change in [try await feed.next(), try await later.next()] {
                    let entry = try #require(change.changes.first)
                    #expect(entry.before == ["x": leaf])
                    #expect(entry.after == after)
                }
            }
        }
    }

    @Test func patternOfTheRootMatchesTheFirstAndTheLastValue() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let pattern = try FeedPattern("/")
            var feed = FeedReader(try await client.subscribe(Messages.Follow(patterns: [pattern])))
            let version = try await client.call(Messages.Set(path: "/a/x", value: 1)).version
            _ = try await client.call(Messages.Set(path: "/b", value: 2))
            _ = try await client.call(Messages.Remove(path: "/a/x"))
            _ = try await client.call(Messages.Update(path: "/", values: ["b": nil, "c": 3]))
            _ = try await client.call(Messages.Remove(path: "/c"))
            _ = try await client.call(Messages.Update(path: "/", values: [".priority": 1, "a/x": 1, "b": 2]))
            _ = try await client.call(Messages.Update(path: "/", values: ["a/x": nil, "b": nil]))
            _ = try await client.call(Messages.Push(path: "/", value: "first"))
            _ = try await client.call(Messages.Set(path: "/", value: "leaf"))
            _ = try await client.call(Messages.Set(path: "/below", value: true))
            _ = try await client.call(Messages.Set(path: "/", value: nil))
            var later = FeedReader(
                try await client.subscribe(Messages.Follow(after: version - 1, patterns: [pattern])))
            let types: [Messages.Change.EntryType] = [
                .created, .updated, .updated, .updated, .deleted, .created, .deleted, .created, .updated, .updated,
                .deleted,
            ]
            for (index, type) in types.enumerated() {
                for change in [try await feed.next(), try await later.next()] {
                    #expect(change.changes.map(\.path) == ["/"], "change \(index)")
                    #expect(change.changes.first?.type == type, "change \(index)")
                }
            }
        }
    }

    @Test func followerResumesWhereItWas() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var versions: [UInt64] = []
            for number in 0..<700 {
                versions.append(
                    try await client.call(
                        Messages.Set(path: TreePath("/chats/c/messages/m\(number)"), value: .number(Double(number)))
                    ).version)
            }
            let epoch = running.store.epoch.description
            var feed = FeedReader(try await client.subscribe(try follow(after: versions[9], epoch: epoch)))
            var seen: [UInt64] = []
            while seen.count < 690 { seen.append(try await feed.next().version) }
            #expect(seen == Array(versions[10...]))
            versions.append(try await client.call(Messages.Set(path: "/chats/c/messages/last", value: 1)).version)
            #expect(try await feed.next().version == versions.last)
            var all = FeedReader(try await client.subscribe(try follow(after: 0)))
            #expect(try await all.next().version == versions.first)
        }
    }

    @Test func positionsThatAreNoneAreRefused() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            for number in 0..<10 { _ = try await client.call(Messages.Set(path: "/a", value: .number(Double(number)))) }
            let epoch = running.store.epoch.description
            let future = await refusal { try await client.subscribe(try follow(after: 1_000, epoch: epoch)) }
            #expect(future?.reason == "unknown_version")
            for after in [2, 0, nil] as [UInt64?] {
                let foreign = await refusal {
                    try await client.subscribe(try follow(after: after, epoch: String(repeating: "0", count: 32)))
                }
                #expect(foreign?.reason == "unknown_version", "\(String(describing: after))")
            }
            try running.store.compactCommits(through: 5)
            let old = await refusal { try await client.subscribe(try follow(after: 2, epoch: epoch)) }
            #expect(old?.reason == "compacted")
            #expect(old?.data["oldest"] == 6)
            _ = try await client.subscribe(try follow(after: 5, epoch: epoch))
        }
    }

    @Test func moreMatchesThanTheLimitAreListedAsOne() async throws {
        try await RunningMessages.with(change: { $0.limits.followMatchesMax = 5 }) { running in
            let client = running.administrator
            var feed = FeedReader(try await client.subscribe(try follow()))
            var messages = JSONObject()
            for number in 0..<6 { messages["m\(number)"] = .number(Double(number)) }
            _ = try await client.call(Messages.Set(path: "/chats/c/messages", value: .object(messages)))
            let changes = try await feed.next().changes
            #expect(changes.count == 1)
            #expect(changes[0].many == true)
            #expect(changes[0].path == "/chats/c/messages")
            messages["m5"] = nil
            _ = try await client.call(Messages.Set(path: "/chats/d/messages", value: .object(messages)))
            #expect(try await feed.next().changes.count == 5)
        }
    }

    @Test func importWithoutTriggersReachesFollowersWithoutChanges() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var feed = FeedReader(try await client.subscribe(try follow()))
            _ = try await client.call(Messages.Import(path: "/", rows: [["/users/u", 1]], disableTriggers: true))
            let version = try await client.call(
                Messages.Import(path: "/", rows: [["/chats/c/messages/m1", "hidden"]], disableTriggers: true)
            ).version
            _ = try await client.call(Messages.Import(path: "/", rows: [["/chats/c/messages/m2", "seen"]]))
            var replayed = FeedReader(try await client.subscribe(try follow(after: 0)))
            let (live, later) = (try await feed.next(), try await replayed.next())
            for change in [live, later] {
                #expect(change.version == version)
                #expect(change.changes.isEmpty)
                #expect(change.disableTriggers == true)
            }
            for change in [try await feed.next(), try await replayed.next()] {
                #expect(change.changes.first?.after == "seen")
                #expect(change.disableTriggers == nil)
            }
        }
    }

    @Test func followerWithoutPatternsSeesEveryWrittenPath() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var feed = FeedReader(try await client.subscribe(Messages.Follow()))
            _ = try await client.call(Messages.Set(path: "/a/b", value: 1))
            let entry = try #require(try await feed.next().changes.first)
            #expect(entry.path == "/a/b")
            #expect(entry.type == .created)
            #expect(entry.pattern == nil)
        }
    }

    @Test func followerPassesCommitsThatChangeNoTree() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let version = try await client.call(Messages.Set(path: "/chats/c/messages/m", value: 1)).version
            for rules in [DefaultRules.deny, DefaultRules.signedIn] {
                _ = try await client.call(Messages.Rules.Set(rules: rules))
            }
            let epoch = running.store.epoch.description
            var feed = FeedReader(try await client.subscribe(try follow(after: version, epoch: epoch)))
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m", value: 2))
            #expect(try await feed.next().changes.first?.after == 2)
        }
    }

    @Test func quietFollowerGetsItsPositionBeforeChangesAreCompacted() async throws {
        let clock = HeldClock()
        try await RunningMessages.with(change: { $0.now = { clock.now } }) { running in
            let client = running.administrator
            var feed = FeedReader(try await client.subscribe(try follow()))
            let before = running.store.version
            for number in 0..<3 {
                _ = try await client.call(Messages.Set(path: "/other", value: .number(Double(number))))
            }
            clock.advance(by: 8 * 24 * 3_600_000)
            await running.service.keepUpOnce()
            let note = try await feed.next()
            #expect(note.changes.isEmpty)
            #expect(note.version == running.store.version)
            #expect(running.store.keptCommits.oldest ?? .max > before + 1)
            let epoch = running.store.epoch.description
            #expect(await refusal { try await client.subscribe(try follow(after: before, epoch: epoch)) } != nil)
            _ = try await client.subscribe(try follow(after: note.version, epoch: epoch))
            // Said once: what comes next is the next change.
            await running.service.keepUpOnce()
            _ = try await client.call(Messages.Set(path: "/chats/c/messages/m", value: 1))
            #expect(try await feed.next().changes.count == 1)
        }
    }

    @Test func onlyAdministratorsFollow() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            #expect(await refusal { try await client.subscribe(try follow()) }?.code == .permissionDenied)
        }
    }

    @Test func limitsOfFollowersHold() async throws {
        try await RunningMessages.with(change: {
            $0.limits.followersPerConnectionMax = 1
            $0.limits.patternsPerFollowerMax = 1
        }) { running in
            let client = running.administrator
            let pattern = FeedPattern("/a")
            let many = await refusal { try await client.subscribe(Messages.Follow(patterns: [pattern, pattern])) }
            #expect(many?.reason == "too_many_patterns")
            let subscription = try await client.subscribe(try follow())
            let second = await refusal { try await client.subscribe(try follow()) }
            #expect(second?.reason == "too_many_followers")
            _ = try await client.call(Messages.Unfollow(subscription: subscription.id))
            _ = try await client.subscribe(try follow())
        }
    }

    private func follow(after: UInt64? = nil, epoch: String? = nil) throws -> Messages.Follow {
        Messages.Follow(after: after, epoch: epoch, patterns: [try FeedPattern(messages)])
    }
}

/// A clock that stands until it is moved.
final class HeldClock: Sendable {
    private let time = Atomic<Int64>(1_795_000_000_000)

    var now: Int64 { time.load(ordering: .sequentiallyConsistent) }

    func advance(by milliseconds: Int64) { time.add(milliseconds, ordering: .sequentiallyConsistent) }
}

/// Reads what one follower is sent.
struct FeedReader {
    private var iterator: RPCSubscription.AsyncIterator

    init(_ subscription: RPCSubscription) { iterator = subscription.makeAsyncIterator() }

    mutating func next() async throws -> Messages.Change {
        guard let event = try await iterator.next(), event.method == Messages.Change.method else { throw EndOfEvents() }
        return try Messages.Change.decode(event.params)
    }
}
