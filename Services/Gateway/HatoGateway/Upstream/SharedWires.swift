import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore

/// The connections to a service over which the calls of single requests go, on one event loop.
///
/// A few connections are shared: a call goes to the one with the fewest calls among those whose oldest call is not
/// slow. None has an identity; each call has its own. A connection that is lost ends its calls with an error; the next
/// call connects anew.
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

    /// - Parameters:
    ///   - max: connections.
    ///   - waiting: counts the bytes of calls that wait.
    init(_ link: ServiceLink, on loop: any EventLoop, max: Int, _ limits: GatewayLimits, _ waiting: HeldBytes) {
        (self.link, self.loop, self.limits, wiresMax, self.waiting) = (link, loop, limits, max, waiting)
    }

    /// Calls the service; `completion` is called once, on this event loop.
    func call(_ method: String, _ params: [UInt8], _ completion: @escaping Completion) {
        // A line that is too long would end the connection, and with it the calls of others.
        guard params.count <= limits.session.callBytesMax else {
            let error = RPCError(.invalidRequest, reason: "line_too_long", "The call has too many bytes")
            return completion(.failure(error))
        }
        guard waiting.change(by: params.count) else {
            let error = RPCError.resourceExhausted(
                reason: "busy", "The gateway holds too many calls; try again", retryAfterMs: 1_000)
            return completion(.failure(error))
        }
        let (count, wire) = (params.count, wire())
        wire.call(method, params) { [waiting] outcome in
            waiting.release(count)
            completion(outcome)
        }
    }

    /// Ends all connections; their calls fail.
    func close() {
        for wire in wires { wire.close() }
        wires = []
    }

    private func wire() -> SharedWire {
        let now = NIODeadline.now()
        // A service that has vanished is noticed by the system after minutes only.
        for wire in wires where wire.waited(at: now) > .milliseconds(Int64(limits.callMsMax)) { wire.close() }
        wires.removeAll(where: \.hasEnded)
        let prompt = wires.filter { $0.waited(at: now).nanoseconds < Int64(limits.slowCallMs) * 1_000_000 }
        let best = prompt.min { $0.count < $1.count }
        if let best, best.count == 0 || wires.count >= wiresMax { return best }
        if wires.count < wiresMax {
            let new = SharedWire(link, on: loop)
            wires.append(new)
            return new
        }
        return wires.min { $0.count < $1.count } ?? SharedWire(link, on: loop)
    }
}

/// One of these connections.
private final class SharedWire: ForwardedWireOwner {
    private var wire: ForwardedWire?
    private var calls: [UInt64: (began: NIODeadline, completion: SharedWires.Completion)] = [:]
    /// In the order of the calls; those that have ended are skipped.
    private var order: [UInt64] = []
    private var first = 0
    private(set) var hasEnded = false

    init(_ link: ServiceLink, on loop: any EventLoop) {
        wire = link.connect(on: loop, for: nil, self)
    }

    var count: Int { calls.count }

    /// How long its oldest call has waited.
    func waited(at now: NIODeadline) -> TimeAmount {
        while first < order.count, calls[order[first]] == nil { first += 1 }
        if first == order.count {
            (order, first) = ([], 0)
        } else if first > 1_024 {
            order.removeFirst(first)
            first = 0
        }
        guard first < order.count, let oldest = calls[order[first]] else { return .zero }
        return now - oldest.began
    }

    func call(_ method: String, _ params: [UInt8], _ completion: @escaping SharedWires.Completion) {
        guard let id = wire?.send(method, params) else {
            return completion(
                .failure(
                    .unavailable(
                        reason: "cannot_connect", "The connection to the service has ended; the call was not sent")))
        }
        calls[id] = (.now(), completion)
        order.append(id)
    }

    /// Its calls fail, and it gets no more.
    func close() {
        hasEnded = true
        wire?.close()
    }

    func wireOpened(_ wire: ForwardedWire) {}

    func wire(_ wire: ForwardedWire, received response: RPCWireResponse) {
        guard let call = calls.removeValue(forKey: response.id) else { return }
        switch response.outcome {
        case .result(let text): call.completion(.success(text))
        case .error(let error, _): call.completion(.failure(error))
        }
    }

    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64]) {
        (hasEnded, self.wire) = (true, nil)
        let waiting = unanswered.compactMap { calls.removeValue(forKey: $0) }
        for call in waiting { call.completion(.failure(error)) }
    }
}
