import HatoModel
import Testing

@testable import HatoNotifier

@Suite struct DeliveryStateMachineTests {
    private let report = Notifier.AttemptReport(at: 1, status: 500)

    private func pending(expiresAt: Int64 = 1_000_000) -> DeliveryStateMachine {
        DeliveryStateMachine(dueAt: 100, expiresAt: expiresAt)
    }

    private func leased(expiresAt: Int64 = 1_000_000) -> DeliveryStateMachine {
        var machine = pending(expiresAt: expiresAt)
        _ = machine.leaseRequested(at: 100, until: 160)
        return machine
    }

    @Test func whatIsDueIsLeasedAndCountsAsAnAttempt() {
        var machine = pending()
        #expect(machine.leaseRequested(at: 99, until: 160) == .ignore)
        #expect(machine.leaseRequested(at: 100, until: 160) == .send)
        #expect(machine.state == .leased && machine.time == 160 && machine.attempts == 1)
        #expect(machine.leaseRequested(at: 159, until: 220) == .ignore)
    }

    @Test func aLapsedLeaseIsTakenOver() {
        var machine = leased()
        #expect(machine.leaseRequested(at: 160, until: 220) == .send)
        #expect(machine.attempts == 2)
    }

    @Test func whatAUserDidIsDeadAndNotDroppedWhenItCannotBeDelivered() {
        func kept() -> DeliveryStateMachine { DeliveryStateMachine(dueAt: 100, expiresAt: 1_000, isKept: true) }
        var (expired, lost, full, waiting) = (kept(), kept(), kept(), pending(expiresAt: 1_000))
        // What cannot wait must not fill the disk instead.
        #expect(full.outboxWasFull(at: 200) == .finish && full.state == .dropped && full.reason == "outbox_full")
        #expect(expired.leaseRequested(at: 1_000, until: 1_060) == .finish)
        #expect(expired.state == .dead && expired.reason == "expired" && expired.attempts == 0)
        #expect(lost.deviceWentAway(nil, at: 200) == .finish && lost.state == .dead && lost.reason == "device_gone")
        #expect(waiting.timePassed(at: 1_000) == .finish && waiting.state == .dropped)
        #expect(lost.replayed(at: 300, expiresAt: 2_000) == .waitUntil(300))
        #expect(lost.deviceWentAway(nil, at: 400) == .finish && lost.state == .dead)
    }

    @Test func deliveredIsTheEnd() {
        var machine = leased()
        #expect(machine.attemptDelivered(.init(at: 120, status: 200), at: 120) == .finish)
        #expect(machine.state == .delivered && machine.time == 120 && machine.lastAttempt?.status == 200)
        let end = machine
        #expect(machine.leaseRequested(at: 500, until: 600) == .ignore)
        #expect(machine.attemptDelivered(report, at: 500) == .ignore)
        #expect(machine.attemptFailed(report, delay: 1, at: 500) == .ignore)
        #expect(machine.deviceWentAway(nil, at: 500) == .ignore)
        #expect(machine.replaced(at: 500) == .ignore)
        #expect(machine.replayed(at: 500, expiresAt: 600) == .ignore)
        #expect(machine.leaseReclaimed(at: 500) == .ignore)
        #expect(machine == end)
    }

    @Test func aFailureWaitsForItsTime() {
        var machine = leased()
        #expect(machine.attemptFailed(report, delay: 50, at: 120) == .waitUntil(170))
        #expect(machine.state == .pending && machine.time == 170 && machine.attempts == 1)
        #expect(machine.lastAttempt == report)
    }

    @Test func twelveAttemptsAreRemembered() {
        var machine = pending()
        for attempt in 1...20 {
            let now = 100 + Int64(attempt) * 10
            #expect(machine.leaseRequested(at: now, until: now + 60) == .send)
            let report = Notifier.AttemptReport(at: attempt, status: 500)
            #expect(machine.attemptFailed(report, delay: 1, at: now) == .waitUntil(now + 1))
        }
        #expect(machine.attempts == 20 && machine.lastAttempt?.at == 20)
        #expect(machine.history?.map(\.at) == Array(9...19))
    }

    @Test func whatIsWrongIsNotTriedAgain() {
        var machine = leased()
        #expect(machine.attemptRejected(report, at: 120) == .finish)
        #expect(machine.state == .dead && machine.reason == "rejected" && machine.lastAttempt == report)
    }

