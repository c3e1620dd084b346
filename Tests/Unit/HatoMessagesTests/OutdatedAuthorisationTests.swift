import HatoModel
import HatoTree
import Testing

@testable import HatoMessages

/// A commit that many rights depend on: listeners are authorised again a turn at a time; until then none gets too much,
/// and afterwards none has missed anything.
@Suite struct OutdatedAuthorisationTests {
    private static func texts(_ peer: HistoryPeer) -> [String] { peer.takeInbox().map(\.text) }

    /// Changes a value that all rights depend on, and that takes none away.
    private static func touch(_ world: AuthorisationWorld, _ value: Double = 2) async throws -> UInt64 {
        try await world.write(.set(.number(value), at: "/open"))
    }

    @Test func oneTurnAuthorisesSomeAndTheOthersCatchUp() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c", "d"])
        _ = try await Self.touch(world)
        #expect(world.inDoubt == 3)
        _ = try await world.write(.set(1, at: "/c/x"))
        #expect(Self.texts(peers[0]).count == 1)
        for peer in peers.dropFirst() { #expect(Self.texts(peer).isEmpty) }
        world.step()
        #expect(world.inDoubt == 2)
        world.finish()
        #expect(world.inDoubt == 0)
        for peer in peers.dropFirst() {
            let heard = Self.texts(peer)
            #expect(heard.count == 1 && heard[0].contains(#""path":"/x","data":1"#), "\(heard)")
        }
        _ = try await world.write(.set(2, at: "/c/x"))
        for peer in peers { #expect(Self.texts(peer).count == 1) }
    }

    @Test func outdatedListenerThatMissedNothingGetsNoEvent() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        for value in 2...4 { _ = try await Self.touch(world, Double(value)) }
        world.finish()
        for peer in peers { #expect(Self.texts(peer).isEmpty) }
        _ = try await world.write(.set(1, at: "/c/x"))
        for peer in peers { #expect(Self.texts(peer).count == 1) }
    }

    @Test func listenerWithoutReadAccessGetsNoFurtherEvent() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        _ = try await world.write(.update(["open": 2, "members/c": nil, "c/x": "secret"], at: "/"))
        _ = try await world.write(.set("secret too", at: "/c/y"))
        world.finish()
        let heard = Self.texts(peers[2])
        #expect(heard.count == 1 && heard[0].contains("permission_denied"), "\(heard)")
        #expect(Self.texts(peers[1]).joined().contains("secret too"))
    }

    @Test func listenerThatLostReadAccessForAWhileGetsOnlyTheLaterValue() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b"])
        _ = try await world.write(.update(["open": 2, "members/b": nil, "c/x": "secret"], at: "/"))
        _ = try await world.write(.update(["members/b": true, "c/x": "open"], at: "/"))
        world.finish()
        let heard = Self.texts(peers[1])
        #expect(heard.count == 1 && heard[0].contains(#""data":"open""#), "\(heard)")
    }

    @Test func readFromBeforeTheVerdictIsDiscarded() async throws {
        let world = try await AuthorisationWorld()
        _ = try world.listening(["a"])
        let (lost, kept) = (try world.listen("b"), try world.listen("c"))
        _ = try await world.write(.update(["open": 2, "members/b": nil], at: "/"))
        _ = try await world.write(.set(1, at: "/c/x"))
        // Both are read for as of before.
        world.runReads()
        world.finish()
        let refused = Self.texts(lost)
        #expect(refused.count == 1 && refused[0].contains("is refused"), "\(refused)")
        let heard = Self.texts(kept)
        #expect(heard.count == 2 && heard[0].contains(#""data":{"x":1}"#) && heard[1].contains("is open"), "\(heard)")
    }

