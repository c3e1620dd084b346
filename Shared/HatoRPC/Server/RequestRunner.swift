import HatoModel
import Logging
import NIOCore

/// Takes the requests of one connection from its lines and starts their methods, in the order that the machine decides.
///
/// Guarantees that every line, and every entry of a batch, gets its response or waits in `waiting` for its turn, for
/// memory or for its credential. On the event loop only.
final class RequestRunner {
    private let state: ConnectionState
    private let lines: LineIntake
    private let memory: ConnectionMemory
    private let session: ConnectionSession
    private let output: ConnectionOutput
    private let connection: RPCConnection
    private let server: ServerState
    /// Whether requests are being started: methods that respond at once do it from inside.
    private(set) var isHandingOn = false
    /// Whether what follows the line that is read on another thread was refused and dropped.
    private var isRestRefused = false
    private var waiting: WaitingRequests? {
        didSet { state.machine.waitingChanged(waiting?.memory) }
    }

    init(
        _ state: ConnectionState, _ memory: ConnectionMemory, _ session: ConnectionSession,
        from lines: LineIntake, to output: ConnectionOutput
    ) {
        self.state = state
        self.lines = lines
        self.memory = memory
        self.session = session
        self.output = output
        connection = state.connection
        server = state.server
    }

    /// Hands on what may be handed on: first what waits, then line by line.
    func handOn() {
        guard !isHandingOn else { return }
        isHandingOn = true
        defer { isHandingOn = false }
        handingOn: while true {
            let mayHoldMore = memory.mayHoldMore
            switch state.machine.next(mayHoldMore) {
            case .wait: break handingOn
            case .continueWaiting: guard continueWaiting() else { break handingOn }
            case .takeLine:
                guard let line = lines.next() else {
                    if state.machine.phase == .open, !lines.isEmpty { checkUnfinishedLine() }
                    return state.machine.linesRanOut()
                }
                take(line)
            }
        }
        state.machine.handingOnStopped(hasLines: !lines.isEmpty)
    }

    /// Whether what waits may go on: its turn has come, or it has not been looked at yet.
    var waitingMayMove: Bool {
        if let rest = waiting, rest.line != nil { return memory.mayTakeLine(rest.lineSize) }
        guard let current = waiting?.current, current.caller != nil else { return true }
        return memory.mayStart(current.method)
    }

    /// The connection has closed.
    func removeAll() { waiting = nil }

    // MARK: Lines

    private func checkUnfinishedLine() {
        if lines.beginsWithHTTP {
            refuseHTTP()
        } else if lines.unfinishedCount > session.lineBytesMax {
            refuseLongLine()
        }
    }

    private func refuseHTTP() {
        server.notices.notice(
            .http, "closed a connection that speaks HTTP", ["peer": "\(connection.shownAddress)"])
        state.machine.refused()
        lines.removeAll()
        connection.handler?.closeNow()
    }

    private func refuseLongLine() { refuseUnfinishedLine(RPCError.lineTooLong(session.lineBytesMax)) }

    /// A line holds memory that others wait for: its rest does not come, or its connection does not let it be taken.
    func refuseStalledLine() {
        guard let line = waiting?.line else { return refuseUnfinishedLine(RPCError.lineStalled) }
        waiting = nil
        lines.endClaim()
        let start = line.readableBytesUInt8Span.extracting(first: Self.lineReadOnLoopBytesMax)
        refuse(RPCError.memoryFull, id: EnvelopeReader.id(in: start, server.limits))
    }

    /// More comes than may be held, and cannot be left to the system: what has not started is dropped.
    func refuseRest() {
        // In its turn: behind the line that is being read on another thread.
        isRestRefused = state.machine.isReadingLine
        guard !isRestRefused else { return }
        if waiting?.line != nil { waiting = nil }
        refuseUnfinishedLine(RPCError.memoryFull)
    }

    /// Responds in its turn, then closes; nothing more is read.
    func refuseUnfinishedLine(_ error: RPCError) {
        refuse(error)
        lines.removeAll()
        state.machine.inputRefused()
    }

