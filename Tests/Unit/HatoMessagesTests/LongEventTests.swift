import Dispatch
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// Events that read many rows are made on another thread, with the same result.
@Suite struct LongEventTests {
    /// Every window is a long one.
    private func running(_ body: (RunningMessages) async throws -> Void) async throws {
        try await RunningMessages.with(change: { $0.limits.eventRowsMax = 1 }, body)
    }

    @Test func ownEventsStillComeBeforeOwnResponses() async throws {
        try await running { running in
            let line = try await RawLines.connect(running)
            try await line.send(
                #"{"jsonrpc":"2.0","id":0,"method":"messages.listen","params":{"auth":"admin","path":"/a","query":{"orderBy":"$key","limitToLast":2}}}"#
            )
            for _ in 0..<2 { _ = try await line.next() }
            for number in 1...20 {
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(number),"method":"messages.set","params":{"auth":"admin","path":"/a/k\#(100 + number)","value":\#(number)}}"#
                )
            }
            var seen: Set<Int> = []
            for _ in 0..<1_000 {
                let message = try await line.next()
                for event in message["params"]?["events"]?.array ?? [] {
                    let data = event["data"] ?? .null
                    let values = data.object?.members.map(\.value) ?? [data]
                    seen.formUnion(values.compactMap { $0.number.map { Int($0) } })
                }
                guard let id = message["id"]?.number.map({ Int($0) }) else { continue }
                // One event may stand for several writes, of which the window shows the last two.
                #expect(seen.contains { $0 >= id })
                if id == 20 { break }
            }
            line.close()
        }
    }

    /// A transaction of Firebase's clients: it writes if the value is what its listener has shown, and tries again at
    /// once with what that has shown meanwhile. So one write of another client costs one more round trip.
    @Test(.timeLimit(.minutes(5))) func refusedConditionComesBehindTheEventsItWasComparedWith() async throws {
        try await running { running in
            let (line, writer) = (try await RawLines.connect(running), running.administrator)
            _ = try await writer.call(Messages.Set(path: "/a/k1", value: 0))
            try await line.send(
                #"{"jsonrpc":"2.0","id":0,"method":"messages.listen","params":{"auth":"admin","path":"/a","query":{"orderBy":"$key","limitToLast":2}}}"#
            )
            for _ in 0..<2 { _ = try await line.next() }
            var shown = 0.0
            var id = 0
            /// The response; all that the listener is sent before it is taken over.
            func response() async throws -> JSONValue {
                while true {
                    let message = try await line.next()
                    if message["id"] == .number(Double(id)) { return message }
                    for event in message["params"]?["events"]?.array ?? [] {
                        shown = event["data"]?.number ?? event["data"]?["k1"]?.number ?? shown
                    }
                }
            }
            func send(_ value: Double) async throws {
                id += 1
                let etag = SimpleHash.etag(try TreeNode(json: .number(shown)))
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(id),"method":"messages.set","params":{"auth":"admin","path":"/a/k1","value":\#(value),"ifMatch":"\#(etag)"}}"#
                )
            }
            for round in 1...10 {
                let readers = HeldReaders(of: running.store)
                _ = try await writer.call(Messages.Set(path: "/a/k1", value: .number(Double(round * 100))))
                let version = running.store.version
                try await send(Double(round * 100 + 1))
                // Behind it on the connection, so the condition is looked at when this is there.
                try await line.send(
                    #"{"jsonrpc":"2.0","id":-1,"method":"messages.set","params":{"auth":"admin","path":"/z","value":\#(round)}}"#
                )
                try await eventually("the write behind is done") { running.store.version > version }
                // Responses come through the publisher's thread, so that of the condition has been there.
                _ = try await writer.call(Messages.Set(path: "/y", value: .number(Double(round))))
                readers.letGo()
                let refused = try await response()
                #expect(refused["error"]?["data"]?["reason"] == "etag_mismatch")
                #expect(shown == Double(round * 100), "the listener has not shown it yet")
                try await send(shown + 1)
                #expect(try await response()["error"] == nil, "the second round trip succeeds")
            }
            line.close()
            await writer.close()
        }
    }

    /// One that gathers has not sent it for another reason.
    @Test(.timeLimit(.minutes(5))) func refusedConditionEndsGathering() async throws {
        try await RunningMessages.with(change: { $0.limits.coalesceMsMax = 3_600_000 }) { running in
            let (line, writer) = (try await RawLines.connect(running), running.administrator)
            _ = try await writer.call(Messages.Set(path: "/a", value: 0))
            try await line.send(
                #"{"jsonrpc":"2.0","id":0,"method":"messages.listen","params":{"auth":"admin","path":"/a","coalesceMs":3600000}}"#
            )
            for _ in 0..<2 { _ = try await line.next() }
            for round in 1...3 {
                _ = try await writer.call(Messages.Set(path: "/a", value: .number(Double(round))))
                // Elsewhere, so that the condition is compared with a later version.
                _ = try await writer.call(Messages.Set(path: "/b", value: .number(Double(round))))
                let version = running.store.version
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(round),"method":"messages.set","params":{"auth":"admin","path":"/a","value":9,"ifVersion":\#(version - 2)}}"#
                )
                let event = try await line.next()
                #expect(event["params"]?["events"]?.array?.first?["data"] == .number(Double(round)), "\(event)")
                let refused = try await line.next()
                #expect(refused["error"]?["data"]?["reason"] == "version_mismatch", "\(refused)")
            }
            line.close()
            await writer.close()
        }
    }