    @Test func listenerThatIsOutdatedAgainIsAuthorisedAgain() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        _ = try await Self.touch(world)
        _ = try await world.write(.set(1, at: "/c/x"))
        // They were authorised, and the changes they missed are being read, when the next commit comes.
        for _ in 0..<2 { world.step() }
        #expect(world.inDoubt == 0)
        _ = try await world.write(.update(["open": 3, "members/c": nil, "c/y": "secret"], at: "/"))
        world.finish()
        let heard = Self.texts(peers[2]).joined()
        #expect(heard.contains("permission_denied") && !heard.contains("secret"), "\(heard)")
        #expect(Self.texts(peers[1]).joined().contains(#""y":"secret""#))
    }

    // MARK: Responses

    @Test func ownResponseWaitsForTheOwnListenerWhichIsAuthorisedFirst() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c", "d"])
        let doubted = try await Self.touch(world)
        world.respond(peers[3], doubted)
        #expect(Self.texts(peers[3]).isEmpty)
        world.step()
        #expect(Self.texts(peers[3]) == ["answered \(doubted)"])
        #expect(world.inDoubt == 2)
    }

    @Test func ownEventComesBeforeTheOwnResponse() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b"])
        _ = try await Self.touch(world)
        let written = try await world.write(.set(1, at: "/c/x"))
        world.respond(peers[1], written)
        #expect(Self.texts(peers[1]).isEmpty)
        world.finish()
        let heard = Self.texts(peers[1])
        #expect(heard.count == 2 && heard[0].contains(#""path":"/x""#) && heard[1] == "answered \(written)", "\(heard)")
    }

    @Test func ownResponseAfterTheTurnWaitsForTheEventToo() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b"])
        _ = try await Self.touch(world)
        let written = try await world.write(.set(1, at: "/c/x"))
        world.step()
        #expect(world.inDoubt == 0)
        world.respond(peers[1], written)
        #expect(Self.texts(peers[1]).isEmpty)
        world.finish()
        #expect(Self.texts(peers[1]).last == "answered \(written)")
    }

    @Test func ownResponseWaitsForEarlierWritesOfOthers() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        _ = try await Self.touch(world)
        _ = try await world.write(.set(1, at: "/c/x"))
        // The same again changes nothing, and the response has the version of the newest commit.
        let newest = try await world.write(.set(1, at: "/elsewhere"))
        #expect(try await world.write(.set(1, at: "/c/x")) == newest)
        world.respond(peers[2], newest)
        #expect(Self.texts(peers[2]).isEmpty)
        world.finish()
        let heard = Self.texts(peers[2])
        #expect(heard.count == 2 && heard[0].contains(#""path":"/x""#) && heard[1] == "answered \(newest)", "\(heard)")
    }

    @Test func responseThatNoVerdictConcernsDoesNotWait() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        _ = try await Self.touch(world)
        let elsewhere = try await world.write(.set(1, at: "/elsewhere"))
        world.respond(peers[2], elsewhere)
        #expect(Self.texts(peers[2]) == ["answered \(elsewhere)"])
        #expect(world.inDoubt == 2)
    }

    // MARK: Listeners that begin and end

    @Test func newListenerIsAuthorisedAtOnceAndConfirmsTheOthers() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        _ = try await Self.touch(world)
        let again = try world.listen("c")
        #expect(world.inDoubt == 1)
        _ = try await world.write(.set(1, at: "/c/x"))
        world.finish()
        for peer in peers { #expect(Self.texts(peer).count == 1) }
        #expect(Self.texts(again).joined().contains(#""path":"/x","data":1"#))
    }

    @Test func closedConnectionsAwaitNoVerdict() async throws {
        let world = try await AuthorisationWorld()
        let peers = try world.listening(["a", "b", "c"])
        let doubted = try await Self.touch(world)
        world.respond(peers[1], doubted)
        for peer in peers { peer.close() }
        world.finish()
        #expect(world.inDoubt == 0)
        #expect(Self.texts(peers[1]) == ["answered \(doubted)"])
    }

    @Test func waitingRightsAreTakenInOrderAndUrgentOnesInTurn() {
        var waiting = AuthorisationQueue()
        for id in [1, 2, 3, 2, 1] as [UInt64] { waiting.add(id) }
        for id in [3, 3] as [UInt64] { waiting.hurry(id) }
        var taken: [UInt64] = []
        while let id = waiting.takeFirst() { taken.append(id) }
        #expect(taken == [3, 1, 2, 3])
        #expect(waiting.isEmpty)
        waiting.add(1)
        #expect(!waiting.isEmpty)
        let again = waiting.takeFirst()
        #expect(again == 1)
    }
}
