import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// Mailboxes that a server refuses without a reason, and records of e-mails that are needed no more.
@Suite(.timeLimit(.minutes(5))) struct MailRefusalTests {
    private let clock = TestClock()
    private let sent = DeliveryOutcome.delivered(DeliveryResponse(status: 250))
    private let refused = DeliveryOutcome.tokenRefused(DeliveryResponse(status: 550, error: "relay not permitted"))

    private func leases(_ outbox: Outbox) async throws -> [Lease] {
        let queue = try #require(ProviderQueue(.email, app: "default"))
        return try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases
    }

    /// Else it is called four times a minute, for ever.
    @Test func aRefusedMailboxIsCalledLessAndLess() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addMailbox("m1", of: "u1")
        let id = try await outbox.send("a")
        clock.advance(by: .seconds(60))
        for attempt in 1...12 {
            let lease = try #require(try await leases(outbox).first)
            #expect(lease.isKnownRefused == (attempt > 1))
            try await outbox.record(refused, of: lease)
            let delivery = try #require(try await outbox.status(of: id)?.deliveries.first)
            #expect(delivery.attempts == attempt && delivery.state == .pending)
            let wait = Int64(delivery.nextAttemptAt ?? 0) - clock.now
            #expect(attempt < 12 || wait > 300_000)
            clock.advance(by: .milliseconds(wait + 1))
        }
    }

    @Test(arguments: [false, true]) func aMailboxThatIsRefusedForDaysGoesIfOthersAreNot(areMailed: Bool) async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for name in ["1", "2"] { try await outbox.addMailbox("m\(name)", of: "u\(name)") }
        for day in 0...5 {
            #expect(try await outbox.device("m1") != nil, "day \(day)")
            try await outbox.send("a", to: ["u1", "u2"])
            clock.advance(by: .seconds(60))
            // The first round ends what has expired since the day before.
            for _ in 0..<3 {
                let leases = try await leases(outbox).sorted { $0.delivery.content.uid > $1.delivery.content.uid }
                for lease in leases {
                    let isRefused = lease.delivery.content.device == "m1" || !areMailed
                    try await outbox.record(isRefused ? refused : sent, of: lease)
                }
            }
            clock.advance(by: .seconds(86_400))
        }
        #expect((try await outbox.device("m1") == nil) == areMailed)
        #expect(try await outbox.device("m2") != nil)
    }

    @Test func mailboxesThatWereRefusedBeforeStopNoQueue() throws {
        for isKnown in [true, false] {
            var (refusals, stops) = (TokenRefusals(), false)
            for number in 0..<40 where refusals.attemptEnded(refused, of: try lease(number, isKnown), at: 1_000) {
                stops = true
            }
            #expect(stops != isKnown)
        }
    }

    private func lease(_ number: Int, _ isKnownRefused: Bool) throws -> Lease {
        let content = DeliveryContent(
            notification: "n", device: "m\(number)", uid: "u\(number)", text: .init(title: "a"))
        let address = DeviceAddress.email(try Mailbox("u\(number)@example.com"))
        return Lease(
            key: RecordKey(.delivery), attempt: 1, platform: .email, group: AttemptGroup(host: "mail", uid: "u"),
            hasSucceeded: true, isKnownRefused: isKnownRefused, began: 0,
            delivery: Delivery(id: "n-0", address: address, content: content, createdAt: 0))
    }

    // MARK: Records

    /// All are read then, and rows that are purged come many times a second.
    @Test func recordsOfMailsAreLookedAtEveryTenMinutesOnly() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        let purgedAt = clock.now - outbox.policy.keepFinished.milliseconds
        let due: [(id: String, seconds: Int64)] = [("ntf_1", 1), ("ntf_2", 700)]
        try await outbox.change { draft in
            for row in due {
                draft.writes.put(NotificationRecord.purgeKey(row.id, at: purgedAt + row.seconds * 1_000))
            }
        }
        func count(_ table: RecordKey.Table) throws -> Int { try outbox.store.snapshot().count(table) }
        let sweeper = Sweeper(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await sweeper.run() }
        try await eventually("it sleeps") { clock.nextAlarm != nil }
        // One that cannot be read says nothing.
        try await outbox.change { $0.writes.put(RecordKey(.digest).with("m1"), bytes: [0]) }
        clock.advance(by: .seconds(2))
        try await eventually("a row is purged") { try count(.purge) == 1 }
        #expect(try count(.digest) == 1)
        try await eventually("it sleeps again") { clock.nextAlarm != nil }
        clock.advance(by: .seconds(700))
        try await eventually("the record is gone") { try count(.digest) == 0 }
        task.cancel()
        await task.value
    }
}
