import HatoModel
import NIOCore
import NIOPosix
import Synchronization

/// The one connection of a client and everything that waits for it, on one event loop.
///
/// Connecting happens when a call comes; a failed attempt fails the calls that waited for it, and the next call waits
/// for a random time before the next attempt (`reconnectDelayMin` doubling up to `reconnectDelayMax`). There is one
/// timer for all time limits, only while calls wait; nothing runs without calls.
///
/// `@unchecked Sendable`: what is not behind the mutex is touched on `loop` only.
final class ClientLink: @unchecked Sendable {
    enum Item: Sendable {
        case call(OutgoingCall)
        /// The caller does not wait any more.
        case abandon(UInt64)
        /// The subscriber does not read any more.
        case forget(String)
        case readAgain
        case close(EventLoopPromise<Void>)
    }

    private enum Phase {
        case idle
        case waitingToConnect(Scheduled<Void>)
        case connecting
        case authenticating(ClientHandler)
        case connected(ClientHandler)
        case closed
    }

    let loop: any EventLoop
    private let configuration: RPCClientConfiguration
    private let posted = Mutex<(items: [Item], isWoken: Bool)>(([], false))
    private let nextID = Atomic<UInt64>(1)

    // Loop only.
    private var phase = Phase.idle
    private var calls: [UInt64: OutgoingCall] = [:]
    /// Calls that wait for the connection, in order.
    private var unsent: [UInt64] = []
    /// By name; what the server does not end itself is ended there when its reader goes.
    private var subscriptions: [String: OpenSubscription] = [:]
    /// How to end what sent calls open whose callers have gone: by call, until its response comes. The server bounds
    /// their number: it holds each as a request in flight.
    private var orphans: [UInt64: SubscriptionEnding] = [:]
    /// The error of no call in particular that the server sent before it closed the connection.
    private var lastWord: RPCError?
    private var output = ByteBuffer()
    private var timer: (at: NIODeadline, task: Scheduled<Void>)?
    private var renewal: Scheduled<Void>?
    /// When the credential that was shown last ends, in milliseconds since 1970.
    private var credentialEnd: Double?
    private var failures = 0
    private var notBefore = NIODeadline.uptimeNanoseconds(0)
    private var tls: ClientTLS?

    init(_ configuration: RPCClientConfiguration) {
        self.configuration = configuration
        loop = MultiThreadedEventLoopGroup.singleton.next()
    }

    // MARK: Any thread

    func newID() -> UInt64 { nextID.wrappingAdd(1, ordering: .relaxed).oldValue }

    func post(_ item: Item) {
        let mustWake = posted.withLock { posted in
            posted.items.append(item)
            defer { posted.isWoken = true }
            return !posted.isWoken
        }
        if mustWake { loop.execute { self.drain() } }
    }

    // MARK: Calls

    private func drain() {
        let items = posted.withLock { posted in
            defer { posted = ([], false) }
            return posted.items
        }
        for item in items {
            switch item {
            case .call(let call): add(call)
            case .abandon(let id): giveUp(id, RPCError.abandoned)
            case .forget(let id): forget(id)
            case .readAgain: handler?.readAgain()
            case .close(let promise): close(promise)
            }
        }
        flush()
    }

    private var handler: ClientHandler? {
        switch phase {
        case .authenticating(let handler), .connected(let handler): handler
        default: nil
        }
    }

    private func add(_ call: OutgoingCall) {
        if case .closed = phase { return call.fail(RPCError.clientClosed) }
        calls[call.id] = call
        watchTime(call.deadline)
        if case .connected(let handler) = phase {
            write(call)
            handler.readAgain()
        } else {
            unsent.append(call.id)
            connectIfIdle()
        }
    }

    private func write(_ call: OutgoingCall) { write(call.id, call.method, call.params) }