    /// An own write elsewhere, which does not concern the listener, comes between.
    @Test(.timeLimit(.minutes(5))) func refusedConditionAfterAnOwnWriteElsewhereEndsGathering() async throws {
        try await RunningMessages.with(change: { $0.limits.coalesceMsMax = 3_600_000 }) { running in
            let (line, writer) = (try await RawLines.connect(running), running.administrator)
            _ = try await writer.call(Messages.Set(path: "/a", value: 0))
            try await line.send(
                #"{"jsonrpc":"2.0","id":0,"method":"messages.listen","params":{"auth":"admin","path":"/a","coalesceMs":3600000}}"#
            )
            for _ in 0..<2 { _ = try await line.next() }
            for round in 1...3 {
                let before = running.store.version
                _ = try await writer.call(Messages.Set(path: "/a", value: .number(Double(round))))
                try await line.send(
                    #"{"jsonrpc":"2.0","id":"own","method":"messages.set","params":{"auth":"admin","path":"/b","value":\#(round)}}"#
                )
                #expect(try await line.next()["id"] == "own", "it ends no gathering")
                try await line.send(
                    #"{"jsonrpc":"2.0","id":\#(round),"method":"messages.set","params":{"auth":"admin","path":"/a","value":9,"ifVersion":\#(before)}}"#
                )
                let event = try await line.next()
                #expect(event["params"]?["events"]?.array?.first?["data"] == .number(Double(round)), "\(event)")
                let refused = try await line.next()
                #expect(refused["error"]?["data"]?["reason"] == "version_mismatch", "\(refused)")
            }
            line.close()
            await writer.close()
        }
    }

    @Test(.timeLimit(.minutes(5))) func otherListenersDoNotWaitForALongOne() async throws {
        try await running { running in
            // Own responses wait for own events: the one that writes listens to nothing.
            let (client, other, writer) = (running.administrator, running.user("b"), running.user("c"))
            let query = TreeQuery(order: .child("/date"), limit: .last(2))
            var long = EventReader(try await client.subscribe(Messages.Listen(path: "/a", query: query)))
            var short = EventReader(try await other.subscribe(Messages.Listen(path: "/a")))
            _ = try await (long.next(), short.next())
            let readers = HeldReaders(of: running.store)
            defer { readers.letGo() }
            for number in 1...30 {
                _ = try await writer.call(
                    Messages.Set(path: TreePath("/a/k\(number)"), value: ["date": .number(Double(number))]))
            }
            for number in 1...30 {
                #expect(try await short.next() == [.put("/k\(number)", ["date": .number(Double(number))])])
            }
            readers.letGo()
            var window: [SeenEvent] = []
            while !"\(window)".contains("30") { window = try await long.next() }
            #expect("\(window)".contains("29"), "it was sent nothing meanwhile")
            for client in [client, other, writer] { await client.close() }
        }
    }

    /// A topic for which something is computed all the time is never ready.
    @Test(.timeLimit(.minutes(3))) func aListenerBeginsWhileLongChangesGoOn() async throws {
        let store = KeptStore(try MemoryStore())
        try await RunningMessages.with(store: store, change: { $0.limits.eventRowsMax = 1 }) { running in
            let (client, query) = (running.administrator, TreeQuery(order: .child("/date"), limit: .last(2)))
            var first = EventReader(try await client.subscribe(Messages.Listen(path: "/a", query: query)))
            _ = try await first.next()
            store.topicsAreSlow.store(true, ordering: .relaxed)
            let writers = Task {
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<4 {
                        group.addTask {
                            let writer = running.user("w\(number)")
                            var date = 0.0
                            while !Task.isCancelled {
                                date += 1
                                _ = try? await writer.call(
                                    Messages.Set(path: try TreePath("/a/k\(number)"), value: ["date": .number(date)]))
                            }
                            await writer.close()
                        }
                    }
                }
            }
            defer { writers.cancel() }
            let other = running.user("b")
            for _ in 0..<5 {
                var joining = EventReader(try await other.subscribe(Messages.Listen(path: "/a", query: query)))
                for _ in 0..<3 { _ = try await joining.next() }
            }
            writers.cancel()
            await writers.value
            await other.close()
            withExtendedLifetime(first) {}
        }
    }

    @Test func eventsOfALargeCommitComeInOrder() async throws {
        try await running { running in
            let client = running.administrator
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/a")))
            _ = try await events.next()
            let text = JSONValue.string(String(repeating: "x", count: 2 << 20))
            _ = try await client.call(Messages.Set(path: "/a/large", value: text))
            _ = try await client.call(Messages.Set(path: "/a/small", value: 1))
            var seen: [SeenEvent] = []
            while seen.count < 2 { seen += try await events.next() }
            #expect(seen == [.put("/large", text), .put("/small", 1)])
        }
    }
}

/// Keeps all reading threads of a store busy until it lets go.
private final class HeldReaders: Sendable {
    private let end = DispatchSemaphore(value: 0)
    private let count = StoreLimits().readerThreads

    init(of store: any Store) {
        for _ in 0..<count { store.submitRead { [end] in _ = end.wait(timeout: .now() + 240) } }
    }

    /// More than once does no harm.
    func letGo() { for _ in 0..<count { end.signal() } }
}
