import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// Deliveries to many devices are made at the pace at which they are delivered, and take nothing from others.
@Suite(.timeLimit(.minutes(5))) struct FanOutPaceTests {
    private let clock = TestClock()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func outbox(pendingMax: Int = 1_000) async throws -> Outbox {
        try await Outbox.test(MemoryStore(), clock) { configuration in
            configuration.limits.deliveriesAtOnceMax = 20
            configuration.limits.pendingMax = pendingMax
        }
    }

    private func subscribe(_ uids: [String], _ outbox: Outbox) async throws {
        for uid in uids {
            _ = try await outbox.store.write { transaction in
                var changes = TopicChanges()
                _ = try changes.subscribe(uid, to: "news", topicsMax: 9, in: transaction)
                try changes.writes.apply(to: transaction)
            }
        }
    }

    private func sendToAll(_ outbox: Outbox) async throws -> String {
        var new = outbox.notification("news")
        new.recipients = .topic("news")
        return try #require(try await outbox.accept(new).notification)
    }

    private func running(_ outbox: Outbox, _ body: () async throws -> Void) async throws {
        let task = Task { [logger] in await FanOut(outbox, logger: logger).run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        task.cancel()
        await task.value
        try result.get()
    }

    @Test func whatIsSentMeanwhileWaitsBehindOnePage() async throws {
        let (outbox, channel) = (try await outbox(), ScriptedChannel(.apns))
        let uids = (100..<200).map { "u\($0)" }
        for uid in uids + ["v"] { try await outbox.addPhone(uid, of: uid) }
        try await subscribe(uids, outbox)
        let id = try await sendToAll(outbox)
        try await running(outbox) {
            try await eventually("the first page is there") { outbox.pending == 20 }
            for number in 1...5 { try await outbox.send("chat \(number)", to: ["v"]) }
            #expect(outbox.pending == 25 && outbox.fanOuts.waiting == 1)
            let dispatcher = try await ProviderDispatcher(
                outbox, channels: [channel], ResultWriter(outbox), logger: logger)
            let task = Task { await dispatcher.run() }
            // The clock stands: no page comes but those for which the queue rings.
            try await eventually("all arrive") { outbox.pending == 0 && outbox.fanOuts.waiting == 0 }
            await dispatcher.stop()
            await task.value
        }
        #expect(try await outbox.states(of: id).count { $0 == .delivered } == 100)
        #expect(channel.deliveries.count == 105)
    }

    @Test func halfOfTheOutboxIsLeftToOthers() async throws {
        let outbox = try await outbox(pendingMax: 80)
        let uids = (100..<300).map { "u\($0)" }
        for uid in uids { try await outbox.addDevice(uid, of: uid) }
        try await subscribe(uids, outbox)
        let id = try await sendToAll(outbox)
        let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
        try await running(outbox) {
            // Nothing is delivered, so a page comes after each second.
            try await eventually("half of it is full") {
                clock.advance(by: .seconds(1))
                return outbox.pending == 40
            }
            for _ in 0..<20 {
                clock.advance(by: .seconds(1))
                try await outbox.change { $0.writes.delete(RecordKey(.fanOut).with("none")) }
            }
            #expect(outbox.pending == 40 && outbox.fanOuts.waiting == 1)
            try await eventually("the others follow") {
                clock.advance(by: .seconds(1))
                for lease in try await outbox.lease(limit: 20).leases { try await outbox.record(delivered, of: lease) }
                return outbox.pending == 0 && outbox.fanOuts.waiting == 0
            }
        }
        let states = try await outbox.states(of: id)
        #expect(states.count == 200 && states.allSatisfy { $0 == .delivered })
    }

    /// Nothing is delivered here, so a page comes after each second.
    private func makeAll(_ outbox: Outbox, _ queueLooks: () -> Void = {}) async throws {
        try await running(outbox) {
            try await eventually("all pages are made", within: .seconds(60)) {
                queueLooks()
                clock.advance(by: .seconds(1))
                return outbox.fanOuts.waiting == 0
            }
        }
    }

    @Test func oneUserThatKeepsMuchWaitingDelaysNoPage() async throws {
        let outbox = try await outbox()
        let uids = (100..<200).map { "u\($0)" }
        for uid in uids + ["v"] { try await outbox.addPhone(uid, of: uid) }
        for number in 1...600 { try await outbox.send("\(number)", to: ["v"]) }
        #expect(outbox.waiting.total == 600 && outbox.waiting.boundedTotal == 15)
        try await subscribe(uids, outbox)
        let id = try await sendToAll(outbox)
        try await makeAll(outbox)
        #expect(try await outbox.states(of: id).count { $0 == .pending } == 100)
        #expect(outbox.waiting.total == 700 && outbox.waiting.boundedTotal == 115)
        // Each end counts as the beginning did.
        for device in uids + ["v"] { try await outbox.dropDeliveries(of: device) }
        #expect(outbox.waiting.total == 0 && outbox.waiting.boundedTotal == 0)
    }

    @Test func whatAPausedQueueHoldsDelaysNoPageForEver() async throws {
        let outbox = try await outbox(pendingMax: 160)
        let uids = (100..<200).map { "u\($0)" }
        for uid in uids { try await outbox.addPhone(uid, of: uid) }
        try await subscribe(uids, outbox)
        let id = try await sendToAll(outbox)
        // As a queue says of itself when it is stopped or paused.
        try await makeAll(outbox) { outbox.fanOuts.queue("apns default", isBehind: false) }
        #expect(try await outbox.states(of: id).count { $0 == .pending } == 100)
    }

    @Test(arguments: [(60, true, true), (61, false, true), (120, false, true), (121, false, false)])
    func pagesLeaveAnEighthOfTheOutbox(waiting: Int, fits: Bool, fitsSlowly: Bool) async throws {
        let outbox = try await outbox(pendingMax: 160)
        for user in 0..<waiting {
            try await outbox.addPhone("p\(user)", of: "u\(user)")
            try await outbox.send("a", to: ["u\(user)"])
        }
        #expect(FanOutPages(outbox).fits == fits && FanOutPages(outbox).fitsSlowly == fitsSlowly)
    }

    @Test func jobsEndWithTheirNotificationThoughNoPageFits() async throws {
        let outbox = try await outbox(pendingMax: 80)
        let uids = (100..<300).map { "u\($0)" }
        for uid in uids { try await outbox.addDevice(uid, of: uid) }
        try await subscribe(uids, outbox)
        let id = try await sendToAll(outbox)
        try await running(outbox) {
            try await eventually("half of it is full") {
                clock.advance(by: .seconds(1))
                return outbox.pending == 40
            }
            #expect(outbox.fanOuts.waiting == 1)
            try await eventually("the job has ended", within: .seconds(60)) {
                clock.advance(by: .seconds(86_400))
                return outbox.fanOuts.waiting == 0
            }
        }
        #expect(try await outbox.states(of: id).count == 40)
        #expect(try await outbox.store.read { try $0.count(.fanOut) } == 0)
    }

    @Test func aQueueThatIsStoppedDelaysNone() {
        let jobs = FanOutJobs(count: 1, NotifierMetrics())
        jobs.queue("apns default", isBehind: true)
        jobs.queue("fcm default", isBehind: true)
        #expect(!jobs.isClear)
        jobs.queue("fcm default", isBehind: false)
        #expect(!jobs.isClear)
        // As a queue says of itself when it is stopped or paused.
        jobs.queue("apns default", isBehind: false)
        #expect(jobs.isClear)
    }
}