    private func write(_ id: UInt64, _ method: String, _ params: [UInt8]) {
        if output.capacity == 0 { output = ByteBufferAllocator().buffer(capacity: 512 + params.count) }
        RequestLine.write(id, method, params.span, into: &output)
    }

    /// The caller does not wait any more. A call that has left is carried out all the same: what it opens is ended when
    /// its response comes.
    private func giveUp(_ id: UInt64, _ error: RPCError) {
        guard let call = calls.removeValue(forKey: id) else { return }
        if case .subscription(let ending, _) = call.completion, !unsent.contains(id) { orphans[id] = ending }
        call.fail(error)
    }

    /// The subscription has no reader any more: the server must not send it any longer.
    private func forget(_ id: String) {
        if let open = subscriptions.removeValue(forKey: id) { end(id, open.ending) }
        handler?.readAgain()
    }

    /// No caller waits for the response, and an error says only that the server has ended it already.
    private func end(_ subscription: String, _ ending: SubscriptionEnding) {
        guard case .connected = phase, let method = ending.method else { return }
        write(newID(), method, ending.params(subscription))
    }

    /// One write for all that has gathered.
    func flush() {
        guard output.readableBytes > 0 else { return }
        let full = output
        output = ByteBuffer()
        handler?.write(full)
    }

    // MARK: Responses

    func received(_ line: ServerLine) {
        switch line {
        case .result(let id, let text):
            if let call = calls.removeValue(forKey: id) {
                complete(call, text)
            } else if let ending = orphans.removeValue(forKey: id), let result = subscriptionResult(text) {
                end(result.id, ending)
            }
        case .error(let id?, let error):
            orphans[id] = nil
            calls.removeValue(forKey: id)?.fail(error)
        case .error(nil, let error): lastWord = error
        case .notification(let event):
            guard let id = event.params["subscription"]?.string, let open = subscriptions[id] else { return }
            let isLast = event.method.hasSuffix(".cancelled")
            if isLast { subscriptions[id] = nil }
            guard let subscription = open.reader else { return }
            if !subscription.deliver(event), !isLast { forget(id) }
            if isLast { subscription.finish(.success(())) }
        }
    }

    /// Whether the rest of a long line is not wanted: the response is larger than its call takes, which fails, or its
    /// caller has gone.
    func refusesResponse(beginning line: ByteBuffer) -> Bool {
        guard line.readableBytes >= Self.longLineBytes,
            let id = ServerLine.id(ofBeginning: line.readableBytesUInt8Span)
        else { return false }
        guard let call = calls[id] else { return orphans[id] == nil }
        guard line.readableBytes - Self.longLineBytes > call.responseBytesMax else { return false }
        calls[id] = nil
        call.fail(RPCError.responseTooBig(call.responseBytesMax))
        return true
    }

    /// Shorter lines are read whole. Longer than what stands around a result.
    private static let longLineBytes = 1_024

    private func complete(_ call: OutgoingCall, _ text: [UInt8]) {
        switch call.completion {
        case .result(let body):
            body(
                text.count > call.responseBytesMax
                    ? .failure(RPCError.responseTooBig(call.responseBytesMax)) : .success(text))
        case .subscription(let ending, let body):
            // The first event may stand right behind this response: the subscription must be known before it is read.
            guard let (id, result) = subscriptionResult(text) else {
                return body(.failure(RPCError.badResponse("the response names no subscription")))
            }
            let subscription = RPCSubscription(
                id: id, result: result,
                limits: .init(
                    eventsMax: configuration.subscriptionBufferMax,
                    bytesMax: configuration.subscriptionBufferBytesMax), link: self)
            subscriptions[id] = OpenSubscription(reader: subscription, ending: ending)
            body(.success(subscription))
        }
    }

    private func subscriptionResult(_ text: [UInt8]) -> (id: String, result: JSONObject)? {
        guard let result = (try? JSONParser.parse(text, depth: configuration.nestingMax))?.object,
            let id = result["subscription"]?.string
        else { return nil }
        return (id, result)
    }

