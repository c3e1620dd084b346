import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import TestAuth
import Testing

@testable import HatoNotifier

/// E-mails beside withdrawal, silent pushes and many threads.
@Suite struct MailCouplingTests {
    private let clock = TestClock()
    private let sent = DeliveryOutcome.delivered(DeliveryResponse(status: 250))

    private func outbox(_ change: (inout NotifierConfiguration) -> Void = { _ in }) async throws -> Outbox {
        let outbox = try await Outbox.test(MemoryStore(), clock, change)
        try await outbox.addMailbox("m1", of: "u1")
        return outbox
    }

    private func leases(_ outbox: Outbox) async throws -> [Lease] {
        let queue = try #require(ProviderQueue(.email, app: "default"))
        return try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases
    }

    private func titles(_ lease: Lease) -> [String] {
        lease.delivery.content.digest?.entries.compactMap(\.text.title) ?? []
    }

    /// What the e-mails that are due say, of each thread; nil: no more is due.
    private func mails(_ outbox: Outbox) async throws -> [[String]] { try await leases(outbox).map(titles) }

    private func new(_ title: String, thread: String?, on outbox: Outbox) -> NewNotification {
        // Ids of one millisecond have no order.
        clock.advance(by: .milliseconds(1))
        var new = outbox.notification(title)
        new.options = Notifier.DeliveryOptions()
        new.options?.thread = thread
        return new
    }

    @discardableResult
    private func send(
        _ title: String, thread: String? = "t", to uids: [String] = ["u1"], on outbox: Outbox
    ) async throws -> String {
        var new = new(title, thread: thread, on: outbox)
        new.recipients = .uids(uids)
        return try #require(try await outbox.accept(new).notification)
    }

    private func read(_ thread: String? = "t", of uid: String = "u1", on outbox: Outbox) async throws {
        try await outbox.change { draft in
            guard let thread else { return try ThreadSteps.readAll(of: uid, in: &draft) }
            try ThreadSteps.setCount(0, of: UserThread(uid: uid, thread: thread), in: &draft)
        }
    }

