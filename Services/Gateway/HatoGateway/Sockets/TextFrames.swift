import NIOCore
import NIOWebSocket

/// Text frames as a server sends them (RFC 6455 §5.2), in one buffer with what they carry.
///
/// NIO's encoder takes a frame as a value of any type, and writes its head and its payload apart; for the frames of
/// events both cost as much as the rest of the way.
struct TextFrames {
    private(set) var bytes: ByteBuffer

    /// - Parameter payloadBytes: of all the frames.
    init(_ payloadBytes: Int, count: Int, _ allocator: ByteBufferAllocator) {
        bytes = allocator.buffer(capacity: payloadBytes &+ count &* 10)
    }

    mutating func append(_ payload: ArraySlice<UInt8>) {
        writeHead(payload.count)
        bytes.writeBytes(payload)
    }

    mutating func append(_ payload: ByteBuffer) {
        writeHead(payload.readableBytes)
        bytes.writeImmutableBuffer(payload)
    }

    /// One whole message in this frame, without a mask.
    private mutating func writeHead(_ count: Int) {
        bytes.writeInteger(0x81 as UInt8)
        switch count {
        case ...125: bytes.writeInteger(UInt8(truncatingIfNeeded: count))
        case ...0xFFFF: bytes.writeMultipleIntegers(126 as UInt8, UInt16(truncatingIfNeeded: count))
        default: bytes.writeMultipleIntegers(127 as UInt8, UInt64(count))
        }
    }
}
