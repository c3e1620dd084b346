@testable import HatoRPC

/// A connection whose I/O is simulated: does what `ConnectionStateMachine` returns, as `ConnectionHandler` does, and
/// compares each step with what a client may see.
struct ConnectionWorld: Hashable {
    private struct Request: Hashable {
        enum State: Hashable { case queued, started, answered, left }

        var kind: RequestKind
        var line: Int
        var state = State.queued
        var isOutgrown = false
    }

    private struct Waiting: Hashable {
        /// The line itself, when there is no memory for what is in it.
        var line: Numbered?
        var sequence: UInt64
        var requests: [Int]
        var isBatch: Bool
        var isVerified: Bool
        var next = 0

        var bytes: Int { line == nil ? requests.count - next : 1 }
    }

    private struct InFlight: Hashable {
        var ticket: RequestTicket
        var request: Int
    }

    static let limits = ConnectionStateMachine.Limits(
        requestsInFlightMax: 3, bytesInFlightMax: 100, readsInFlightMax: 2, readBytes: 3, unsentResponseBytesMax: 4,
        responseBytesMax: 100, waitingBytesMax: 3)
    /// What the socket takes before the peer does.
    private static let socketBytes = 2

    private(set) var machine = ConnectionStateMachine(limits)
    private var lines: [Numbered] = []
    private var waiting: Waiting? { didSet { machine.waitingChanged(waiting?.bytes) } }
    private var inFlight: [InFlight] = []
    private var isVerifying = false
    private var isChangingIdentity = false
    private var lineElsewhere: Numbered?
    private var isBudgetFull = false
    private var budgetBytes = 0
    private var hasEnded = false
    private var closing: ConnectionStateMachine.Closing?
    /// Lines with batches whose memory is reserved.
    private var reservedLines: Set<Int> = []

    private struct Numbered: Hashable {
        var line: Line
        var number: Int
    }

    // What the client knows.
    private var requests: [Request] = []
    /// Whether a line may be overtaken, by number.
    private var slowLines: [Bool] = []
    private(set) var problem: String?
}

// MARK: - Events

extension ConnectionWorld {
    /// The events that may happen now.
    func events(_ forms: [Line]) -> [Event] {
        guard machine.phase != .closed else { return [] }
        var events: [Event] = [.closed, isBudgetFull ? .budgetFreed : .budgetFilled]
        if mayArrive { events += forms.map(Event.lineArrived) + [.inputClosed] }
        if mayArrive, lines.isEmpty, waiting?.line == nil, machine.mayHandOn(!isBudgetFull) {
            events.append(.inputRefused)
        }
        events += inFlight.indices.map(Event.requestFinished)
        if machine.mayAwaitReservation, inFlight.contains(where: isSmallRead) { events.append(.readOutgrew) }
        if isVerifying { events += [.verified(true), .verified(false)] }
        if lineElsewhere != nil { events.append(.longLineRead) }
        if isChangingIdentity { events.append(.identityTakenOver) }
        if mayReserve { events.append(.batchReserved) }
        if machine.outputBytes > 0 { events.append(.outputDrained) }
        if machine.phase == .open { events.append(.stopping) }
        return events
    }

    private var mayArrive: Bool { machine.phase == .open && !hasEnded && reading != .pause }

    private var reading: ConnectionStateMachine.Reading {
        machine.readAsked(bufferedBytes: lines.count, unsentBytes: machine.outputBytes, !isBudgetFull)
    }

    /// Whether the budget would be asked for the memory of a batch.
    private var mayReserve: Bool { machine.unreservedBatch.map(machine.leavesNext) ?? false }

    private func isSmallRead(_ request: InFlight) -> Bool {
        request.ticket.isRead && !requests[request.request].isOutgrown
    }

    mutating func happened(_ event: Event) {
        switch event {
        case .lineArrived(let line): arrived(line)
        case .requestFinished(let index): finished(index)
        case .readOutgrew:
            guard let read = inFlight.first(where: isSmallRead) else { break }
            requests[read.request].isOutgrown = true
            machine.readOutgrew()
        case .verified(let isValid): verified(isValid)
        case .longLineRead:
            machine.lineCameBack()
            if let line = lineElsewhere, machine.isTaking { take(line) }
            lineElsewhere = nil
        case .identityTakenOver:
            isChangingIdentity = false
            machine.identityChanged(isTakenOver: true)
        case .batchReserved:
            guard let rest = waiting, rest.line == nil else { break }
            reservedLines.insert(requests[rest.requests[0]].line)
            machine.batchReserved(rest.sequence)
        case .budgetFilled: isBudgetFull = true
        case .budgetFreed:
            isBudgetFull = false
            machine.startWaitChanged(isWaiting: false)
        case .outputDrained: machine.outputDrained(machine.outputBytes)
        case .inputClosed:
            hasEnded = true
            machine.inputClosed()
        case .stopping: machine.stopping()
        case .inputRefused:
            lines = []
            slowLines.append(false)
            requests.append(Request(kind: RequestKind(start: .session), line: slowLines.count - 1))
            respondNow(requests.count - 1, machine.lineArrived(isSlow: false), nil)
            machine.inputRefused()
        case .closed: closed()
        }
        settle()
    }