    /// Lets what is to be withdrawn be withdrawn.
    private func withdraw(_ outbox: Outbox) async throws {
        let withdrawals = Withdrawals(outbox, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await withdrawals.runAll()
        #expect(try outbox.store.snapshot().count(.withdrawal) == 0)
    }

    private func reason(_ outbox: Outbox, _ id: String) async throws -> String? {
        try await outbox.status(of: id)?.deliveries.first?.reason
    }

    // MARK: Withdrawal

    /// The withdrawal may come to the deliveries before the e-mail or after it.
    @Test(arguments: [true, false]) func whatIsWithdrawnIsInNoMail(isDone: Bool) async throws {
        let outbox = try await outbox()
        var ids: [String] = []
        for title in ["a", "b", "c", "d"] { ids.append(try await send(title, on: outbox)) }
        let gone = [ids[0], ids[2]]
        try await outbox.change { draft in
            for id in gone { try ThreadSteps.beginWithdrawal(of: id, in: &draft) }
        }
        if isDone { try await withdraw(outbox) }
        clock.advance(by: .seconds(60))
        // The head goes first, and the one behind it is due.
        if !isDone { #expect(try await mails(outbox).isEmpty) }
        let lease = try #require(try await leases(outbox).first)
        #expect(titles(lease) == ["d", "b"] && lease.delivery.content.digest?.more == 0)
        #expect(lease.delivery.id == "\(ids[1])-0")
        try await withdraw(outbox)
        try await outbox.record(sent, of: lease)
        for id in gone { #expect(try await reason(outbox, id) == "withdrawn") }
        for id in [ids[1], ids[3]] { #expect(try await outbox.states(of: id) == [.delivered]) }
        #expect(try await outbox.counts().pending == 0)
    }

    /// Nil: all threads.
    @Test(arguments: ["t", nil], [true, false]) func whatIsReadIsInNoMail(thread: String?, isDone: Bool) async throws {
        let outbox = try await outbox()
        let read = [try await send("a", on: outbox), try await send("b", on: outbox)]
        try await self.read(thread, on: outbox)
        if isDone { try await withdraw(outbox) }
        let later = try await send("c", on: outbox)
        clock.advance(by: .seconds(60))
        if !isDone { for _ in read { #expect(try await mails(outbox).isEmpty) } }
        let lease = try #require(try await leases(outbox).first)
        #expect(titles(lease) == ["c"])
        try await outbox.record(sent, of: lease)
        try await withdraw(outbox)
        for id in read { #expect(try await reason(outbox, id) == "withdrawn") }
        #expect(try await outbox.states(of: later) == [.delivered])
        #expect(try await outbox.counts().pending == 0)
    }

    @Test func aRepetitionLeavesOutWhatWasWithdrawnSince() async throws {
        let outbox = try await outbox()
        var ids: [String] = []
        for title in ["a", "b", "c"] { ids.append(try await send(title, on: outbox)) }
        clock.advance(by: .seconds(60))
        let first = try #require(try await leases(outbox).first)
        #expect(titles(first) == ["c", "b", "a"])
        let gone = [ids[0], ids[1]]
        try await outbox.change { draft in
            for id in gone { try ThreadSteps.beginWithdrawal(of: id, in: &draft) }
        }
        try await withdraw(outbox)
        try await outbox.record(.failed(DeliveryResponse(status: 451), retryAfter: nil), of: first)
        clock.advance(by: .seconds(60))
        let second = try #require(try await leases(outbox).first)
        #expect(titles(second) == ["c"] && second.delivery.id == first.delivery.id)
        for id in gone { #expect(try await reason(outbox, id) == "withdrawn") }
    }

    @Test func noSilentPushIsAMail() async throws {
        let outbox = try await outbox()
        try await outbox.addMailbox("m2", of: "u2")
        try await outbox.addDevice("d1", of: "u1")
        let id = try await send("a", to: ["u1", "u2"], on: outbox)
        for lease in try await outbox.lease(limit: 10).leases { try await outbox.record(sent, of: lease) }
        clock.advance(by: .seconds(60))
        for lease in try await leases(outbox) { try await outbox.record(sent, of: lease) }
        #expect(try await outbox.states(of: id) == [.delivered, .delivered, .delivered])
        for uid in ["u1", "u2"] { try await read(of: uid, on: outbox) }
        try await withdraw(outbox)
        clock.advance(by: .seconds(3_600))
        let pushes = try await outbox.lease(limit: 10).leases
        #expect(pushes.map(\.delivery.content.device) == ["d1"] && pushes.first?.delivery.content.hato.withdraw == [id])
        #expect(try await leases(outbox).isEmpty)
        // That of u2, which has an e-mail only, was not even made.
        #expect(try outbox.store.snapshot().count(.notification) == 2)
    }

    // MARK: A user that is there

    /// However the attempt ends that was under way; nil: with its process.
    @Test(
        arguments: [
            .failed(DeliveryResponse(status: 451), retryAfter: nil), .postponed(DeliveryResponse()),
            .providerRefused(DeliveryResponse(status: 535), retryAfter: nil),
            .rejected(DeliveryResponse(status: 554)), nil,
        ] as [DeliveryOutcome?])
    func aMailThatFailsWhenItsUserIsThereIsNotTriedAgain(outcome: DeliveryOutcome?) async throws {
        let outbox = try await outbox()
        let ids = [try await send("a", on: outbox), try await send("b", on: outbox)]
        clock.advance(by: .seconds(60))
        let lease = try #require(try await leases(outbox).first)
        try await WaitingMails(outbox: outbox).userWasSeen("u1")
        #expect(try await outbox.states(of: ids[0]) == [.leased])
        if let outcome { try await outbox.record(outcome, of: lease) } else { try await outbox.reclaimLeases() }
        clock.advance(by: .seconds(600))
        #expect(try await leases(outbox).isEmpty)
        for id in ids { #expect(try await reason(outbox, id) == "seen") }
        let next = try await send("c", on: outbox)
        clock.advance(by: .seconds(60))
        let second = try #require(try await leases(outbox).first)
        #expect(titles(second) == ["c"] && second.delivery.id == "\(next)-0")
    }

    // MARK: Bounds

    @Test func furtherThreadsOfAMailboxGoTogether() async throws {
        let outbox = try await outbox { $0.limits.mailThreadsMax = 2 }
        try await outbox.addMailbox("m2", of: "u2")
        for number in 1...5 { try await send("\(number)", thread: "t\(number)", on: outbox) }
        try await send("6", thread: "t1", on: outbox)
        try await send("7", thread: nil, on: outbox)
        try await send("8", thread: "t3", to: ["u2"], on: outbox)
        clock.advance(by: .seconds(60))
        let leases = try await leases(outbox)
        #expect(Set(leases.map(titles)) == [["6", "1"], ["2"], ["7", "5", "4", "3"], ["8"]])
        for lease in leases { try await outbox.record(sent, of: lease) }
        // For ten minutes these are the threads that have e-mails, though none of them waits for one.
        try await send("9", thread: "t9", on: outbox)
        try await send("10", thread: "t2", on: outbox)
        clock.advance(by: .seconds(600))
        #expect(try await Set(mails(outbox)) == [["9"], ["10"]])
        let records = try await outbox.store.read { try $0.rows(RecordKey(.digest).with("m1")) }
        #expect(records.count == 3, "t1, t2 and the others")
    }

    /// A transaction does not see what it writes.
    @Test func furtherThreadsOfOneTransactionGoTogether() async throws {
        let outbox = try await outbox { $0.limits.mailThreadsMax = 2 }
        let all = (1...5).map { new("\($0)", thread: "t\($0)", on: outbox) }
        let (limits, policy) = (outbox.limits, outbox.policy)
        try await outbox.change { draft in
            var acceptance = Acceptance(limits, policy)
            for (index, new) in all.enumerated() { _ = try acceptance.accept(new, id: "n\(index)", in: &draft) }
        }
        clock.advance(by: .seconds(60))
        #expect(try await Set(mails(outbox)) == [["1"], ["2"], ["5", "4", "3"]])
    }

    // MARK: Privacy and pages

    @Test func wordsThatProvidersMayNotSeeAreInNoMail() async throws {
        let outbox = try await outbox()
        for title in ["secret1", "secret2"] {
            var new = new(title, thread: "t", on: outbox)
            new.content = .ids
            new.options?.link = "https://secret.example.com"
            _ = try await outbox.accept(new)
        }
        clock.advance(by: .seconds(60))
        let only = try #require(try await leases(outbox).first)
        #expect(only.delivery.content.digest?.withheld == 2 && !"\(only.delivery)".contains("secret"))
        try await outbox.record(sent, of: only)
        var new = new("secret3", thread: "t", on: outbox)
        new.content = .ids
        let last = try #require(try await outbox.accept(new).notification)
        try await send("open", on: outbox)
        clock.advance(by: .seconds(600))
        let both = try #require(try await leases(outbox).first)
        #expect(titles(both) == ["open"] && both.delivery.content.digest?.withheld == 1)
        #expect(both.delivery.content.digest?.more == 0 && !"\(both.delivery)".contains("secret"))
        try await outbox.record(sent, of: both)
        #expect(try await outbox.states(of: last) == [.delivered])
        // No text stays behind the last e-mail.
        for row in try outbox.store.snapshot().rows(RecordKey(.notification)) {
            let text = String(decoding: row.value, as: UTF8.self)
            #expect(!text.contains("secret") && !text.contains("open"))
        }
    }

    @Test func pagesOfManyDevicesReachMailboxes() async throws {
        let outbox = try await outbox { $0.limits.deliveriesAtOnceMax = 2 }
        let users = (1...7).map { "u\($0)" }
        for user in users.dropFirst() { try await outbox.addMailbox("m-\(user)", of: user) }
        try await outbox.addDevice("d7", of: "u7")
        let id = try await send("a", to: users, on: outbox)
        var last: RecordKey?
        while let job = try await FanOutPages(outbox).turn(after: last) { last = job }
        clock.advance(by: .seconds(60))
        // None of the e-mails, which go one after the other, is waited for.
        #expect(!outbox.fanOuts.isClear)
        outbox.fanOuts.queue(Dispatcher.queueName, isBehind: false)
        outbox.fanOuts.queue(ProviderQueue(.email, app: "default")?.name ?? "", isBehind: true)
        #expect(outbox.fanOuts.isClear)
        #expect(try await outbox.lease(limit: 10).leases.map(\.delivery.content.device) == ["d7"])
        let leases = try await leases(outbox)
        #expect(Set(leases.map(\.delivery.content.uid)) == Set(users) && leases.count == 7)
        for lease in leases {
            #expect(titles(lease) == ["a"])
            try await outbox.record(sent, of: lease)
        }
        #expect(try await outbox.states(of: id).count { $0 == .delivered } == 7)
        // A silent one is no e-mail here either.
        var silent = new("", thread: nil, on: outbox)
        (silent.text, silent.recipients) = (.init(), .uids(users))
        let second = try #require(try await outbox.accept(silent).notification)
        while let job = try await FanOutPages(outbox).turn(after: last) { last = job }
        let reasons = try #require(try await outbox.status(of: second)).deliveries.map(\.reason)
        #expect(reasons.count { $0 == "silent" } == 7)
    }

    // MARK: Reports

    /// By its reply token, and by the ID token of its user.
    @Test(.timeLimit(.minutes(10)), arguments: ["displayed", "opened", "dismissed", "ACCEPT"], [true, false])
    func aReportOfADeviceDropsWhatWouldBeMailed(action: String, isByToken: Bool) async throws {
        let auth = try await RespondingWorld.startAuth()
        let (channel, mails) = (ScriptedChannel(), ScriptedChannel(.email))
        var settings = MailCredentials.Settings(url: "smtp://127.0.0.1:25", from: "chat@example.com")
        settings.tls = "none"
        var app = PushApp()
        app.mail = try MailCredentials(settings)
        let apps = PushApps(["default": app])
        let notifier = try await RespondingWorld.start(auth, channels: [channel, mails]) { $0.apps = apps }
        _ = try await notifier.client.call(Notifier.Categories.Set(RespondingWorld.plain))
        var boxes: [String] = []
        for uid in ["u1", "u2"] {
            var params = Notifier.Devices.Register(platform: .email).members
            params["auth"] = .string(TestKeys.administrator)
            params["as"] = [
                "uid": .string(uid), "token": ["email": .string("\(uid)@example.com"), "email_verified": true],
            ]
            let result = try await notifier.client.call(method: Notifier.Devices.Register.method, params: params)
            boxes.append(try Notifier.Devices.Register.decodeResult(result).device)
        }
        try await notifier.addDevice(of: "u1", at: "https://example.com/u1")
        var send = Notifier.Send(to: .init(uids: ["u1", "u2"]), notification: .init(body: "ただいま"))
        send.category = "MARRY_ME"
        let id = try #require(try await notifier.client.call(send).notification)
        try await eventually("delivered") { channel.deliveries.count == 1 }
        let token = try #require(channel.deliveries.first?.content.hato.reply)
        var report = Notifier.Respond(notification: id, action: action, replyToken: isByToken ? token : nil)
        if isByToken {
            let phone = notifier.anonymousClient()
            _ = try await phone.call(report)
            await phone.close()
        } else {
            report.replyToken = nil
            _ = try await notifier.call(report, as: "u1")
        }
        let deliveries = try await notifier.client.call(Notifier.Status(notification: id)).deliveries
        let states = boxes.map { box in deliveries.first { $0.device == box } }
        #expect(states[0]?.state == .dropped && states[0]?.reason == "seen")
        #expect(states[1]?.state == .pending && mails.deliveries.isEmpty)
        await notifier.stop()
        await auth.stop()
    }
}
