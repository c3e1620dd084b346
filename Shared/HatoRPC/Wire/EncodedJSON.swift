public import HatoModel
import NIOCore

/// JSON text that was written once and is sent many times; copies share the bytes.
///
/// Whoever makes it vouches that it is valid: it goes to the wire unread, and must not contain a line end.
public struct EncodedJSON: Sendable {
    let buffer: ByteBuffer

    public init(_ bytes: [UInt8]) { buffer = ByteBuffer(bytes: bytes) }
    public init(_ writer: JSONWriter) { buffer = ByteBuffer(bytes: writer.bytes) }
    public init(_ text: String) { buffer = ByteBuffer(string: text) }

    public var count: Int { buffer.readableBytes }
}