    private mutating func arrived(_ line: Line) {
        slowLines.append(line.kinds.contains { $0.isSlow })
        requests += line.kinds.map { Request(kind: $0, line: slowLines.count - 1) }
        lines.append(Numbered(line: line, number: slowLines.count - 1))
        handOn()
    }

    private mutating func finished(_ index: Int) {
        let done = inFlight.remove(at: index)
        if requests[done.request].state != .started { problem = "\(done.request) was answered twice" }
        requests[done.request].state = .answered
        let completion = machine.requestEnded(done.ticket, Self.response(done.request))
        leave(done.ticket.sequence, completion)
        if requests[done.request].isOutgrown { machine.outgrownReadEnded() }
    }

    private mutating func verified(_ isValid: Bool) {
        isVerifying = false
        machine.verificationEnded()
        guard var rest = waiting else { return }
        rest.isVerified = true
        waiting = isValid ? rest : nil
        if !isValid { respondNow(rest.requests[0], rest.sequence, nil) }
    }

    private mutating func closed() {
        let counted = machine.closed()
        if counted != budgetBytes { problem = "gave back \(counted) of \(budgetBytes) bytes" }
        (inFlight, lines, waiting, budgetBytes) = ([], [], nil, 0)
    }
}

// MARK: - What the handler does

extension ConnectionWorld {
    private mutating func handOn() {
        while problem == nil {
            switch machine.next(!isBudgetFull) {
            case .wait: return machine.handingOnStopped(hasLines: !lines.isEmpty)
            case .continueWaiting:
                guard continueWaiting() else { return machine.handingOnStopped(hasLines: !lines.isEmpty) }
            case .takeLine:
                guard !lines.isEmpty else { return machine.linesRanOut() }
                let line = lines.removeFirst()
                if !mayTake(line.line) {
                    waiting = Waiting(line: line, sequence: 0, requests: [], isBatch: false, isVerified: true)
                } else if case .long = line.line {
                    lineElsewhere = line
                    machine.lineLeftLoop(1)
                } else {
                    take(line)
                }
            }
        }
    }

    private mutating func take(_ line: Numbered) {
        let ids = requests.indices.filter { requests[$0].line == line.number }
        let isSlow = slowLines[line.number]
        if case .batch = line.line {
            let sequence = machine.batchArrived(count: ids.count, isSlow: isSlow)
            waiting = Waiting(sequence: sequence, requests: ids, isBatch: true, isVerified: true)
            return
        }
        let sequence = machine.lineArrived(isSlow: isSlow)
        var rest = Waiting(sequence: sequence, requests: ids, isBatch: false, isVerified: true)
        if case .unverified = line.line { rest.isVerified = false }
        if !proceed(rest) { waiting = rest }
    }

    private mutating func continueWaiting() -> Bool {
        guard var rest = waiting else { return true }
        if let line = rest.line {
            guard mayTake(line.line) else { return false }
            waiting = nil
            take(line)
            return true
        }
        guard proceed(rest) else { return false }
        rest.next += 1
        waiting = rest.next < rest.requests.count ? rest : nil
        return true
    }

    /// Starts the next request; false when it must wait.
    private mutating func proceed(_ rest: Waiting) -> Bool {
        guard rest.isVerified else {
            isVerifying = true
            machine.verificationBegan()
            return false
        }
        let id = rest.requests[rest.next]
        let kind = requests[id].kind
        guard mayStart(kind) else { return false }
        checkStart(id)
        if kind.start == .session {
            isChangingIdentity = true
            machine.identityChanged(isTakenOver: false)
            respondNow(id, rest.sequence, nil)
            return true
        }
        requests[id].state = .started
        let ticket = machine.requestStarted(
            kind, sequence: rest.sequence, entry: rest.isBatch ? rest.next : nil, byteCount: 1)
        inFlight.append(InFlight(ticket: ticket, request: id))
        return true
    }