    /// Reading stops while a subscriber is behind, but never while a call waits for its answer: the subscriber itself
    /// may be the caller.
    var mayRead: Bool {
        guard calls.isEmpty, case .connected = phase else { return true }
        return !subscriptions.values.contains { $0.reader?.isFull ?? false }
    }

    // MARK: Time limits

    private func watchTime(_ deadline: NIODeadline) {
        if let timer, timer.at <= deadline { return }
        timer?.task.cancel()
        timer = (deadline, loop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in checkTime() })
    }

    private func checkTime() {
        timer = nil
        let now = NIODeadline.now()
        for id in calls.filter({ $0.value.deadline <= now }).keys { giveUp(id, RPCError.timedOut) }
        if let next = calls.values.map(\.deadline).min() { watchTime(next) }
    }

    // MARK: The connection

    private func connectIfIdle() {
        guard case .idle = phase else { return }
        let now = NIODeadline.now()
        guard notBefore > now else { return connect() }
        phase = .waitingToConnect(
            loop.assumeIsolated().scheduleTask(deadline: notBefore) { [self] in
                phase = .idle
                unsent.removeAll { calls[$0] == nil }
                if !unsent.isEmpty { connect() }
            })
    }

    private func connect() {
        phase = .connecting
        let handler = ClientHandler(
            link: self, lineBytesMax: configuration.lineBytesMax, nestingMax: configuration.nestingMax)
        do {
            if tls == nil { tls = try configuration.tls.map { try ClientTLS($0, host: configuration.host) } }
        } catch {
            return connectFailed(ConnectionProblem.words(error))
        }
        ClientChannel.bootstrap(on: loop, connectTimeout: configuration.connectTimeout)
            .connect(host: configuration.host, port: configuration.port)
            .assumeIsolated()
            .whenComplete { [self] outcome in
                switch outcome {
                case .success(let channel): connected(channel, handler)
                case .failure(let error): connectFailed(ConnectionProblem.words(error))
                }
            }
    }

    private func connected(_ channel: any Channel, _ handler: ClientHandler) {
        guard case .connecting = phase else { return channel.close(promise: nil) }
        do {
            try ClientChannel.start(channel, tls, handler)
        } catch {
            channel.close(promise: nil)
            return connectFailed(ConnectionProblem.words(error))
        }
        connected(handler)
    }

    private func connected(_ handler: ClientHandler) {
        guard handler.context != nil else { return connectFailed("the connection closed at once") }
        phase = .authenticating(handler)
        authenticate(handler)
    }

    private func connectFailed(_ reason: String) {
        if case .closed = phase { return }
        failed(noConnection(reason))
    }

    /// Ends what waits with `error`; the next call tries again, not at once.
    private func failed(_ error: RPCError) {
        phase = .idle
        let delayMax = min(
            configuration.reconnectDelayMin * (1 << min(failures, 20)), configuration.reconnectDelayMax)
        failures += 1
        notBefore = .now() + TimeAmount.nanoseconds(Int64.random(in: 0...max(TimeAmount(delayMax).nanoseconds, 1)))
        failAll(error)
    }

    private func failAll(_ error: RPCError) {
        let ended = calls.values.sorted { $0.id < $1.id }
        let silenced = subscriptions.values.compactMap(\.reader)
        calls = [:]
        orphans = [:]
        unsent = []
        subscriptions = [:]
        output = ByteBuffer()
        lastWord = nil
        renewal?.cancel()
        renewal = nil
        credentialEnd = nil
        timer?.task.cancel()
        timer = nil
        for call in ended { call.fail(error) }
        for subscription in silenced { subscription.finish(.failure(error)) }
    }

    /// Called by the handler, once.
    func connectionEnded(_ handler: ClientHandler, reason: String?) {
        guard self.handler === handler else { return }
        switch phase {
        case .authenticating: failed(noConnection(reason))
        // Written behind the handshake, and so never sent.
        case .connected where handler.isWithoutTLS: failed(noConnection(reason))
        case .connected:
            phase = .idle
            failures = 0
            // Many clients lose one server at the same time: they come back spread over a moment.
            let spread = max(TimeAmount(configuration.reconnectDelayMin).nanoseconds, 1)
            notBefore = .now() + TimeAmount.nanoseconds(Int64.random(in: 0...spread))
            failAll(lastWord ?? RPCError.connectionLost(reason))
        default: break
        }
    }

    private func noConnection(_ reason: String?) -> RPCError {
        RPCError.cannotConnect(
            configuration.host, configuration.port, reason ?? "the server closed the connection at once")
    }

    private func close(_ promise: EventLoopPromise<Void>) {
        let handler = handler
        if case .waitingToConnect(let task) = phase { task.cancel() }
        phase = .closed
        failAll(RPCError.clientClosed)
        guard let channel = handler?.context?.channel else { return promise.succeed(()) }
        channel.closeFuture.cascade(to: promise)
        handler?.close()
    }

    // MARK: Identity

    private func authenticate(_ handler: ClientHandler) {
        guard let credential = configuration.credential else { return ready(handler) }
        let bound = NIOLoopBound(handler, eventLoop: loop)
        Task { [self] in
            let outcome: Result<String, RPCError>
            do {
                outcome = .success(try await credential())
            } catch {
                outcome = .failure(
                    (error as? any RPCErrorConvertible)?.rpcError
                        ?? RPCError.unavailable(reason: "no_credential", String(describing: error)))
            }
            loop.execute { self.show(outcome, bound.value) }
        }
    }

    private func show(_ credential: Result<String, RPCError>, _ handler: ClientHandler) {
        guard self.handler === handler else { return }
        switch credential {
        case .failure(let error): authenticated(.failure(error), handler)
        case .success(let text):
            let bound = NIOLoopBound(handler, eventLoop: loop)
            let id = newID()
            let deadline = NIODeadline.now() + TimeAmount(configuration.timeout)
            let call = OutgoingCall(
                id: id, method: Session.Authenticate.method, params: EncodedJSON(["auth": .string(text)]).bytes,
                deadline: deadline,
                completion: .result { result in
                    // Completions of calls run on the loop.
                    self.authenticated(result, bound.value)
                })
            calls[id] = call
            watchTime(deadline)
            write(call)
            flush()
        }
    }

    private func authenticated(_ result: Result<[UInt8], RPCError>, _ handler: ClientHandler) {
        guard self.handler === handler else { return }
        switch result {
        case .success(let text):
            if case .authenticating = phase { ready(handler) }
            credentialEnd = (try? JSONParser.parse(text))?["expiresAt"]?.number
            renewInTime(handler)
        case .failure(let error):
            guard case .authenticating = phase else {
                // A credential that could not be had, or was refused, is asked for again.
                renewInTime(handler)
                return
            }
            failed(error)
            handler.close()
        }
    }

    private func ready(_ handler: ClientHandler) {
        phase = .connected(handler)
        failures = 0
        let waiting = unsent
        unsent = []
        for id in waiting { calls[id].map(write) }
        flush()
    }

    /// A new credential is shown when four fifths of the old one's time are over, so that listeners live on.
    private func renewInTime(_ handler: ClientHandler) {
        guard let credentialEnd else { return }
        let left = credentialEnd - Double(WallClock.milliseconds())
        guard left < 1e12 else { return }
        let bound = NIOLoopBound(handler, eventLoop: loop)
        renewal?.cancel()
        // While the old one holds there is haste; after its end there is time.
        let pause = left > 0 ? max(left * 0.8, 1_000) : 10_000
        renewal = loop.scheduleTask(in: .milliseconds(Int64(pause))) {
            if self.handler === bound.value { self.authenticate(bound.value) }
        }
    }
}
