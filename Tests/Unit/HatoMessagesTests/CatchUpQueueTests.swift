import HatoTesting
import Testing

@testable import HatoMessages

/// Which readings for listeners begin, and in which order.
@Suite struct CatchUpQueueTests {
    private static let limits = CatchUpQueue.Limits(connection: 2, client: 3, all: 4)

    private static func taken(_ queue: inout CatchUpQueue) -> [UInt64] {
        var taken: [UInt64] = []
        while let next = queue.takeNext() { taken.append(next.reading) }
        return taken
    }

    @Test func clientsAndConnectionsTakeTurns() {
        var queue = CatchUpQueue(Self.limits)
        for reading in 1...4 as ClosedRange<UInt64> { queue.add(reading, for: 1, of: "a") }
        for reading in 11...12 as ClosedRange<UInt64> { queue.add(reading, for: 2, of: "a") }
        for reading in 21...22 as ClosedRange<UInt64> { queue.add(reading, for: 3, of: "b") }
        #expect(Self.taken(&queue) == [1, 21, 11, 22])
        queue.ended(3)
        #expect(Self.taken(&queue) == [2])
        queue.ended(3)
        #expect(Self.taken(&queue).isEmpty, "three of a client")
        queue.ended(2)
        #expect(Self.taken(&queue) == [12])
    }

    @Test func fullConnectionIsNotReadFor() {
        var queue = CatchUpQueue(Self.limits)
        queue.add(1, for: 1, of: "a")
        queue.add(2, for: 2, of: "a")
        queue.filled(1)
        #expect(Self.taken(&queue) == [2])
        queue.drained(1)
        #expect(Self.taken(&queue) == [1])
    }

    @Test func nothingIsLostOrLeftBehind() {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        var queue = CatchUpQueue(Self.limits)
        let clients = ["a", "a", "b", "c", "c", "c"]
        var waiting: Set<UInt64> = []
        var running: [UInt64: Int] = [:]
        var full: Set<UInt64> = []
        var last: UInt64 = 0
        var connectionOf: [UInt64: UInt64] = [:]
        for _ in 0..<5_000 {
            let connection = UInt64.random(in: 0..<6, using: &random)
            switch random.pick([0, 0, 0, 1, 1, 1, 2, 3, 3, 4]) {
            case 0:
                last += 1
                waiting.insert(last)
                connectionOf[last] = connection
                queue.add(last, for: connection, of: clients[Int(connection)])
            case 1:
                guard running[connection, default: 0] > 0 else { continue }
                running[connection, default: 0] -= 1
                queue.ended(connection)
            case 2:
                full.insert(connection)
                queue.filled(connection)
            case 3:
                full.remove(connection)
                queue.drained(connection)
            default:
                guard random.chance(1, in: 5) else { continue }
                queue.closed(connection)
                full.remove(connection)
                waiting = waiting.filter { connectionOf[$0] != connection }
            }
            while let next = queue.takeNext() {
                #expect(waiting.remove(next.reading) != nil, "seed \(seed)")
                #expect(
                    connectionOf[next.reading] == next.connection && !full.contains(next.connection), "seed \(seed)")
                running[next.connection, default: 0] += 1
            }
            let byClient = Dictionary(grouping: running, by: { clients[Int($0.key)] })
                .mapValues { $0.reduce(0) { $0 + $1.value } }
            #expect(running.values.allSatisfy { $0 <= 2 } && byClient.values.allSatisfy { $0 <= 3 }, "seed \(seed)")
            let total = running.values.reduce(0, +)
            #expect(total <= 4 && queue.running == total, "seed \(seed)")
            // Nothing waits that may begin.
            for reading in waiting where total < 4 {
                guard let connection = connectionOf[reading], !full.contains(connection) else { continue }
                #expect(
                    running[connection, default: 0] == 2 || byClient[clients[Int(connection)], default: 0] == 3,
                    "seed \(seed)")
            }
        }
        for connection in 0..<6 as Range<UInt64> {
            queue.closed(connection)
            for _ in 0..<running[connection, default: 0] { queue.ended(connection) }
        }
        #expect(queue.takeNext() == nil)
        #expect(queue.isEmpty, "seed \(seed)")
    }
}
