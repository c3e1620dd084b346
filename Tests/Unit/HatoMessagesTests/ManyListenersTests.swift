import HatoModel
import HatoRPC
import HatoTree
import Synchronization
import Testing

@testable import HatoMessages

/// What the publisher's thread does for many listeners: counted, because time says little on a busy machine.
@Suite struct ManyListenersTests {
    /// Listeners to `/c` that gather, all of one connection.
    private static func gathering(_ count: Int, _ world: AuthorisationWorld) throws -> HistoryPeer {
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
        let world = try await AuthorisationWorld()
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
        let world = try await AuthorisationWorld()
        let peer = try Self.gathering(500, world)
        for number in 0..<3 {
            let version = try await world.write(.set(.number(Double(number)), at: "/elsewhere"))
            #expect(world.registry.responseReportCount(of: peer.id) == 0)
            world.respond(peer, version)
        }
        #expect(peer.takeInbox().map(\.text).count == 3)
    }

    @Test func ownWriteElsewhereIsReportedOnceToListenersThatLackSomething() async throws {
        let world = try await AuthorisationWorld()
        let peer = try Self.gathering(500, world)
        _ = try await world.write(Self.update(2))
        #expect(world.registry.responseReportCount(of: peer.id) == 500)
        let elsewhere = try await world.write(.set(1, at: "/elsewhere"))
        world.respond(peer, elsewhere)
        #expect(world.registry.responseReportCount(of: peer.id) == 0)
        // An own write to what they listen to is reported to them.
        let own = try await world.write(.set(1, at: "/c/own"))
        #expect(world.registry.responseReportCount(of: peer.id) == 500)
        world.respond(peer, own)
        #expect(peer.takeInbox().map(\.text) == ["answered \(elsewhere)"])
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 501 && heard.last == "answered \(own)")
    }

    @Test func refusedConditionIsReportedToListenersThatLackSomethingAfterAnOwnWriteElsewhere() async throws {
        let world = try await AuthorisationWorld()
        let peer = try Self.gathering(500, world)
        let other = try await world.write(Self.update(2))
        let elsewhere = try await world.write(.set(1, at: "/elsewhere"))
        world.respond(peer, elsewhere)
        #expect(world.registry.responseReportCount(of: peer.id) == 0)
        let refused = EarlierEvents(.failure(RefusedCondition(error: .versionMismatch, version: elsewhere)))
        world.registry.respond(peer.id, after: refused) { peer.receive(.answered(other, hasWritten: false)) }
        #expect(peer.takeInbox().map(\.text) == ["answered \(elsewhere)"])
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 501 && heard.last == "answered \(other)", "\(heard.suffix(2))")
    }

    // MARK: Readings

    /// Listeners of an administrator to children of `/c`, all of one connection.
    private static func listening(_ count: Int, _ world: AuthorisationWorld) throws -> HistoryPeer {
        let peer = world.newPeer()
        for number in 0..<count {
            try world.listen(
                .administrator, Messages.Listen(path: TreePath("/c/k\(number)")), on: peer, as: "s\(number)")
        }
        return peer
    }

    @Test func readingForAClosedConnectionIsDroppedBeforeItBegins() async throws {
        let world = try await AuthorisationWorld()
        _ = try await world.write(Self.update(100))
        let (peer, rows) = (world.newPeer(), RowCounter())
        for number in 0..<20 {
            try world.listen(
                .administrator, Messages.Listen(path: TreePath("/c/k\(number)")), on: peer, as: "s\(number)",
                countedBy: rows)
        }
        #expect(world.registry.catchUps.readingCount == 20)
        let before = rows.count
        peer.close()
        world.finish()
        #expect(rows.count == before)
        #expect(world.registry.catchUps.readingCount == 0)
    }

    @Test func fewReadingsOfOneConnectionAreUnderWay() async throws {
        let world = try await AuthorisationWorld()
        let peer = try Self.listening(200, world)
        #expect(world.waitingReads == MessagesLimits().catchUpsPerConnectionMax)
        world.finish()
        #expect(peer.takeInbox().count == 400)
        #expect(world.registry.catchUps.readingCount == 0)
    }

    @Test func drainedConnectionCatchesUpAsItsSocketDrains() async throws {
        let world = try await AuthorisationWorld()
        let peer = try Self.listening(200, world)
        world.finish()
        _ = peer.takeInbox()
        peer.isFull = true
        _ = try await world.write(Self.update(200))
        #expect(peer.takeInbox().isEmpty)
        var reads = 0
        for _ in 0..<10 {
            // It takes more for a moment.
            peer.isFull = false
            _ = peer.drain()
            while world.waitingReads == 0, world.hasPosts { world.step() }
            peer.isFull = true
            while world.waitingReads > 0 || world.hasPosts {
                if world.waitingReads > 0 {
                    reads += 1
                    world.runRead()
                } else {
                    world.step()
                }
            }
        }
        #expect(reads <= 10 * MessagesLimits().catchUpsPerConnectionMax, "\(reads) readings in vain")
        peer.isFull = false
        _ = peer.drain()
        world.finish()
        #expect(peer.takeInbox().count == 200)
    }

    @Test func largeReadingBeginsAgainAmongTheLargeOnes() async throws {
        let world = try await AuthorisationWorld()
        _ = try await world.write(.set(.string(String(repeating: "x", count: 100_000)), at: "/c/k0"))
        _ = try await world.write(.set(.string(String(repeating: "y", count: 100_000)), at: "/c/k1"))
        let peer = try Self.listening(3, world)
        for _ in 0..<3 { world.runRead() }
        while world.hasPosts { world.step() }
        #expect(peer.takeInbox().count == 2)
        #expect(world.waitingReads == 1, "one large reading of a client at a time")
        world.finish()
        #expect(peer.takeInbox().count == 4)
    }

    // MARK: Callers

    @Test func otherCallerOfManyListenersIsAuthorisedInTurns() async throws {
        let world = try await AuthorisationWorld()
        let peer = world.newPeer()
        for number in 0..<5 {
            try world.listen(
                .user(Caller.User(uid: "a")), Messages.Listen(path: TreePath("/c/k\(number)")), on: peer,
                as: "s\(number)")
        }
        world.finish()
        _ = peer.takeInbox()
        for number in 0..<5 {
            world.registry.identityChanged(peer.id, "s\(number)", .replaced(.user(Caller.User(uid: "nobody"))))
        }
        #expect(world.inDoubt == 5)
        _ = try await world.write(.update(["k0": "secret", "k4": "secret"], at: "/c"))
        #expect(peer.takeInbox().isEmpty)
        world.step()
        #expect(world.inDoubt == 4)
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 5 && heard.allSatisfy { $0.contains("permission_denied") }, "\(heard)")
    }

    @Test func otherCallerWithTheRightMissesNothing() async throws {
        let world = try await AuthorisationWorld()
        let peer = try world.listen("a")
        world.finish()
        _ = peer.takeInbox()
        world.registry.identityChanged(peer.id, "a", .extended(.user(Caller.User(uid: "b"))))
        _ = try await world.write(.set(1, at: "/c/x"))
        #expect(peer.takeInbox().isEmpty)
        world.finish()
        let heard = peer.takeInbox().map(\.text)
        #expect(heard.count == 1 && heard[0].contains(#""path":"/x","data":1"#), "\(heard)")
        // By its own right now.
        _ = try await world.write(.set(.null, at: "/members/a"))
        _ = try await world.write(.set(2, at: "/c/x"))
        world.finish()
        #expect(peer.takeInbox().map(\.text).joined().contains(#""data":2"#))
    }

    // MARK: Openings

    @Test func fewOpeningsOfOneClientAreUnderWayAndOthersPass() {
        let turns = ClientTurns(countMax: 2)
        let begun = Mutex<[String]>([])
        let ends = Mutex<[@Sendable () -> Void]>([])
        func take(_ client: String, _ name: String) {
            turns.take(client) { end in
                begun.withLock { $0.append(name) }
                ends.withLock { $0.append(end) }
            }
        }
        for number in 0..<50 { take("flood", "\(number)") }
        take("other", "other")
        #expect(begun.withLock { $0 } == ["0", "1", "other"])
        for _ in 0..<51 {
            let end = ends.withLock { $0.removeFirst() }
            end()
        }
        #expect(begun.withLock { $0 } == ["0", "1", "other"] + (2..<50).map { "\($0)" })
        #expect(turns.clientCount == 0)
    }
}
