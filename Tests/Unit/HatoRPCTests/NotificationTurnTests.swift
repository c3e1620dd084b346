import HatoModel
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// An event loop sends notifications in turns of a bounded size.
@Suite struct NotificationTurnTests {
    private static let perTurn = 100

    private let server = EmbeddedServer { $0.notificationsPerTurnMax = Self.perTurn }

    private func notify(_ peer: EmbeddedPeer, _ numbers: Range<Int>) {
        for number in numbers {
            #expect(peer.connection.notify("check.event", subscription: "1", members: EncodedJSON("\"n\":\(number)")))
        }
    }

    /// The numbers of the notifications in a text, in order.
    private func numbers(in text: String) -> [Int] {
        text.split(separator: "\n").compactMap { line in
            line.split(separator: "\"n\":").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
        }
    }

    private func nextTurn() { server.loop.advanceTime(by: .microseconds(20)) }

    @Test func requestGetsItsResponseWhileManyEventsWait() throws {
        let (flooded, other) = (try server.peer("a"), try server.peer("b"))
        notify(flooded, 0..<5_000)
        server.loop.run()
        #expect(numbers(in: try flooded.received()).count <= Self.perTurn)
        let response = try other.ask(#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"value":"x"}}"#)
        #expect(response.contains(#""id":1"#), "\(response)")
        #expect(try flooded.received().isEmpty, "the request had its turn first")
    }

    @Test func connectionsTakeTurns() throws {
        let (flooded, other) = (try server.peer("a"), try server.peer("b"))
        notify(flooded, 0..<5_000)
        notify(other, 0..<3)
        server.loop.run()
        var turns = 0
        var heard: [Int] = []
        while heard.count < 3, turns < 10 {
            nextTurn()
            turns += 1
            heard += numbers(in: try other.received())
        }
        #expect(heard == [0, 1, 2])
        #expect(turns <= 2, "\(turns) turns")
        var all = numbers(in: try flooded.received())
        #expect(all.count <= 3 * Self.perTurn)
        for _ in 0..<200 {
            nextTurn()
            all += numbers(in: try flooded.received())
        }
        #expect(all == Array(0..<5_000))
    }

    @Test func responseComesAfterTheEventsOfItsConnectionThatWait() throws {
        let peer = try server.peer("a")
        notify(peer, 0..<1_000)
        var text = try peer.ask(#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"value":"x"}}"#)
        for _ in 0..<50 {
            nextTurn()
            text += try peer.received()
        }
        #expect(numbers(in: text) == Array(0..<1_000))
        #expect(text.split(separator: "\n").last?.contains(#""id":1"#) == true)
    }

    @Test func eventsOfAClosedConnectionAreDropped() throws {
        let (closed, other) = (try server.peer("a"), try server.peer("b"))
        notify(closed, 0..<1_000)
        server.loop.run()
        closed.close()
        notify(other, 0..<2)
        for _ in 0..<3 {
            server.loop.run()
            nextTurn()
        }
        #expect(numbers(in: try other.received()) == [0, 1])
    }
}
