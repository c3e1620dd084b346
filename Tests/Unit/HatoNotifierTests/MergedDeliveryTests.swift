import HatoModel
import HatoPush
import HatoStorage
import Testing

@testable import HatoNotifier

/// What a delivery that counts others owes to them.
@Suite(.timeLimit(.minutes(10))) struct MergedDeliveryTests {
    private let clock = TestClock()

    /// Accepts a notification of each thread; the last one lives for `lastSeconds`.
    private func flood(
        _ count: Int, _ outbox: Outbox, keyed: Bool = false, lastSeconds: Int64 = 86_400
    ) async throws {
        try await outbox.change { [clock] draft in
            var acceptance = Acceptance(NotifierLimits(), DeliveryPolicy())
            for index in 0..<count {
                let seconds = index == count - 1 ? lastSeconds : 86_400
                var new = NewNotification(
                    recipients: .devices(["p1"]), text: .init(title: "\(index)", body: "b"), createdAt: clock.now,
                    expiresAt: clock.now + seconds * 1_000)
                if keyed { new.collapseKey = "k\(index)" }
                new.options = Notifier.DeliveryOptions()
                new.options?.thread = "t\(index)"
                _ = try acceptance.accept(new, id: "flood-\(clock.now)-\(index)", in: &draft)
            }
        }
    }

    private func outbox() async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addPhone("p1", of: "u1")
        return outbox
    }

    @Test func ofManyThreadsAMutedOneTakesNoOtherWithIt() async throws {
        let outbox = try await outbox()
        try await flood(40, outbox)
        #expect(try await outbox.deliverAll().count == 10)
        var request = Notifier.Preferences.Set()
        request.mutes = .value(["t39": .never])
        let mutes = request
        _ = try await outbox.change { try PreferenceRows(uid: "u1", mutesMax: 10).replace(by: mutes, in: &$0) }
        clock.advance(by: .seconds(3))
        let sent = try await outbox.deliverAll().map(\.delivery.content.text)
        #expect(sent.map(\.title) == ["38"] && sent.first?.body == "29 new messages\nb")
        #expect(outbox.pending == 0)
    }

    @Test func oneThatCountsOthersLivesAsLongAsTheLastOfThem() async throws {
        let outbox = try await outbox()
        try await flood(40, outbox, lastSeconds: 60)
        #expect(try await outbox.deliverAll().count == 10)
        clock.advance(by: .seconds(3))
        // The first round merges.
        let leases = try await outbox.leaseAll() + outbox.leaseAll()
        let lease = try #require(leases.first)
        #expect(lease.delivery.content.text.title == "39")
        #expect(lease.delivery.expiresAt == clock.now - 3_000 + 86_400_000)
    }

    @Test func whatAReceiverRefusesTakesNoOthersWithIt() async throws {
        let outbox = try await outbox()
        try await flood(40, outbox)
        #expect(try await outbox.deliverAll().count == 10)
        clock.advance(by: .seconds(3))
        // The first round merges.
        let merged = try await outbox.leaseAll() + outbox.leaseAll()
        let refused = DeliveryOutcome.rejected(DeliveryResponse(status: 400, error: "the title is too long"))
        #expect(merged.map(\.delivery.content.text.title) == ["39"])
        for lease in merged { try await outbox.record(refused, of: lease) }
        clock.advance(by: .seconds(2))
        let again = try await outbox.leaseAll()
        #expect(again.map(\.delivery.content.text) == [.init(body: "29 new messages")])
        // Nothing was shown, so this one interrupts.
        #expect(again.first?.delivery.content.appearance.interruptionLevel == nil)
        for lease in again { try await outbox.record(refused, of: lease) }
        #expect(outbox.pending == 0 && outbox.deadCount == 1)
    }

    @Test func aNewerOneWithTheKeyCountsWhatWentIntoOneThatFailed() async throws {
        let outbox = try await outbox()
        try await flood(40, outbox, keyed: true)
        #expect(try await outbox.deliverAll().count == 10)
        clock.advance(by: .seconds(3))
        // The first round merges.
        let leases = try await outbox.leaseAll() + outbox.leaseAll()
        #expect(leases.count == 1)
        for lease in leases { try await outbox.record(ScriptedChannel.busy, of: lease) }
        var new = outbox.notification("newer", collapseKey: "k39")
        new.recipients = .devices(["p1"])
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = "t39"
        _ = try await outbox.accept(new)
        clock.advance(by: .seconds(60))
        let sent = try await outbox.deliverAll().map(\.delivery.content.text)
        #expect(sent.map(\.title) == ["newer"] && sent.first?.body?.hasPrefix("30 new messages") == true)
    }

    @Test func whatCameBeforeManyWentAsOneDoesNotWaitBehindTheirTurns() async throws {
        let outbox = try await outbox()
        try await flood(200, outbox, keyed: true)
        #expect(try await outbox.deliverAll().count == 10)
        clock.advance(by: .seconds(1))
        var new = outbox.notification("call")
        new.recipients = .devices(["p1"])
        new.options = Notifier.DeliveryOptions()
        new.options?.interruptionLevel = .timeSensitive
        _ = try await outbox.accept(new)
        var sent = try await outbox.deliverAll().map(\.delivery.content.text.title)
        #expect(sent.isEmpty)
        for seconds in [2, 4] {
            clock.advance(by: .seconds(seconds))
            sent += try await outbox.deliverAll().map(\.delivery.content.text.title)
        }
        #expect(sent == ["199", "call"])
        #expect(outbox.pending == 0)
    }

    @Test func theOldCallIsNotMadeAgainForWhatIsNotWanted() {
        for (reason, isProblem) in [
            ("off", false), ("muted", false), ("quiet", false), ("coalesced", false), ("collapsed", false),
            ("expired", true),
        ] {
            var delivery = DeliveryRecord.fields.blank
            delivery.machine = DeliveryStateMachine(dueAt: 0, expiresAt: 10)
            switch reason {
            case "off": _ = delivery.machine.ended(because: .platformOff, at: 1)
            case "muted": _ = delivery.machine.ended(because: .muted, at: 1)
            case "coalesced": _ = delivery.machine.coalesced(at: 1)
            case "collapsed": _ = delivery.machine.replaced(at: 1)
            case "quiet":
                _ = delivery.machine.held(until: 10, by: .quiet)
                _ = delivery.machine.timePassed(at: 10)
            default: _ = delivery.machine.timePassed(at: 10)
            }
            #expect(delivery.machine.reason == reason)
            #expect((delivery.problem != nil) == isProblem, "\(reason)")
        }
    }
}
