import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// E-mails: what comes for a thread goes together, at most once in ten minutes, and not at all when its user is there.
@Suite struct DigestTests {
    private let clock = TestClock()
    private let sent = DeliveryOutcome.delivered(DeliveryResponse(status: 250))

    private func outbox(_ store: (any Store)? = nil) async throws -> Outbox {
        let outbox = try await Outbox.test(store ?? MemoryStore(), clock)
        if store == nil { try await outbox.addMailbox("m1", of: "u1") }
        return outbox
    }

    private func leases(_ outbox: Outbox) async throws -> [Lease] {
        let queue = try #require(ProviderQueue(.email, app: "default"))
        return try await ProviderQueues(outbox).lease(from: queue, limit: 10).leases
    }

    /// The one e-mail that is due.
    private func mail(_ outbox: Outbox) async throws -> Lease {
        let leases = try await leases(outbox)
        #expect(leases.count == 1)
        return try #require(leases.first)
    }

    private func titles(_ lease: Lease) -> [String] {
        lease.delivery.content.digest?.entries.compactMap(\.text.title) ?? []
    }

    private func new(_ title: String, thread: String? = "t", on outbox: Outbox) -> NewNotification {
        var new = outbox.notification(title)
        var options = Notifier.DeliveryOptions()
        options.thread = thread
        new.options = options
        return new
    }

    @discardableResult
    private func send(_ title: String, thread: String? = "t", on outbox: Outbox) async throws -> String {
        try #require(try await outbox.accept(new(title, thread: thread, on: outbox)).notification)
    }

    private func delivery(_ outbox: Outbox, _ id: String) async throws -> Notifier.DeliveryStatus? {
        try await outbox.status(of: id)?.deliveries.first
    }

