import HatoModel
import HatoPush
import HatoStorage
import Logging
import Testing

@testable import HatoNotifier

/// Withdrawals of more deliveries than one transaction visits.
@Suite struct ThreadPageTests {
    @Test func aUserWhoseDevicesAreInTwoPagesGetsItOnBoth() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        let users = (1...255).map { "u\($0)" } + ["last"]
        for user in users { try await outbox.addDevice("d-\(user)", of: user) }
        try await outbox.addDevice("d-more", of: "last")
        var new = outbox.notification("1", to: users)
        (new.isCounted, new.options) = (false, Notifier.DeliveryOptions())
        new.options?.thread = "c1"
        let id = try #require(try await outbox.accept(new).notification)
        func rounds() async throws -> [DeliveryContent] {
            var contents: [DeliveryContent] = []
            while case let leases = try await outbox.lease(limit: 100).leases, !leases.isEmpty {
                for lease in leases { try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease) }
                contents += leases.map(\.delivery.content)
            }
            return contents
        }
        _ = try await rounds()
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        _ = try await withdrawals.withdraw(.notification(id)) { _ = try ThreadSteps.beginWithdrawal(of: id, in: &$0) }
        let silent = try await rounds()
        #expect(silent.count == 257 && silent.allSatisfy { $0.hato.withdraw == [id] })
    }
}
