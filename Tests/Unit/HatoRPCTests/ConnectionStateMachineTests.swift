import Testing

@testable import HatoRPC

/// What `ConnectionStateMachine` decides, event by event, and in all sequences of events up to a depth.
struct ConnectionStateMachineTests {
    private static let immediate = RequestKind(start: .immediate)
    private static let read = RequestKind(start: .immediate, isRead: true)
    private static let ordered = RequestKind(start: .afterEarlier)
    private static let slow = RequestKind(start: .afterEarlier, isSlow: true)
    private static let orderedRead = RequestKind(start: .afterEarlier, isRead: true)

    // MARK: All sequences

    /// Which lines may come, and how many events happen in a row.
    private static let explored: [(lines: [ConnectionWorld.Line], depth: Int)] = [
        (
            [
                .request(immediate), .request(read), .request(ordered), .request(slow), .identityChange,
                .unverified(immediate),
                .batch([immediate, ordered]), .batch([slow, read]), .long(immediate),
            ], 4
        ),
        ([.request(immediate), .request(read), .request(ordered), .request(slow)], 6),
        ([.request(read), .request(ordered)], 8), ([.request(immediate), .request(slow)], 8),
        ([.batch([read, immediate]), .unverified(ordered)], 7), ([.identityChange, .long(read)], 8),
        ([.batch([immediate, orderedRead, slow]), .request(orderedRead)], 8),
        ([.large(read), .request(immediate), .large(ordered)], 6),
    ]

    @Test(arguments: explored.indices)
    func clientSeesWhatItMaySeeInAllSequencesOfEvents(index: Int) {
        let (lines, depth) = Self.explored[index]
        var seen: Set<ConnectionWorld> = []
        var layer: [(world: ConnectionWorld, history: [ConnectionWorld.Event])] = [(ConnectionWorld(), [])]
        for _ in 0..<depth {
            var next: [(world: ConnectionWorld, history: [ConnectionWorld.Event])] = []
            for (world, history) in layer {
                for event in world.events(lines) {
                    var after = world
                    after.happened(event)
                    guard seen.insert(after).inserted else { continue }
                    if let problem = after.problem ?? after.atTheEnd() {
                        Issue.record("\(problem), after \(history + [event])")
                        return
                    }
                    next.append((after, history + [event]))
                }
            }
            layer = next
        }
        #expect(seen.count > 1_000)
    }

    // MARK: Event by event

    private func machine(
        _ change: (inout ConnectionStateMachine.Limits) -> Void = { _ in }
    ) -> ConnectionStateMachine {
        var limits = ConnectionWorld.limits
        change(&limits)
        return ConnectionStateMachine(limits)
    }

    /// A line with one request comes and starts.
    private func start(_ kind: RequestKind, _ machine: inout ConnectionStateMachine) -> RequestTicket {
        let sequence = machine.lineArrived(isSlow: kind.isSlow)
        return machine.requestStarted(kind, sequence: sequence, entry: nil, byteCount: 1)
    }

    /// Otherwise batches that hold memory wait for the exemption of one that waits for their memory, or all of them
    /// hold what they have and wait.
    @Test func batchThatIsTakenAlthoughTooMuchIsHeldWaitsForNoMemory() {
        var machine = machine { $0.readBytes = 2 }
        let batch = machine.batchArrived(count: 2, isSlow: false)
        machine.waitingChanged(10)
        machine.exemptionTaken(for: .line)
        let first = machine.requestStarted(Self.read, sequence: batch, entry: 0, byteCount: 1)
        let isReturnedWhileItRuns = machine.returnsExemption()
        #expect(!isReturnedWhileItRuns)
        _ = machine.requestEnded(first, [1, 2, 3, 4])
        #expect(machine.unreservedBatch == nil)
        #expect(machine.lacksReservation(batch))
        #expect(machine.next(false) == .continueWaiting)
        _ = machine.responseCame(batch, 1, [5])
        machine.waitingChanged(nil)
        let isReturnedBeforeTheResponseLeaves = machine.returnsExemption()
        #expect(!isReturnedBeforeTheResponseLeaves)
        _ = machine.nextResponse()
        let isReturned = machine.returnsExemption()
        #expect(isReturned)
    }

    @Test func batchWaitsForMemoryAndHoldsNoOtherUp() {
        var machine = machine { $0.readBytes = 2 }
        let batch = machine.batchArrived(count: 2, isSlow: false)
        machine.waitingChanged(10)
        let first = machine.requestStarted(Self.read, sequence: batch, entry: 0, byteCount: 1)
        _ = machine.requestEnded(first, [1, 2, 3, 4])
        #expect(machine.unreservedBatch == batch)
        #expect(!machine.lacksReservation(batch))
        machine.batchReserved(batch)
        #expect(machine.requestArrived(Self.read, false) == .start)
    }

