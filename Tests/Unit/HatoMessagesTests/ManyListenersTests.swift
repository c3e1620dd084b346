import HatoModel
import HatoTree
import Testing

@testable import HatoMessages

/// What the publisher's thread does for many listeners: counted, because time says little on a busy machine.
@Suite struct ManyListenersTests {
    /// Listeners to `/c` that gather, all of one connection.
    private static func gathering(_ count: Int, _ world: DoubtWorld) throws -> HistoryPeer {
        let peer = world.newPeer()
        var request = Messages.Listen(path: "/c")
        request.coalesceMs = 20
        for number in 0..<count { try world.listen(.administrator, request, on: peer, as: "s\(number)") }
        world.finish()
        _ = peer.takeInbox()
        return peer
    }

    private static func update(_ paths: Int) -> Mutation {
        var values: JSONObject = [:]
        for number in 0..<paths { values["k\(number)"] = .number(Double(number)) }
        return .update(values, at: "/c")
    }

    @Test func updateOfManyPathsIsNotedOnceForAllListenersThatGather() async throws {
        let world = try await DoubtWorld()
        _ = try Self.gathering(500, world)
        let topic = try #require(world.topic("/c"))
        _ = try await world.write(Self.update(250))
        #expect(topic.noteCount == 1)
        let changes = try #require(topic.changes)
        #expect(changes.missing(after: changes.start) != .everything)
        // Their timers run: the next commit is not reported to them.
        #expect(topic.takeAwaiting().isEmpty)
    }

    @Test func listenersHoldNoChangesOfTheirOwn() {
        #expect(MemoryLayout<ListenerStateMachine>.size <= 96)
    }

    @Test func ownWriteElsewhereIsReportedToNoListenerThatLacksNothing() async throws {
        let world = try await DoubtWorld()
        let peer = try Self.gathering(500, world)
        for number in 0..<3 {
            let version = try await world.write(.set(.number(Double(number)), at: "/elsewhere"))
            #expect(world.registry.answerReportCount(of: peer.id) == 0)
            world.answer(peer, version)
        }
        #expect(peer.takeInbox().map(\.text).count == 3)
    }

    @Test func ownWriteElsewhereIsReportedOnceToListenersThatLackSomething() async throws {
        let world = try await DoubtWorld()
        let peer = try Self.gathering(500, world)
        _ = try await world.write(Self.update(2))
        #expect(world.registry.answerReportCount(of: peer.id) == 500)
        let elsewhere = try await world.write(.set(1, at: "/elsewhere"))
        world.answer(peer, elsewhere)
        #expect(world.registry.answerReportCount(of: peer.id) == 0)
        // An own write to what they listen to is reported to them.
        let own = try await world.write(.set(1, at: "/c/own"))
        #expect(world.registry.answerReportCount(of: peer.id) == 500)
        world.answer(peer, own)
        #expect(peer.takeInbox().map(\.text) == ["answered \(elsewhere)"])
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 501 && heard.last == "answered \(own)")
    }
}
