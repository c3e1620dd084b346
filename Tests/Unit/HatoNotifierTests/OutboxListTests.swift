import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(5))) struct OutboxListTests {
    private let clock = TestClock()

    /// Three users with two devices, three notifications to all, one of them of a trigger. Of the first, u1 has both,
    /// one of u2 is dead, and one of u3 is being attempted.
    private func outbox() async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for user in 1...3 { for device in 1...2 { try await outbox.addDevice("d\(user)\(device)", of: "u\(user)") } }
        for number in 1...3 {
            var new = outbox.notification("\(number)", to: ["u1", "u2", "u3"])
            new.trigger = number == 2 ? "t" : nil
            try await outbox.accept(new)
            clock.advance(by: .milliseconds(1))
        }
        for lease in try await outbox.lease(limit: 100).leases {
            switch lease.delivery.content.device {
            case "d11", "d12": try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease)
            case "d21": try await outbox.record(ScriptedChannel.wrong, of: lease)
            case "d32": break
            default: try await outbox.record(ScriptedChannel.busy, of: lease)
            }
        }
        return outbox
    }

    /// Each page as devices, and the states of all.
    private func list(
        _ outbox: Outbox, limit: Int = 100, rowsMax: Int = 10_000, _ change: (inout Notifier.Outbox.List) -> Void
    ) async throws -> (pages: [[String]], states: Set<Notifier.DeliveryState>) {
        var request = Notifier.Outbox.List()
        change(&request)
        let listing = DeliveryListing(request, rowsMax: rowsMax)
        var (pages, states, last): ([[String]], Set<Notifier.DeliveryState>, RecordKey?) = ([], [], nil)
        repeat {
            let page = try await outbox.store.read { [last] in try listing.page(of: $0, before: last, limit: limit) }
            pages.append(page.deliveries.map(\.device))
            states.formUnion(page.deliveries.map(\.state))
            last = try page.after.map { try listing.position($0) }
        } while last != nil
        return (pages, states)
    }

    @Test func deliveriesAreFoundByUserDeviceStateAndTrigger() async throws {
        let outbox = try await outbox()
        let all = try await list(outbox) { _ in }
        #expect(all.pages.first?.count == 18 && all.states == [.pending, .leased, .delivered, .dead])
        // The newest first.
        #expect(all.pages.first?.suffix(2) == ["d12", "d11"])
        #expect(try await list(outbox) { $0.uid = "u2" }.pages.first?.count == 6)
        #expect(try await list(outbox) { $0.device = "d11" }.pages == [["d11", "d11", "d11"]])
        #expect(try await list(outbox) { $0.trigger = "t" }.pages.first?.count == 6)
        #expect(try await list(outbox) { ($0.trigger, $0.uid) = ("t", "u3") }.pages == [["d32", "d31"]])
        let dead = try await list(outbox) { $0.state = .dead }
        #expect(dead.pages == [["d21"]] && dead.states == [.dead])
        #expect(try await list(outbox) { ($0.state, $0.uid) = (.dead, "u1") }.pages == [[]])
        let leased = try await list(outbox) { $0.state = .leased }
        #expect(leased.pages == [["d32"]] && leased.states == [.leased])
        let pending = try await list(outbox) { ($0.state, $0.uid) = (.pending, "u3") }
        #expect(pending.pages.first?.sorted() == ["d31", "d31", "d31", "d32", "d32"] && pending.states == [.pending])
        #expect(
            try await list(outbox) { ($0.state, $0.device, $0.uid) = (.pending, "d12", "u1") }.pages == [
                ["d12", "d12"]
            ])
        #expect(try await list(outbox) { ($0.state, $0.device, $0.uid) = (.pending, "d12", "u2") }.pages == [[]])
        #expect(try await list(outbox) { $0.state = .delivered }.pages == [["d12", "d11"]])
        #expect(try await list(outbox) { $0.state = .pending }.pages.first?.count == 14)
    }

    @Test func pagesGoOnWhereTheyEnded() async throws {
        let outbox = try await outbox()
        let two = try await list(outbox, limit: 2) { ($0.state, $0.uid) = (.pending, "u3") }.pages
        #expect(two.map(\.count) == [2, 2, 1])
        let all = try await list(outbox, limit: 5) { _ in }.pages
        #expect(all.map(\.count) == [5, 5, 5, 3])
        // A call looks at few rows, found or not.
        let few = try await list(outbox, rowsMax: 4) { $0.state = .delivered }.pages
        #expect(few.flatMap(\.self) == ["d12", "d11"] && few.count == 5)
    }

    @Test func aPageOfOtherParametersIsRefused() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        for after in ["", "%", Base64.url.encode(RecordKey(.delivery).with("x").bytes)] {
            var request = Notifier.Outbox.List(after: after)
            request.state = .dead
            do {
                _ = try await notifier.client.call(request)
                Issue.record("\(after) was accepted")
            } catch let error as RPCError { #expect(error.reason == "invalid_page") }
        }
        do {
            _ = try await notifier.call(Notifier.Outbox.List(), as: "u1")
            Issue.record("a user may list")
        } catch let error as RPCError { #expect(error.code == .permissionDenied) }
        #expect(try await notifier.client.call(Notifier.Outbox.List()).deliveries.isEmpty)
        await notifier.stop()
    }
}
