import HatoModel
import HatoRPC
import HatoTree
import Testing

@testable import HatoMessages

/// The state machine of a listener, event by event.
@Suite struct ListenerStateMachineTests {
    private typealias Machine = ListenerStateMachine

    private static let event = EncodedJSON("event")
    private static let written = [
        PathChange(path: "/t/a", before: .empty, after: .leaf(.number(1)), depths: (2, 2))
    ]

    private static func machine(gathers: Bool = false, etag: String? = nil, query: TreeQuery? = nil) -> Machine {
        Machine(
            of: TopicKey(database: DatabaseID(rawValue: 1), path: "/t", query: query), gathers: gathers, etag: etag)
    }

    private static var missed: MissedChanges {
        var missed = MissedChanges(of: "/t")
        missed.add(written)
        return missed
    }

    /// Was sent the value of version 5.
    private static func live() -> Machine {
        var machine = machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        _ = machine.caughtUp(event, at: 5)
        _ = machine.sent()
        _ = machine.othersWereSent([])
        return machine
    }

    private static func gathering() -> Machine {
        var machine = machine(gathers: true)
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        _ = machine.caughtUp(event, at: 5)
        _ = machine.sent()
        return machine
    }

    // MARK: Beginning

    @Test func newListenerIsSentTheValueAndBecomesLive() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: nil, searches: false) == [.catchUp])
        #expect(machine.topicBecameReady(at: 5) == [.read(.whole, from: 0)])
        #expect(machine.caughtUp(Self.event, at: 5) == [.send([Self.event])])
        #expect(machine.sent() == [.join(after: 5)])
        #expect(
            machine.othersWereSent([]) == [
                .becomeLive, .answer(version: 5, isUnchanged: false), .releaseAnswers(through: nil),
            ])
        #expect(machine.state == .live)
    }

    @Test func listenerIsSentWhatTheOthersWereSentMeanwhile() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        #expect(machine.committed(Self.written).isEmpty)
        _ = machine.caughtUp(Self.event, at: 5)
        _ = machine.sent()
        #expect(machine.othersWereSent([Self.event]) == [.send([Self.event])])
        #expect(machine.sent().first == .becomeLive)
    }

    @Test func listenerReadsAgainWhenThatIsNotKept() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        _ = machine.committed(Self.written)
        _ = machine.caughtUp(Self.event, at: 5)
        _ = machine.sent()
        #expect(machine.othersWereSent(nil) == [.catchUp])
        #expect(machine.topicBecameReady(at: 7) == [.read(.missed(Self.missed), from: 5)])
    }

    @Test func listenerWithTheValueIsSentNothing() {
        var machine = Self.machine(etag: "e")
        _ = machine.subscribed(since: nil, searches: false)
        #expect(machine.topicBecameReady(at: 5) == [.read(.unlessEtag("e"), from: 0)])
        #expect(machine.caughtUp(nil, at: 5) == [.join(after: 5)])
        #expect(machine.othersWereSent([]).contains(.answer(version: 5, isUnchanged: true)))
    }

    @Test func listenerThatListensAgainIsSentWhatItMissed() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: 3, searches: true) == [.search(after: 3)])
        #expect(machine.searched(Self.missed) == [.catchUp])
        #expect(machine.topicBecameReady(at: 5) == [.read(.missed(Self.missed), from: 3)])
    }

    @Test func listenerThatMissedNothingJoinsUnread() {
        var machine = Self.machine()
        _ = machine.subscribed(since: 3, searches: true)
        _ = machine.searched(MissedChanges(of: "/t"))
        #expect(machine.topicBecameReady(at: 5) == [.join(after: 5)])
    }

    @Test func listenerThatWasAwayTooLongIsSentTheValue() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: 3, searches: false) == [.catchUp])
        #expect(machine.topicBecameReady(at: 5) == [.read(.whole, from: 3)])
    }

    // MARK: Backpressure

    @Test func liveListenerWithoutRoomFallsBehindAndIsSentWhatItMissed() {
        var machine = Self.live()
        #expect(
            machine.eventWasRefused(after: 5, [Self.written]) == [
                .leaveLive, .releaseAnswers(through: nil), .waitForDrain,
            ])
        #expect(machine.state == .behind(position: 5, .full))
        #expect(machine.drained() == [.catchUp])
        #expect(machine.drained().isEmpty)
        #expect(machine.topicBecameReady(at: 6) == [.read(.missed(Self.missed), from: 5)])
    }

    @Test func refusedReadingIsReadAgainWhole() {
        var machine = Self.machine(etag: "e")
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        _ = machine.caughtUp(Self.event, at: 5)
        #expect(
            machine.refused() == [
                .answer(version: 5, isUnchanged: false), .releaseAnswers(through: nil), .waitForDrain,
            ])
        _ = machine.drained()
        #expect(machine.topicBecameReady(at: 6) == [.read(.whole, from: 5)])
    }

    // MARK: Gathering

    @Test func gatheringListenerIsReadForWhenItsTimeHasPassed() {
        var machine = Self.gathering()
        #expect(machine.timePassed().isEmpty)
        #expect(machine.committed(Self.written) == [.startTimer])
        #expect(machine.committed(Self.written).isEmpty)
        #expect(machine.timePassed() == [.catchUp])
        #expect(machine.topicBecameReady(at: 6) == [.read(.missed(Self.missed), from: 5)])
        _ = machine.caughtUp(Self.event, at: 6)
        #expect(machine.sent() == [.releaseAnswers(through: 6), .releaseAnswers(through: nil)])
        #expect(machine.state == .behind(position: 6, .gathering))
    }

    @Test func ownWriteEndsTheGathering() {
        var machine = Self.gathering()
        _ = machine.committed(Self.written)
        #expect(
            machine.ownWriteWasAnswered(6, lastChanged: 6, doubtedThrough: nil) == [.holdAnswers(after: 0), .catchUp])
        _ = machine.topicBecameReady(at: 6)
        // Another own write comes while that is read.
        _ = machine.committed(Self.written)
        #expect(machine.ownWriteWasAnswered(7, lastChanged: 7, doubtedThrough: nil) == [.holdAnswers(after: 0)])
        _ = machine.caughtUp(Self.event, at: 6)
        #expect(machine.sent() == [.releaseAnswers(through: 6), .catchUp])
    }

    @Test func ownWriteElsewhereDoesNotEndTheGathering() {
        var machine = Self.gathering()
        _ = machine.committed(Self.written)
        #expect(machine.ownWriteWasAnswered(7, lastChanged: 6, doubtedThrough: nil).isEmpty)
    }

    // MARK: Rights

    @Test func liveListenerInDoubtIsReadForAfterTheVerdict() {
        var machine = Self.live()
        #expect(machine.rightsWereDoubted(told: 5, isTelling: false) == [.leaveLive, .awaitVerdict])
        #expect(machine.isInDoubt)
        #expect(machine.rightsWereDoubted(told: 5, isTelling: false).isEmpty)
        _ = machine.committed(Self.written)
        #expect(machine.rightsWereJudged(at: 7) == [.holdAnswers(after: 0), .catchUp])
        #expect(machine.topicBecameReady(at: 7) == [.read(.missed(Self.missed), from: 7)])
    }

    @Test func whatWasBeingWorkedOutForAListenerInDoubtIsReadAnew() {
        var machine = Self.live()
        #expect(
            machine.rightsWereDoubted(told: 5, isTelling: true)
                == [.holdAnswers(after: 5), .leaveLive, .awaitVerdict])
        _ = machine.rightsWereJudged(at: 7)
        #expect(machine.topicBecameReady(at: 7) == [.read(.whole, from: 7)])
    }

    @Test func readingFromBeforeTheDoubtIsVoid() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5)
        let job = machine.job
        _ = machine.rightsWereDoubted(told: 5, isTelling: false)
        #expect(machine.job != job)
        #expect(machine.caughtUp(Self.event, at: 5).isEmpty)
        _ = machine.rightsWereJudged(at: 7)
        #expect(machine.topicBecameReady(at: 7) == [.read(.whole, from: 7)])
    }

    @Test func ownAnswerWaitsForTheVerdictOnlyWhenItIsAboutIt() {
        var machine = Self.live()
        _ = machine.rightsWereDoubted(told: 5, isTelling: false)
        #expect(machine.ownWriteWasAnswered(7, lastChanged: 5, doubtedThrough: 6).isEmpty)
        #expect(
            machine.ownWriteWasAnswered(6, lastChanged: 5, doubtedThrough: 6)
                == [.holdAnswers(after: 0), .hurryVerdict])
        _ = machine.committed(Self.written)
        #expect(!machine.ownWriteWasAnswered(7, lastChanged: 7, doubtedThrough: 6).isEmpty)
    }

    // MARK: Queries

    @Test func listenerWithAQueryIsSentItsWholeSelection() {
        var machine = Self.machine(query: TreeQuery(limit: .last(1)))
        _ = machine.subscribed(since: 3, searches: true)
        _ = machine.committed(Self.written)
        _ = machine.searched(MissedChanges(of: "/t"))
        #expect(machine.topicBecameReady(at: 5) == [.read(.whole, from: 3)])
    }

    // MARK: Ending

    @Test func unansweredListenerIsRefused() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        var other = machine
        #expect(machine.cancelled() == [.refuse, .leave])
        #expect(other.unlistened() == [.leave, .refuse])
    }

    @Test func cancelledListenerIsToldAndHearsNothingMore() {
        var machine = Self.live()
        #expect(machine.cancelled() == [.sendCancelled, .leave])
        #expect(machine.cancelled().isEmpty)
        #expect(machine.unlistened().isEmpty)
        #expect(machine.rightsWereDoubted(told: 5, isTelling: false).isEmpty)
        #expect(machine.rightsWereJudged(at: 6).isEmpty)
        #expect(machine.drained().isEmpty)
        #expect(machine.state == .ended)
    }
}
