import NIOCore

/// A message of a WebSocket whose frames come one by one (RFC 6455 §5.4).
struct MessageParts {
    enum Outcome {
        case incomplete
        case complete(ByteBuffer)
        case tooLong
        /// A continuation of nothing, or a message inside another one.
        case outOfOrder
    }

    private let bytesMax: Int
    /// Nil between messages.
    private var parts: ByteBuffer?

    /// - Parameter bytesMax: of one message.
    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Bytes of the message that is not complete.
    var count: Int { parts?.readableBytes ?? 0 }

    /// - Parameters:
    ///   - isFirst: false of a continuation.
    ///   - isLast: false when another part follows.
    mutating func received(_ payload: ByteBuffer, isFirst: Bool, isLast: Bool) -> Outcome {
        guard isFirst == (parts == nil) else { return .outOfOrder }
        guard payload.readableBytes <= bytesMax - count else { return .tooLong }
        if isFirst, isLast { return .complete(payload) }
        var message = parts ?? ByteBuffer()
        parts = nil
        message.writeImmutableBuffer(payload)
        guard !isLast else { return .complete(message) }
        parts = message
        return .incomplete
    }
}
