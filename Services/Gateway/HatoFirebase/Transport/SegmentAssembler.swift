import HatoModel

/// Puts the messages of a client together from the segments of polls (spec realtime-database §8.9 b).
///
/// Segments are numbered over the whole session, and requests overtake each other: a segment waits until all earlier
/// ones are there. One that comes twice counts once.
public struct SegmentAssembler: Sendable {
    /// A piece of a message.
    public struct Segment: Sendable, Hashable {
        /// From 0 over the session.
        public var number: Int
        /// How many segments the message has.
        public var count: Int
        /// Base64url, with dots for padding.
        public var data: [UInt8]

        public init(number: Int, count: Int, data: [UInt8]) {
            self.number = number
            self.count = count
            self.data = data
        }
    }

    /// Why segments are refused; the session cannot go on.
    public enum Failure: Error, Sendable, Hashable {
        /// A number is too far ahead of the next one, or too many bytes wait for it.
        case tooFarAhead
        /// Segments of one message announce different counts, or an impossible one.
        case wrongCount
        /// The data is not encoded as it should be.
        case notBase64
    }

    /// Segments of one message; with more it is too large.
    private static let countMax = 1_000_000

    private let limits: PollLimits
    private var waiting: [Int: Segment] = [:]
    private var waitingBytes = 0
    private var next = 0
    /// The message whose segments come.
    private var message: (collector: MessageCollector, count: Int, missing: Int)?
    /// Characters that make no whole group yet.
    private var rest: [UInt8] = []

    public init(_ limits: PollLimits = PollLimits()) { self.limits = limits }

    /// Bytes that are kept for messages that are not complete.
    public var heldBytes: Int {
        waitingBytes + waiting.count * ReceivedMessage.besidesBytes + (message?.collector.count ?? 0) + rest.count
    }

    /// Takes the segments of one request and returns the messages that they complete. Throws `Failure`.
    public mutating func received(_ segments: [Segment]) throws(Failure) -> [ReceivedMessage] {
        var messages: [ReceivedMessage] = []
        for segment in segments {
            guard segment.number >= next, waiting[segment.number] == nil else { continue }
            guard segment.number - next < limits.segmentsWaitingMax,
                waitingBytes + segment.data.count <= limits.segmentBytesMax
            else { throw .tooFarAhead }
            waiting[segment.number] = segment
            waitingBytes += segment.data.count
            while let segment = waiting.removeValue(forKey: next) {
                waitingBytes -= segment.data.count
                next += 1
                if let message = try append(segment) { messages.append(message) }
            }
        }
        return messages
    }

    private mutating func append(_ segment: Segment) throws(Failure) -> ReceivedMessage? {
        guard segment.count >= 1, segment.count <= Self.countMax else { throw .wrongCount }
        var (collector, count, missing) =
            message ?? (MessageCollector(bytesMax: limits.messageBytesMax), segment.count, segment.count)
        message = nil
        guard segment.count == count else { throw .wrongCount }
        missing -= 1
        collector.append(try decode(segment.data, isLast: missing == 0))
        if missing == 0 { return collector.take() }
        message = (collector, count, missing)
        return nil
    }

    /// Decodes whole groups of four characters, and at the end of a message also the last one.
    private mutating func decode(_ data: [UInt8], isLast: Bool) throws(Failure) -> [UInt8] {
        var text = rest[...]
        text.append(contentsOf: data)
        rest = []
        if isLast {
            for _ in 0..<2 where text.last == UInt8(ascii: ".") { text.removeLast() }
        } else {
            rest = Array(text.suffix(text.count % 4))
            text.removeLast(text.count % 4)
        }
        guard let bytes = Base64.url.decode(text) else { throw .notBase64 }
        return bytes
    }
}
