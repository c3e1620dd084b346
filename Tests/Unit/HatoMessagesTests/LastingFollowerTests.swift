import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoMessages

/// `MessagesFollower`: what a follower sees when its service goes and comes back.
@Suite struct LastingFollowerTests {
    /// A service stops whose follower has read one change; `meanwhile` happens to its store, or to the one that takes
    /// its place, where the follower cannot reach it; `afterwards` begins with a service at the old port.
    private struct Restart {
        var nextStore: (any Store)?
        var whenLost: (@Sendable (RPCError) -> Void)?

        func run(
            _ meanwhile: (RunningMessages) async throws -> Void,
            afterwards: (RunningMessages, inout MessagesFollower.Iterator) async throws -> Void
        ) async throws {
            let store = KeptStore(try MemoryStore())
            var (port, iterating) = (0, MessagesFollower.Iterator?.none)
            try await RunningMessages.with(store: store) { running in
                port = running.port
                var follower = running.administrator.follow(LastingFollowerTests.request(after: 0))
                follower.whenLost = whenLost
                var changes = follower.makeAsyncIterator()
                let version = try await LastingFollowerTests.write(1, running)
                #expect(try await changes.next()?.version == version)
                iterating = changes
            }
            try await RunningMessages.with(store: nextStore ?? store, meanwhile)
            var same = try #require(iterating)
            iterating = nil
            try await RunningMessages.with(store: nextStore ?? store, change: { $0.server.port = port }) { running in
                try await afterwards(running, &same)
            }
        }
    }

    private static func request(after: UInt64? = nil) -> Messages.Follow {
        Messages.Follow(after: after, patterns: ["/a/{key}"])
    }

    /// Returns the version.
    private static func write(_ number: Double, _ running: RunningMessages) async throws -> UInt64 {
        try await running.user("b").call(Messages.Set(path: "/a/x", value: .number(number))).version
    }

    private static func end(of changes: inout MessagesFollower.Iterator) async -> (any Error)? {
        do {
            while try await changes.next() != nil {}
            return nil
        } catch { return error }
    }

    // MARK: Going on

    @Test func whatWasMissedInARestartComesInOrderAndOnce() async throws {
        let lost = Mutex(0)
        var restart = Restart()
        restart.whenLost = { _ in lost.withLock { $0 += 1 } }
        var missed: [UInt64] = []
        try await restart.run { running in
            for number in 2...4 { missed.append(try await Self.write(Double(number), running)) }
        } afterwards: { running, changes in
            for version in missed { #expect(try await changes.next()?.version == version) }
            let next = try await Self.write(5, running)
            let change = try await changes.next()
            #expect(change?.version == next)
            #expect(change?.changes.first?.before == 4)
            #expect(change?.changes.first?.after == 5)
        }
        #expect(lost.withLock { $0 } == 1)
    }

    @Test func followerThatHasReadNothingResumesFromItsStart() async throws {
        let store = KeptStore(try MemoryStore())
        var (port, reader) = (0, Task<UInt64?, any Error>?.none)
        try await RunningMessages.with(store: store) { running in
            port = running.port
            // Not for it, who follows from now on.
            _ = try await Self.write(1, running)
            let follower = running.administrator.follow(Self.request())
            reader = Task {
                var changes = follower.makeAsyncIterator()
                return try await changes.next()?.version
            }
            try await eventually("it follows") {
                try await running.administrator.call(Messages.Stats()).followers == 1
            }
        }
        var missed: UInt64 = 0
        try await RunningMessages.with(store: store) { missed = try await Self.write(2, $0) }
        try await RunningMessages.with(store: store, change: { $0.server.port = port }) { _ in
            let read = try await reader?.value
            #expect(read == missed)
        }
    }

    @Test func notificationIsHandedOnAsItCame() async throws {
        try await RunningMessages.with { running in
            var changes = running.administrator.follow(Self.request(after: 0)).makeAsyncIterator()
            let version = try await Self.write(1, running)
            _ = try await changes.next()
            let notification = try #require(changes.notification)
            #expect(notification.method == Messages.Change.method)
            #expect(notification.params["version"]?.number == Double(version))
            #expect(notification.params["changes"]?.array?.first?["before"] == JSONValue.null)
        }
    }

    // MARK: Ends

    @Test func compactedChangesEndIt() async throws {
        try await Restart().run { running in
            for number in 2...3 { _ = try await Self.write(Double(number), running) }
            try running.store.compactCommits(through: running.store.version - 1)
        } afterwards: { _, changes in
            let end = await Self.end(of: &changes)
            #expect((end as? RPCError)?.reason == "compacted")
            let further = try await changes.next()
            #expect(further == nil)
        }
    }

    @Test func anotherHistoryEndsIt() async throws {
        try await Restart(nextStore: KeptStore(try MemoryStore())).run { running in
            for number in 2...5 { _ = try await Self.write(Double(number), running) }
        } afterwards: { _, changes in
            let end = await Self.end(of: &changes)
            #expect((end as? RPCError)?.reason == "unknown_version")
        }
    }

    @Test func droppedDatabaseEndsIt() async throws {
        try await RunningMessages.with { running in
            let name = try DatabaseName("other")
            _ = try await running.administrator.call(Messages.Databases.Create(database: name))
            _ = try await running.administrator.call(Messages.Set(database: name, path: "/a/x", value: 1))
            var request = Self.request(after: 0)
            request.database = name
            var changes = running.administrator.follow(request).makeAsyncIterator()
            _ = try await changes.next()
            _ = try await running.administrator.call(Messages.Databases.Drop(database: name))
            let end = await Self.end(of: &changes)
            #expect((end as? Messages.Cancelled)?.reason == "database_dropped")
            #expect(changes.notification?.method == Messages.Cancelled.method)
        }
    }

    @Test func whatCannotBeOpenedSaysSoAtOnce() async throws {
        try await RunningMessages.with { running in
            var changes = running.user("a").follow(Self.request()).makeAsyncIterator()
            let refusal = await Self.end(of: &changes)
            #expect((refusal as? RPCError)?.code == .permissionDenied)
        }
    }

    @Test func followerThatIsLetGoEndsOnTheServiceToo() async throws {
        try await RunningMessages.with { running in
            let (client, administrator) = (running.administrator, running.administrator)
            var changes: MessagesFollower.Iterator? = client.follow(Self.request(after: 0)).makeAsyncIterator()
            _ = try await Self.write(1, running)
            _ = try await changes?.next()
            changes = nil
            try await eventually("the follower has ended") {
                try await administrator.call(Messages.Stats()).followers == 0
            }
            withExtendedLifetime(client) {}
        }
    }
}
