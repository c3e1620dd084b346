import HatoModel
import HatoRPC
import HatoTree
import Testing

@testable import HatoMessages

/// Which topics' events are computed first, and how much at a time: counted, because time says little on a busy
/// machine.
@Suite struct TopicTurnTests {
    private static func update(_ paths: Int, _ value: JSONValue = 1) -> Mutation {
        var values: JSONObject = [:]
        for number in 0..<paths { values["k\(1_000 + number)/x"] = value }
        return .update(values, at: "/c")
    }

    /// Listeners of one user to `/c`, each with a query of its own.
    private static func queries(_ uid: String, _ limits: Range<Int>, _ world: AuthorisationWorld) throws -> HistoryPeer
    {
        let peer = world.newPeer()
        for limit in limits {
            let request = Messages.Listen(path: "/c", query: TreeQuery(order: .key, limit: .last(limit)))
            try world.listen(.user(Caller.User(uid: uid)), request, on: peer, as: "s\(limit)")
        }
        world.finish()
        _ = peer.takeInbox()
        return peer
    }

    /// Runs readings and what follows them until a peer has something; returns how many.
    private static func readings(until peer: HistoryPeer, _ world: AuthorisationWorld) -> (count: Int, [String]) {
        var count = 0
        while true {
            let heard = peer.takeInbox().map(\.text)
            if !heard.isEmpty { return (count, heard) }
            if world.hasPosts {
                world.step()
            } else if world.waitingReads > 0 {
                count += 1
                world.runRead()
            } else {
                return (count, [])
            }
        }
    }

    @Test func manyTopicsOfOneClientDoNotDelayAnothers() async throws {
        let world = try await AuthorisationWorld()
        let flood = try Self.queries("a", 1..<101, world)
        let other = try Self.queries("b", 101..<102, world)
        try await world.write(Self.update(300))
        #expect(world.waitingReads <= MessagesLimits().topicUpdatesMax)
        let (count, heard) = Self.readings(until: other, world)
        #expect(heard.count == 1 && count <= 2, "\(count) readings")
        world.finish()
        #expect(flood.takeInbox().count == 100)
    }

    @Test func topicThatSeveralClientsListenToTakesTheTurnOfTheOneThatWaitsForLeast() async throws {
        let world = try await AuthorisationWorld()
        let flood = try Self.queries("a", 1..<102, world)
        // The last of those of `a`, which listens there first.
        let other = try Self.queries("b", 101..<102, world)
        try await world.write(Self.update(300))
        let (count, heard) = Self.readings(until: other, world)
        #expect(heard.count == 1 && count <= 2, "\(count) readings")
        world.finish()
        #expect(flood.takeInbox().count == 101)
    }

    /// An update of many paths is long for those above them only.
    @Test func topicsAreGivenTheChangesOfTheirPathAlone() async throws {
        let world = try await AuthorisationWorld()
        let peer = world.newPeer()
        for number in 0..<300 {
            let request = Messages.Listen(path: try TreePath("/c/k\(1_000 + number)"))
            try world.listen(.user(Caller.User(uid: "a")), request, on: peer, as: "s\(number)")
        }
        world.finish()
        _ = peer.takeInbox()
        try await world.write(Self.update(300))
        #expect(world.waitingReads == 0)
        #expect(peer.takeInbox().count == 300)
    }

    @Test func eventsBeyondATurnComeInLaterTurnsBeforeOwnResponses() async throws {
        let world = try await AuthorisationWorld { $0.eventsTurnMs = 0 }
        let peer = try Self.queries("a", 1..<11, world)
        let version = try await world.write(Self.update(2))
        world.respond(peer, version)
        for _ in 0..<9 {
            #expect(peer.takeInbox().count == 1, "one in each turn")
            world.step()
        }
        #expect(world.waitingReads == 0)
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 2 && heard.last == "answered \(version)", "\(heard)")
    }

    @Test func shortEventsOfOneClientDoNotDelayAnothers() async throws {
        let world = try await AuthorisationWorld { $0.eventsTurnMs = 0 }
        _ = try Self.queries("a", 1..<101, world)
        let other = try Self.queries("b", 101..<102, world)
        try await world.write(Self.update(2))
        var turns = 0
        while turns < 100, other.takeInbox().isEmpty {
            world.step()
            turns += 1
        }
        #expect(turns <= 2, "\(turns) turns")
        world.finish()
    }

    /// What comes while a topic waits for its turn costs no further turn.
    @Test func commitsThatComeBeforeItsTurnAreSentTogether() async throws {
        let world = try await AuthorisationWorld { $0.longTopicUpdatesMax = 1 }
        _ = try Self.queries("a", 1..<2, world)
        let other = try Self.queries("b", 2..<3, world)
        try await world.write(Self.update(300, "first"))
        try await world.write(Self.update(300, "second"))
        try await world.write(Self.update(300, "third"))
        world.finish()
        let heard = other.takeInbox().map(\.text)
        #expect(heard.count == 1, "\(heard.count) events")
        #expect(heard.last?.contains("third") == true)
    }

    /// Beyond that, topics are read anew when it is their turn.
    @Test func commitsThatWaitForTurnsTakeBoundedMemory() async throws {
        let world = try await AuthorisationWorld {
            $0.longTopicUpdatesMax = 1
            $0.listenersServiceBytesMax = 2 << 20
        }
        let peer = try Self.queries("a", 1..<21, world)
        try await world.write(Self.update(300))
        for number in 0..<600 { try await world.write(.set(.number(Double(number)), at: "/c/k1299/x")) }
        try await world.write(.set("last", at: "/c/k1299/x"))
        #expect(world.registry.topics.values.contains { $0.pending == nil })
        world.finish()
        #expect(world.registry.budgets.commits.bytes == 0)
        var last: [Substring: String] = [:]
        for text in peer.takeInbox().map(\.text) { last[text.prefix { $0 != ":" }] = text }
        #expect(last.count == 20 && last.values.allSatisfy { $0.contains("last") })
    }
}
