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
