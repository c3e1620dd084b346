import HatoPush
import HatoTesting
import Testing

@testable import HatoNotifier

/// Which attempts may begin beside those that are under way.
@Suite struct AttemptSlotsTests {
    private static let failed = DeliveryOutcome.failed(DeliveryResponse(error: "timeout"), retryAfter: nil)
    private static let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))
    private static let postponed = DeliveryOutcome.postponed(DeliveryResponse(error: "no look-up"))

    private func group(_ uid: String, at host: String = "h") -> ParkedGroup { ParkedGroup(host: host, uid: uid) }

    private func isSlow(after outcome: DeliveryOutcome, _ duration: Int64) -> Bool {
        var users = SlowUsers()
        users.attemptEnded(of: "u", outcome, after: duration, at: 1_000_000)
        return users.contains("u", at: 1_000_000)
    }

    @Test func attemptsThatFailOrTakeLongMakeTheirUserSlow() {
        #expect(isSlow(after: Self.failed, 0) && isSlow(after: Self.failed, 15_000))
        #expect(isSlow(after: Self.delivered, 14_000) && !isSlow(after: Self.delivered, 100))
        #expect(!isSlow(after: Self.postponed, 5_000))
        #expect(!isSlow(after: .deviceGone(DeliveryResponse(status: 410)), 100))
    }

    @Test func aUserIsSlowForTenTimesAsLongAndNotForEver() {
        var users = SlowUsers()
        users.attemptEnded(of: "u", Self.failed, after: 15_000, at: 0)
        users.attemptEnded(of: "u", Self.failed, after: 15_000, at: 0)
        #expect(users.contains("u", at: 299_999) && !users.contains("u", at: 300_000))
        for _ in 0..<100 { users.attemptEnded(of: "u", Self.failed, after: .max, at: 0) }
        #expect(users.contains("u", at: 599_999) && !users.contains("u", at: 600_000))
        // The clock was put back.
        #expect(!users.contains("u", at: -1_000_000))
    }

    @Test func oneQuickDeliveryEndsNoSlowness() {
        var users = SlowUsers()
        users.attemptEnded(of: "u", Self.failed, after: 15_000, at: 0)
        users.attemptEnded(of: "u", Self.delivered, after: 10, at: 10)
        #expect(users.contains("u", at: 20))
    }

    @Test func slowUsersThatAreKnownAreBounded() {
        var users = SlowUsers()
        for index in 0..<50_000 { users.attemptEnded(of: "u\(index)", Self.failed, after: 15_000, at: 0) }
        #expect((0..<50_000).count { users.contains("u\($0)", at: 1) } <= 16_384)
        #expect(users.contains("u49999", at: 1))
    }

    @Test func slowUsersHaveOneAttemptEachAndHalfOfAllTogether() throws {
        var policy = DeliveryPolicy()
        policy.attemptsInFlightMax = 8
        var slots = AttemptSlots(policy)
        for index in 0..<20 {
            let slot = try #require(slots.slot(for: group("slow\(index)"), at: 0))
            slots.began(slot)
            slots.ended(slot, Self.failed, after: 15_000, at: 0)
        }
        for index in 0..<4 {
            slots.began(try #require(slots.slot(for: group("slow\(index)"), at: 1)))
            #expect(slots.slot(for: group("slow\(index)"), at: 1) == nil)
        }
        #expect(slots.slot(for: group("slow4"), at: 1) == nil)
        for _ in 0..<4 { slots.began(try #require(slots.slot(for: group("good"), at: 1))) }
        #expect(slots.free == 0)
    }

    /// A model that keeps every attempt that ever was, and counts them anew for each question.
    private struct Model {
        struct Attempt {
            var group: ParkedGroup
            var isSlow: Bool
        }

        var policy: DeliveryPolicy
        var running: [Attempt] = []
        /// By user: when attempts ended that make it slow, and for how long.
        var penalties: [String: [(at: Int64, length: Int64)]] = [:]

        func isSlow(_ uid: String, at now: Int64) -> Bool {
            let end = (penalties[uid] ?? []).reduce(Int64.min) { end, penalty in
                min(max(end, penalty.at) + penalty.length, penalty.at + 600_000)
            }
            return end > now
        }

        func admits(_ group: ParkedGroup, at now: Int64) -> Bool {
            let ofUser = running.count { $0.group.uid == group.uid }
            let atHost = running.count { $0.group.host == group.host }
            guard atHost < policy.attemptsPerHostMax else { return false }
            guard isSlow(group.uid, at: now) else { return ofUser < policy.attemptsPerUserMax }
            return ofUser == 0 && 2 * running.count(where: \.isSlow) < policy.attemptsInFlightMax
        }
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>) func whatMayBeginIsWhatAModelSays(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var policy = DeliveryPolicy()
        (policy.attemptsInFlightMax, policy.attemptsPerUserMax, policy.attemptsPerHostMax) = (10, 3, 5)
        var (slots, model, now) = (AttemptSlots(policy), Model(policy: policy), Int64(0))
        var running: [AttemptSlots.Slot] = []
        for step in 0..<1_000 {
            now += Int64.random(in: 0...20_000, using: &random)
            let group = group(
                "u\(Int.random(in: 0..<8, using: &random))", at: "h\(Int.random(in: 0..<3, using: &random))")
            let slot = slots.slot(for: group, at: now)
            #expect((slot != nil) == model.admits(group, at: now), "seed \(seed), step \(step)")
            if let slot, slots.free > 0 {
                slots.began(slot)
                running.append(slot)
                model.running.append(.init(group: group, isSlow: model.isSlow(group.uid, at: now)))
            }
            guard !running.isEmpty, Bool.random(using: &random) else { continue }
            let index = Int.random(in: 0..<running.count, using: &random)
            let duration = Int64.random(in: 0...15_000, using: &random)
            let outcome = [Self.delivered, Self.failed, Self.postponed].randomElement(using: &random) ?? Self.failed
            let ended = running.remove(at: index)
            slots.ended(ended, outcome, after: duration, at: now)
            model.running.remove(at: index)
            let counted: Int64 =
                switch outcome {
                case .failed: max(1_000, duration)
                case .delivered: duration < 2_000 ? 0 : duration
                default: 0
                }
            if counted > 0 { model.penalties[ended.group.uid, default: []].append((now, 10 * counted)) }
            #expect(slots.count == running.count && slots.slowCount == model.running.count(where: \.isSlow))
        }
    }
}
