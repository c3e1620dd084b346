import HatoModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import HatoRPC

/// One peer cannot take a service away: a client that holds memory with long lines holds up its own and no other.
@Suite(.timeLimit(.minutes(10)))
struct FloodTests {
    private static let limit = 64 << 20
    private static let share = 16 << 20
    private static let line = 4 << 20
    /// What a line may come to lie in, and what a connection holds without asking.
    private static let lineCharge = line + (64 << 10)
    private static let reserve = 128 << 10
    private static let half = [UInt8](repeating: UInt8(ascii: "x"), count: line)

    private static func set(_ limits: inout RPCLimits) {
        limits.processBytesInFlightMax = limit
        limits.clientBytesInFlightMax = share
        limits.lineBytesMax = line
        limits.stalledLineSecondsMax = 5
    }

    private static func echo(_ count: Int = 1) -> String {
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"check.echo\",\"params\":{\"value\":\""
            + String(repeating: "v", count: count) + "\"}}"
    }

    private func flood(_ server: EmbeddedServer, _ uid: (Int) -> String, count: Int) throws -> [EmbeddedPeer] {
        var peers: [EmbeddedPeer] = []
        for number in 0..<count {
            let peer = try server.peer(uid(number))
            try peer.send(Self.half)
            peers.append(peer)
            #expect(server.state.budget.usedBytes <= Self.limit + Self.lineCharge + peers.count * Self.reserve)
        }
        return peers
    }