    private func take(_ line: ByteBuffer) {
        guard line.readableBytes <= session.lineBytesMax else { return refuseLongLine() }
        guard !HTTPGuard.isHTTP(line.readableBytesUInt8Span) else { return refuseHTTP() }
        let size = memory.size(of: line)
        guard memory.mayTakeLine(size) else { return wait(line, size) }
        read(line, size)
    }

    private func wait(_ line: ByteBuffer, _ size: LineSize) {
        let line = lines.kept(line)
        let memory = max(0, lines.heldBytes(of: line) - lines.claimedBytes)
        waiting = WaitingRequests(line: line, lineSize: size, lineMemory: memory)
    }

    /// - Parameter size: the one with which it was taken.
    private func read(_ line: ByteBuffer, _ size: LineSize) {
        guard line.readableBytes <= Self.lineReadOnLoopBytesMax else { return readElsewhere(line) }
        let read = Result { () throws(JSONError) in
            try EnvelopeReader.read(line.readableBytesUInt8Span, server.limits)
        }
        // Its values go, and are read again when there is memory for them.
        guard size != .small || memory.isSmall(read) || memory.mayTakeLine(.medium) else {
            return wait(line, .medium)
        }
        lines.endClaim()
        take(read)
    }

    /// A line of so many bytes takes its loop a few milliseconds.
    private static let lineReadOnLoopBytesMax = 256 << 10
    /// What the values of a line that is read elsewhere are charged for each of its bytes until it is known what they
    /// take.
    private static let chargedPerByte = 8

    /// A line of 16 MiB may hold millions of values, which keep a loop for half a second and with it every other
    /// connection. It is read by a thread for such work; what is behind it on its connection waits.
    ///
    /// Its buffer, and what its values may take, are charged to its client for as long as they exist, also when its
    /// connection is gone: otherwise a peer that closes and comes back with the next line would leave them behind for
    /// that thread, as many as it likes.
    private func readElsewhere(_ line: ByteBuffer) {
        state.machine.lineLeftLoop(line.readableBytes)
        let (connection, limits) = (connection, server.limits)
        let values = min(line.readableBytes * Self.chargedPerByte, limits.requestMemoryBytesMax)
        let heldBytes = lines.heldBytes(of: line)
        let charge = server.budget.charge(heldBytes + values, to: memory.account)
        lines.endClaim()
        server.runElsewhere {
            defer { withExtendedLifetime(charge) {} }
            // The response would reach no peer.
            guard !connection.isClosed else { return }
            let read = Result { () throws(JSONError) in
                try EnvelopeReader.read(line.readableBytesUInt8Span, limits)
            }
            charge.reduce(to: ((try? read.get())?.memory ?? 0) + heldBytes)
            connection.hub.post(
                .run(connection) { handler in
                    // What was read of it is counted from here on.
                    defer { withExtendedLifetime(charge) {} }
                    handler.lineWasRead(read)
                })
        }
    }

    /// A line was read elsewhere.
    func lineCameBack(_ read: Result<ReadLine, JSONError>) {
        state.machine.lineCameBack()
        guard state.machine.isTaking else { return }
        take(read)
        if isRestRefused { refuseRest() }
    }

    private func take(_ line: consuming Result<ReadLine, JSONError>) {
        switch consume line {
        case .success(.tooManyValues(let id)):
            refuse(RPCError.tooManyValues(server.limits.requestMemoryBytesMax), id: id)
        case .failure(let error): refuse(RPCError.parseError(error))
        case .success(.single(let envelope)): takeSingle(envelope)
        case .success(.batch(let entries)): takeBatch(entries)
        case .success(.batchTooLarge):
            refuse(
                RPCError.invalidRequest(
                    "A batch may have at most \(server.limits.batchEntriesMax) entries: send several",
                    reason: "batch_too_large"))
        }
    }

    /// Responds to a whole line with one error, in its turn.
    ///
    /// - Parameter id: of the one request that it has, where that is known.
    private func refuse(_ error: RPCError, id: String? = nil) {
        let sequence = state.machine.lineArrived(isSlow: false)
        respond(sequence, nil, Response.bytes(id: id ?? "null", error: error), isError: true)
    }

