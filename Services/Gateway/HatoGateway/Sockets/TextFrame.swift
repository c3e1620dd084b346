import NIOCore

/// A text frame as a server sends it, whole and without a mask (RFC 6455 §5.2). Each has a buffer of its own: one of
/// many frames would be held until the socket has taken the last of them.
///
/// NIO's encoder takes a frame as a value of any type, and writes its head and its payload apart; for the frames of
/// events both cost as much as the rest of the way.
enum TextFrame {
    /// - Parameter payload: copied behind the head.
    static func bytes(_ payload: some Collection<UInt8>, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        var bytes = allocator.buffer(capacity: payload.count &+ headBytesMax)
        writeHead(payload.count, to: &bytes)
        bytes.writeBytes(payload)
        return bytes
    }

    /// What comes before a payload of so many bytes.
    static func head(_ payloadBytes: Int, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        var bytes = allocator.buffer(capacity: headBytesMax)
        writeHead(payloadBytes, to: &bytes)
        return bytes
    }

    private static let headBytesMax = 10

    private static func writeHead(_ count: Int, to bytes: inout ByteBuffer) {
        bytes.writeInteger(0x81 as UInt8)
        switch count {
        case ...125: bytes.writeInteger(UInt8(truncatingIfNeeded: count))
        case ...0xFFFF: bytes.writeMultipleIntegers(126 as UInt8, UInt16(truncatingIfNeeded: count))
        default: bytes.writeMultipleIntegers(127 as UInt8, UInt64(count))
        }
    }
}
