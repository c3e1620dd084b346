/// Puts the messages of a client together from text frames (spec realtime-database §8.2).
///
/// A message is one frame, or a frame with the number of chunks and then the chunks. `0` between messages keeps the
/// connection alive. Frames that the WebSocket protocol splits are put together too.
public struct FrameAssembler: Sendable {
    /// Chunks of one message; a message of more is too large.
    public static let chunksMax = 9_999
    /// Characters of a number of chunks; a longer frame is a message.
    private static let countDigitsMax = 6

    private let messageBytesMax: Int
    /// The message whose chunks come.
    private var message: MessageCollector
    /// Chunks of it that have not come yet; 0 between messages.
    private var missing = 0
    /// The frame whose parts come.
    private var frame: MessageCollector
    /// Whether the next frame goes on with the one before (RFC 6455 §5.4).
    public private(set) var isFrameSplit = false

    /// - Parameter messageBytesMax: bytes of one message; a larger one becomes `oversized`.
    public init(messageBytesMax: Int = PollLimits().messageBytesMax) {
        self.messageBytesMax = messageBytesMax
        message = MessageCollector(bytesMax: messageBytesMax)
        frame = MessageCollector(bytesMax: messageBytesMax)
    }

    /// Bytes that are kept for a message that is not complete.
    public var heldBytes: Int { message.count + frame.count }

    /// Takes the payload of a frame and returns the message that it completes, if it completes one.
    ///
    /// - Parameter isLast: false when the WebSocket protocol has split the frame and another part follows.
    public mutating func received(_ payload: ArraySlice<UInt8>, isLast: Bool = true) -> ReceivedMessage? {
        guard isFrameSplit || !isLast else { return completed(payload) }
        isFrameSplit = !isLast
        frame.append(payload)
        guard isLast else { return nil }
        switch frame.take() {
        case .whole(let bytes): return completed(bytes[...])
        case .oversized(let start, let end):
            if missing == 0 { return .oversized(start: start, end: end) }
            message.appendOversized(start, end)
            return completedChunk()
        }
    }

    private mutating func completed(_ frame: ArraySlice<UInt8>) -> ReceivedMessage? {
        if missing > 0 {
            message.append(frame)
            return completedChunk()
        }
        if let count = Self.count(frame) {
            missing = count
            message = MessageCollector(bytesMax: messageBytesMax, isOversized: count > Self.chunksMax)
            return nil
        }
        guard frame.count > messageBytesMax else { return .whole(Array(frame)) }
        message.append(frame)
        return message.take()
    }

    private mutating func completedChunk() -> ReceivedMessage? {
        missing -= 1
        return missing == 0 ? message.take() : nil
    }

    /// The number of chunks that a frame between messages announces.
    private static func count(_ frame: ArraySlice<UInt8>) -> Int? {
        guard !frame.isEmpty, frame.count <= countDigitsMax else { return nil }
        var count = 0
        for digit in frame {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            count = count * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return count
    }
}
