/// A message of a client, put together from frames or segments.
public enum ReceivedMessage: Sendable, Hashable {
    /// All of it.
    case whole([UInt8])
    /// A message that is too large to be kept: its first and its last bytes, in which the number of the request is
    /// searched, so that it gets a response (spec realtime-database §8.2).
    case oversized(start: [UInt8], end: [UInt8])

    /// Whether all of it is UTF-8, as far as it was kept: one that is too large is cut anywhere.
    var isText: Bool {
        guard case .whole(let bytes) = self else { return true }
        return String(validating: bytes, as: UTF8.self) != nil
    }

    /// What each message takes in memory besides its text. Without it, empty messages would count nothing.
    static let besidesBytes = 64

    /// How many bytes it takes in memory.
    public var bytes: Int {
        switch self {
        case .whole(let bytes): Self.besidesBytes + bytes.count
        case .oversized(let start, let end): Self.besidesBytes + start.count + end.count
        }
    }
}

/// Collects the pieces of one message. Of one that grows too large, only the start and the end are kept.
struct MessageCollector: Sendable {
    private static let keptBytesMax = RequestNumber.bytesMax

    private let bytesMax: Int
    private var start: [UInt8] = []
    private var end: [UInt8] = []
    private var isOversized: Bool

    /// - Parameter isOversized: whether the message is known to be too large.
    init(bytesMax: Int, isOversized: Bool = false) {
        self.bytesMax = bytesMax
        self.isOversized = isOversized
    }

    /// Bytes that are kept.
    var count: Int { start.count + end.count }

    mutating func append(_ piece: some Collection<UInt8>) {
        if !isOversized, start.count + piece.count <= bytesMax {
            start.append(contentsOf: piece)
        } else {
            appendOversized(piece.prefix(Self.keptBytesMax), piece.suffix(Self.keptBytesMax))
        }
    }

    /// Appends a piece of which only the start and the end are known; the message is too large with it.
    mutating func appendOversized(_ first: some Collection<UInt8>, _ last: some Collection<UInt8>) {
        if !isOversized {
            isOversized = true
            end = Array(start.suffix(Self.keptBytesMax))
            start = Array(start.prefix(Self.keptBytesMax))
        }
        start.append(contentsOf: first.prefix(Self.keptBytesMax - start.count))
        end.append(contentsOf: last)
        if end.count > Self.keptBytesMax { end.removeFirst(end.count - Self.keptBytesMax) }
    }

    /// The message; the collector is empty after.
    mutating func take() -> ReceivedMessage {
        let message = isOversized ? ReceivedMessage.oversized(start: start, end: end) : .whole(start)
        self = MessageCollector(bytesMax: bytesMax)
        return message
    }
}
