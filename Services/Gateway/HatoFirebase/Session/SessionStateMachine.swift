public import HatoModel

/// One session of a client of Firebase's protocol 5, above any transport and above one connection to messages (spec
/// realtime-database §8).
///
/// It relies on the order of the native protocol: responses in the order of the calls, the events of a listener behind
/// the response that opened it, and those of a write before the response of the write. It guarantees to the client:
/// - The response of a request comes behind those of earlier requests; only a read that waits for an index comes later.
/// - A listen gets its response behind its first value, and a write its response behind its own events.
/// - Nothing is pushed for a listen behind its `c`, and nothing twice.
/// - An outage closes the session and never becomes a response that makes an app give up a listen or a token.
public struct SessionStateMachine: Sendable {
    private enum Phase {
        case waiting, open
        /// The token has ended: no further requests, and one `ac` as soon as the earlier ones have their responses.
        case endingToken
        /// The client has the `ac` and gets nothing any more.
        case tokenEnded
        case closed
    }

    private let host: String
    private let session: String
    private let limits: SessionLimits
    private let params: NativeParams
    private var phase = Phase.waiting
    private var calls = SessionCalls()
    private var responses = ResponseQueue()
    private var listens: ListenTable
    /// Reads that wait for an index, by the number of their timer.
    private var waitingReads: [Int: (read: SessionCalls.Read, number: Int64)] = [:]
    private var lastTimer = 0
    private var actions: [Action] = []

    /// - Parameters:
    ///   - database: the database of the namespace; nil: the default one.
    ///   - host: the Host of the client's request.
    ///   - session: the id of the session, a secret of at least 128 random bits.
    public init(database: DatabaseName?, host: String, session: String, limits: SessionLimits = SessionLimits()) {
        params = NativeParams(database: database)
        self.host = host
        self.session = session
        self.limits = limits
        listens = ListenTable(limits)
    }

    /// Whether the transport should read on; when not, messages that were read already are still taken.
    public var wantsInput: Bool {
        requests < limits.requestsInFlightMax && calls.bytes <= limits.requestBytesInFlightMax
    }

    private var requests: Int { responses.count + waitingReads.count }

    /// Handles one event and returns what has to be done for it.
    public mutating func handle(_ event: Event) -> [Action] {
        guard phase != .closed else { return [] }
        switch event {
        case .accepted: actions.append(.schedule(.wire, .after(limits.wireMsMax)))
        case .wireOpened(let time): wireOpened(at: time)
        case .message(let message): received(message)
        case .succeeded(let call, let result): succeeded(call, result)
        case .refused(let call, let error): refused(call, error)
        case .notified(let notification): notified(notification)
        case .timerFired(let timer): fired(timer)
        case .wireEnded: close(.wireLost)
        case .namespaceWasUnknown: shutDown()
        case .stopping: if phase == .open || phase == .waiting { send(ServerText.reset(host: host)) }
        }
        if phase != .closed, responses.heldBytes > limits.heldResponseBytesMax { close(.tooManyResponses) }
        let all = actions
        actions = []
        return all
    }

    private mutating func wireOpened(at time: Int64) {
        guard phase == .waiting else { return }
        guard params.database != nil else { return greet(at: time) }
        // A client of an unknown database gets no hello.
        let params = params.existence
        let call = SessionCalls.Call(purpose: .existence(time), ticket: nil, number: 0, bytes: params.count)
        actions.append(.call(calls.add(call), method: "messages.get", params: params))
    }

    private mutating func greet(at time: Int64) {
        phase = .open
        actions.append(.cancel(.wire))
        send(ServerText.hello(at: time, host: host, session: session))
    }

    // MARK: The client

