import Synchronization
import Testing

@testable import HatoNotifier

/// Which writer has its turn, and which loses changes.
@Suite struct ChangeBacklogTests {
    private func share(_ writer: UInt64, _ rows: Int, bytes: Int = 0, at sequence: UInt64? = nil) -> ChangeBacklog.Share
    {
        let place = ChangeBacklog.Place(position: .init(sequence: sequence ?? writer, index: 0), version: writer)
        return .init(writer: UserDigest(writer), rows: rows, bytes: bytes, first: place)
    }

    @Test func writersTakeTurnsHoweverManyChangesTheyHave() {
        let backlog = ChangeBacklog()
        backlog.came([share(1, 1_000), share(2, 1), share(3, 10)])
        #expect((1...3).map { _ in backlog.next()?.value } == [1, 2, 3])
        #expect(backlog.next() == nil)
        for writer in [2, 1] as [UInt64] { #expect(backlog.isReady(UserDigest(writer))) }
        backlog.came([share(4, 1), share(1, 1)])
        #expect((1...4).map { _ in backlog.next()?.value } == [1, 2, 4, nil])
    }

    @Test func inEachRoundTheOldestChangesComeFirst() {
        let backlog = ChangeBacklog()
        backlog.came([share(3, 1), share(1, 100)])
        #expect(backlog.next()?.value == 1)
        backlog.isReady(UserDigest(1))
        backlog.came([share(5, 1)])
        #expect((1...3).map { _ in backlog.next()?.value } == [3, 5, 1])
        // What could not be used was no turn.
        _ = backlog.beginTurn()
        backlog.came([share(1, 1), share(6, 1)])
        backlog.keepsTurn(UserDigest(1))
        #expect(backlog.endTurn())
        #expect((1...3).map { _ in backlog.next()?.value } == [1, 6, nil])
    }

    @Test func newWritersDelayTheOthersByARoundOnly() {
        let backlog = ChangeBacklog()
        backlog.came([share(1, 100)])
        #expect(backlog.next()?.value == 1)
        backlog.isReady(UserDigest(1))
        var turns = 0
        for writer in 2...5_000 as ClosedRange<UInt64> {
            backlog.came([share(writer, 1)])
            turns += 1
            if backlog.next()?.value == 1 { break }
        }
        #expect(turns > 100 && turns < 2_000)
    }

    @Test func theOldestChangeOfOthersIsKnown() {
        let backlog = ChangeBacklog()
        backlog.came([share(4, 1), share(2, 1), share(3, 1)])
        let oldest = [[], [2], [3, 2], [2, 3, 4, 9]].map { (writers: [UInt64]) in
            backlog.oldest(besides: writers.map(UserDigest.init))?.sequence
        }
        #expect(oldest == [2, 3, 4, nil] && backlog.oldest(besides: [])?.sequence == 2)
    }

    @Test func aWriterWithoutChangesHasNoTurn() {
        let backlog = ChangeBacklog()
        backlog.came([share(1, 2, bytes: 20)])
        backlog.went([share(1, 2, bytes: 20)])
        #expect(backlog.next() == nil && !backlog.isReady(UserDigest(1)))
        #expect(backlog.rowCount == 0 && backlog.byteCount == 0 && backlog.oldestVersion == nil)
        // They went before it was known that they came.
        backlog.went([share(1, 3, bytes: 30)])
        backlog.came([share(1, 3, bytes: 30)])
        #expect(backlog.next() == nil && backlog.byteCount == 0)
        backlog.came([share(1, 1, bytes: 10)])
        #expect(backlog.next()?.value == 1 && backlog.byteCount == 10)
    }

    /// What comes during a turn is not loaded in it, and its writers have something to do afterwards.
    @Test func whatComesDuringATurnIsForTheNextOne() {
        let backlog = ChangeBacklog()
        backlog.came([share(1, 1), share(2, 1)], through: 5)
        #expect(backlog.beginTurn() == 5 && backlog.next()?.value == 1)
        backlog.came([share(1, 1), share(3, 1)], through: 6)
        #expect((1...2).map { _ in backlog.next()?.value } == [2, nil])
        #expect(backlog.endTurn() && backlog.beginTurn() == 6)
        #expect((1...3).map { _ in backlog.next()?.value } == [1, 3, nil] && !backlog.endTurn())
        // Its changes of before are done: the others that came are older than its next one.
        backlog.came([share(1, 1)])
        _ = backlog.beginTurn()
        #expect(backlog.next()?.value == 1 && backlog.next() == nil)
        backlog.came([share(2, 1)])
        backlog.came([share(1, 1, at: 8)])
        backlog.went([share(1, 3)], finished: [UserDigest(1)])
        #expect(backlog.endTurn() && backlog.next()?.value == 2 && backlog.next()?.value == 1)
        // A turn that failed.
        _ = backlog.beginTurn()
        backlog.came([share(3, 1)], through: 7)
        #expect(backlog.beginTurn() == 7 && backlog.next()?.value == 3)
    }

    @Test func theNumberOfChangesThatWaitIsReported() {
        let reported = Mutex<[Int]>([])
        var backlog: ChangeBacklog? = ChangeBacklog { count in reported.withLock { $0.append(count) } }
        backlog?.came([share(1, 2), share(2, 3)])
        backlog?.went([share(2, 3)])
        backlog = nil
        #expect(reported.withLock { $0 } == [5, 2, 0])
    }

    @Test func theWritersWithTheMostBytesLoseThem() {
        let backlog = ChangeBacklog()
        backlog.came([share(1, 1, bytes: 100), share(2, 1, bytes: 500), share(3, 1, bytes: 400)])
        #expect(backlog.excess(adding: 0, bytesMax: 1_000).isEmpty)
        let one = backlog.excess(adding: 50, bytesMax: 1_000)
        #expect(one.map(\.writer.value) == [2] && one.map(\.bytes) == [50])
        let two = backlog.excess(adding: 250, bytesMax: 1_000)
        #expect(two.map(\.writer.value) == [2, 3] && two.map(\.bytes) == [100, 150])
        #expect(backlog.byteCount == 1_000)
    }
}

extension ChangeBacklog {
    fileprivate func came(_ shares: [Share]) { came(shares, through: 1) }
}