    private func takeSingle(_ envelope: consuming ReadEnvelope) {
        let method = method(of: envelope)
        let sequence = state.machine.lineArrived(isSlow: method?.kind.isSlow ?? false)
        guard let current = admit(envelope, method, sequence: sequence, entry: nil) else { return }
        if let rest = proceed(current) { waiting = WaitingRequests(current: rest, sequence: sequence) }
    }

    private func takeBatch(_ entries: [ReadEnvelope]) {
        guard !entries.isEmpty else { return refuse(RPCError.invalidRequest("A batch has at least one entry")) }
        let isSlow = entries.contains { method(of: $0)?.kind.isSlow ?? false }
        let sequence = state.machine.batchArrived(count: entries.count, isSlow: isSlow)
        waiting = WaitingRequests(
            entries: entries, entryMemory: entries.reduce(0) { $0 + $1.memory }, sequence: sequence)
    }

    /// Nil when there is none of that name.
    private func method(of envelope: ReadEnvelope) -> RPCMethod? {
        guard case .request(let request) = envelope else { return nil }
        return server.methods[request.method]
    }

    /// Goes on with what waits; false when it must wait longer.
    private func continueWaiting() -> Bool {
        guard var rest = waiting else { return true }
        if let line = rest.line {
            guard memory.mayTakeLine(rest.lineSize) else { return false }
            waiting = nil
            read(line, rest.lineSize)
            return true
        }
        var current = rest.current
        if current == nil, rest.next < rest.entries.count {
            let entry = rest.next
            rest.next += 1
            rest.entryMemory -= rest.entries[entry].memory
            let envelope = rest.entries[entry]
            current = admit(envelope, method(of: envelope), sequence: rest.sequence, entry: entry)
        }
        rest.current = nil
        waiting = rest
        if let current, let held = proceed(current) {
            waiting?.current = held
            return false
        }
        if rest.next == rest.entries.count { waiting = nil }
        return true
    }

    // MARK: Requests

    /// Responds at once when there is nothing to call.
    private func admit(
        _ envelope: consuming ReadEnvelope, _ method: RPCMethod?, sequence: UInt64, entry: Int?
    ) -> CurrentRequest? {
        state.hub.count { $0.requests += 1 }
        switch consume envelope {
        case .invalid(let id, let detail):
            let response = Response.bytes(id: id ?? "null", error: RPCError.invalidRequest(detail))
            respond(sequence, entry, response, isError: true)
            return nil
        case .request(let request):
            guard let method else {
                return fail(RPCError.methodNotFound(request.method), request.id, sequence, entry)
            }
            if request.id == nil, method.isForItsResponse {
                respond(sequence, entry, nil, isError: false)
                return nil
            }
            if entry != nil, method.isForItsResponse, state.machine.isBatchFull(sequence) {
                return fail(RPCError.tooBig(server.limits.responseBytesMax), request.id, sequence, entry)
            }
            if entry != nil, method.isForItsResponse, state.machine.lacksReservation(sequence) {
                return fail(RPCError.memoryFull, request.id, sequence, entry)
            }
            guard case .object(let params) = request.params else {
                return fail(RPCError.positionalParams, request.id, sequence, entry)
            }
            return CurrentRequest(
                id: request.id, method: method, params: params, byteCount: request.byteCount, memory: request.memory,
                sequence: sequence, entry: entry)
        }
    }

    /// Identifies the caller, then starts the method; returns the request when it must wait.
    private func proceed(_ request: consuming CurrentRequest) -> CurrentRequest? {
        if request.caller == nil {
            switch session.identify(&request) {
            case .known(let caller): request.caller = caller
            case .refused(let error):
                fail(request, error)
                return nil
            case .unverified(let credential, let speaksAs):
                verify(credential, speaksAs)
                return request
            }
        }
        let caller = request.caller ?? .nobody
        if let problem = request.method.accessProblem(caller) {
            fail(request, problem)
            return nil
        }
        guard memory.mayStart(request.method) else { return request }
        switch request.method.start {
        case .synchronous(let start):
            start(request.params, request.context(caller, connection, memory.account), pending(request))
        case .asynchronous(let start):
            let context = request.context(caller, connection, memory.account)
            let pending = pending(request)
            let params = request.params
            Task { await start(params, context, pending) }
        case .authenticate:
            change(request, by: Session.Authenticate.self, to: caller, caller.authenticated)
        case .endSession: change(request, by: Session.End.self, to: nil, [:])
        case .forward: forward(request, by: caller)
        }
        return nil
    }

