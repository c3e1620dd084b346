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

    /// A commit of version 6 changed the topic, that is known since `start`.
    private static func changed(since start: UInt64 = 3) -> ChangedPaths {
        var changes = ChangedPaths(of: "/t", after: start)
        changes.add(written, at: 6)
        return changes
    }

    private static func unchanged(since start: UInt64 = 3) -> ChangedPaths { ChangedPaths(of: "/t", after: start) }

    private static func machine(gathers: Bool = false, etag: String? = nil) -> Machine {
        Machine(gathers: gathers, etag: etag)
    }

    /// Was sent the value of version 5.
    private static func live() -> Machine {
        var machine = machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, unchanged())
        _ = machine.caughtUp(event, at: 5, lastChanged: 5, newestHeld: 0)
        _ = machine.sent(lastChanged: 5, newestHeld: 0)
        _ = machine.othersWereSent([])
        return machine
    }

    private static func gathering() -> Machine {
        var machine = machine(gathers: true)
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, unchanged())
        _ = machine.caughtUp(event, at: 5, lastChanged: 5, newestHeld: 0)
        _ = machine.sent(lastChanged: 5, newestHeld: 0)
        return machine
    }

    // MARK: Beginning

    @Test func newListenerIsSentTheValueAndBecomesLive() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: nil, searches: false) == [.catchUp])
        #expect(machine.topicBecameReady(at: 5, Self.unchanged()) == [.read(.whole, from: 0)])
        #expect(machine.caughtUp(Self.event, at: 5, lastChanged: 5, newestHeld: 0) == [.send([Self.event])])
        #expect(machine.sent(lastChanged: 5, newestHeld: 0) == [.join(after: 5)])
        #expect(
            machine.othersWereSent([]) == [
                .becomeLive, .respond(version: 5, isUnchanged: false), .releaseResponses(through: nil),
            ])
        #expect(machine.state == .live)
    }

    @Test func listenerIsSentWhatTheOthersWereSentMeanwhile() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, Self.unchanged())
        _ = machine.caughtUp(Self.event, at: 5, lastChanged: 5, newestHeld: 0)
        _ = machine.sent(lastChanged: 5, newestHeld: 0)
        #expect(machine.othersWereSent([Self.event]) == [.send([Self.event])])
        #expect(machine.sent(lastChanged: 5, newestHeld: 0).first == .becomeLive)
    }

    @Test func listenerReadsAgainWhenThatIsNotKept() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, Self.unchanged())
        _ = machine.caughtUp(Self.event, at: 5, lastChanged: 5, newestHeld: 0)
        _ = machine.sent(lastChanged: 5, newestHeld: 0)
        #expect(machine.othersWereSent(nil) == [.catchUp])
        #expect(machine.topicBecameReady(at: 7, Self.changed()) == [.read(.changedFrom(6), from: 5)])
    }

    @Test func listenerWithTheValueIsSentNothing() {
        var machine = Self.machine(etag: "e")
        _ = machine.subscribed(since: nil, searches: false)
        #expect(machine.topicBecameReady(at: 5, Self.unchanged()) == [.read(.unlessEtag("e"), from: 0)])
        #expect(machine.caughtUp(nil, at: 5, lastChanged: 5, newestHeld: 0) == [.join(after: 5)])
        #expect(machine.othersWereSent([]).contains(.respond(version: 5, isUnchanged: true)))
    }

    @Test func listenerThatListensAgainIsSentWhatItMissed() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: 3, searches: true) == [.search(after: 3)])
        #expect(machine.searched() == [.catchUp])
        #expect(machine.topicBecameReady(at: 6, Self.changed()) == [.read(.changedFrom(6), from: 3)])
    }

    @Test func listenerThatMissedNothingJoinsUnread() {
        var machine = Self.machine()
        _ = machine.subscribed(since: 3, searches: true)
        _ = machine.searched()
        #expect(machine.topicBecameReady(at: 5, Self.unchanged()) == [.join(after: 5)])
    }

    @Test func listenerThatWasAwayTooLongIsSentTheValue() {
        var machine = Self.machine()
        #expect(machine.subscribed(since: 3, searches: false) == [.catchUp])
        #expect(machine.topicBecameReady(at: 5, Self.unchanged(since: 5)) == [.read(.whole, from: 3)])
    }

    // MARK: Backpressure

    @Test func liveListenerWhoseSocketIsFullFallsBehindAndCatchesUp() {
        var machine = Self.live()
        #expect(
            machine.eventWasRefused(after: 5) == [
                .leaveLive, .releaseResponses(through: nil), .waitForDrain,
            ])
        #expect(machine.state == .behind(position: 5, .full))
        #expect(machine.drained() == [.holdResponses(after: 0), .catchUp])
        #expect(machine.drained().isEmpty)
        #expect(machine.topicBecameReady(at: 6, Self.changed(since: 5)) == [.read(.changedFrom(6), from: 5)])
    }

    @Test func refusedReadingIsReadAgainWhole() {
        var machine = Self.machine(etag: "e")
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, Self.unchanged())
        _ = machine.caughtUp(Self.event, at: 5, lastChanged: 5, newestHeld: 0)
        #expect(
            machine.refused() == [
                .respond(version: 5, isUnchanged: false), .releaseResponses(through: nil), .waitForDrain,
            ])
        _ = machine.drained()
        #expect(machine.topicBecameReady(at: 6, Self.changed()) == [.read(.whole, from: 5)])
    }

    // MARK: Gathering

    @Test func gatheringListenerIsReadForWhenItsTimeHasPassed() {
        var machine = Self.gathering()
        #expect(machine.timePassed(lastChanged: 5).isEmpty)
        #expect(machine.topicChanged() == [.startTimer, .reportResponses])
        #expect(machine.topicChanged() == [.reportResponses])
        #expect(machine.timePassed(lastChanged: 6) == [.catchUp])
        #expect(machine.topicBecameReady(at: 6, Self.changed()) == [.read(.changedFrom(6), from: 5)])
        _ = machine.caughtUp(Self.event, at: 6, lastChanged: 6, newestHeld: 0)
        #expect(
            machine.sent(lastChanged: 6, newestHeld: 0) == [
                .releaseResponses(through: 6), .reportChange, .releaseResponses(through: nil),
            ])
        #expect(machine.state == .behind(position: 6, .gathering))
    }

    @Test func gatheringListenerThatLacksMoreGathersOn() {
        var machine = Self.gathering()
        _ = machine.topicChanged()
        _ = machine.timePassed(lastChanged: 6)
        _ = machine.topicBecameReady(at: 6, Self.changed())
        _ = machine.caughtUp(Self.event, at: 6, lastChanged: 7, newestHeld: 0)
        #expect(
            machine.sent(lastChanged: 7, newestHeld: 0) == [
                .releaseResponses(through: 6), .startTimer, .reportResponses, .releaseResponses(through: nil),
            ])
    }

    @Test func ownWriteEndsTheGathering() {
        var machine = Self.gathering()
        _ = machine.topicChanged()
        #expect(
            machine.ownResponseBecameDue(6, lastChanged: 6, outdatedThrough: nil) == [
                .holdResponses(after: 0), .catchUp,
            ])
        _ = machine.topicBecameReady(at: 6, Self.changed())
        // Another own write, of version 7, comes while that is read.
        _ = machine.caughtUp(Self.event, at: 6, lastChanged: 7, newestHeld: 7)
        #expect(machine.sent(lastChanged: 7, newestHeld: 7) == [.releaseResponses(through: 6), .catchUp])
    }

    @Test func ownWriteElsewhereDoesNotEndTheGathering() {
        var machine = Self.gathering()
        #expect(machine.ownResponseBecameDue(7, lastChanged: 5, outdatedThrough: nil) == [.reportChange])
        _ = machine.topicChanged()
        #expect(machine.ownResponseBecameDue(9, lastChanged: 8, outdatedThrough: nil) == [.reportRefused])
        #expect(machine.state == .behind(position: 5, .gathering))
    }

    /// The refused condition is about the newest change that the listener lacks.
    @Test func refusedConditionAfterAnOwnWriteElsewhereEndsTheGathering() {
        var machine = Self.gathering()
        _ = machine.topicChanged()
        #expect(machine.ownResponseBecameDue(7, lastChanged: 6, outdatedThrough: nil) == [.reportRefused])
        #expect(
            machine.ownResponseBecameDue(6, lastChanged: 6, outdatedThrough: nil) == [
                .holdResponses(after: 0), .catchUp,
            ])
        // While it is read for.
        #expect(machine.ownResponseBecameDue(8, lastChanged: 6, outdatedThrough: nil) == [.reportRefused])
        _ = machine.topicBecameReady(at: 6, Self.changed())
        #expect(machine.ownResponseBecameDue(8, lastChanged: 6, outdatedThrough: nil) == [.reportRefused])
        #expect(machine.ownResponseBecameDue(6, lastChanged: 6, outdatedThrough: nil) == [.holdResponses(after: 0)])
    }

    // MARK: Rights

    @Test func outdatedLiveListenerCatchesUpAfterTheVerdict() {
        var machine = Self.live()
        #expect(machine.authorisationBecameOutdated(sent: 5, isWorking: false) == [.leaveLive, .awaitVerdict])
        #expect(machine.isOutdated)
        #expect(machine.authorisationBecameOutdated(sent: 5, isWorking: false) == [.reportResponses])
        #expect(machine.authorisationWasConfirmed(at: 7) == [.holdResponses(after: 0), .catchUp])
        #expect(machine.topicBecameReady(at: 7, Self.changed()) == [.read(.changedFrom(6), from: 7)])
    }

    @Test func outdatedListenerCatchesUpFromThePositionOfItsTopic() {
        var machine = Self.live()
        #expect(
            machine.authorisationBecameOutdated(sent: 5, isWorking: true)
                == [.holdResponses(after: 5), .leaveLive, .awaitVerdict])
        _ = machine.authorisationWasConfirmed(at: 7)
        #expect(machine.topicBecameReady(at: 7, Self.changed(since: 5)) == [.read(.changedFrom(6), from: 7)])
    }

    @Test func readFromBeforeTheVerdictIsDiscarded() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        _ = machine.topicBecameReady(at: 5, Self.unchanged())
        let job = machine.job
        #expect(machine.authorisationBecameOutdated(sent: 5, isWorking: false) == [.stopReading, .awaitVerdict])
        #expect(machine.job != job)
        #expect(machine.caughtUp(Self.event, at: 5, lastChanged: 5, newestHeld: 0).isEmpty)
        _ = machine.authorisationWasConfirmed(at: 7)
        #expect(machine.topicBecameReady(at: 7, Self.changed()) == [.read(.whole, from: 7)])
    }

    @Test func ownResponseWaitsOnlyForAVerdictThatConcernsIt() {
        var machine = Self.live()
        _ = machine.authorisationBecameOutdated(sent: 5, isWorking: false)
        #expect(machine.ownResponseBecameDue(7, lastChanged: 5, outdatedThrough: 6) == [.reportChange])
        #expect(
            machine.ownResponseBecameDue(6, lastChanged: 5, outdatedThrough: 6)
                == [.holdResponses(after: 0), .hurryVerdict])
        #expect(machine.topicChanged() == [.reportResponses])
        #expect(
            machine.ownResponseBecameDue(7, lastChanged: 7, outdatedThrough: 6)
                == [.holdResponses(after: 0), .hurryVerdict])
    }

    // MARK: Ending

    @Test func listenerWithoutAResponseIsRefused() {
        var machine = Self.machine()
        _ = machine.subscribed(since: nil, searches: false)
        var other = machine
        #expect(machine.cancelled() == [.refuse, .leave])
        #expect(other.unlistened() == [.leave, .refuse])
    }

    @Test func cancelledListenerGetsTheCancellationAndNothingAfterIt() {
        var machine = Self.live()
        #expect(machine.cancelled() == [.sendCancelled, .leave])
        #expect(machine.cancelled().isEmpty)
        #expect(machine.unlistened().isEmpty)
        #expect(machine.authorisationBecameOutdated(sent: 5, isWorking: false).isEmpty)
        #expect(machine.authorisationWasConfirmed(at: 6).isEmpty)
        #expect(machine.drained().isEmpty)
        #expect(machine.state == .ended)
    }
}
