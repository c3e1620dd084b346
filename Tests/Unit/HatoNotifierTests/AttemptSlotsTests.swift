import HatoPush
import HatoTesting
import Testing

@testable import HatoNotifier

/// Which attempts may begin beside those that are under way, and which are ended for others.
@Suite struct AttemptSlotsTests {
    private static let failed = DeliveryOutcome.failed(DeliveryResponse(error: "timeout"), retryAfter: nil)
    private static let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    private static func group(_ uid: String, at host: String = "h") -> AttemptGroup {
        AttemptGroup(host: host, uid: uid)
    }

    /// Accounts whose receivers accept connections and never respond, and whose deliveries always wait.
    private struct Attack {
        static let step: Int64 = 50
        private static let timeout: Int64 = 15_000

        var slots = AttemptSlots(DeliveryPolicy())
        private(set) var now: Int64 = 0
        private var waiting: [AttemptGroup]
        private var running: [Int: (group: AttemptGroup, began: Int64)] = [:]

        init(accounts: Int, hosts: Int) {
            waiting = (0..<accounts).flatMap { account in
                (0..<hosts).map { AttemptSlotsTests.group("hostile\(account)", at: "\(account)-\($0)") }
            }
        }

        /// All of them at one host.
        init(accounts: Int, at host: String) {
            waiting = (0..<accounts).flatMap { account in
                Array(repeating: AttemptSlotsTests.group("hostile\(account)", at: host), count: 8)
            }
        }

        /// Time passes, and all begins that may, in the order in which it waits.
        mutating func advance() {
            now += Self.step
            for number in slots.timePassed(at: now) { leave(number) }
            for (number, attempt) in running where now >= attempt.began + Self.timeout {
                slots.ended(number, AttemptSlotsTests.failed, at: now)
                leave(number)
            }
            var left: [AttemptGroup] = []
            for group in waiting {
                if slots.free > 0, slots.admits(group) {
                    running[slots.began(group, at: now)] = (group, now)
                } else {
                    left.append(group)
                }
            }
            waiting = left
        }

        private mutating func leave(_ number: Int) {
            if let attempt = running.removeValue(forKey: number) { waiting.append(attempt.group) }
        }

        /// How many milliseconds a delivery of a user waits at most, whenever it comes in the next `duration`.
        mutating func longestWait(in duration: Int64, _ uid: (Int64) -> String) -> Int64 {
            var (longest, since) = (Int64(0), now)
            let end = now + duration
            while now < end {
                advance()
                let group = AttemptSlotsTests.group(uid(now))
                guard slots.free > 0, slots.admits(group) else { continue }
                longest = max(longest, now - since)
                slots.ended(slots.began(group, at: now), AttemptSlotsTests.delivered, at: now)
                since = now
            }
            return max(longest, now - since)
        }
    }

    /// From the first moment, however many accounts have silent receivers.
    @Test(arguments: [33, 500]) func aUserWhoseReceiverRespondsWaitsForNoSilentOnes(accounts: Int) {
        var attack = Attack(accounts: accounts, hosts: accounts > 100 ? 8 : 32)
        attack.slots.ended(attack.slots.began(Self.group("good"), at: 0), Self.delivered, at: 0)
        let wait = attack.longestWait(in: 20_000) { _ in "good" }
        #expect(wait <= Attack.step)
    }

    /// Users of which nothing is known wait until the attempts that began before them are slow.
    @Test func aNewUserWaitsNoLongerThanAttemptsTakeToBeSlow() {
        var attack = Attack(accounts: 33, hosts: 32)
        let wait = attack.longestWait(in: 60_000) { "new\($0)" }
        #expect(wait <= 1_000 + Attack.step)
    }

    /// Such as a gateway that many apps use.
    @Test(arguments: [4, 100]) func othersAtTheSameHostWaitNoLongerThanAttemptsTakeToBeSlow(accounts: Int) {
        var attack = Attack(accounts: accounts, at: "h")
        attack.slots.ended(attack.slots.began(Self.group("good"), at: 0), Self.delivered, at: 0)
        let wait = attack.longestWait(in: 60_000) { _ in "good" }
        #expect(wait <= 1_000 + Attack.step)
    }

