public import HatoModel

/// JSON text that was written once and is sent many times; copies share the bytes.
///
/// Whoever makes it vouches that it is valid: it goes to the wire unread, and must not contain a line end.
public struct EncodedJSON: Sendable, Hashable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ writer: JSONWriter) { bytes = writer.bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }

    public init(_ value: JSONValue) {
        var writer = JSONWriter()
        writer.write(value)
        bytes = writer.bytes
    }

    /// What `body` writes: one value, or the members of an object without its braces.
    public init(_ body: (inout JSONWriter) throws -> Void) rethrows {
        var writer = JSONWriter()
        try body(&writer)
        bytes = writer.bytes
    }

    public var count: Int { bytes.count }
    public var text: String { String(decoding: bytes, as: UTF8.self) }
}
