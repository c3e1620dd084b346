import Testing

@testable import HatoNotifier

/// Rounds pass over no lane, and look ahead only when the time of the next one has come.
@Suite struct LaneSearchTests {
    private func due(_ times: Int64..., at now: Int64) -> DueTimes {
        var due = DueTimes()
        for time in times { due.add(time, at: now) }
        return due
    }

    @Test func theFirstRoundLooksAtAll() {
        var search = LaneSearch()
        #expect(search.begin(DueTimes(), at: 1_000) == QueueSearch())
    }

    @Test func aRoundBeginsWhereTheLastOneEnded() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000), leasedUntil: nil)
        #expect(search.nextRoundAt == nil)
        let next = search.begin(DueTimes(), at: 2_000)
        #expect(next == QueueSearch(front: 1_000, looksAhead: false, looksForParked: false))
    }

    @Test func aLaneThatCameEarlierIsNotPassedOver() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000), leasedUntil: nil)
        // One is due since long ago, and one will be: neither hides the other.
        #expect(search.begin(due(400, 9_000, at: 1_500), at: 1_500).front == 400)
        search.ended(.init(front: 1_500), leasedUntil: nil)
        #expect(search.nextRoundAt == 9_000)
    }

    @Test func aRoundThatFailsIsMadeAgain() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000), leasedUntil: nil)
        _ = search.begin(due(400, 3_000, at: 1_500), at: 1_500)
        #expect(search.nextRoundAt == 3_000)
        #expect(search.begin(DueTimes(), at: 1_600).front == 400)
    }

    @Test func aClockThatWasSetBackHidesNothing() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 9_000)
        search.ended(.init(front: 9_000), leasedUntil: nil)
        let next = search.begin(DueTimes(), at: 2_000)
        #expect(next.front == 2_000 && next.looksAhead)
    }

    @Test func itIsLookedAheadWhenTheNextTimeHasPassed() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000, nextDueAt: 5_000), leasedUntil: 61_000)
        #expect(search.nextRoundAt == 5_000)
        #expect(!search.begin(DueTimes(), at: 4_999).looksAhead)
        search.ended(.init(front: 4_999), leasedUntil: nil)
        #expect(search.nextRoundAt == 5_000)
        #expect(search.begin(DueTimes(), at: 5_000).looksAhead)
        // Nothing else waits for a time: not even the lease, which has ended with its attempt.
        search.ended(.init(front: 5_000), leasedUntil: nil)
        #expect(search.nextRoundAt == nil)
    }

    @Test func aLeaseWhoseAttemptDoesNotEndIsFound() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000), leasedUntil: nil)
        _ = search.begin(due(1_000, at: 1_000), at: 1_000)
        search.ended(.init(front: 1_000), leasedUntil: 61_000)
        #expect(search.nextRoundAt == 61_000)
        #expect(search.begin(DueTimes(), at: 61_000).looksAhead)
    }

    @Test func parkedLanesAreLookedForWhileThereMayBeSome() {
        var search = LaneSearch()
        _ = search.begin(DueTimes(), at: 1_000)
        search.ended(.init(front: 1_000, hasParked: true), leasedUntil: nil)
        #expect(search.begin(DueTimes(), at: 1_000).looksForParked)
        search.ended(.init(front: 1_000), leasedUntil: nil)
        #expect(!search.begin(DueTimes(), at: 1_000).looksForParked)
    }
}