    @Test func coldRequestWaitsForEarlierOnesAndIsWaitedFor() {
        var machine = machine()
        let first = start(Self.immediate, &machine)
        #expect(machine.requestArrived(Self.immediate, true) == .start)
        #expect(machine.requestArrived(Self.ordered, true) == .wait)
        #expect(machine.requestEnded(first, [1]) == .queued)
        #expect(machine.requestArrived(Self.ordered, true) == .start)
        let second = start(Self.ordered, &machine)
        #expect(machine.next(true) == .wait)
        _ = machine.requestEnded(second, [2])
        #expect(machine.next(true) == .takeLine)
    }

    @Test func slowRequestIsOvertakenAndLeavesWhenItComes() {
        var machine = machine()
        let slow = start(Self.slow, &machine)
        #expect(machine.next(true) == .takeLine)
        #expect(machine.requestArrived(Self.ordered, true) == .start)
        let ordered = start(Self.ordered, &machine)
        #expect(machine.requestEnded(ordered, [2]) == .queued)
        #expect(machine.nextResponse()?.response == [2])
        #expect(machine.requestEnded(slow, [1]) == .leaves([1]))
        #expect(machine.nextResponse() == nil)
    }

    @Test func responsesLeaveInTheOrderOfTheRequests() {
        var machine = machine()
        let (first, second) = (start(Self.immediate, &machine), start(Self.immediate, &machine))
        #expect(machine.requestEnded(second, [2]) == .queued)
        #expect(machine.nextResponse() == nil)
        #expect(machine.awaitsResponse(second.sequence))
        _ = machine.requestEnded(first, nil)
        #expect(machine.nextResponse()?.response == nil)
        #expect(machine.nextResponse()?.response == [2])
        #expect(!machine.awaitsResponse(second.sequence))
    }

    @Test func batchIsGatheredAndLeavesAsOne() {
        var machine = machine()
        let sequence = machine.batchArrived(count: 3, isSlow: false)
        machine.waitingChanged(3)
        #expect(machine.next(true) == .continueWaiting)
        let last = machine.requestStarted(Self.immediate, sequence: sequence, entry: 2, byteCount: 1)
        #expect(machine.responseCame(sequence, 0, [5]) == .gathered)
        #expect(machine.requestEnded(last, [7]) == .gathered)
        #expect(machine.responseCame(sequence, 1, nil) == .queued)
        #expect(machine.nextResponse()?.response == Array("[\u{5},\u{7}]".utf8))
    }

    @Test func batchGoesOnWithAReservationWhenItHasGatheredMuch() {
        var machine = machine()
        let sequence = machine.batchArrived(count: 4, isSlow: false)
        machine.waitingChanged(4)
        #expect(machine.responseCame(sequence, 0, [5, 5]) == .gathered)
        #expect(machine.unreservedBatch == sequence)
        #expect(machine.next(true) == .wait)
        #expect(machine.memoryChanged(lineBytes: 0, unsentBytes: 0) == 4 + 5)
        machine.batchReserved(sequence)
        #expect(machine.next(true) == .continueWaiting)
        #expect(machine.memoryChanged(lineBytes: 0, unsentBytes: 0) == -5, "the reservation counts")
        #expect(machine.responseCame(sequence, 1, Array(repeating: 6, count: 90)) == .gathered)
        #expect(!machine.isBatchFull(sequence))
        #expect(machine.responseCame(sequence, 2, [7, 7, 7, 7, 7]) == .gathered)
        #expect(machine.isBatchFull(sequence))
        machine.waitingChanged(nil)
        #expect(machine.responseCame(sequence, 3, nil) == .queued)
        let count = machine.nextResponse()?.response?.count ?? 0
        #expect(machine.memoryChanged(lineBytes: 0, unsentBytes: count) == count - 4)
    }

    @Test func nothingIsHandedOnBehindAVerificationAChangeOfIdentityOrALongLine() {
        var machine = machine()
        machine.verificationBegan()
        #expect(machine.next(true) == .wait)
        machine.verificationEnded()
        machine.identityChanged(isTakenOver: false)
        #expect(machine.next(true) == .wait)
        machine.identityChanged(isTakenOver: true)
        machine.lineLeftLoop(10)
        #expect(machine.next(true) == .wait)
        machine.lineCameBack()
        #expect(machine.next(true) == .takeLine)
    }

    @Test func requestsAndReadsInFlightAreLimited() {
        var machine = machine { $0.requestsInFlightMax = 3 }
        let first = start(Self.read, &machine)
        _ = start(Self.read, &machine)
        #expect(machine.requestArrived(Self.read, true) == .wait)
        #expect(machine.requestArrived(Self.immediate, true) == .start)
        _ = start(Self.immediate, &machine)
        #expect(machine.next(true) == .wait)
        _ = machine.requestEnded(first, [1])
        #expect(machine.next(true) == .takeLine)
        #expect(machine.requestArrived(Self.read, true) == .start)
    }

