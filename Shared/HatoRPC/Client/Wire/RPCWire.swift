import HatoModel
package import NIOCore

/// One connection to a service as it is: lines of requests go out without waiting, and responses and notifications come
/// to a delegate in exactly the order the service sent them.
///
/// It does not connect again, has no task and no time limit of calls, and makes no tree of values: of a line it reads
/// what it must know, and passes on the texts of the rest, each one complete JSON value in UTF-8. What a service sends
/// beyond the protocol ends the wire. Each id that `send` has returned comes back once: with its response, or with the
/// end of the wire.
///
/// `RPCWireConnector` makes it. It belongs to an event loop: everything is called there. It keeps its delegate up to
/// the end, and its channel keeps it: the owner closes it.
package final class RPCWire {
    /// Where everything happens.
    package let loop: any EventLoop
    private let connector: RPCWireConnector
    private var delegate: (any RPCWireDelegate)?
    private var requests = RequestsInFlight()
    /// The part that knows bytes and lines only.
    private(set) lazy var line = LineConnection(connector, on: loop, self)

    init(_ connector: RPCWireConnector, on loop: any EventLoop, _ delegate: any RPCWireDelegate) {
        self.connector = connector
        self.loop = loop
        self.delegate = delegate
    }

    /// Requests without a response, sent or still queued.
    package var requestsInFlight: Int { requests.count }

    /// The oldest of them; nil when there is none.
    package var oldestRequest: UInt64? { requests.oldest }

    /// Bytes of requests that the socket has not taken. The owner bounds them: a wire takes what it is given.
    package var queuedBytes: Int { line.queuedBytes }

    /// Whether what was sent in this turn of the event loop is still to go out, and what follows goes out with it.
    package var isGathering: Bool { line.isGathering }

    /// False from `queuedBytesHigh` until `queuedBytes` has fallen to `queuedBytesLow`.
    package var isWritable: Bool { line.isWritable }

    /// Sends a request, at the end of this turn of the event loop or when the connection stands. Returns its id; nil
    /// when the wire has ended or was closed.
    ///
    /// - Parameter params: the whole object as text, which the caller knows to be valid JSON. Line ends in it become
    ///   blanks.
    package func send(_ method: String, params: Span<UInt8>) -> UInt64? {
        guard !line.isEnded else { return nil }
        let id = requests.begin()
        line.send(id, method, params)
        return id
    }

    /// Delivers nothing, and reads no more from the service, until `resume`; the end waits too. What is being read goes
    /// no further than one read.
    package func pause() { line.pause() }

    /// Delivers again, in a later turn of the event loop.
    package func resume() { line.resume() }

    /// Ends the wire; requests that the socket does not take at once are dropped. An owner that wants them carried out
    /// waits for their responses. The delegate hears of the end in a later turn.
    package func close() { line.close() }

    func connect() { line.connect() }
}

extension RPCWire: LineReceiver {
    func connected() { delegate?.wireConnected(self) }

    func delivered() { delegate?.wireDelivered(self) }

    func becameWritable() { delegate?.wireBecameWritable(self) }

    func ended(_ end: RPCWireEnd) {
        let unanswered = requests.all
        requests = RequestsInFlight()
        let delegate = delegate
        self.delegate = nil
        delegate?.wireEnded(self, end, unanswered: unanswered)
    }

    func received(_ line: ByteBuffer) {
        do {
            let reader = WireLineReader(line, nestingMax: connector.configuration.nestingMax)
            switch try reader.read() {
            case .response(let response):
                guard requests.end(response.id) else {
                    throw WireLineProblem("a response to no request that waits for one (\(response.id))")
                }
                delegate?.wire(self, received: response)
            case .notification(let notification): delegate?.wire(self, received: notification)
            case .refusal(let error): self.line.finish(.refused(error))
            }
        } catch let problem as WireLineProblem {
            self.line.finish(.protocolError(problem.words))
        } catch {
            self.line.finish(.protocolError("what is no JSON: \(error)"))
        }
    }
}
