/// How many bytes have come of a frame of a WebSocket (RFC 6455 §5.2) that is not complete. Pure.
///
/// A decoder holds them until the frame is complete: they count in the budget of what is not complete.
public struct FrameProgress: Sendable, Hashable {
    /// Of the frame that has not ended, with its head.
    public private(set) var unfinishedBytes = 0
    /// Of its head, while that is not complete.
    private var head: [UInt8] = []
    /// Of its payload that have not come.
    private var missing = 0

    public init() {}

    /// The next bytes of the socket.
    public mutating func received(_ bytes: Span<UInt8>) {
        var index = 0
        while index < bytes.count {
            if missing > 0 {
                let count = min(missing, bytes.count - index)
                (missing, index, unfinishedBytes) = (missing - count, index + count, unfinishedBytes + count)
            } else {
                head.append(bytes[index])
                (index, unfinishedBytes) = (index + 1, unfinishedBytes + 1)
                guard head.count >= 2, head.count == Self.headCount(head[1]) else { continue }
                missing = Self.payloadCount(head)
                head.removeAll(keepingCapacity: true)
            }
            if missing == 0, head.isEmpty { unfinishedBytes = 0 }
        }
    }

    /// Bytes of a head with this second byte.
    private static func headCount(_ second: UInt8) -> Int {
        let extended =
            switch second & 0x7F {
            case 126: 2
            case 127: 8
            default: 0
            }
        return 2 + extended + (second & 0x80 == 0 ? 0 : 4)
    }

    /// Bytes of the payload that a complete head announces; a decoder refuses what no memory can hold.
    private static func payloadCount(_ head: [UInt8]) -> Int {
        let digits: ArraySlice<UInt8>
        switch head[1] & 0x7F {
        case 126: digits = head[2..<4]
        case 127: digits = head[2..<10]
        case let count: return Int(count)
        }
        return Int(clamping: digits.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