    /// They never have all slots of the host, so that the last ones are for users whose receivers responded.
    @Test func aNewUserAtAHostOfSilentOnesWaitsNoLongerThanAttemptsTakeToBeSlow() {
        var attack = Attack(accounts: 12, at: "h")
        // Each of them first has all that it may; then their receivers are known not to respond.
        let wait = attack.longestWait(in: 60_000) { "new\($0)" }
        #expect(wait <= 12_000)
    }

    /// As a receiver on a loaded machine.
    @Test func aUserWhoseReceiverWasSlowOnceWaitsNoLongerThanAttemptsTakeToBeSlow() {
        var attack = Attack(accounts: 33, hosts: 32)
        attack.slots.ended(attack.slots.began(Self.group("good"), at: 0), Self.delivered, at: 0)
        _ = attack.longestWait(in: 20_000) { _ in "good" }
        let slow = attack.slots.began(Self.group("good"), at: attack.now)
        let end = attack.now + 1_500
        while attack.now < end { attack.advance() }
        attack.slots.ended(slow, Self.delivered, at: attack.now)
        let wait = attack.longestWait(in: 20_000) { _ in "good" }
        #expect(wait <= 1_000 + Attack.step)
    }

    /// One receiver of the user hangs, too.
    @Test func aUserWithOneSilentReceiverWaitsNoLongerForItsOthers() {
        var attack = Attack(accounts: 33, hosts: 32)
        attack.slots.ended(attack.slots.began(Self.group("good"), at: 0), Self.delivered, at: 0)
        let hanging = attack.slots.began(Self.group("good", at: "dead"), at: 0)
        let beside = attack.longestWait(in: 14_000) { _ in "good" }
        attack.slots.ended(hanging, Self.failed, at: attack.now)
        let after = attack.longestWait(in: 10_000) { _ in "good" }
        #expect(beside <= 1_000 + Attack.step && after <= Attack.step)
    }

    @Test func amongHundredsOfAccountsANewUserWaitsSecondsAtFirstAndThenNotAtAll() {
        var attack = Attack(accounts: 500, hosts: 8)
        let first = attack.longestWait(in: 10_000) { "new\($0)" }
        let later = attack.longestWait(in: 20_000) { "new\($0)" }
        #expect(first <= 8_000 && later <= 1_000)
    }

    @Test func allSlotsAreUsedWhileReceiversRespond() {
        var slots = AttemptSlots(DeliveryPolicy())
        for user in 0..<256 {
            let group = Self.group("u\(user)", at: "\(user)")
            // The last slots are for users whose receivers responded.
            #expect(slots.admits(group) == (user < 240))
            slots.ended(slots.began(group, at: 0), Self.delivered, at: 0)
            #expect(slots.admits(group))
            slots.began(group, at: 0)
        }
        #expect(slots.free == 0)
    }

    @Test func usersWithManyDevicesUseMostSlots() {
        var slots = AttemptSlots(DeliveryPolicy())
        for user in 0..<60 { slots.ended(slots.began(Self.group("u\(user)"), at: 0), Self.delivered, at: 0) }
        for device in 0..<8 {
            for user in 0..<60 {
                let group = Self.group("u\(user)", at: "\(user)-\(device)")
                if slots.free > 0, slots.admits(group) { slots.began(group, at: 0) }
            }
        }
        #expect(slots.count > 170)
    }

    @Test func halfOfAllAttemptsMayBeSlowForAsLongAsTheyTake() {
        var slots = AttemptSlots(DeliveryPolicy())
        for user in 0..<128 { slots.began(Self.group("u\(user)", at: "\(user)"), at: 0) }
        let ended = slots.timePassed(at: 600_000)
        #expect(ended.isEmpty && slots.count == 128)
    }

    /// It takes three seconds, and the attempts of others are as many as may be slow.
    @Test func aSlowReceiverOfAUserWithoutSilentOnesIsNotEnded() {
        for accounts in [33, 500] {
            var attack = Attack(accounts: accounts, hosts: 8)
            _ = attack.longestWait(in: 10_000) { _ in "good" }
            for _ in 0..<5 {
                #expect(attack.slots.admits(Self.group("slow")))
                let number = attack.slots.began(Self.group("slow"), at: attack.now)
                let end = attack.now + 3_000
                while attack.now < end { attack.advance() }
                let count = attack.slots.count
                attack.slots.ended(number, Self.delivered, at: attack.now)
                #expect(attack.slots.count == count - 1, "not ended before")
            }
        }
    }