    private func pending(_ request: CurrentRequest) -> PendingResponse {
        let ticket = state.machine.requestStarted(
            request.method.kind, sequence: request.sequence, entry: request.entry, byteCount: request.memory)
        return PendingResponse(connection: connection, ticket: ticket, id: request.id, method: request.method.name)
    }

    /// `session.authenticate` and `session.end`; `caller` is nil for the latter.
    private func change<Change: RPCRequest>(
        _ request: CurrentRequest, by _: Change.Type, to caller: Caller?, _ result: JSONValue
    ) {
        if let name = request.params.members.first?.name.shortened(to: 200) {
            let error = RPCError.invalidParams(
                name, "'\(name)' is no known parameter", reason: "unknown_parameter")
            return fail(request, RPCError(Change.showingWhatIsRight(error)))
        }
        lines.endClaim()
        memory.charge(to: connection.client(speakingAs: caller ?? .nobody))
        session.become(caller ?? .nobody, isEnd: caller == nil)
        let response = request.id.map { id in Response.bytes(id: id) { $0.write(result) } }
        respond(request.sequence, request.entry, response, isError: false)
    }

    /// `session.forward`; `caller` has shown the credential.
    private func forward(_ request: CurrentRequest, by caller: Caller) {
        guard !session.isOfClient else { return fail(request, .onlyForwardersMayForward) }
        let forwarding: Forwarding
        do { forwarding = try Forwarding(request.params, by: caller) } catch {
            return fail(request, RPCError(Session.Forward.showingWhatIsRight(error)))
        }
        lines.endClaim()
        guard session.forward(forwarding) else { return fail(request, .tooManyForwardingConnections) }
        // Where it has no user, it is charged to the address that it speaks for now.
        memory.charge(to: connection.client(speakingAs: connection.caller))
        let response = request.id.map { id in Response.bytes(id: id) { $0.write([:] as JSONValue) } }
        respond(request.sequence, request.entry, response, isError: false)
    }

    // MARK: Credentials

    /// Verifies the credential of the request that waits; what is behind it waits too.
    private func verify(_ credential: String, _ speaksAs: JSONValue?) {
        state.machine.verificationBegan()
        let (connection, authenticator, notices) = (connection, server.authenticator, server.notices)
        Task {
            let outcome: Result<Caller, RPCError>
            do {
                outcome = .success(try await authenticator.authenticate(credential))
            } catch {
                if !(error is any RPCErrorConvertible) {
                    notices.notice(
                        .failedVerification, "verifying a credential failed", ["error": "\(String(reflecting: error))"],
                        level: .error)
                }
                outcome = .failure(RPCError(error))
            }
            connection.hub.post(.run(connection) { $0.wasVerified(outcome, speaksAs) })
        }
    }

    /// The credential of the request that waits was verified.
    func verified(_ outcome: Result<Caller, RPCError>, _ speaksAs: JSONValue?) {
        state.machine.verificationEnded()
        guard let request = waiting?.current else { return }
        let identification: Identification
        switch outcome {
        case .success(let caller):
            session.showed(caller)
            identification = .speaker(for: caller, speaksAs, request.method)
        case .failure(let error): identification = .refused(error)
        }
        switch identification {
        case .known(let caller): waiting?.current?.caller = caller
        case .refused(let error):
            waiting?.current = nil
            fail(request, error)
        case .unverified: break
        }
    }

    // MARK: Responses

    private func respond(_ sequence: UInt64, _ entry: Int?, _ response: [UInt8]?, isError: Bool) {
        if isError { state.hub.count { $0.errors += 1 } }
        output.leave(sequence, state.machine.responseCame(sequence, entry, response))
    }

    private func fail(_ request: CurrentRequest, _ error: RPCError) {
        _ = fail(error, request.id, request.sequence, request.entry)
    }

    private func fail(_ error: RPCError, _ id: String?, _ sequence: UInt64, _ entry: Int?) -> CurrentRequest? {
        respond(sequence, entry, id.map { Response.bytes(id: $0, error: error) }, isError: true)
        return nil
    }
}