    @Test func oneReadStartsAlthoughTooMuchIsHeld() {
        var machine = machine()
        #expect(machine.requestArrived(Self.read, false) == .askForExemption)
        machine.exemptionTaken(for: .read)
        #expect(machine.requestArrived(Self.read, false) == .start)
        let read = start(Self.read, &machine)
        #expect(machine.requestArrived(Self.read, false) == .wait)
        #expect(machine.returnsExemption() == false)
        machine.readOutgrew()
        #expect(machine.returnsExemption() == true)
        #expect(machine.returnsExemption() == false)
        _ = machine.requestEnded(read, [1])
        machine.outgrownReadEnded()
        machine.outputAppended(2)
        // Its response is not taken: it is looked at again when it is.
        #expect(machine.requestArrived(Self.read, false) == .wait)
        machine.outputDrained(2)
        #expect(machine.requestArrived(Self.read, false) == .askForExemption)
    }

    @Test func exemptionOfAReadGoesBackWhenItsResultIsTakenWhileFarTooMuchIsHeld() {
        func machineWithResult() -> ConnectionStateMachine {
            var result = machine()
            result.exemptionTaken(for: .read)
            let read = start(Self.read, &result)
            _ = result.requestEnded(read, nil)
            result.outputAppended(10_000)
            return result
        }
        var (one, other) = (machineWithResult(), machineWithResult())
        #expect(other.returnsExemption() == true)
        #expect(one.returnsExemption(isFarTooMuchHeld: true) == false)
        one.outputDrained(6_000)
        #expect(one.returnsExemption(isFarTooMuchHeld: true) == true)
    }

    @Test func oneLargeLineIsTakenAlthoughTooMuchIsHeld() {
        var machine = machine()
        #expect(machine.lineTurnCame(isSmall: false, true) == .start)
        let earlier = start(Self.immediate, &machine)
        #expect(machine.lineTurnCame(isSmall: false, false) == .wait)
        _ = machine.requestEnded(earlier, nil)
        #expect(machine.lineTurnCame(isSmall: false, false) == .askForExemption)
        machine.exemptionTaken(for: .line)
        #expect(machine.lineTurnCame(isSmall: false, false) == .start)
        let own = start(Self.read, &machine)
        #expect(machine.next(true) == .wait, "no other line meanwhile")
        #expect(machine.returnsExemption() == false)
        _ = machine.requestEnded(own, nil)
        #expect(machine.returnsExemption() == true)
        #expect(machine.next(true) == .takeLine)
    }

    @Test func exemptionOfALineGoesBackWhenItsResponseIsTaken() {
        var machine = machine()
        machine.exemptionTaken(for: .line)
        #expect(machine.lineTurnCame(isSmall: false, false) == .start)
        let own = start(Self.immediate, &machine)
        _ = machine.requestEnded(own, nil)
        machine.outputAppended(1 << 20)
        #expect(machine.returnsExemption() == false)
        machine.outputDrained((1 << 20) - 1)
        #expect(machine.returnsExemption() == true)
    }

    @Test func smallLineIsTakenWhateverIsHeldButOneAtATime() {
        var machine = machine()
        #expect(machine.lineTurnCame(isSmall: true, false) == .start)
        let earlier = start(Self.immediate, &machine)
        #expect(machine.lineTurnCame(isSmall: true, false) == .wait)
        #expect(machine.lineTurnCame(isSmall: true, true) == .start)
        _ = machine.requestEnded(earlier, nil)
        _ = start(Self.slow, &machine)
        #expect(machine.lineTurnCame(isSmall: true, false) == .start)
        _ = start(Self.slow, &machine)
        #expect(machine.lineTurnCame(isSmall: true, false) == .wait, "beside few slow ones")
    }

    @Test func peerThatTakesNothingGetsNoFurtherResponses() {
        var machine = machine()
        machine.outputAppended(4)
        #expect(machine.next(true) == .takeLine)
        #expect(machine.next(false) == .wait)
        machine.outputAppended(1)
        #expect(machine.next(true) == .wait)
        machine.outputDrained(5)
        #expect(machine.next(false) == .takeLine)
    }

    @Test func littleIsReadAheadOfWhatWaits() {
        var machine = machine()
        _ = start(Self.ordered, &machine)
        #expect(machine.readAsked(bufferedBytes: 2, unsentBytes: 0, true) == .read)
        #expect(machine.readAsked(bufferedBytes: 3, unsentBytes: 0, true) == .pause)
    }

