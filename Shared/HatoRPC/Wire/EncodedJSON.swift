public import HatoModel
import NIOCore

/// JSON text that was written once and is sent many times; copies share the bytes.
///
/// The code that makes it guarantees that it is valid: it goes to the wire unread, and must not contain a line end.
public struct EncodedJSON: Sendable, Hashable {
    private enum Storage: Sendable {
        case own([UInt8])
        case shared(SharedBytes)
    }

    private let storage: Storage

    /// Bytes that the caller knows to be valid JSON, or the members of an object without its braces, without line ends.
    public init(_ bytes: [UInt8]) { storage = .own(bytes) }
    /// The text that a writer has written.
    public init(_ writer: JSONWriter) { self.init(writer.bytes) }
    /// Text that the caller knows to be valid JSON without line ends.
    public init(_ text: String) { self.init(Array(text.utf8)) }

    /// The text of a value.
    public init(_ value: JSONValue) {
        var writer = JSONWriter()
        writer.write(value)
        self.init(writer)
    }

    /// What `body` writes: one value, or the members of an object without its braces.
    public init(_ body: (inout JSONWriter) throws -> Void) rethrows {
        var writer = JSONWriter()
        try body(&writer)
        self.init(writer)
    }

    fileprivate init(_ shared: SharedBytes) { storage = .shared(shared) }

    /// The text; a copy when it is shared.
    public var bytes: [UInt8] {
        switch storage {
        case .own(let bytes): bytes
        case .shared(let shared): Array(shared.buffer.readableBytesView)
        }
    }

    /// Bytes of the text.
    public var count: Int {
        switch storage {
        case .own(let bytes): bytes.count
        case .shared(let shared): shared.count
        }
    }

    /// The text as a string.
    public var text: String {
        switch storage {
        case .own(let bytes): String(decoding: bytes, as: UTF8.self)
        case .shared(let shared): String(buffer: shared.buffer)
        }
    }

    public static func == (left: EncodedJSON, right: EncodedJSON) -> Bool {
        if let left = left.shared, let right = right.shared { return left === right || left.buffer == right.buffer }
        return left.bytes == right.bytes
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    // MARK: Shared

    /// The same text in one buffer that all connections it is sent to share, if it has at least `bytesMin` bytes: of
    /// less, a copy for each costs less. It is copied once here.
    public func shared(from bytesMin: Int) -> EncodedJSON {
        guard case .own(let bytes) = storage, bytes.count >= bytesMin, !bytes.isEmpty else { return self }
        return EncodedJSON(SharedBytes(bytes))
    }

    /// Nil when it is not shared.
    var shared: SharedBytes? { if case .shared(let shared) = storage { shared } else { nil } }

    /// A reference that does not keep a shared text in memory; nil when this is not shared.
    public var reference: Reference? { shared.map { Reference($0) } }

    /// A weak reference to the bytes of a shared text.
    public struct Reference: Sendable {
        private weak let bytes: SharedBytes?

        fileprivate init(_ bytes: SharedBytes) { self.bytes = bytes }

        /// The text; nil when nothing else keeps its bytes any more.
        public var value: EncodedJSON? { bytes.map { EncodedJSON($0) } }
    }
}