    private mutating func received(_ received: ReceivedMessage) {
        switch phase {
        case .waiting: return close(.tooEarly)
        case .endingToken, .tokenEnded, .closed: return
        case .open: break
        }
        let message: SessionMessage
        do { message = try SessionMessage(received, limits) } catch {
            switch error {
            case .refused(let number, let status): respondInTurn(ServerText.response(number, status))
            case .unreadable(let problem): close(received.isText ? .unreadableMessage(problem) : .notUTF8)
            }
            return
        }
        switch message {
        case .control(.ping): send(ServerText.pong)
        case .control: break
        case .request(let number, let request):
            guard requests < 2 * limits.requestsInFlightMax else { return close(.tooManyRequests) }
            handle(request, number)
        }
    }

    private mutating func handle(_ request: SessionRequest, _ number: Int64) {
        switch request {
        case .noted: respondInTurn(ServerText.response(number, StatusWords("ok", "")))
        case .unknown: respondInTurn(ServerText.response(number, .unknownAction))
        case .listen(let listen): begin(listen, number)
        case .unlisten(let path, let query): end(path, query, number)
        case .get(let path, let query):
            let params = params.at(path, query) { writer in
                writer.member("export")
                writer.write(true)
            }
            call("messages.get", params, .get(SessionCalls.Read(params: params)), number)
        case .set(let path, let value, nil): call("messages.set", params.at(path, "value", value), .write, number)
        case .set(let path, let value, let hash?):
            guard hash.isEmpty || ValueHash.isHash(hash) else {
                return respondInTurn(ServerText.response(number, .dataStale))
            }
            let etag = hash.isEmpty ? ValueHash.ofNothing : hash
            call("messages.set", params.at(path, "value", value, ifMatch: etag), .write, number)
        case .update(let path, let values):
            call("messages.update", params.at(path, "values", values), .write, number)
        case .onDisconnectSet(let path, let value):
            call("messages.onDisconnect.set", params.at(path, "value", value), .onDisconnect, number)
        case .onDisconnectUpdate(let path, let values):
            call("messages.onDisconnect.update", params.at(path, "values", values), .onDisconnect, number)
        case .onDisconnectCancel(let path):
            call("messages.onDisconnect.cancel", params.at(path), .onDisconnect, number)
        case .authenticate(let credential): authenticate(credential, number)
        case .signOut: call("session.end", Array("{}".utf8), .signOut, number)
        }
    }

    private mutating func begin(_ listen: SessionRequest.Listen, _ number: Int64) {
        // An equal listen that was not ended is replaced.
        if let replaced = endListen(listen.path, listen.query) { discard(replaced) }
        guard let index = listens.begin(listen) else {
            return respondInTurn(
                ServerText.response(number, .unavailable("There are too many listens on this connection")))
        }
        let params = params.at(listen.path, listen.query) { writer in
            guard let hash = listen.hash else { return }
            writer.member("etag")
            writer.write(hash)
        }
        call("messages.listen", params, .listen(index), number)
    }

    private mutating func end(_ path: TreePath, _ query: WireQuery, _ number: Int64) {
        if let subscription = endListen(path, query) {
            call("messages.unlisten", NativeParams.ending(subscription), .unlisten, number)
        } else {
            respondInTurn(ServerText.response(number, StatusWords("ok", "")))
        }
    }

    /// Returns the subscription that has to be ended now; another one is ended when it is opened.
    private mutating func endListen(_ path: TreePath, _ query: WireQuery) -> String? {
        guard case .open(let subscription, let held)? = listens.end(path, query) else { return nil }
        if let held { respond(held.ticket, held.text) }
        return subscription
    }

    private mutating func authenticate(_ credential: SessionCredential, _ number: Int64) {
        var bytes = credential.text.utf8.count
        guard bytes <= limits.credentialBytesMax else {
            return respondInTurn(ServerText.response(number, .invalidToken))
        }
        if case .variable(let variable) = credential.override { bytes += variable.count }
        guard bytes <= limits.callBytesMax else { return respondInTurn(ServerText.response(number, .writeTooBig)) }
        let call = SessionCalls.Call(
            purpose: .authenticate(credential), ticket: responses.reserve(), number: number, bytes: bytes)
        actions.append(.authenticate(calls.add(call), credential))
    }

