import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore

/// The connections to a service over which the calls of single requests go, on one event loop.
///
/// A few connections are shared: a call goes to the one with the fewest calls among those whose oldest call is not
/// slow. Where the service carries calls out together, the next ones of the same turn of the event loop follow it,
/// sixteen at a time. None has an identity; each call has its own. A connection that is lost ends its calls with an
/// error; the next call connects anew.
///
/// A call without a response may be given up. Its connection gets no further calls then until that response comes, and
/// is closed with its last call that is given up: a service that has vanished is noticed by the system after minutes
/// only, and the calls of others have their own time.
final class SharedWires {
    typealias Outcome = Result<ByteBuffer, RPCError>
    typealias Completion = (Outcome) -> Void

    private let link: ServiceLink
    private let loop: any EventLoop
    private let limits: GatewayLimits
    private let wiresMax: Int
    /// Bytes of calls that wait, with those of the other connections of the event loop.
    private let waiting: HeldBytes
    private var wires: [SharedWire] = []
    /// The connection that got the last call: those of one turn of the event loop go out in one write. Nil where a call
    /// would wait for the ones before.
    private weak var gathering: SharedWire?
    /// How many calls it got since it was chosen.
    private var gathered = 0
    /// A connection's responses come in the order of its calls: so few calls of a turn wait for a large one among them.
    private static let gatheredMax = 16

    /// - Parameters:
    ///   - max: connections.
    ///   - waiting: counts the bytes of calls that wait.
    init(_ link: ServiceLink, on loop: any EventLoop, max: Int, _ limits: GatewayLimits, _ waiting: HeldBytes) {
        (self.link, self.loop, self.limits, wiresMax, self.waiting) = (link, loop, limits, max, waiting)
    }

    /// Calls the service; `completion` is called once, on this event loop.
    ///
    /// - Parameter msMax: milliseconds after which the call may be given up for others; nil: `call-ms-max`.
    /// - Returns: what gives the call up.
    @discardableResult
    func call(
        _ method: String, _ params: [UInt8], msMax: Int? = nil, _ completion: @escaping Completion
    ) -> SharedCall {
        // A line that is too long would end the connection, and with it the calls of others.
        guard params.count <= limits.session.callBytesMax else {
            let error = RPCError(.invalidRequest, reason: "line_too_long", "The call has too many bytes")
            completion(.failure(error))
            return SharedCall()
        }
        guard holds(params.count) else {
            let error = RPCError.resourceExhausted(
                reason: "busy", "The gateway holds too many calls; try again", retryAfterMs: 1_000)
            completion(.failure(error))
            return SharedCall()
        }
        return wire().call(method, params, msMax: msMax ?? limits.callMsMax, completion)
    }

    /// Counts the bytes of a call, if need be in place of those of calls that nothing gives up in time.
    private func holds(_ bytes: Int) -> Bool {
        if waiting.change(by: bytes) { return true }
        let now = NIODeadline.now()
        for wire in wires { wire.giveUpOldest(at: now) }
        return waiting.change(by: bytes)
    }

    /// Ends all connections; their calls fail.
    func close() {
        for wire in wires { wire.close() }
        wires = []
    }

    private func wire() -> SharedWire {
        let now = NIODeadline.now()
        if let gathering, gathering.gathers, gathered < Self.gatheredMax, isPrompt(gathering, now) {
            gathered += 1
            return gathering
        }
        let wire = leastLoaded(now)
        if link.carriesOutTogether { (gathering, gathered) = (wire, 1) }
        return wire
    }

    private func isPrompt(_ wire: SharedWire, _ now: NIODeadline) -> Bool {
        wire.waited(at: now).nanoseconds < Int64(limits.slowCallMs) * 1_000_000
    }

    private func leastLoaded(_ now: NIODeadline) -> SharedWire {
        // Calls that nothing gives up in time.
        for wire in wires { wire.giveUpOldest(at: now) }
        wires.removeAll(where: \.hasEnded)
        let stuck = wires.filter(\.isStuck)
        // As many of these as of others.
        if stuck.count > wiresMax { stuck[0].close() }
        let usable = wires.filter { !$0.isStuck }
        let prompt = usable.filter { isPrompt($0, now) }
        let best = prompt.min { $0.count < $1.count }
        if let best, best.count == 0 || usable.count >= wiresMax { return best }
        if usable.count < wiresMax {
            let new = SharedWire(link, on: loop, waiting)
            wires.append(new)
            return new
        }
        return usable.min { $0.count < $1.count } ?? SharedWire(link, on: loop, waiting)
    }
}

/// A call that is under way, or has its outcome.
struct SharedCall {
    fileprivate weak var wire: SharedWire?
    fileprivate var id: UInt64 = 0