    @Test func linesOfOneUserWaitForEachOtherAlone() throws {
        let server = EmbeddedServer(Self.set)
        let hostile = try flood(server, { _ in "mallory" }, count: 60)
        let held = server.state.budget.usedBytes
        #expect(held <= Self.share + Self.lineCharge + hostile.count * Self.reserve)
        #expect(hostile.contains { $0.unreadCount > 0 })

        let others = [try server.peer("anna"), try server.peer(), try server.peer("mallory")]
        for other in others { #expect(try other.ask(Self.echo()).contains(#""id":7"#)) }
        #expect(try others[0].ask(Self.echo(3 << 20)).utf8.count > 3 << 20)
        #expect(!hostile.contains { !$0.isOpen })

        for peer in hostile + others { peer.close() }
        #expect(server.state.budget.usedBytes == 0)
        let again = try server.peer("mallory")
        #expect(try again.ask(Self.echo(3 << 20)).utf8.count > 3 << 20)
        again.close()
        #expect(server.state.budget.usedBytes == 0)
    }

    /// The channel reads what a peer has left before it hears that the peer is lost.
    @Test func requestsOfALostPeerAreNotCarriedOut() throws {
        let server = EmbeddedServer(Self.set)
        let peer = try server.peer("anna")
        peer.lose()
        let before = server.hub.counts.requests
        try peer.send((0..<20).flatMap { _ in Array((Self.echo(100_000) + "\n").utf8) })
        #expect(server.hub.counts.requests - before == 1)
        #expect(!peer.isOpen)
        #expect(server.state.budget.usedBytes == 0)
    }

    /// What waits in the mailbox counts for no connection that holds up its next requests.
    @Test func responsesLeaveAtOnceWhileOtherConnectionsHaveMail() throws {
        let server = EmbeddedServer(Self.set)
        let (peer, other) = (try server.peer("anna"), try server.peer("bruno"))
        server.hub.post(.opened(other.connection, subscription: "s", by: 0))
        try peer.sendInThisTurn(Self.echo())
        #expect(try peer.received().contains(#""id":7"#))
        // But in order.
        server.hub.post(.opened(peer.connection, subscription: "s", by: 0))
        try peer.sendInThisTurn(Self.echo())
        #expect(try peer.received().isEmpty)
        server.loop.run()
        #expect(try peer.received().contains(#""id":7"#))
        for peer in [peer, other] { peer.close() }
    }

    @Test func memoryOfAConnectionIsGivenBackWithWhatTheMailboxHasForIt() throws {
        let server = EmbeddedServer(Self.set)
        let peer = try server.peer("anna")
        server.hub.post(.opened(peer.connection, subscription: "s", by: 0))
        try peer.sendInThisTurn(Self.echo(50_000))
        peer.closeInThisTurn()
        #expect(server.state.budget.usedBytes > 50_000)
        server.loop.run()
        #expect(server.state.budget.usedBytes == 0)
    }

    /// Each response lets the next request start, all in tasks of one turn of the loop.
    @Test func theLoopLooksAtItsSocketsHoweverManyRequestsFollowEachOther() throws {
        let server = EmbeddedServer(turn: .milliseconds(1), Self.set)
        let peers = try (0..<20).map { _ in try server.peer() }
        let line = #"{"jsonrpc":"2.0","id":7,"method":"check.later","params":{"gate":"a"}}"#
        for peer in peers { try peer.sendInThisTurn(Array(repeating: line, count: 100).joined(separator: "\n")) }
        func responseCount() throws -> Int {
            try peers.reduce(0) { try $0 + $1.received().utf8.count { $0 == UInt8(ascii: "\n") } }
        }
        server.loop.run()
        var count = try responseCount()
        #expect((1..<2_000).contains(count), "others could have sent something by now")
        for _ in 0..<2_000 where count < 2_000 {
            server.loop.advanceTime(by: .milliseconds(1))
            count += try responseCount()
        }
        #expect(count == 2_000)
        for peer in peers { peer.close() }
    }

    @Test func fewUnfinishedLinesStayOfConnectionsWithoutCredential() throws {
        let server = EmbeddedServer(Self.set)
        // A quarter of the memory is taken.
        let user = try (0..<5).map { try server.peer("user\($0)") }
        for peer in user { try peer.send(Array(Self.half.dropLast())) }
        let anyone = try (0..<200).map { try server.peer(address: "192.0.2.\($0)") }
        for peer in anyone { #expect(server.state.admission.accepted(peer.connection) == nil) }
        for peer in anyone { try peer.send(Array(Self.half.prefix(60_000))) }
        // A connection that is refused stays a moment, so that its peer gets the reason.
        server.loop.advanceTime(by: .seconds(3))
        // 1/16 of it, in lines of 64 KiB.
        #expect(anyone.count { $0.isOpen } == 64)
        #expect(anyone.suffix(64).allSatisfy { $0.isOpen })
        #expect(try anyone[0].received().contains("line_stalled"))
        #expect(user.allSatisfy { $0.isOpen })
        // Those that are left come to their end, and a short line is always read.
        let last = anyone[199]
        #expect(try last.ask("").contains("parse"))
        #expect(try server.peer(address: "198.51.100.1").ask(Self.echo()).contains(#""id":7"#))
        for peer in user + anyone { peer.close() }
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func unfinishedLinesOfAnyoneStayWhileMemoryIsFree() throws {
        let server = EmbeddedServer(Self.set)
        let anyone = try (0..<100).map { try server.peer(address: "192.0.2.\($0)") }
        for peer in anyone { #expect(server.state.admission.accepted(peer.connection) == nil) }
        for peer in anyone { try peer.send(Array(Self.half.prefix(60_000))) }
        #expect(anyone.allSatisfy { $0.isOpen })
        for peer in anyone { peer.close() }
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func everyLineOfOneUserComesToItsEnd() throws {
        let server = EmbeddedServer(Self.set)
        let text = Array((Self.echo(3 << 20) + "\n").utf8)
        let peers = try (0..<20).map { _ in try server.peer("anna") }
        for peer in peers { try peer.send(Array(text.dropLast(10))) }
        #expect(peers.contains { $0.unreadCount > 0 })
        for peer in peers { try peer.send(Array(text.suffix(10))) }
        for _ in peers { for peer in peers { try peer.send() } }
        for peer in peers { #expect(try peer.received().utf8.count > 3 << 20) }
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func linesReadElsewhereCountAlthoughTheirConnectionsAreGone() throws {
        let elsewhere = Mutex<[@Sendable () -> Void]>([])
        let server = EmbeddedServer(runElsewhere: { body in elsewhere.withLock { $0.append(body) } }, Self.set)
        let line = Array((Self.echo(3 << 20) + "\n").utf8)
        for _ in 0..<20 {
            let peer = try server.peer("mallory")
            try peer.send(line)
            peer.close()
        }
        // It came as far as its share; the rest had to wait, and went with its connections.
        let count = elsewhere.withLock { $0.count }
        #expect(count >= 1 && count * line.count <= Self.share)
        #expect(server.state.budget.usedBytes >= count * (3 << 20))
        let other = try server.peer("anna")
        #expect(try other.ask(Self.echo()).contains(#""id":7"#))
        while let body = elsewhere.withLock({ $0.popLast() }) { body() }
        server.loop.run()
        other.close()
        #expect(server.state.budget.usedBytes == 0, "with the lines their charges go")
    }

    @Test func lineThatDoesNotGrowIsCutOffWhenItsClientWaits() throws {
        let server = EmbeddedServer(Self.set)
        let hostile = try flood(server, { _ in "mallory" }, count: 10)
        let waiting = hostile.filter { $0.unreadCount > 0 }
        #expect(!waiting.isEmpty)
        // In the first five seconds they grew.
        server.loop.advanceTime(by: .seconds(10))
        #expect(try hostile.contains { try $0.received().contains("line_stalled") })
        #expect(hostile.contains { !$0.isOpen })
        // Each one cut off frees memory for a few steps of those that wait, until one of them is whole.
        for _ in 0..<4 where !waiting.contains(where: { $0.unreadCount == 0 }) {
            for peer in waiting { try peer.send() }
            server.loop.advanceTime(by: .seconds(5))
        }
        #expect(waiting.contains { $0.unreadCount == 0 })
    }

    @Test func lineThatGrowsOrHoldsNothingOthersWaitForIsNotCutOff() throws {
        let server = EmbeddedServer(Self.set)
        let alone = try server.peer("anna")
        try alone.send(Array(Self.half[..<(1 << 20)]))
        server.loop.advanceTime(by: .seconds(60))
        #expect(alone.isOpen)
        let hostile = try flood(server, { _ in "mallory" }, count: 20)
        let slow = hostile[0]
        #expect(slow.unreadCount == 0)
        server.loop.advanceTime(by: .seconds(60))
        // Mallory's lines waited for each other; Anna's was in the way of none of them.
        #expect(alone.isOpen)
        #expect(hostile.contains { !$0.isOpen })
    }

    @Test func lineThatComesSlowlyGoesOnWhileOthersWait() throws {
        let server = EmbeddedServer {
            Self.set(&$0)
            $0.clientBytesInFlightMax = 1 << 20
            $0.stalledLineBytesPerSecond = 1_000
            $0.awaitedLineSecondsMax = 3_600
        }
        let slow = try server.peer("anna")
        try slow.send(Array(Self.half[..<(600 << 10)]))
        let exempt = try server.peer("anna")
        try exempt.send(Array(Self.half[..<(700 << 10)]))
        let waiting = try server.peer("anna")
        try waiting.send(Self.half)
        #expect(waiting.unreadCount > 0)
        for _ in 0..<4 {
            try slow.send([UInt8](repeating: UInt8(ascii: "x"), count: 5_000))
            server.loop.advanceTime(by: .seconds(5))
        }
        #expect(slow.isOpen)
        #expect(try exempt.received().contains("line_stalled"))
    }

    /// A line of 4 MiB that grows by 40 KB a second would hold its memory for minutes.
    @Test func lineThatHoldsMuchAndComesSlowlyIsCutOffWhileOthersWait() throws {
        let server = EmbeddedServer {
            Self.set(&$0)
            $0.processBytesInFlightMax = 8 << 20
        }
        let slow = try server.peer("mallory")
        try slow.send(Array(Self.half[..<(3 << 20)]))
        let other = try server.peer("anna")
        try other.send(Array((Self.echo(3 << 20) + "\n").utf8))
        #expect(other.unreadCount > 0)
        #expect(slow.isOpen)
        for _ in 0..<5 {
            if slow.isOpen { try slow.send([UInt8](repeating: UInt8(ascii: "x"), count: 40_000)) }
            server.loop.advanceTime(by: .seconds(1))
        }
        #expect(try slow.received().contains("line_stalled"))
        try other.send()
        #expect(try other.received().utf8.count > 3 << 20)
    }

    @Test func unfinishedShortLinesStayWithinTheShare() throws {
        let server = EmbeddedServer {
            Self.set(&$0)
            $0.clientBytesInFlightMax = 4 << 20
        }
        let hostile = try (0..<300).map { _ in try server.peer() }
        for _ in 0..<30 { for peer in hostile { try peer.send([UInt8](repeating: UInt8(ascii: "["), count: 2_000)) } }
        #expect(server.state.budget.usedBytes < 4 << 20 + 300 * 6_000)
        let other = try server.peer("anna")
        #expect(try other.ask(Self.echo(40_000)).utf8.count > 40_000)
        // Those that wait for the others of their client have these cut off.
        server.loop.advanceTime(by: .seconds(10))
        #expect(hostile.contains { !$0.isOpen })
        for peer in hostile + [other] { peer.close() }
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func unfinishedShortLineIsCutOffWhileOthersWait() throws {
        let server = EmbeddedServer(Self.set)
        let slow = try server.peer()
        try slow.send([UInt8](repeating: UInt8(ascii: "["), count: 30_000))
        server.loop.advanceTime(by: .seconds(60))
        #expect(slow.isOpen)
        server.state.budget.add(Self.limit, to: server.state.budget.clients.enter("filler"))
        server.loop.advanceTime(by: .seconds(6))
        #expect(try slow.received().contains("line_stalled"))
    }

    @Test func memoryFullOfLinesOfManyUsersIsGivenBack() throws {
        let server = EmbeddedServer(Self.set)
        let hostile = try flood(server, { "user\($0)" }, count: 40)
        let other = try server.peer("anna")
        #expect(try other.ask(Self.echo()).contains(#""id":7"#))
        try other.send(Array((Self.echo(3 << 20) + "\n").utf8))
        #expect(other.unreadCount > 0)
        for _ in 0..<4 {
            server.loop.advanceTime(by: .seconds(5))
            try other.send()
        }
        #expect(try other.received().utf8.count > 3 << 20)
        #expect(hostile.contains { !$0.isOpen })
        for peer in hostile + [other] { peer.close() }
        #expect(server.state.budget.usedBytes == 0)
    }

    @Test func beginningOfALineDoesNotKeepTheMemoryOfALongOneBeforeIt() throws {
        let server = EmbeddedServer(Self.set)
        let peer = try server.peer("anna")
        try peer.send(Array((Self.echo(3 << 20) + "\n{").utf8))
        #expect(try peer.received().utf8.count > 3 << 20)
        #expect(server.state.budget.usedBytes <= Self.reserve)
    }

    @Test func userWhoseResponsesFillItsShareWaitsForThemAlone() throws {
        let budget = ProcessBudget(limit: 1_000, clientMax: 250)
        let (hostile, other) = (budget.clients.enter("mallory"), budget.clients.enter("anna"))
        budget.add(260, to: hostile)
        #expect(!budget.mayStart(.read, hostile))
        #expect(budget.mayStart(.read, other))
        let exemption = try #require(budget.takeExemption(.read, hostile))
        #expect(budget.takeExemption(.read, hostile) == nil)
        budget.add(800, to: hostile)
        #expect(budget.takeExemption(.read, other) != nil)
        let resumed = Shared(0)
        budget.whenOneMayStart(.read, for: 1, of: hostile) { resumed.change { $0 += 1 } }
        #expect(resumed.current == 0)
        budget.returnExemption(exemption)
        #expect(resumed.current == 1)
    }

    @Test func lineOfTheClientThatHoldsTheLeastGoesOnWhereNothingFits() {
        let budget = ProcessBudget(limit: 1_000, clientMax: 1_000)
        let accounts = ["filler", "anna", "mallory", "bea"].map { budget.clients.enter($0) }
        for (account, bytes) in zip(accounts, [650, 30, 30, 10]) { budget.add(bytes, to: account) }
        let resumed = Shared<[UInt64]>([])
        func claim(_ connection: UInt64, of index: Int) -> Bool {
            budget.claim(
                100, for: connection,
                .init(
                    client: accounts[index], resume: { resumed.change { $0.append(connection) } },
                    refuse: { resumed.change { $0.append(0) } }))
        }
        #expect(claim(1, of: 1))
        #expect(budget.exemption(of: 1) == .one)
        #expect(!claim(2, of: 2))
        #expect(!claim(3, of: 3))
        budget.endClaim(of: 1, isComplete: true)
        #expect(resumed.current == [3])
        #expect(budget.exemption(of: 3) == .one && budget.exemption(of: 2) == nil)
        budget.endClaim(of: 3, isComplete: true)
        #expect(resumed.current == [3, 2])
        budget.endClaim(of: 2, isComplete: true)
        for (account, bytes) in zip(accounts, [650, 30, 30, 10]) { budget.add(-bytes, to: account) }
        #expect(budget.usedBytes == 0)
    }

    @Test func longLineWaitsTwoSecondsForASlowOneThatHoldsTheMemory() throws {
        let server = EmbeddedServer {
            Self.set(&$0)
            $0.processBytesInFlightMax = 8 << 20
        }
        let filler = try server.peer("filler")
        server.state.budget.add(6 << 20, to: server.state.budget.clients.enter("filler"))
        let slow = try server.peer("mallory")
        try slow.send(Array(Self.half[..<(300 << 10)]))
        let other = try server.peer("anna")
        try other.send(Array((Self.echo(300 << 10) + "\n").utf8))
        #expect(other.unreadCount > 0, "nothing fits")
        server.loop.advanceTime(by: .seconds(2))
        try other.send()
        #expect(try other.received().utf8.count > 300 << 10)
        #expect(try slow.received().contains("line_stalled"))
        #expect(filler.isOpen)
    }

    @Test func linesReadElsewhereAreChargedByWhatTheyHold() throws {
        let elsewhere = Mutex<[@Sendable () -> Void]>([])
        let server = EmbeddedServer(runElsewhere: { body in elsewhere.withLock { $0.append(body) } }) {
            Self.set(&$0)
            $0.processBytesInFlightMax = 8 << 20
        }
        let budget = server.state.budget
        let peer = try server.peer("anna")
        try peer.send(Array((Self.echo(3 << 20) + "\n").utf8))
        #expect(budget.usedBytes >= 8 << 20, "its buffer, and what its values may take")
        while let body = elsewhere.withLock({ $0.popLast() }) { body() }
        #expect(budget.usedBytes >= 7 << 20)
        #expect(budget.usedBytes <= (7 << 20) + Self.reserve, "its buffer, and its values")
        server.loop.run()
        #expect(budget.usedBytes == 0)
    }

    @Test func clientIsAUserElseAnAddress() {
        func name(_ caller: Caller, _ address: String) -> String {
            ClientAccount.name(caller, ClientAddress(address))
        }
        let anna = Caller.user(Caller.User(uid: "anna"))
        #expect(name(anna, "192.0.2.1") == name(anna, "192.0.2.2"))
        #expect(name(.nobody, "192.0.2.1") != name(.nobody, "192.0.2.2"))
        #expect(name(.nobody, "2001:db8:1:2::1") == name(.nobody, "2001:db8:1:2:ffff::9"))
        #expect(name(.nobody, "2001:db8:1:2::1") != name(.nobody, "2001:db8:1:3::1"))
        #expect(name(.nobody, "::ffff:192.0.2.1") != name(.nobody, "::ffff:192.0.2.2"))
    }

    @Test func floodOverSocketsLeavesTheServiceToOthers() async throws {
        let service = try await TestService {
            Self.set(&$0.limits)
            // No peer is cut off here: others do not wait even so.
            $0.limits.stalledLineSecondsMax = 3_600
        }
        let other = try await service.peer()
        _ = try await other.call("session.authenticate", #"{"auth":"user-anna"}"#)
        let sent = Shared(0)
        var hostile: [RawPeer] = []
        for _ in 0..<60 {
            let peer = try await service.peer()
            _ = try await peer.call("session.authenticate", #"{"auth":"user-mallory"}"#)
            for _ in 0..<40 {
                peer.channel.writeAndFlush(ByteBuffer(repeating: UInt8(ascii: "x"), count: 100_000))
                    .whenSuccess { sent.change { $0 += 100_000 } }
            }
            hostile.append(peer)
        }
        var last = -1
        while last != sent.current {
            last = sent.current
            for _ in 0..<50 { #expect(try await other.call("check.echo")["result"] != nil) }
        }
        let unknown = try await service.peer()
        #expect(try await unknown.call("service.health")["result"] != nil)
        other.sendLater(Self.echo(3 << 20) + "\n")
        #expect(try await other.response()["id"] == 7)
        #expect(!hostile.contains { !$0.channel.isActive })
        for peer in hostile { await peer.close() }
        await service.stop()
    }
}
