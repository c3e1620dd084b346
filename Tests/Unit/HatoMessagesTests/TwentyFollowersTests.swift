import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// Many followers of one feed: each sees every change that it asked for, once, in the order of commits, also when it
/// goes and comes back.
@Suite struct TwentyFollowersTests {
    private static let patterns = [
        ["/chats/{chat}/messages/{id}"], ["/chats/{chat}/messages/{id}", "/users/{user}"], ["/users/{user}"],
    ]

    @Test(arguments: [1, 2] as [UInt64])
    func allSeeTheSameChangesInTheOrderOfCommits(seed: UInt64) async throws {
        try await RunningMessages.with { running in
            let administrator = running.administrator
            let start = running.store.version
            let seen = try await withThrowingTaskGroup(of: (number: Int, changes: [String])?.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        var random = SeededRandom(seed: seed * 100 + UInt64(number))
                        let patterns = try Self.patterns[number % 3].map { try FeedPattern($0) }
                        return (number, try await Self.follow(running, patterns, after: start, &random))
                    }
                }
                for writer in 0..<4 {
                    group.addTask {
                        try await Self.write(
                            150, with: running.administrator, SeededRandom(seed: seed + UInt64(writer)))
                        return nil
                    }
                }
                var seen: [Int: [String]] = [:]
                var writers = 4
                while let result = try await group.next() {
                    if let result { seen[result.number] = result.changes } else { writers -= 1 }
                    // All have been sent everything when they have been sent this.
                    if result == nil, writers == 0 {
                        _ = try await administrator.call(
                            Messages.Update(path: "/", values: ["users/end": 1, "chats/end/messages/end": 1]))
                    }
                }
                return seen
            }
            for kind in 0..<3 {
                let same = seen.filter { $0.key % 3 == kind }.map(\.value)
                let first = try #require(same.first)
                #expect(first.count > 100)
                #expect(same.allSatisfy { $0 == first }, "patterns \(Self.patterns[kind]), seed \(seed)")
            }
            await administrator.close()
        }
    }

    /// Reads until the end is reported; now and then it loses its connection and goes on from where it was.
    private static func follow(
        _ running: RunningMessages, _ patterns: [FeedPattern], after start: UInt64, _ random: inout SeededRandom
    ) async throws -> [String] {
        var (changes, position): ([String], UInt64) = ([], start)
        let epoch = running.store.epoch.description
        while true {
            let client = running.administrator
            let subscription = try await client.subscribe(
                Messages.Follow(after: position, epoch: epoch, patterns: patterns))
            defer { withExtendedLifetime(subscription) {} }
            var feed = FeedReader(subscription)
            for _ in 0..<Int.random(in: 20...200, using: &random) {
                let change = try await feed.next()
                #expect(change.version > position, "versions rise")
                position = change.version
                changes += change.changes.map { "\(change.version) \($0.type) \($0.path) \($0.after ?? .null)" }
                if change.changes.contains(where: { $0.path.hasSuffix("/end") }) {
                    await client.close()
                    return changes
                }
            }
            await client.close()
        }
    }

    private static func write(_ count: Int, with client: RPCClient, _ random: SeededRandom) async throws {
        var random = random
        for number in 0..<count {
            let (chat, key) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<5, using: &random))
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                _ = try await client.call(
                    Messages.Set(path: TreePath("/users/u\(key)"), value: .number(Double(number))))
            case 1: _ = try await client.call(Messages.Remove(path: TreePath("/chats/c\(chat)/messages/m\(key)")))
            default:
                _ = try await client.call(
                    Messages.Push(path: TreePath("/chats/c\(chat)/messages"), value: ["n": .number(Double(number))]))
            }
        }
        await client.close()
    }

    @Test func whatTheSamePatternsSeeIsWrittenOnce() async throws {
        try await RunningMessages.with { running in
            let notes = Mutex<[CommitNote]>([])
            let observation = running.store.observeCommits { group in
                notes.withLock { $0 += group.commits.compactMap { $0.note as? CommitNote } }
            } ended: { _ in
            }
            let client = running.administrator
            for number in 0..<3 {
                _ = try await client.call(Messages.Set(path: "/users/a", value: .number(Double(number))))
            }
            observation.cancel()
            let all = notes.withLock { $0 }
            let database = try #require(all.first).database
            var shared = SharedChanges(all, running.store.epoch)
            for number in 0..<20 {
                let patterns = try Self.patterns[number % 3].map { try FeedPattern($0) }
                let items = shared.items(FeedMatcher(patterns: patterns, matchesMax: 10), of: database)
                #expect(items.map(\.version) == (number % 3 == 0 ? [] : all.map(\.version)))
            }
            #expect(shared.feedCount == 3)
            await client.close()
        }
    }
}