    fileprivate init(_ wire: SharedWire? = nil, _ id: UInt64 = 0) { (self.wire, self.id) = (wire, id) }

    /// Whether it may still get an outcome.
    var isUnderWay: Bool { wire != nil }

    /// Nothing waits for it any more: without an outcome it fails.
    func giveUp() { wire?.giveUp(id) }
}

/// One of these connections.
private final class SharedWire: ForwardedWireOwner {
    private let loop: any EventLoop
    private let waiting: HeldBytes
    private var wire: ForwardedWire?
    private struct Call {
        var began: NIODeadline
        var msMax: Int
        /// Counted in the budget.
        var bytes: Int
        var completion: SharedWires.Completion
    }

    private var calls: [UInt64: Call] = [:]
    /// Calls that were given up, and have no response.
    private var givenUp: Set<UInt64> = []
    /// In the order of the calls; those that have ended are skipped.
    private var order: [UInt64] = []
    private var first = 0
    private(set) var hasEnded = false
    /// Whether the service has taken calls.
    private var wasOpen = false

    init(_ link: ServiceLink, on loop: any EventLoop, _ waiting: HeldBytes) {
        (self.loop, self.waiting) = (loop, waiting)
        wire = link.connect(on: loop, for: nil, self)
    }

    var count: Int { calls.count }

    /// Whether calls wait for the end of this turn of the event loop, to go out in one write.
    var gathers: Bool { !hasEnded && !isStuck && wire?.isGathering == true }

    /// Whether the service has left a call without a response for too long.
    var isStuck: Bool { !givenUp.isEmpty }

    /// How long its oldest call has waited.
    func waited(at now: NIODeadline) -> TimeAmount { oldest.map { now - $0.call.began } ?? .zero }

    private var oldest: (id: UInt64, call: Call)? {
        while first < order.count, calls[order[first]] == nil { first += 1 }
        if first == order.count {
            (order, first) = ([], 0)
        } else if first > 1_024 {
            order.removeFirst(first)
            first = 0
        }
        guard first < order.count, let call = calls[order[first]] else { return nil }
        return (order[first], call)
    }

    func call(
        _ method: String, _ params: [UInt8], msMax: Int, _ completion: @escaping SharedWires.Completion
    ) -> SharedCall {
        guard let id = wire?.send(method, params) else {
            waiting.release(params.count)
            completion(
                .failure(
                    .unavailable(
                        reason: "cannot_connect", "The connection to the service has ended; the call was not sent")))
            return SharedCall()
        }
        calls[id] = Call(began: .now(), msMax: msMax, bytes: params.count, completion: completion)
        order.append(id)
        return SharedCall(self, id)
    }

    /// The call fails, in a later turn: what follows from it may be another call. The connection is closed when no
    /// other one is under way.
    func giveUp(_ id: UInt64) {
        guard let call = removeCall(id) else { return }
        givenUp.insert(id)
        if calls.isEmpty { close() }
        let error = RPCError(.unavailable, reason: "timeout", "The service has not responded in time")
        loop.assumeIsolated().execute { call.completion(.failure(error)) }
    }

    private func removeCall(_ id: UInt64) -> Call? {
        guard let call = calls.removeValue(forKey: id) else { return nil }
        waiting.release(call.bytes)
        return call
    }

    /// Gives up the oldest calls that have had their time.
    func giveUpOldest(at now: NIODeadline) {
        while let oldest, now - oldest.call.began > .milliseconds(Int64(oldest.call.msMax)) { giveUp(oldest.id) }
    }

    /// Its calls fail, and it gets no more.
    func close() {
        hasEnded = true
        wire?.close()
    }

    func wireOpened(_ wire: ForwardedWire) { wasOpen = true }

    func wire(_ wire: ForwardedWire, received response: RPCWireResponse) {
        guard let call = removeCall(response.id) else {
            givenUp.remove(response.id)
            return
        }
        switch response.outcome {
        case .result(let text): call.completion(.success(text))
        case .error(let error, _): call.completion(.failure(error))
        }
    }

    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64]) {
        (hasEnded, self.wire) = (true, nil)
        let lost = unanswered.compactMap(removeCall)
        let error = wasOpen ? error.ofOpenConnection : error
        for call in lost { call.completion(.failure(error)) }
    }
}

extension RPCError {
    /// What the end of a connection that took calls says of a call without a response. The service may have refused
    /// what concerns the whole connection (`line_stalled`, `peer_stalled`): that call may have been carried out.
    var ofOpenConnection: RPCError {
        guard code != .unavailable else { return self }
        return RPCError(.unavailable, reason: "connection_lost", "The service has ended the connection: \(message)")
    }
}
