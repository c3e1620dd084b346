import HatoModel
import HatoTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// Which connections a server has, by value.
struct ConnectionAdmissionTests {
    private static func admission(
        _ connectionsMax: Int, perAddress: Int = 1_000, perUser: Int = 1_000, percent: Int = 90, newcomers: Int? = nil
    ) -> ConnectionAdmission {
        var limits = RPCLimits()
        limits.connectionsMax = connectionsMax
        limits.connectionsPerAddressMax = perAddress
        limits.connectionsPerUserMax = perUser
        limits.connectionsWithoutCredentialPercentMax = percent
        var admitted = ConnectionAdmission.Limits(limits)
        if let newcomers { admitted.newcomersMin = newcomers }
        return ConnectionAdmission(admitted)
    }

    private static func address(_ number: UInt64) -> ClientAddress { ClientAddress("10.0.0.\(number)") }

    @Test func connectionsWithoutACredentialHoldNineTenths() {
        var admission = Self.admission(10)
        for id in 1...9 { #expect(admission.accepted(UInt64(id), from: Self.address(1)) == .admit) }
        #expect(admission.accepted(10, from: Self.address(2)) == .admitClosing(1))
        #expect(admission.withoutCredentialCount == 9)
        _ = admission.showedCredential(10, of: "anna")
        #expect(admission.withoutCredentialCount == 8)
        #expect(admission.accepted(11, from: Self.address(2)) == .admit)
    }

    @Test func longestSilentOneIsClosed() {
        var admission = Self.admission(10)
        for id in 1...9 { _ = admission.accepted(UInt64(id), from: Self.address(1)) }
        admission.wasActive(1)
        admission.wasActive(2)
        _ = admission.showedCredential(3, of: "anna")
        admission.closed(4)
        for id in 10...11 { #expect(admission.accepted(UInt64(id), from: Self.address(2)) == .admit) }
        let victims: [ConnectionAdmission.ID] = [5, 6, 7, 8, 9, 1, 2, 10]
        for (id, victim) in zip(UInt64(20)..., victims) {
            #expect(admission.accepted(id, from: Self.address(2)) == .admitClosing(victim))
            admission.closed(victim)
        }
    }

    @Test func thoseThatShowedACredentialStayWhileOthersCanBeClosed() {
        var admission = Self.admission(4)
        for id in 1...3 {
            #expect(admission.accepted(UInt64(id), from: Self.address(1)) == .admit)
            let ownsSlot = admission.showedCredential(UInt64(id), of: "anna")
            #expect(ownsSlot)
        }
        #expect(admission.accepted(4, from: Self.address(2)) == .admit)
        #expect(admission.accepted(5, from: Self.address(2)) == .admitClosing(4))
        admission.closed(2)
        #expect(admission.accepted(6, from: Self.address(2)) == .admit)
        #expect(admission.accepted(7, from: Self.address(2)) == .admitClosing(5))
    }

    @Test func connectionThatForwardsCountsForNeitherAddressNorUser() {
        var admission = Self.admission(5, perAddress: 2, perUser: 1, newcomers: 1)
        _ = admission.accepted(1, from: Self.address(1))
        _ = admission.showedCredential(1, of: "anna")
        _ = admission.accepted(2, from: Self.address(1))
        #expect(admission.accepted(3, from: Self.address(1)) == .refuse(.tooManyFromAddress))
        for id in [1, 2] as [UInt64] {
            let forwards = (admission.forwards(id), admission.forwards(id))
            #expect(forwards.0 && forwards.1)
        }
        #expect(admission.withoutCredentialCount == 0)
        for id in [3, 4] as [UInt64] {
            #expect(admission.accepted(id, from: Self.address(1)) == .admit)
            let ownsSlot = admission.showedCredential(id, of: id == 3 ? "anna" : "bea")
            #expect(ownsSlot, "the user's own slot is free")
        }
        #expect(admission.accepted(5, from: Self.address(2)) == .admit)
        #expect(admission.accepted(6, from: Self.address(2)) == .admitClosing(5), "not one that forwards")
        admission.closed(1)
        #expect(admission.accepted(7, from: Self.address(1)) == .refuse(.tooManyFromAddress))
        admission.closed(3)
        admission.closed(5)
        #expect(admission.accepted(8, from: Self.address(1)) == .admit)
        let unknown = admission.forwards(99)
        #expect(unknown && admission.forwardingCount == 1)
        #expect(admission.count == 4)
    }

    /// A gateway has a connection for each of its clients: they must not take all slots.
    @Test func connectionsThatForwardLeaveSlotsToOthers() {
        var admission = Self.admission(10, perAddress: 100, newcomers: 2)
        for id in 1...8 as ClosedRange<UInt64> {
            #expect(admission.accepted(id, from: Self.address(1)) == .admit)
            let forwards = admission.forwards(id)
            #expect(forwards, "\(id)")
        }
        #expect(admission.accepted(9, from: Self.address(1)) == .admit)
        let (beyond, again) = (admission.forwards(9), admission.forwards(8))
        #expect(!beyond && again, "the one that forwards already goes on")
        #expect(admission.withoutCredentialCount == 1, "it stays what it was")
        #expect(admission.accepted(10, from: Self.address(2)) == .admit)
        // The slots that are left change hands as ever.
        #expect(admission.accepted(11, from: Self.address(2)) == .admitClosing(9))
        admission.closed(9)
        admission.closed(3)
        let free = admission.forwards(10)
        #expect(free && admission.forwardingCount == 8)
    }

    @Test func onlySlotMayForward() {
        var admission = Self.admission(1)
        _ = admission.accepted(1, from: Self.address(1))
        let forwards = admission.forwards(1)
        #expect(forwards)
    }

    @Test func userWithTheMostConnectionsLosesOneWhereUsersHoldAllSlots() {
        var admission = Self.admission(9)
        var id: UInt64 = 0
        for (user, count) in [("anna", 2), ("mallory", 5), ("bea", 2)] {
            for _ in 0..<count {
                id += 1
                #expect(admission.accepted(id, from: Self.address(id)) == .admit)
                _ = admission.showedCredential(id, of: user)
            }
        }
        for victim in UInt64(3)...5 {
            id += 1
            #expect(admission.accepted(id, from: Self.address(id)) == .admitClosing(victim))
            admission.closed(victim)
            _ = admission.showedCredential(id, of: "user \(id)")
        }
        // Each of the three has two: none has fewer than another after it.
        for _ in 0..<3 {
            id += 1
            guard case .admitClosing(let victim) = admission.accepted(id, from: Self.address(id)) else {
                Issue.record("refused")
                break
            }
            admission.closed(victim)
            _ = admission.showedCredential(id, of: "user \(id)")
        }
        #expect(admission.accepted(100, from: Self.address(1)) == .refuse(.tooMany), "all users have one")
        #expect(admission.count == 9)
    }

    @Test func oneUserHoldsSoManySlotsOfItsOwn() {
        var admission = Self.admission(10, perUser: 2)
        for id in 1...5 { _ = admission.accepted(UInt64(id), from: Self.address(1)) }
        let owns = (UInt64(1)...5).map { admission.showedCredential($0, of: "anna") }
        #expect(owns == [true, true, false, false, false])
        #expect(admission.withoutCredentialCount == 3)
        admission.closed(1)
        let owns4and5 = [4, 4, 5].map { admission.showedCredential($0, of: "anna") }
        #expect(owns4and5 == [true, false, false])
        // Others' and administrators' are not counted with them.
        for (id, user) in [(UInt64(6), "bert"), (7, nil), (8, nil), (9, nil)] {
            _ = admission.accepted(id, from: Self.address(1))
            let ownsSlot = admission.showedCredential(id, of: user)
            #expect(ownsSlot)
        }
        #expect(admission.withoutCredentialCount == 2)
        for id in UInt64(10)...11 { #expect(admission.accepted(id, from: Self.address(2)) == .admit) }
        #expect(admission.accepted(12, from: Self.address(2)) == .admitClosing(3))
    }

    @Test func closingConnectionsAreBounded() {
        var admission = Self.admission(100)
        var decisions: [ConnectionAdmission.Decision] = []
        for id in 1...1_000 { decisions.append(admission.accepted(UInt64(id), from: Self.address(1))) }
        #expect(decisions[..<90].allSatisfy { $0 == .admit })
        #expect(admission.closingCount == ConnectionAdmission.evictionsMax)
        #expect(decisions[(90 + ConnectionAdmission.evictionsMax)...].allSatisfy { $0 == .refuse(.tooMany) })
        #expect(admission.count <= 100 + ConnectionAdmission.evictionsMax)
    }

    @Test func addressesAreCountedByTheirNetwork() {
        var admission = Self.admission(100, perAddress: 2)
        #expect(admission.accepted(1, from: ClientAddress("2001:db8::1")) == .admit)
        #expect(admission.accepted(2, from: ClientAddress("2001:db8::ffff:2")) == .admit)
        #expect(admission.accepted(3, from: ClientAddress("2001:db8::3")) == .refuse(.tooManyFromAddress))
        #expect(admission.accepted(4, from: ClientAddress("2001:db8:0:1::3")) == .admit)
        #expect(admission.accepted(5, from: ClientAddress("192.0.2.1")) == .admit)
        #expect(admission.accepted(6, from: ClientAddress("::ffff:192.0.2.1")) == .admit)
        #expect(admission.accepted(7, from: ClientAddress("192.0.2.1")) == .refuse(.tooManyFromAddress))
        admission.closed(5)
        #expect(admission.accepted(8, from: ClientAddress("192.0.2.1")) == .admit)
    }

    @Test(arguments: [1, 2, 9, 10, 11, 16_384, 1_000_000_000])
    func sharesAreRoundedForTheNewcomer(connectionsMax: Int) {
        var limits = RPCLimits()
        limits.connectionsMax = connectionsMax
        let share = ConnectionAdmission.Limits(limits).withoutCredentialMax
        #expect(share >= 1)
        #expect(share == connectionsMax - connectionsMax / 10)
    }

    @Test func newcomersAreNotClosedForNewcomersWhereUsersHoldTheOtherSlots() {
        var admission = Self.admission(20)
        for id in 1...18 as ClosedRange<UInt64> {
            #expect(admission.accepted(id, from: Self.address(1)) == .admit)
            _ = admission.showedCredential(id, of: "mallory")
        }
        #expect(admission.accepted(100, from: Self.address(2)) == .admit)
        #expect(admission.accepted(101, from: Self.address(3)) == .admit)
        // Two without a credential: of these, the longest silent one.
        #expect(admission.accepted(102, from: Self.address(4)) == .admitClosing(100))
        admission.closed(100)
        let ownsSlot = admission.showedCredential(101, of: "anna")
        #expect(ownsSlot)
        #expect(admission.accepted(103, from: Self.address(5)) == .admitClosing(1), "a user's")
    }

    @Test func connectionOfAUserIsClosedForANewcomer() throws {
        let server = EmbeddedServer { $0.connectionsMax = 20 }
        var users: [EmbeddedPeer] = []
        for _ in 0..<20 {
            let peer = try server.peer()
            #expect(server.state.admission.accepted(peer.connection) == nil)
            #expect(
                try peer.ask(#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"auth":"user-anna"}}"#) != "")
            users.append(peer)
        }
        for _ in 0..<200 {
            let newcomer = try server.peer()
            #expect(server.state.admission.accepted(newcomer.connection) == nil)
            server.loop.run()
            _ = try newcomer.ask(#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"auth":"user-bea"}}"#)
            users.append(newcomer)
            #expect(users.count { $0.isOpen } == 20)
        }
    }

    /// Against a plain list, event by event.
    @Test func randomEventsKeepTheOrder() {
        var random = SeededRandom(seed: SeededRandom.seed())
        var admission = Self.admission(20, perAddress: 8, perUser: 3, newcomers: 0)
        var silent: [ConnectionAdmission.ID] = []
        var users: [ConnectionAdmission.ID: String] = [:]
        var open: [ConnectionAdmission.ID: UInt64] = [:]
        var closing: Set<ConnectionAdmission.ID> = []
        for id in UInt64(1)...5_000 {
            let known = open.keys.sorted()
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let from = UInt64.random(in: 0..<5, using: &random)
                let decision = admission.accepted(id, from: Self.address(from))
                if open.values.count(where: { $0 == from }) >= 8 {
                    #expect(decision == .refuse(.tooManyFromAddress))
                    continue
                }
                if open.count - closing.count >= 20 || silent.count >= 18 {
                    guard let first = silent.first else {
                        #expect(decision == .refuse(.tooMany))
                        continue
                    }
                    #expect(decision == .admitClosing(first))
                    silent.removeFirst()
                    closing.insert(first)
                } else {
                    #expect(decision == .admit)
                }
                silent.append(id)
                open[id] = from
            case 2:
                guard let one = known.randomElement(using: &random) else { continue }
                if Bool.random(using: &random) {
                    admission.wasActive(one)
                    if let index = silent.firstIndex(of: one) { silent.append(silent.remove(at: index)) }
                } else {
                    let user = ["anna", "bert", nil].randomElement(using: &random) ?? nil
                    let isBelowMax = user == nil || users.values.count { $0 == user } < 3
                    let ownsSlot = admission.showedCredential(one, of: user)
                    #expect(ownsSlot == (isBelowMax && silent.contains(one)))
                    if ownsSlot {
                        silent.removeAll { $0 == one }
                        users[one] = user
                    }
                }
            default:
                guard let one = known.randomElement(using: &random) else { continue }
                admission.closed(one)
                silent.removeAll { $0 == one }
                closing.remove(one)
                users[one] = nil
                open[one] = nil
            }
            #expect(admission.count == open.count)
            #expect(admission.withoutCredentialCount == silent.count)
            #expect(admission.closingCount == closing.count)
        }
    }

    @Test func activityIsReportedEveryHalfSecond() {
        var ticks = ActivityTicks()
        let due = [0, 499_999_999, 500_000_000, 999_999_999, 1_000_000_000].map { (time: UInt64) in
            ticks.isDue(at: .uptimeNanoseconds(time))
        }
        #expect(due == [true, false, true, false, true])
    }

    @Test func noticesAreLoggedOnceASecond() {
        var throttle = NoticeThrottle()
        #expect(throttle.occurred(at: .zero) == 0)
        for milliseconds in 1..<1_000 { #expect(throttle.occurred(at: .milliseconds(milliseconds)) == nil) }
        #expect(throttle.occurred(at: .seconds(1)) == 999)
        #expect(throttle.occurred(at: .milliseconds(1_999)) == nil)
        #expect(throttle.occurred(at: .milliseconds(2_000)) == 1)
    }
}

/// The same over sockets.
@Suite(.timeLimit(.minutes(10)))
struct ConnectionSlotTests {
    @Test func silentConnectionIsClosedForANewOneWithTheReason() async throws {
        let service = try await TestService { $0.limits.connectionsMax = 10 }
        var silent: [RawPeer] = []
        for _ in 0..<9 {
            let peer = try await service.peer()
            #expect(try await peer.call("check.echo")["result"] != nil)
            silent.append(peer)
        }
        let user = try await service.peer()
        #expect(try await user.call("check.echo", #"{"auth":"user-anna"}"#)["result"] != nil)
        let refusal = try await silent[0].response()
        #expect(refusal["id"] == .null)
        #expect(refusal["error"]?["data"]?["reason"] == "too_many_connections")
        try await silent[0].expectClosed()
        #expect(try await silent[8].call("check.echo")["result"] != nil)
        await service.stop()
    }

    @Test func oneAccountDoesNotKeepOthersOut() async throws {
        let service = try await TestService {
            $0.limits.connectionsMax = 10
            $0.limits.connectionsPerUserMax = 3
        }
        var annas: [RawPeer] = []
        for _ in 0..<9 {
            let peer = try await service.peer()
            #expect(try await peer.call("check.echo", #"{"auth":"user-anna"}"#)["result"] != nil)
            annas.append(peer)
        }
        for _ in 0..<6 {
            let bert = try await service.peer()
            #expect(try await bert.call("check.echo", #"{"auth":"user-bert"}"#)["result"] != nil)
            annas.append(bert)
        }
        // Of anna's, those above three go, the longest silent ones first; of bert's three stay.
        for index in 3..<8 {
            #expect(try await annas[index].response()["error"]?["data"]?["reason"] == "too_many_connections")
            try await annas[index].expectClosed()
        }
        for index in [0, 1, 2, 9, 10, 11] { #expect(try await annas[index].call("check.echo")["result"] != nil) }
        await service.stop()
    }

    @Test func emptyListIsNoParams() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for list in ["[]", "[ ]"] { #expect(try await peer.call("check.echo", list)["result"] != nil) }
        for list in ["[1]", "[[]]", "[null,{}]"] {
            let refused = try await peer.call("check.echo", list)
            #expect(refused["error"]?["code"] == -32602)
            #expect(refused["error"]?["data"]?["reason"] == "positional_params")
        }
        await service.stop()
    }

    @Test func longCredentialIsRefusedBeforeItIsLookedUp() async throws {
        let service = try await TestService { $0.limits.credentialBytesMax = 100 }
        let peer = try await service.peer()
        for (length, isTaken) in [(100, true), (101, false)] {
            let credential = "user-" + String(repeating: "a", count: length - 5)
            for method in ["check.echo", "session.authenticate"] {
                let response = try await peer.call(method, #"{"auth":"\#(credential)"}"#)
                #expect((response["result"] != nil) == isTaken)
                if !isTaken {
                    #expect(response["error"]?["data"]?["reason"] == "credential_too_long")
                    #expect(response["error"]?["data"]?["parameter"] == "auth")
                }
            }
        }
        #expect(RPCLimits().credentialBytesMax == 16 * 1024)
        await service.stop()
    }
}