    private mutating func mayTake(_ line: Line) -> Bool {
        let isLarge = if case .large = line { true } else { false }
        if case .long = line { return true }
        guard mayStart(machine.lineTurnCame(isSmall: !isLarge, !isBudgetFull), .line) else { return false }
        if isBudgetFull, inFlight.contains(where: { isLarge || !$0.ticket.isSlow }) {
            problem = "a line is taken although too much is held"
        }
        return true
    }

    private mutating func mayStart(_ kind: RequestKind) -> Bool {
        mayStart(machine.requestArrived(kind, !isBudgetFull), .read)
    }

    private mutating func mayStart(
        _ start: ConnectionStateMachine.Start, _ use: ConnectionStateMachine.ExemptionUse
    ) -> Bool {
        switch start {
        case .start: return true
        case .wait: return false
        case .askForExemption:
            // Another connection has it: nothing is granted until the budget is freed.
            if requests.count.isMultiple(of: 2) {
                machine.exemptionTaken(for: use)
                return true
            }
            machine.startWaitChanged(isWaiting: true)
            return false
        }
    }

    private mutating func respondNow(_ id: Int, _ sequence: UInt64, _ entry: Int?) {
        requests[id].state = .answered
        leave(sequence, machine.responseCame(sequence, entry, Self.response(id)))
    }

    private mutating func leave(_ sequence: UInt64, _ completion: ConnectionStateMachine.Completion) {
        switch completion {
        case .gathered: return
        case .leaves(let response): emit(response)
        case .queued: while let (_, response) = machine.nextResponse() { emit(response) }
        }
    }

    private mutating func settle() {
        guard machine.phase != .closed else { return checkState() }
        repeat {
            handOn()
            _ = machine.returnsExemption()
        } while problem == nil && machine.isHeldUp && machine.mayHandOn(!isBudgetFull) && canMove()
        budgetBytes += machine.memoryChanged(lineBytes: lines.count, unsentBytes: machine.outputBytes)
        if let end = machine.settled(isOutputEmpty: machine.outputBytes <= Self.socketBytes, usesTLS: false) {
            if closing != nil { problem = "closed twice" }
            closing = end
            lines = []
            budgetBytes += machine.memoryChanged(lineBytes: 0, unsentBytes: machine.outputBytes)
        }
        checkState()
    }

    private mutating func canMove() -> Bool {
        if let line = waiting?.line { return mayTake(line.line) }
        guard let rest = waiting, rest.next < rest.requests.count, rest.isVerified else { return true }
        return mayStart(requests[rest.requests[rest.next]].kind)
    }

    private static func response(_ id: Int) -> [UInt8] { [128 + UInt8(id)] }
}

// MARK: - What a client may see

extension ConnectionWorld {
    private func awaitsResponse(_ id: Int) -> Bool { requests[id].state == .queued || requests[id].state == .started }

    private mutating func checkStart(_ id: Int) {
        let kind = requests[id].kind
        let earlier = requests.indices.prefix(id)
        let reads = inFlight.filter { $0.ticket.isRead }
        if requests[id].state != .queued { problem = "\(id) starts twice" }
        if !machine.isTaking { problem = "\(id) starts on a connection that takes nothing" }
        if earlier.contains(where: { requests[$0].state == .queued }) { problem = "\(id) overtakes" }
        let isBesideCold = earlier.contains {
            requests[$0].state == .started && requests[$0].kind.start == .afterEarlier && !requests[$0].kind.isSlow
        }
        if isBesideCold {
            problem = "\(id) starts beside a request that must be alone"
        }
        if kind.start == .afterEarlier, earlier.contains(where: { awaitsResponse($0) && !requests[$0].kind.isSlow }) {
            problem = "\(id) starts beside earlier ones"
        }
        if isVerifying || isChangingIdentity || lineElsewhere.map({ $0.number < requests[id].line }) ?? false {
            problem = "\(id) starts although it must wait for the connection"
        }
        if inFlight.count >= Self.limits.requestsInFlightMax { problem = "too many requests are in flight" }
        guard kind.start != .session, kind.isRead else { return }
        if reads.count >= Self.limits.readsInFlightMax { problem = "too many reads are in flight" }
        if isBudgetFull, !reads.isEmpty { problem = "a second read starts although too much is held" }
    }

