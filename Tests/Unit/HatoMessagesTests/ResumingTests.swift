import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Testing

@testable import HatoMessages

/// `since`, `epoch`, `etag` and `coalesceMs` of `messages.listen` (protocol §5).
@Suite struct ResumingTests {
    private static let whole = ["x": 2, "y": 1] as JSONValue

    /// A listener at `/a`, `{"x": 2, "y": 1}` since the second of two writes, that has seen the first.
    private func firstEvent(
        _ running: RunningMessages, _ prepare: (inout Messages.Listen) -> Void, _ between: () throws -> Void = {}
    ) async throws -> [SeenEvent] {
        let client = running.user("a")
        let first = try await client.call(Messages.Set(path: "/a", value: ["x": 1, "y": 1])).version
        _ = try await client.call(Messages.Set(path: "/elsewhere", value: 1))
        _ = try await client.call(Messages.Set(path: "/a/x", value: 2))
        try between()
        var listen = Messages.Listen(
            path: "/a", resume: .init(since: first, epoch: running.store.epoch.description))
        prepare(&listen)
        var events = EventReader(try await client.subscribe(listen))
        // If nothing has changed, this is the first.
        _ = try await running.administrator.call(Messages.Set(path: "/a/z", value: 1))
        return try await events.next()
    }

    @Test func whatWasMissedComesMerged() async throws {
        try await RunningMessages.with { running in
            let events = try await firstEvent(running) { _ in }
            #expect(events == [.put("/x", 2)])
        }
    }

    @Test func resultSaysWhenNothingWasMissed() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            let first = try await client.call(Messages.Set(path: "/a", value: ["x": 1])).version
            let later = try await client.call(Messages.Set(path: "/elsewhere", value: 1)).version
            func result(_ listen: Messages.Listen) async throws -> Messages.Listen.Result {
                try Messages.Listen.decodeResult(.object(await client.subscribe(listen).result))
            }
            let epoch = running.store.epoch.description
            for coalesceMs in [nil, 10] as [Int?] {
                var listen = Messages.Listen(path: "/a", resume: .init(since: first, epoch: epoch))
                listen.coalesceMs = coalesceMs
                let resumed = try await result(listen)
                #expect(resumed.unchanged == true)
                #expect(resumed.version == later)
                listen.since = first - 1
                #expect(try await result(listen).unchanged == nil)
            }
            let etag = SimpleHash.etag(try TreeNode(json: ["x": 1]))
            #expect(try await result(Messages.Listen(path: "/a", resume: .init(etag: etag))).unchanged == true)
            #expect(try await result(Messages.Listen(path: "/a")).unchanged == nil)
        }
    }

    @Test func compactedCommitsBringTheWholeValue() async throws {
        try await RunningMessages.with { running in
            let events = try await firstEvent(running) { _ in
            } _: {
                try running.store.compactCommits(through: running.store.version - 1)
            }
            #expect(events == [.put("/", Self.whole)])
        }
    }

    @Test func limitsOfTheSearchBringTheWholeValue() async throws {
        try await RunningMessages.with(change: { $0.limits.resumeCommitsMax = 1 }) { running in
            let events = try await firstEvent(running) { _ in }
            #expect(events == [.put("/", Self.whole)])
        }
        // Of a store that hands out one commit at a time.
        var pages = StoreLimits()
        pages.commitsBytesMax = 1
        let store = try MemoryStore(limits: pages)
        try await RunningMessages.with(store: store, change: { $0.limits.resumeBytesMax = 1 }) { running in
            let events = try await firstEvent(running) { _ in }
            #expect(events == [.put("/", Self.whole)])
        }
    }

    @Test func positionThatNeverWasBringsTheWholeValue() async throws {
        try await RunningMessages.with { running in
            let events = try await firstEvent(running) { $0.since = 1_000 }
            #expect(events == [.put("/", Self.whole)])
        }
    }

    @Test func etagHelpsWhereThePositionDoesNot() async throws {
        let etag = SimpleHash.etag(try TreeNode(json: Self.whole))
        try await RunningMessages.with { running in
            let events = try await firstEvent(running) {
                $0.epoch = String(repeating: "0", count: 32)
                $0.etag = etag
            }
            #expect(events == [.put("/z", 1)])
        }
        try await RunningMessages.with(change: { $0.limits.resumeCommitsMax = 1 }) { running in
            let events = try await firstEvent(running) { $0.etag = etag }
            #expect(events == [.put("/z", 1)])
        }
        try await RunningMessages.with(change: { $0.limits.resumeCommitsMax = 1 }) { running in
            let events = try await firstEvent(running) { $0.etag = SimpleHash.etag(.leaf(.bool(true), priority: nil)) }
            #expect(events == [.put("/", Self.whole)])
        }
    }

    @Test func queryIsSentAnewOnlyIfItsCollectionWasWritten() async throws {
        try await RunningMessages.with { running in
            let query = TreeQuery(order: .key, limit: .last(1))
            let first = try await firstEvent(running) { $0.query = query }
            #expect(first == [.put("/", ["y": 1])])
            let client = running.user("a")
            let version = running.store.version
            _ = try await client.call(Messages.Set(path: "/elsewhere", value: 2))
            let resume = Messages.Listen.Resume(since: version, epoch: running.store.epoch.description)
            var events = EventReader(
                try await client.subscribe(Messages.Listen(path: "/a", query: query, resume: resume)))
            _ = try await client.call(Messages.Set(path: "/a/zz", value: 2))
            #expect(try await events.next() == [.patch("/", ["z": nil, "zz": 2])])
        }
    }

    @Test func manyThatComeBackAtOnceAreEachSentWhatTheyMissed() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            var versions: [UInt64] = []
            for number in 0..<20 {
                let set = Messages.Set(path: "/a/n", value: .number(Double(number)))
                versions.append(try await client.call(set).version)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, version) in versions.enumerated() {
                    let resume = Messages.Listen.Resume(since: version, epoch: running.store.epoch.description)
                    group.addTask {
                        var events = EventReader(
                            try await client.subscribe(Messages.Listen(path: "/a", resume: resume)))
                        if number < 19 { #expect(try await events.next() == [.put("/n", 19)]) }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func ownWritesEndTheGathering() async throws {
        try await RunningMessages.with { running in
            let line = try await RawLines.connect(running)
            try await line.send(
                #"{"jsonrpc":"2.0","id":1,"method":"messages.listen","params":{"auth":"admin","path":"/a","coalesceMs":10000}}"#
            )
            for _ in 0..<2 { _ = try await line.next() }
            _ = try await running.administrator.call(Messages.Set(path: "/a/x", value: 1))
            try await line.send(
                #"{"jsonrpc":"2.0","id":2,"method":"messages.set","params":{"auth":"admin","path":"/a/y","value":2}}"#)
            let event = try await line.next()
            #expect(event["params"]?["events"]?.array?.first?["data"] == ["x": 1, "y": 2])
            #expect(try await line.next()["id"] == 2)
            line.close()
        }
    }
}