    /// Users in the order of the alphabet have one to three slow attempts each.
    @Test func usersWithTheMostSlowAttemptsLoseTheLongestRunningFirst() {
        var policy = DeliveryPolicy()
        (policy.attemptsInFlightMax, policy.slowAttemptsMax) = (8, 3)
        var slots = AttemptSlots(policy)
        let numbers = ["a", "b", "c", "b", "c", "c"].enumerated().map { index, uid in
            slots.began(Self.group(uid, at: "\(index)"), at: Int64(index))
        }
        let ended = [1_001, 1_004, 1_005].map { slots.timePassed(at: $0) }
        #expect(ended == [[], [numbers[1], numbers[2]], [numbers[4]]])
    }

    @Test func aReceiverThatTimedOutOnceLeavesHalfToOthersForAWhile() {
        var slots = AttemptSlots(DeliveryPolicy())
        slots.ended(slots.began(Self.group("u", at: "silent"), at: 0), Self.failed, at: 15_000)
        let others = (0..<128).map { slots.began(Self.group("other\($0)", at: "\($0)"), at: 15_000) }
        #expect(!slots.admits(Self.group("u", at: "silent")) && slots.admits(Self.group("u", at: "another")))
        #expect(slots.nextChange.map { (45_000...45_250).contains($0) } == true)
        slots.ended(others[0], Self.delivered, at: 15_000)
        #expect(slots.admits(Self.group("u", at: "silent")))
        slots.began(Self.group("other", at: "0"), at: 15_000)
        _ = slots.timePassed(at: 45_000)
        #expect(slots.admits(Self.group("u", at: "silent")))
    }

    @Test func quickFailuresAndPostponedAttemptsMakeNoReceiverSilent() {
        for (outcome, end) in [(Self.failed, 999), (.postponed(DeliveryResponse()), 5_000), (Self.delivered, 999)] {
            var slots = AttemptSlots(DeliveryPolicy())
            slots.ended(slots.began(Self.group("u"), at: 0), outcome, at: Int64(end))
            for index in 0..<200 { slots.began(Self.group("other", at: "\(index)"), at: 0) }
            #expect(slots.admits(Self.group("u")), "\(outcome)")
        }
    }

    @Test func receiverThatSendsItsResponseSlowlyIsSilent() {
        var slots = AttemptSlots(DeliveryPolicy())
        slots.ended(slots.began(Self.group("u"), at: 0), Self.delivered, at: 14_000)
        for index in 0..<200 { slots.began(Self.group("other", at: "\(index)"), at: 14_000) }
        #expect(!slots.admits(Self.group("u")))
    }

    /// All users of a browser have their devices at one push service.
    @Test func aPushServiceHasMoreSlotsThanAHostOfWebhooks() throws {
        var slots = AttemptSlots(DeliveryPolicy())
        let subscription = try TestSubscription.at("https://push.example.com/1")
        let webhook = DeviceAddress.webhook(url: "https://push.example.com/1", secrets: [])
        func fill(_ address: DeviceAddress) -> Int {
            var count = 0
            while true {
                let group = AttemptGroup(at: address, of: "u\(count)")
                slots.ended(slots.began(group, at: 0), Self.delivered, at: 0)
                guard slots.admits(group) else { return count }
                slots.began(group, at: 0)
                count += 1
            }
        }
        #expect(fill(.webpush(subscription)) == 128)
        #expect(fill(webhook) == 32)
        #expect(slots.count == 160)
    }

