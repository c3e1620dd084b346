import HatoModel
import Logging
import NIOCore

// From a line to the body of its method, in order.

/// A request whose method is known.
struct CurrentRequest {
    var id: String?
    var method: RPCMethod
    var params: JSONObject
    var byteCount: Int
    var memory: Int
    var sequence: UInt64
    var entry: Int?
    /// The batch it is in may answer late, so it may.
    var isSlow: Bool { method.kind.isSlow }
    var caller: Caller?
    var isCallCredential = false
    /// Whether an administrator speaks as the caller.
    var isByAdministrator = false

    func context(_ caller: Caller, _ connection: RPCConnection) -> RPCContext {
        RPCContext(
            caller: caller, connection: connection, isCallCredential: isCallCredential,
            isByAdministrator: isByAdministrator, method: method.name, byteCount: byteCount, sequence: sequence)
    }

    /// Takes a parameter out of the params that is not one of the method itself.
    mutating func take(_ name: String) -> JSONValue? {
        guard !method.ownParameters.contains(name), let value = params[name] else { return nil }
        params[name] = nil
        return value
    }
}

/// What came in a line and waits: for its turn, for memory, or for its credential to be verified.
struct WaitingRequests {
    /// The line itself, when there is no memory for what is in it; then there is nothing else.
    var line: ByteBuffer?
    /// The request whose turn is next, when it has been looked at already.
    var current: CurrentRequest?
    /// The entries of its batch that follow.
    var entries: [ReadEnvelope] = []
    var next = 0
    /// What the entries that follow take.
    var entryMemory = 0
    var sequence: UInt64 = 0

    var memory: Int { (line?.readableBytes ?? 0) + entryMemory + (current?.memory ?? 0) }
}

extension ConnectionHandler {
    /// Whether a request of this method may start now.
    func mayStart(_ method: RPCMethod) -> Bool {
        mayStart(machine.requestArrived(method.kind, server.budget.mayStartRequest(account)), .read)
    }

    private func mayStart(_ start: ConnectionStateMachine.Start, _ use: ConnectionStateMachine.OverdraftUse) -> Bool {
        switch start {
        case .start: true
        case .wait: false
        case .askForRequestOverdraft: takeRequestOverdraft(for: use)
        }
    }

    /// Whether a line may be read now: what is in it takes many times its own bytes.
    func mayTake(_ line: ByteBuffer) -> Bool {
        if line.readableBytes <= Self.smallLineBytesMax { return true }
        return mayStart(machine.largeLineArrived(server.budget.mayStartRequest(account)), .line)
    }

    /// Hands on what may be handed on: first what waits, then line by line.
    func handOn() {
        guard !isReading else { return }
        isReading = true
        defer { isReading = false }
        handingOn: while true {
            switch machine.next(mayHoldMore) {
            case .wait: break handingOn
            case .continueWaiting: guard continueWaiting() else { break handingOn }
            case .takeLine:
                guard let line = lines.nextLine() else {
                    if machine.phase == .open { checkUnfinishedLine() }
                    return machine.linesRanOut()
                }
                endClaim()
                take(line)
            }
        }
        machine.handingOnStopped(hasLines: !lines.isEmpty)
    }

    // MARK: Lines

    private var lineBytesMax: Int {
        hasShownCredential
            ? server.limits.lineBytesMax
            : min(server.limits.unauthenticatedLineBytesMax, server.limits.lineBytesMax)
    }

    private func checkUnfinishedLine() {
        if lines.beginsWithHTTP {
            refuseHTTP()
        } else if lines.unfinishedCount > lineBytesMax {
            refuseLongLine()
        }
    }

    private func refuseHTTP() {
        server.notices.notice(
            .http, "closed a connection that speaks HTTP", ["peer": "\(connection.remoteAddress)"])
        machine.refused()
        lines.removeAll()
        closeNow()
    }

    private func refuseLongLine() { refuseUnfinishedLine(RPCError.lineTooLong(lineBytesMax)) }

    /// Answers in its turn, then closes; nothing more is read.
    func refuseUnfinishedLine(_ error: RPCError) {
        refuse(error)
        lines.removeAll()
        endClaim()
        machine.inputRefused()
    }

    private func take(_ line: ByteBuffer) {
        guard line.readableBytes <= lineBytesMax else { return refuseLongLine() }
        let span = line.readableBytesUInt8Span
        guard !HTTPGuard.isHTTP(span) else { return refuseHTTP() }
        guard mayTake(line) else { return waiting = WaitingRequests(line: line) }
        guard line.readableBytes <= Self.lineReadOnLoopBytesMax else { return readElsewhere(line) }
        take(Result { () throws(JSONError) in try EnvelopeReader.read(span, server.limits) })
    }