    @Test func longLineClaimsItsMemoryBeforeItIsRead() {
        let machine = machine()
        #expect(machine.readAsked(bufferedBytes: 3, unsentBytes: 0, false) == .read)
        #expect(machine.readAsked(bufferedBytes: 4, unsentBytes: 0, false) == .claimLine)
        #expect(machine.readAsked(bufferedBytes: 0, unsentBytes: 4, true) == .read)
        #expect(machine.readAsked(bufferedBytes: 0, unsentBytes: 4, false) == .pause)
    }

    @Test func shortLineClaimsItsMemoryWhileTooMuchIsHeld() {
        var machine = machine { $0.smallLineBytesMax = 2 }
        #expect(machine.readAsked(bufferedBytes: 1, unsentBytes: 0, false) == .read)
        #expect(machine.readAsked(bufferedBytes: 2, unsentBytes: 0, true) == .read)
        #expect(machine.readAsked(bufferedBytes: 2, unsentBytes: 0, false) == .claimLine)
        _ = start(Self.ordered, &machine)
        #expect(machine.readAsked(bufferedBytes: 2, unsentBytes: 0, false) == .pause, "its turn is not near")
    }

    @Test func lineBehindARequestThatWaitsIsNotRead() {
        var machine = machine()
        #expect(machine.mayGrowLine(true))
        machine.waitingChanged(1)
        #expect(!machine.mayGrowLine(true))
        #expect(machine.readAsked(bufferedBytes: 4, unsentBytes: 0, true) == .pause)
    }

    @Test func everythingHeldIsCountedAndGivenBack() {
        var machine = machine()
        let read = start(Self.read, &machine)
        machine.waitingChanged(5)
        #expect(machine.memoryChanged(lineBytes: 10, unsentBytes: 20) == 1 + 3 + 5 + 10 + 20)
        #expect(machine.memoryChanged(lineBytes: 10, unsentBytes: 20) == 0)
        machine.readOutgrew()
        #expect(machine.memoryChanged(lineBytes: 10, unsentBytes: 20) == -3)
        _ = machine.requestEnded(read, [1, 2, 3])
        machine.outgrownReadEnded()
        machine.waitingChanged(nil)
        #expect(machine.memoryChanged(lineBytes: 0, unsentBytes: 0) == 3 - 36)
        #expect(machine.closed() == 3)
        #expect(machine.memoryChanged(lineBytes: 9, unsentBytes: 9) == 0)
    }

    @Test func connectionClosesWhenAllResponsesAreSent() {
        var machine = machine()
        let request = start(Self.immediate, &machine)
        machine.stopping()
        #expect(machine.isTaking)
        #expect(machine.readAsked(bufferedBytes: 0, unsentBytes: 0, true) == .pause)
        #expect(machine.settled(isOutputEmpty: true, usesTLS: false) == nil)
        _ = machine.requestEnded(request, [1])
        _ = machine.nextResponse()
        #expect(machine.settled(isOutputEmpty: false, usesTLS: false) == nil)
        #expect(machine.settled(isOutputEmpty: true, usesTLS: false) == .all)
        #expect(machine.phase == .lingering)
        #expect(machine.settled(isOutputEmpty: true, usesTLS: false) == nil)
    }

    @Test func peerThatIsStillSendingKeepsItsDirection() {
        var (plain, tls, ended) = (machine(), machine(), machine())
        plain.inputRefused()
        #expect(plain.settled(isOutputEmpty: true, usesTLS: false) == .output)
        #expect(plain.readAsked(bufferedBytes: 0, unsentBytes: 0, true) == .read)
        tls.inputRefused()
        #expect(tls.settled(isOutputEmpty: true, usesTLS: true) == .all)
        ended.inputRefused()
        ended.inputClosed()
        #expect(ended.settled(isOutputEmpty: true, usesTLS: false) == .all)
    }

    @Test func endOfInputWaitsForWhatWasRead() {
        var machine = machine()
        _ = start(Self.ordered, &machine)
        machine.inputClosed()
        machine.handingOnStopped(hasLines: true)
        #expect(machine.settled(isOutputEmpty: true, usesTLS: false) == nil)
        #expect(machine.phase == .open)
        machine.linesRanOut()
        #expect(machine.settled(isOutputEmpty: true, usesTLS: false) == nil)
        #expect(machine.phase == .finishing)
    }

    @Test func nothingIsTakenAfterARefusalOrTheEnd() {
        var (refused, cutOff) = (machine(), machine())
        refused.refused()
        refused.handingOnStopped(hasLines: true)
        #expect(refused.next(true) == .wait)
        #expect(!refused.isHeldUp)
        cutOff.cutOff()
        _ = cutOff.closed()
        #expect(cutOff.isCutOff)
        #expect(cutOff.next(true) == .wait)
        #expect(cutOff.readAsked(bufferedBytes: 0, unsentBytes: 0, true) == .pause)
    }
}