    /// Whatever happens in whatever order, also when the clock is put back.
    @Test(arguments: 1...20 as ClosedRange<UInt64>) func limitsHold(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var policy = DeliveryPolicy()
        (policy.attemptsInFlightMax, policy.attemptsPerUserMax, policy.attemptsPerHostMax) = (16, 4, 6)
        var (slots, now) = (AttemptSlots(policy), Int64(1_000_000))
        var running: [(number: Int, group: AttemptGroup, began: Int64)] = []
        for _ in 0..<2_000 {
            now += Int64.random(in: -200...700, using: &random)
            let ended = Set(slots.timePassed(at: now))
            running.removeAll { ended.contains($0.number) }
            #expect(running.count { $0.began <= now - 1_000 } <= 8 && running.count == slots.count)
            if let next = slots.nextChange { #expect(next > now) }
            let group = Self.group(
                "u\(Int.random(in: 0..<9, using: &random))", at: "h\(Int.random(in: 0..<9, using: &random))")
            if slots.free > 0, slots.admits(group) {
                #expect(running.count { $0.group.uid == group.uid } < 4)
                #expect(running.count { $0.group.host == group.host } < 6)
                running.append((slots.began(group, at: now), group, now))
            } else if running.isEmpty {
                Issue.record("nothing may begin, and nothing is under way")
            }
            guard !running.isEmpty, Int.random(in: 0..<4, using: &random) == 0 else { continue }
            let attempt = running.remove(at: Int.random(in: 0..<running.count, using: &random))
            slots.ended(
                attempt.number, [Self.delivered, Self.failed].randomElement(using: &random) ?? Self.failed, at: now)
        }
    }

    @Test func whatIsRememberedIsBounded() {
        var receivers = ReceiverHistory(silentFor: 30_000, atFirst: 1_000)
        for index in 0..<50_000 {
            receivers.respondedInTime(Self.group("good\(index)"))
            receivers.wasSilent(Self.group("silent\(index)"), at: 0)
        }
        #expect((0..<50_000).count { receivers.isPrompt("good\($0)") } <= 16_384)
        #expect((0..<50_000).count { receivers.silentHosts(of: "silent\($0)") > 0 } <= 16_384)
        #expect(receivers.isPrompt("good49999") && receivers.isShunned(Self.group("silent49999")))
        receivers.forget(at: 30_000)
        #expect((0..<50_000).allSatisfy { !receivers.isShunned(Self.group("silent\($0)")) })
        #expect(receivers.firstForgotten == nil)
    }

    /// Milliseconds for which a host is shunned after one more slow attempt; then time passes until it is forgotten.
    private static func shunning(_ receivers: inout ReceiverHistory, at now: inout Int64) -> Int64 {
        let began = now
        receivers.wasSilent(group("u"), at: now)
        while receivers.isShunned(group("u")), let next = receivers.firstForgotten {
            now = next
            receivers.forget(at: now)
        }
        let end = now
        now = began + 30_000
        #expect((receivers.silentHosts(of: "u") == 1) == (end < now))
        receivers.forget(at: now)
        #expect(receivers.silentHosts(of: "u") == 0)
        return end - began
    }

    @Test func aHostThatRespondedBeforeIsShunnedForAShortTimeAtFirst() {
        var receivers = ReceiverHistory(silentFor: 30_000, atFirst: 1_000)
        var now: Int64 = 0
        #expect(Self.shunning(&receivers, at: &now) == 30_000)
        receivers.respondedInTime(Self.group("u"))
        let times = (0..<50).map { _ in Self.shunning(&receivers, at: &now) }
        #expect(times.prefix(7) == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
        #expect(times.suffix(40).allSatisfy { $0 == 30_000 })
    }

    @Test func aHostThatRespondsInTimeAndDoesNotByTurnsIsShunnedForLongerAndLonger() {
        var receivers = ReceiverHistory(silentFor: 30_000, atFirst: 1_000)
        var now: Int64 = 0
        let times = [1, 1, 1, 1, 1, 20].map { count in
            for _ in 0..<count { receivers.respondedInTime(Self.group("u")) }
            return Self.shunning(&receivers, at: &now)
        }
        #expect(times == [1_000, 1_000, 2_000, 2_000, 4_000, 1_000])
    }

    @Test func silentHostsAreDroppedWhenTheClockIsSetBack() {
        var receivers = ReceiverHistory(silentFor: 30_000, atFirst: 1_000)
        receivers.forget(at: 10_000)
        receivers.wasSilent(Self.group("u"), at: 10_000)
        receivers.wasSilent(Self.group("v"), at: 10_000)
        receivers.forget(at: 10_500)
        #expect(receivers.isShunned(Self.group("u")) && receivers.silentHosts(of: "u") == 1)
        // A clock that is corrected a little forgets nothing, however often.
        receivers.forget(at: 10_400)
        receivers.forget(at: 9_600)
        #expect(receivers.isShunned(Self.group("u")) && receivers.silentHosts(of: "u") == 1)
        receivers.forget(at: 9_000)
        #expect(!receivers.isShunned(Self.group("u")) && !receivers.isShunned(Self.group("v")))
        #expect(receivers.silentHosts(of: "u") == 0 && receivers.firstForgotten == nil)
    }
}
