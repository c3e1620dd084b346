import HatoModel
package import NIOCore

/// Gets what comes over wires of lines, on their event loop and in exactly the order it came. None of these methods is
/// called inside a call of a method of the wire.
package protocol RPCLineWireDelegate: AnyObject {
    /// The service has taken the opening request. What was sent before goes out now.
    func lineWireOpened(_ wire: RPCLineWire)
    /// A line without its end, not blank.
    func lineWire(_ wire: RPCLineWire, received line: ByteBuffer)
    /// All that has come so far is delivered, or the wire was paused.
    func lineWireDelivered(_ wire: RPCLineWire)
    /// The wire was not writable and is again.
    func lineWireBecameWritable(_ wire: RPCLineWire)
    /// The end, once, and the last call.
    func lineWireEnded(_ wire: RPCLineWire, _ end: RPCWireEnd)
}

/// One connection to a service whose lines are passed on as they are, for a client that speaks JSON-RPC itself.
///
/// Its first request is the owner's and opens the wire: nothing of the client goes out before the service has taken it,
/// and a service that refuses it ends the wire (`RPCWireEnd.refused`). From then on the ids, the errors and the order
/// are between client and service; no line is read here.
///
/// `RPCWireConnector` makes it. It belongs to an event loop: everything is called there. It keeps its delegate up to
/// the end, and its channel keeps it: the owner closes it.
package final class RPCLineWire {
    private let connector: RPCWireConnector
    private let loop: any EventLoop
    private var delegate: (any RPCLineWireDelegate)?
    private(set) lazy var line = LineConnection(connector, on: loop, self)
    private var isOpen = false
    /// What was sent before the wire was open, each with a line end.
    private var early = ByteBuffer()

    init(_ connector: RPCWireConnector, on loop: any EventLoop, _ delegate: any RPCLineWireDelegate) {
        self.connector = connector
        self.loop = loop
        self.delegate = delegate
    }

    /// The only id of the owner's.
    private static let openingID: UInt64 = 1

    /// Bytes that the socket has not taken. The owner bounds them: a wire takes what it is given.
    package var queuedBytes: Int { line.queuedBytes + early.readableBytes }

    /// False from `queuedBytesHigh` until `queuedBytes` has fallen to `queuedBytesLow`, and before the wire is open.
    package var isWritable: Bool { isOpen && line.isWritable }

    /// Sends a text as one line: line ends in it become blanks, and inside of its strings, where JSON has none, bytes
    /// that the service refuses, too.
    package func send(_ text: Span<UInt8>) {
        guard !line.isEnded else { return }
        if isOpen { return line.send(text) }
        RequestLine.writeUnread(text, into: &early)
        early.writeStaticString("\n")
    }

    /// Delivers nothing, and reads no more from the service, until `resume`; the end waits too.
    package func pause() { line.pause() }

    /// Delivers again, in a later turn of the event loop.
    package func resume() { line.resume() }

    /// Sends nothing that comes later: the service responds to what was sent, and closes. Closes a wire that is not
    /// open.
    package func finish() { if isOpen { line.endOutput() } else { line.close() } }

    /// Ends the wire; lines that the socket does not take at once are dropped. The delegate hears of the end in a later
    /// turn.
    package func close() { line.close() }

    func connect(_ opening: String, _ params: [UInt8]) {
        line.connect()
        line.send(Self.openingID, opening, params.span)
    }
}

extension RPCLineWire: LineReceiver {
    func connected() {}

    func received(_ line: ByteBuffer) {
        guard !isOpen else {
            delegate?.lineWire(self, received: line)
            return
        }
        do {
            switch try WireLineReader(line, nestingMax: connector.configuration.nestingMax).read() {
            case .response(let response) where response.id == Self.openingID: opened(response.outcome)
            case .refusal(let error): self.line.finish(.refused(error))
            case .response, .notification: self.line.finish(.protocolError("no response to the opening request"))
            }
        } catch let problem as WireLineProblem {
            self.line.finish(.protocolError(problem.words))
        } catch {
            self.line.finish(.protocolError("what is no JSON: \(error)"))
        }
    }

    private func opened(_ outcome: RPCWireResponse.Outcome) {
        if case .error(let error, _) = outcome { return line.finish(.refused(error)) }
        isOpen = true
        let bytes = early
        early = ByteBuffer()
        line.sendLines(bytes)
        delegate?.lineWireOpened(self)
    }

    func delivered() { delegate?.lineWireDelivered(self) }

    func becameWritable() { delegate?.lineWireBecameWritable(self) }

    func ended(_ end: RPCWireEnd) {
        early = ByteBuffer()
        let delegate = delegate
        self.delegate = nil
        delegate?.lineWireEnded(self, end)
    }
}