    @Test func whatIsHeldBackWaitsAtMostUntilItExpires() {
        var machine = pending(expiresAt: 300)
        #expect(machine.held(until: 200, by: .rate) == .waitUntil(200))
        #expect(machine.state == .pending && machine.hold == .rate && machine.isUntried)
        #expect(machine.leaseRequested(at: 199, until: 260) == .ignore)
        #expect(machine.turnCame(at: 150) == .waitUntil(150) && machine.turnCame(at: 170) == .waitUntil(150))
        var later = machine
        #expect(machine.leaseRequested(at: 150, until: 210) == .send)
        #expect(machine.hold == nil && !machine.isUntried && machine.coalesced(at: 160) == .ignore)
        // A lease that has lapsed is as good as none.
        #expect(machine.held(until: 1_000, by: .quiet) == .waitUntil(300))
        #expect(machine.state == .pending && machine.leaseRequested(at: 300, until: 360) == .finish)
        #expect(machine.state == .dead && machine.reason == "expired")
        #expect(later.held(until: 1_000, by: .quiet) == .waitUntil(300))
        #expect(later.leaseRequested(at: 300, until: 360) == .finish)
        #expect(later.state == .dropped && later.reason == "quiet")
        #expect(later.held(until: 1_000, by: .rate) == .ignore && later.ended(because: .muted, at: 310) == .ignore)
        var other = pending()
        #expect(other.coalesced(at: 120) == .finish && other.state == .dropped && other.reason == "coalesced")
    }

    @Test func expiredBeforeTheFirstAttemptIsDroppedAfterItIsDead() {
        var machine = pending(expiresAt: 300)
        #expect(machine.leaseRequested(at: 300, until: 360) == .finish)
        #expect(machine.state == .dropped && machine.reason == "expired")
        machine = leased(expiresAt: 300)
        #expect(machine.attemptFailed(report, delay: 200, at: 150) == .finish)
        #expect(machine.state == .dead && machine.reason == "expired")
    }

    @Test func onlyWhatWasNotSentIsReplaced() {
        var machine = pending()
        #expect(machine.replaced(at: 120) == .finish)
        #expect(machine.state == .dropped && machine.reason == "collapsed")
        machine = leased()
        #expect(machine.replaced(at: 120) == .ignore)
    }

    @Test func aDeviceThatWentAwayEndsItInEveryUnfinishedState() {
        for var machine in [pending(), leased()] {
            #expect(machine.deviceWentAway(nil, at: 120) == .finish)
            #expect(machine.state == .dropped && machine.reason == "device_gone")
        }
    }

    @Test func aReclaimedLeaseIsDueAtOnceAndKeepsItsAttempts() {
        var machine = leased()
        #expect(machine.leaseReclaimed(at: 130) == .waitUntil(130))
        #expect(machine.state == .pending && machine.attempts == 1)
        #expect(machine.leaseReclaimed(at: 140) == .ignore)
    }

    @Test func theDeadCanBeReplayedOrDropped() {
        var machine = leased(expiresAt: 150)
        _ = machine.attemptFailed(report, delay: 100, at: 120)
        var other = machine
        #expect(machine.replayed(at: 900, expiresAt: 2_000) == .waitUntil(900))
        #expect(machine == DeliveryStateMachine(dueAt: 900, expiresAt: 2_000))
        #expect(other.droppedByAdministrator(at: 900) == .finish)
        #expect(other.state == .dropped && other.reason == "administrator")
        #expect(other.replayed(at: 901, expiresAt: 2_000) == .ignore)
    }

    @Test func itIsReadBackFromItsRow() throws {
        var machine = leased()
        _ = machine.attemptFailed(report, delay: 50, at: 120)
        let bytes = try RecordCodec.encode(machine)
        #expect(try RecordCodec.decode(DeliveryStateMachine.self, bytes, key: []) == machine)
    }

    @Test func whatIsWithdrawnIsDroppedAndNeverAttemptedAgain() {
        var waiting = pending()
        #expect(waiting.withdrawn(at: 50) == .finish)
        #expect(waiting.state == .dropped && waiting.reason == "withdrawn")
        #expect(waiting.withdrawn(at: 60) == .ignore && !waiting.isWithdrawn)
        // An attempt goes on, and counts if it arrives.
        var attempted = leased()
        #expect(attempted.withdrawn(at: 110) == .ignore && attempted.isWithdrawn)
        var (arrived, failed, postponed, lost) = (attempted, attempted, attempted, attempted)
        #expect(arrived.attemptDelivered(report, at: 120) == .finish && arrived.state == .delivered)
        #expect(failed.attemptFailed(report, delay: 10, at: 120) == .finish && failed.reason == "withdrawn")
        #expect(postponed.attemptPostponed(report, delay: 10, at: 120) == .finish && postponed.state == .dropped)
        #expect(lost.leaseReclaimed(at: 120) == .waitUntil(120))
        #expect(lost.leaseRequested(at: 120, until: 200) == .finish && lost.reason == "withdrawn")
        var rejected = attempted
        #expect(rejected.attemptRejected(report, at: 120) == .finish && rejected.state == .dropped)
        // One that is dead is not kept for a replay.
        var dead = leased()
        _ = dead.attemptRejected(report, at: 120)
        #expect(dead.withdrawn(at: 130) == .finish && dead.state == .dropped && dead.reason == "withdrawn")
        #expect(dead.replayed(at: 140, expiresAt: 500) == .ignore)
    }
}