    @Test func aThreadWaitsAMinuteAndThenHasOneMailInTen() async throws {
        let outbox = try await outbox()
        let first = try await send("a", on: outbox)
        clock.advance(by: .seconds(30))
        let second = try await send("b", on: outbox)
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(30))
        let one = try await mail(outbox)
        #expect(titles(one) == ["b", "a"] && one.delivery.id == "\(first)-0")
        #expect(one.delivery.address == .email(try Mailbox("u1@example.com")))
        let third = try await send("c", on: outbox)
        #expect(try await leases(outbox).isEmpty, "one attempt at a time")
        try await outbox.record(sent, of: one)
        for id in [first, second] { #expect(try await outbox.states(of: id) == [.delivered]) }
        #expect(try await outbox.states(of: third) == [.pending])
        clock.advance(by: .seconds(60))
        let fourth = try await send("d", on: outbox)
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(539))
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(1))
        let two = try await mail(outbox)
        #expect(titles(two) == ["d", "c"] && two.delivery.id == "\(third)-0")
        try await outbox.record(sent, of: two)
        #expect(try await outbox.states(of: fourth) == [.delivered])
        #expect(try await outbox.counts().pending == 0)
    }

    @Test func eachThreadHasMailsOfItsOwn() async throws {
        let outbox = try await outbox()
        for (title, thread) in [("a", "t"), ("b", "u"), ("c", nil), ("d", "t"), ("e", nil)] {
            try await send(title, thread: thread, on: outbox)
        }
        clock.advance(by: .seconds(60))
        #expect(try await Set(leases(outbox).map(titles)) == [["d", "a"], ["b"], ["e", "c"]])
    }

    /// A mail program shows two e-mails with one id once: what the second one said more would be lost.
    @Test func aRepetitionHasTheSameIDAndTexts() async throws {
        let store = try MemoryStore()
        var outbox = try await outbox(store)
        try await outbox.addMailbox("m1", of: "u1")
        try await send("a", on: outbox)
        try await send("b", on: outbox)
        clock.advance(by: .seconds(60))
        let first = try await mail(outbox)
        try await outbox.record(.failed(DeliveryResponse(status: 451), retryAfter: nil), of: first)
        let late = try await send("c", on: outbox)
        clock.advance(by: .seconds(60))
        let second = try await mail(outbox)
        #expect(second.delivery.id == first.delivery.id && titles(second) == ["b", "a"])
        // The process ends meanwhile.
        outbox = try await self.outbox(store)
        let third = try await mail(outbox)
        #expect(third.delivery.id == first.delivery.id && titles(third) == ["b", "a"])
        try await outbox.record(sent, of: third)
        #expect(try await outbox.states(of: late) == [.pending])
        clock.advance(by: .seconds(599))
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(1))
        #expect(try await titles(mail(outbox)) == ["c"])
    }

    @Test func aMailThatIsRefusedGoesOnceWithoutWordsAndThenEndsAllThatItHas() async throws {
        let outbox = try await outbox()
        let ids = [try await send("a", on: outbox), try await send("b", on: outbox)]
        clock.advance(by: .seconds(60))
        let spam = DeliveryOutcome.rejected(DeliveryResponse(status: 554, error: "spam"))
        try await outbox.record(spam, of: try await mail(outbox))
        // One text must not silence the others.
        clock.advance(by: .seconds(60))
        let again = try await mail(outbox)
        #expect(again.delivery.content.digest?.entries.isEmpty == true && again.delivery.content.digest?.withheld == 2)
        try await outbox.record(spam, of: again)
        for id in ids {
            let delivery = try await delivery(outbox, id)
            #expect(
                delivery?.state == .dead && delivery?.reason == "rejected" && delivery?.lastAttempt?.error == "spam")
        }
        // It was no mail: the next one need not wait for ten minutes.
        try await send("c", on: outbox)
        clock.advance(by: .seconds(60))
        #expect(try await titles(mail(outbox)) == ["c"])
    }

    @Test func aMailboxThatIsGoneTakesAllWithIt() async throws {
        let outbox = try await outbox()
        let ids = [try await send("a", on: outbox), try await send("b", thread: "u", on: outbox)]
        clock.advance(by: .seconds(60))
        let lease = try #require(try await leases(outbox).first)
        try await outbox.record(.deviceGone(DeliveryResponse(status: 550), since: nil), of: lease)
        #expect(try await outbox.device("m1") == nil)
        #expect(try await delivery(outbox, ids[0])?.reason == "device_gone")
        #expect(try await outbox.store.read { try $0.rows(RecordKey(.deviceAtAddress)).isEmpty })
    }

    @Test func aUserThatIsThereGetsNoMailUntilTheNextNotification() async throws {
        let outbox = try await outbox()
        var ids: [String] = []
        for number in 0..<3 { ids.append(try await send("\(number)", thread: "\(number % 2)", on: outbox)) }
        try await WaitingMails(outbox: outbox).userWasSeen("another")
        #expect(try await outbox.counts().pending == 3)
        try await WaitingMails(outbox: outbox).userWasSeen("u1")
        for id in ids {
            let delivery = try await delivery(outbox, id)
            #expect(delivery?.state == .dropped && delivery?.reason == "seen")
        }
        clock.advance(by: .seconds(60))
        #expect(try await leases(outbox).isEmpty)
        try await send("next", thread: "0", on: outbox)
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        #expect(titles(lease) == ["next"])
        // What is being sent goes on; what waits behind it does not.
        let behind = try await send("behind", thread: "0", on: outbox)
        try await WaitingMails(outbox: outbox).userWasSeen("u1")
        #expect(try await delivery(outbox, behind)?.reason == "seen")
        try await outbox.record(sent, of: lease)
        // Seen or not, ten minutes are between two mails.
        try await send("last", thread: "0", on: outbox)
        clock.advance(by: .seconds(599))
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(1))
        #expect(try await titles(mail(outbox)) == ["last"])
    }

    /// More than one transaction drops.
    @Test func aLongThreadOfAUserThatIsThereIsDroppedAndGoesOn() async throws {
        let outbox = try await outbox()
        for number in 0..<520 { try await send("\(number)", on: outbox) }
        try await WaitingMails(outbox: outbox).userWasSeen("u1")
        #expect(try await outbox.counts().pending == 0)
        try await send("next", on: outbox)
        clock.advance(by: .seconds(60))
        #expect(try await titles(mail(outbox)) == ["next"])
    }

    @Test func aLongThreadIsOneMail() async throws {
        let outbox = try await outbox()
        var last = ""
        for number in 0..<1_100 { last = try await send("\(number)", on: outbox) }
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        let digest = try #require(lease.delivery.content.digest)
        #expect(titles(lease) == (1_080..<1_100).reversed().map(String.init))
        #expect(digest.more == 980 && digest.isAtLeast)
        try await outbox.record(sent, of: lease)
        // What one transaction does not end ends without an attempt.
        for _ in 0..<4 { #expect(try await leases(outbox).isEmpty) }
        #expect(try await outbox.counts().pending == 0)
        #expect(try await outbox.states(of: last) == [.delivered])
    }

    @Test func aMailShowsNeitherWhatWasReplacedNorWhatExpired() async throws {
        let outbox = try await outbox()
        for (title, key) in [("a", "k"), ("b", nil), ("c", "k"), ("d", "l")] as [(String, String?)] {
            var new = new(title, on: outbox)
            new.collapseKey = key
            _ = try await outbox.accept(new)
        }
        var short = new("short", on: outbox)
        short.expiresAt = clock.now + 30_000
        let expired = try #require(try await outbox.accept(short).notification)
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        #expect(titles(lease) == ["d", "c", "b"] && lease.delivery.content.digest?.more == 0)
        try await outbox.record(sent, of: lease)
        let delivery = try await delivery(outbox, expired)
        #expect(delivery?.state == .dropped && delivery?.reason == "expired")
        #expect(try await outbox.counts().pending == 0)
    }

    @Test func aSingleNotificationThatIsRefusedIsDead() async throws {
        let outbox = try await outbox()
        let id = try await send("a", on: outbox)
        clock.advance(by: .seconds(60))
        try await outbox.record(.rejected(DeliveryResponse(status: 554, error: "spam")), of: try await mail(outbox))
        #expect(try await delivery(outbox, id)?.state == .dead)
    }

    @Test func blanksAreCountedAndHideNoTexts() async throws {
        let outbox = try await outbox()
        try await send("a", on: outbox)
        for _ in 0..<30 { try await send("\u{3000} ", on: outbox) }
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        #expect(titles(lease) == ["a"] && lease.delivery.content.digest?.withheld == 30)
    }

    /// It may be the server that is wrong: auth has verified the address.
    @Test func aMailboxThatIsRefusedWithoutAReasonStays() async throws {
        let outbox = try await outbox()
        let id = try await send("a", on: outbox)
        clock.advance(by: .seconds(60))
        for _ in 0..<3 {
            let refused = DeliveryOutcome.tokenRefused(DeliveryResponse(status: 550, error: "relay not permitted"))
            try await outbox.record(refused, of: try await mail(outbox))
            clock.advance(by: .seconds(3_600))
        }
        #expect(try await outbox.device("m1")?.state == .active)
        try await outbox.record(sent, of: try await mail(outbox))
        #expect(try await outbox.states(of: id) == [.delivered])
    }

    @Test func replayedOnesGoTogetherInFewMails() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.limits.mailThreadsMax = 2 }
        try await outbox.addMailbox("m1", of: "u1")
        for number in 1...6 {
            try await send("\(number)", thread: "t\(number)", on: outbox)
            clock.advance(by: .seconds(60))
            let lease = try await mail(outbox)
            try await outbox.record(.rejected(DeliveryResponse(status: 550, error: "no SPF")), of: lease)
        }
        #expect(try await outbox.replay(.all) == 6)
        #expect(try await leases(outbox).isEmpty)
        clock.advance(by: .seconds(60))
        let mails = try await leases(outbox)
        #expect(mails.count == 3 && mails.flatMap(titles).sorted() == ["1", "2", "3", "4", "5", "6"])
    }

    @Test func whatHasNoTextIsNotMailed() async throws {
        let outbox = try await outbox()
        var silent = new("", on: outbox)
        silent.text = .init()
        let id = try #require(try await outbox.accept(silent).notification)
        #expect(try await delivery(outbox, id)?.reason == "silent")
        #expect(try await outbox.counts().pending == 0)
    }

    @Test func textsAreThoseOfTheLocaleOfTheMailbox() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addMailbox("m1", of: "u1", locale: "ja-JP")
        var new = new("hello", on: outbox)
        new.localized = ["ja": .init(title: "こんにちは")]
        _ = try await outbox.accept(new)
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        #expect(titles(lease) == ["こんにちは"] && lease.delivery.content.digest?.locale == "ja-JP")
    }

    @Test func recordsOfOldMailsAreDeleted() async throws {
        let outbox = try await outbox()
        try await send("a", on: outbox)
        clock.advance(by: .seconds(60))
        let lease = try await mail(outbox)
        func records() async throws -> Int { try await outbox.store.read { try $0.count(.digest) } }
        try await OldDigests(outbox: outbox).forget()
        #expect(try await records() == 1, "it is being sent")
        try await outbox.record(sent, of: lease)
        clock.advance(by: .seconds(599))
        try await OldDigests(outbox: outbox).forget()
        #expect(try await records() == 1)
        clock.advance(by: .seconds(1))
        try await OldDigests(outbox: outbox).forget()
        #expect(try await records() == 0)
    }
}

extension Outbox {
    /// A mailbox, whose deliveries wait in the queue of its app.
    func addMailbox(_ name: String, of uid: String, locale: String? = nil) async throws {
        var new = DeviceRecord(device: name, uid: uid, platform: .email, createdAt: 0)
        (new.email, new.locale) = ("\(uid)@example.com", locale)
        let device = new
        try await change { draft in
            draft.writes.put(device.key, device)
            draft.writes.put(device.userKey)
            draft.writes.put(device.addressKey, bytes: Array(device.device.utf8))
        }
    }
}