    func take(_ line: Result<ReadLine, JSONError>) {
        switch line {
        case .failure(let error) where error.reason == .tooManyValues: refuse(RPCError.tooManyValues)
        case .failure(let error): refuse(RPCError.parseError(error))
        case .success(.single(let envelope)): takeSingle(envelope)
        case .success(.batch(let entries)): takeBatch(entries)
        case .success(.batchTooLarge):
            refuse(
                RPCError.invalidRequest(
                    "A batch may have \(server.limits.batchEntriesMax) entries", reason: "batch_too_large"))
        }
    }

    /// Answers a whole line with one error, in its turn.
    private func refuse(_ error: RPCError) {
        answerNow(machine.lineArrived(isSlow: false), nil, Response.bytes(id: "null", error: error), isError: true)
    }

    private func takeSingle(_ envelope: ReadEnvelope) {
        let method = method(of: envelope)
        let sequence = machine.lineArrived(isSlow: method?.kind.isSlow ?? false)
        guard let current = admit(envelope, method, sequence: sequence, entry: nil) else { return }
        if let rest = proceed(current) { waiting = WaitingRequests(current: rest, sequence: sequence) }
    }

    private func takeBatch(_ entries: [ReadEnvelope]) {
        guard !entries.isEmpty else { return refuse(RPCError.invalidRequest("A batch has at least one entry")) }
        let isSlow = entries.contains { method(of: $0)?.kind.isSlow ?? false }
        let sequence = machine.batchArrived(count: entries.count, isSlow: isSlow)
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
            guard mayTake(line) else { return false }
            waiting = nil
            take(line)
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

    /// Answers at once when there is nothing to call.
    private func admit(
        _ envelope: ReadEnvelope, _ method: RPCMethod?, sequence: UInt64, entry: Int?
    ) -> CurrentRequest? {
        hub.count { $0.requests += 1 }
        switch envelope {
        case .invalid(let id, let detail):
            let response = Response.bytes(id: id ?? "null", error: RPCError.invalidRequest(detail))
            answerNow(sequence, entry, response, isError: true)
            return nil
        case .request(let request):
            guard let method else {
                return failNow(RPCError.methodNotFound(request.method), request.id, sequence, entry)
            }
            if request.id == nil, method.isForItsAnswer {
                answerNow(sequence, entry, nil, isError: false)
                return nil
            }
            if entry != nil, method.isForItsAnswer, machine.isBatchFull(sequence) {
                return failNow(RPCError.tooBig(server.limits.responseBytesMax), request.id, sequence, entry)
            }
            guard case .object(let params) = request.params else {
                return failNow(RPCError.positionalParams, request.id, sequence, entry)
            }
            return CurrentRequest(
                id: request.id, method: method, params: params, byteCount: request.byteCount, memory: request.memory,
                sequence: sequence, entry: entry)
        }
    }

    private func failNow(
        _ error: RPCError, _ id: String?, _ sequence: UInt64, _ entry: Int?
    ) -> CurrentRequest? {
        answerNow(sequence, entry, id.map { Response.bytes(id: $0, error: error) }, isError: true)
        return nil
    }

    private func answerNow(_ sequence: UInt64, _ entry: Int?, _ response: [UInt8]?, isError: Bool) {
        if isError { hub.count { $0.errors += 1 } }
        leave(sequence, machine.responseCame(sequence, entry, response))
    }

    func fail(_ request: CurrentRequest, _ error: RPCError) {
        _ = failNow(error, request.id, request.sequence, request.entry)
    }

    func succeed(_ request: CurrentRequest, _ result: JSONValue) {
        let response = request.id.map { id in Response.bytes(id: id) { $0.write(result) } }
        answerNow(request.sequence, request.entry, response, isError: false)
    }

    /// Finds out who asks, then starts the method; returns the request when it must wait.
    private func proceed(_ request: CurrentRequest) -> CurrentRequest? {
        var request = request
        if request.caller == nil {
            switch identify(&request) {
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
        guard mayStart(request.method) else { return request }
        switch request.method.start {
        case .hot(let start): start(request.params, request.context(caller, connection), pending(request))
        case .cold(let start):
            let context = request.context(caller, connection)
            let pending = pending(request)
            let params = request.params
            Task { await start(params, context, pending) }
        case .authenticate: authenticate(request, caller)
        case .endSession: endSession(request)
        }
        return nil
    }

    private func pending(_ request: CurrentRequest) -> PendingReply {
        let ticket = machine.requestStarted(
            request.method.kind, sequence: request.sequence, entry: request.entry, byteCount: request.memory)
        return PendingReply(connection: connection, ticket: ticket, id: request.id, method: request.method.name)
    }
}