    private mutating func emit(_ response: [UInt8]?) {
        guard let response else { return problem = "nothing is sent for a request" }
        machine.outputAppended(response.count + 1)
        if closing != nil || machine.phase == .closed { problem = "a response after the end" }
        let ids = response.filter { $0 >= 128 }.map { Int($0) - 128 }
        guard let first = ids.first, ids == requests.indices.filter({ requests[$0].line == requests[first].line })
        else {
            return problem = "the response \(response) is not that of a line"
        }
        for id in ids {
            if requests[id].state != .answered { problem = "\(id) is sent in state \(requests[id].state)" }
            requests[id].state = .left
        }
        if !slowLines[requests[first].line],
            requests.indices.prefix(first).contains(where: {
                requests[$0].state != .left && !slowLines[requests[$0].line]
            })
        {
            problem = "\(first) is sent before an earlier one"
        }
    }

    private mutating func checkState() {
        guard problem == nil else { return }
        if budgetBytes != heldBytes { problem = "\(budgetBytes) bytes are counted, \(heldBytes) are held" }
        if machine.countedBytes != budgetBytes { problem = "the machine counts \(machine.countedBytes) bytes" }
        if lines.count > Self.limits.waitingBytesMax { problem = "\(lines.count) lines are read ahead" }
        let usesExemption =
            switch machine.exemption {
            case nil: true
            case .read: inFlight.contains(where: isSmallRead)
            case .line, .mediumLine:
                waiting != nil || lineElsewhere != nil || machine.untakenResponseBytes > Self.limits.readBytes
                    || inFlight.contains { !requests[$0.request].isOutgrown }
            }
        if !usesExemption { problem = "keeps the exemption" }
        guard machine.phase == .open, !isWaitedFor else { return }
        if !mayArrive, !hasEnded { problem = "nothing is read although nothing is waited for" }
        if !lines.isEmpty || waiting != nil { problem = "a request does not start although nothing is waited for" }
    }

    /// Whether there is a reason for requests to wait; slow ones in flight are none.
    private var isWaitedFor: Bool {
        isVerifying || isChangingIdentity || isBudgetFull || mayReserve || lineElsewhere != nil
            || machine.outputBytes > 0
            || inFlight.count >= Self.limits.requestsInFlightMax || inFlight.contains { !$0.ticket.isSlow }
    }

    /// What is held, by the client's requests.
    private var heldBytes: Int {
        guard machine.phase != .closed else { return 0 }
        let waitingCount = waiting?.bytes ?? 0
        let small = inFlight.count(where: isSmallRead)
        return lines.count + waitingCount + inFlight.count + small * Self.limits.readBytes + gatheredBytes
            + machine.outputBytes
    }

    /// Of responses that are complete and wait for an earlier one, and of batches that are not done.
    private var gatheredBytes: Int {
        var bytes = 0
        for number in slowLines.indices {
            let own = requests.filter { $0.line == number }
            guard lines.allSatisfy({ $0.number != number }), lineElsewhere?.number != number,
                waiting?.line?.number != number,
                !own.allSatisfy({ $0.state == .left })
            else { continue }
            let answered = own.count { $0.state == .answered }
            if own.count == 1 {
                bytes += answered
            } else if answered == own.count {
                bytes += 2 * answered + 1
            } else if !reservedLines.contains(number) {
                bytes += 2 + 2 * answered
            }
        }
        return bytes
    }

    /// Lets everything come to its end: every request that was read gets its response, and a connection that ends
    /// closes.
    func atTheEnd() -> String? {
        var world = self
        for _ in 0..<200 {
            guard world.machine.phase != .closed, world.problem == nil else { return world.problem }
            if world.isBudgetFull {
                world.happened(.budgetFreed)
            } else if world.isVerifying {
                world.happened(.verified(true))
            } else if world.mayReserve {
                world.happened(.batchReserved)
            } else if world.lineElsewhere != nil {
                world.happened(.longLineRead)
            } else if world.isChangingIdentity {
                world.happened(.identityTakenOver)
            } else if world.machine.outputBytes > 0 {
                world.happened(.outputDrained)
            } else if !world.inFlight.isEmpty {
                world.happened(.requestFinished(world.inFlight.count - 1))
            } else {
                break
            }
        }
        if world.requests.contains(where: { $0.state != .left }) { return "a request is not answered at the end" }
        if world.budgetBytes != 0 { return "\(world.budgetBytes) bytes are held at the end" }
        if world.machine.phase == .finishing || world.hasEnded && world.closing == nil { return "does not close" }
        return nil
    }
}