    private mutating func call(
        _ method: String, _ params: [UInt8], _ purpose: SessionCalls.Purpose, _ number: Int64
    ) {
        guard params.count <= limits.callBytesMax else {
            if case .listen(let index) = purpose { listens.refused(index) }
            return respondInTurn(ServerText.response(number, .writeTooBig))
        }
        let call = SessionCalls.Call(
            purpose: purpose, ticket: responses.reserve(), number: number, bytes: params.count)
        actions.append(.call(calls.add(call), method: method, params: params))
    }

    /// Ends a subscription that the client does not want.
    private mutating func discard(_ subscription: String) {
        let params = NativeParams.ending(subscription)
        let call = SessionCalls.Call(purpose: .discarded, ticket: nil, number: 0, bytes: params.count)
        actions.append(.call(calls.add(call), method: "messages.unlisten", params: params))
    }

    // MARK: The service

    private mutating func succeeded(_ index: Int, _ result: ArraySlice<UInt8>) {
        guard let call = calls.take(index) else { return }
        let number = call.number
        switch call.purpose {
        case .discarded: break
        case .existence(let time): greet(at: time)
        case .write, .onDisconnect, .unlisten:
            respond(call.ticket, ServerText.response(number, StatusWords("ok", "")))
        case .get:
            guard let value = NativeResult.member("value", of: result) else { return close(.unreadableResult) }
            respond(call.ticket, ServerText.response(number, okWith: value))
        case .listen(let listen): opened(listen, call, result)
        case .authenticate(let credential):
            guard let session = NativeResult.session(result) else { return close(.unreadableResult) }
            actions.append(session.expiresAt.map { .schedule(.tokenEnd, .at($0)) } ?? .cancel(.tokenEnd))
            respond(
                call.ticket,
                ServerText.response(number, "ok") { $0.write(AuthResponse.data(credential, session)) })
        case .signOut:
            actions.append(.cancel(.tokenEnd))
            respond(call.ticket, ServerText.response(number, StatusWords("ok", "unauthenticated")))
        }
    }

    private mutating func opened(_ listen: Int, _ call: SessionCalls.Call, _ result: ArraySlice<UInt8>) {
        guard let opening = NativeResult.Listen(result), let ticket = call.ticket else {
            return close(.unreadableResult)
        }
        let response = ServerText.response(call.number, okWith: opening.warnings)
        var held: ListenTable.HeldResponse?
        if !opening.isUnchanged { held = .init(ticket: ticket, number: call.number, text: response) }
        let isWanted = listens.opened(listen, as: opening.subscription, holding: held)
        if !isWanted { discard(opening.subscription) }
        if !isWanted || held == nil { respond(ticket, response) }
    }

    private mutating func refused(_ index: Int, _ error: RPCError) {
        guard let call = calls.take(index) else { return }
        if case .discarded = call.purpose { return }
        if case .listen(let listen) = call.purpose { listens.refused(listen) }
        // The service has ended the listener meanwhile.
        if case .unlisten = call.purpose, error.code == .notFound {
            return respond(call.ticket, ServerText.response(call.number, StatusWords("ok", "")))
        }
        switch StatusWords.outcome(of: error, for: call.purpose.operation) {
        case .status(let status):
            if case .existence(let time) = call.purpose { return greet(at: time) }
            respond(call.ticket, ServerText.response(call.number, status))
        case .endOfToken: endToken(withoutResponse: call.ticket)
        case .indexIsBuilt: wait(for: error, call)
        case .close: close(.outage(error.reason ?? ""))
        case .unknownNamespace: shutDown()
        }
    }

    /// Repeats a read while an index is being built. Its response leaves its turn, so that others do not wait.
    private mutating func wait(for error: RPCError, _ call: SessionCalls.Call) {
        guard case .get(let read) = call.purpose, read.tries * limits.indexRetryMs < limits.indexMsMax else {
            return respond(call.ticket, ServerText.response(call.number, .unavailable(error.message)))
        }
        lastTimer += 1
        waitingReads[lastTimer] = (read, call.number)
        actions.append(.schedule(.read(lastTimer), .after(limits.indexRetryMs)))
        if let ticket = call.ticket { send(responses.skip(ticket)) }
    }

