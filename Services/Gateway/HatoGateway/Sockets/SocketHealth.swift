import HatoFirebase
import NIOCore

/// Whether the client of a WebSocket is there, and makes progress with what it sends and takes. On its event loop.
struct SocketHealth {
    private var lastHeard = NIODeadline.now()
    private var message = UnfinishedMessage()
    private var output = OutputProgress()

    enum Finding {
        case alive
        /// It says nothing, or takes nothing.
        case silent
        /// The message that it has begun is not complete.
        case tooSlow
    }

    /// Bytes of the frame that is not complete.
    var frameBytes: Int { message.frameBytes }

    /// Something has come, maybe a part of a long frame.
    mutating func heard(frameBytes: Int) {
        lastHeard = .now()
        message.heard(frameBytes: frameBytes, at: Self.now)
    }

    /// - Parameter heldBytes: of the message that is not complete.
    mutating func frameEnded(heldBytes: Int) { message.frameEnded(heldBytes: heldBytes, at: Self.now) }

    mutating func inputChanged(isPaused: Bool) {
        lastHeard = .now()
        message.inputChanged(isPaused: isPaused, at: Self.now)
    }

    mutating func outputChanged(isFull: Bool) {
        lastHeard = .now()
        output.changed(isFull: isFull, at: Self.now)
    }

    /// Looks at a socket; called now and then.
    ///
    /// - Parameter isRead: a client that is not read cannot be heard; one that does not take anything is no better
    ///   than a silent one.
    mutating func look(at channel: any Channel, isRead: Bool, _ limits: GatewayLimits) -> Finding {
        let isFull = !channel.isWritable
        if isFull, let bytes = try? channel.syncOptions?.getOption(.bufferedWritableBytes),
            output.looked(waitingBytes: bytes)
        {
            lastHeard = .now()
        }
        let silence = NIODeadline.now() - lastHeard
        if isFull || isRead, silence >= .milliseconds(Int64(limits.silenceMsMax)) { return .silent }
        if output.age(at: Self.now) >= limits.responseMsMax { return .silent }
        return message.age(at: Self.now) < limits.messageMsMax ? .alive : .tooSlow
    }

    /// Milliseconds since an arbitrary time.
    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds / 1_000_000) }
}
