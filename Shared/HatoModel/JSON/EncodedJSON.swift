/// JSON that is written already: bytes to be copied into a larger text as they stand.
///
/// Shared by all who send the same bytes (one event for many listeners); whoever makes one answers for its being valid.
public struct EncodedJSON: Sendable, Hashable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

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

    public var text: String { String(decoding: bytes, as: UTF8.self) }
}