    private mutating func notified(_ notification: Notification) {
        guard let listen = listens.listen(notification.subscription) else { return }
        guard !notification.isEnd else { return ended(notification) }
        guard let pushes = EventPush.pushes(notification.params, for: listen) else { return close(.unreadableResult) }
        send(pushes)
        if let held = listens.takeHeldResponse(notification.subscription) { respond(held.ticket, held.text) }
    }

    private mutating func ended(_ notification: Notification) {
        guard let (listen, held) = listens.cancelled(notification.subscription) else { return }
        let reason = NativeResult.text("reason", of: notification.params) ?? ""
        switch reason {
        case "token_expired", "token_revoked": endToken(withoutResponse: held?.ticket)
        case "permission_denied":
            guard let held else { return send(EventPush.revocation(of: listen)) }
            respond(held, .permissionDenied)
        case "too_big":
            guard let held else { return close(.outage(reason)) }
            respond(held, .tooBig)
        default: close(.outage(reason))
        }
    }

    // MARK: Timers and ends

    private mutating func fired(_ timer: Timer) {
        switch timer {
        case .wire: if phase == .waiting { close(.wireLost) }
        // A token that is on its way replaces this one.
        case .tokenEnd: if calls.identityChanges == 0 { endToken(withoutResponse: nil) }
        case .authEnd:
            if phase == .endingToken { send(ServerText.authRevoked) }
            close(.tokenEnded)
        case .read(let index):
            guard let (read, number) = waitingReads.removeValue(forKey: index) else { return }
            let next = SessionCalls.Read(params: read.params, tries: read.tries + 1)
            let call = SessionCalls.Call(purpose: .get(next), ticket: nil, number: number, bytes: next.params.count)
            actions.append(.call(calls.add(call), method: "messages.get", params: next.params))
        }
    }

    /// The identity has ended. Responses to what was done before come first, so that it is not done again.
    private mutating func endToken(withoutResponse ticket: Int?) {
        if let ticket { send(responses.skip(ticket)) }
        if phase == .open {
            phase = .endingToken
            waitingReads = [:]
            actions.append(.cancel(.tokenEnd))
            actions.append(.schedule(.authEnd, .after(limits.authEndMsMax)))
        }
        sendEndOfTokenInTurn()
    }

    private mutating func sendEndOfTokenInTurn() {
        guard phase == .endingToken, responses.count == 0 else { return }
        send(ServerText.authRevoked)
        phase = .tokenEnded
    }

    private mutating func shutDown() {
        send(ServerText.shutdown(ServerText.unknownNamespace))
        close(.unknownNamespace)
    }

    private mutating func close(_ end: SessionEnd) {
        phase = .closed
        actions.append(.close(end))
        calls = SessionCalls()
        responses = ResponseQueue()
        listens = ListenTable(limits)
        waitingReads = [:]
    }

    // MARK: Sending

    private mutating func send(_ text: [UInt8]) {
        if phase != .tokenEnded { actions.append(.send(text)) }
    }

    private mutating func send(_ texts: [[UInt8]]) {
        for text in texts { send(text) }
    }

    /// Responds to a request that needs no call.
    private mutating func respondInTurn(_ text: [UInt8]) {
        guard requests < 2 * limits.requestsInFlightMax else { return close(.tooManyRequests) }
        respond(responses.reserve(), text)
    }

    private mutating func respond(_ ticket: Int?, _ text: [UInt8]) {
        guard let ticket else { return send(text) }
        send(responses.respond(ticket, text))
        sendEndOfTokenInTurn()
    }

    /// The listen of a held response has failed: it gets this one instead, with the same number.
    private mutating func respond(_ held: ListenTable.HeldResponse, _ status: StatusWords) {
        respond(held.ticket, ServerText.response(held.number, status))
    }
}
