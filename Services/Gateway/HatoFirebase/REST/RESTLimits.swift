/// The limits of the REST interface.
public struct RESTLimits: Sendable, Hashable {
    /// Bytes of a body: a line of a service has 16 MiB, with the rest of the call.
    public var bodyBytesMax = (16 << 20) - (64 << 10)
    /// Values that one write may have.
    public var valuesMax = 1_048_576
    /// Values that a write is estimated to take a second for (`writeSizeLimit`).
    public var valuesPerSecond = 10_000
    /// Milliseconds between two events that keep a stream alive.
    public var keepAliveMs = 30_000

    public init() {}
}
