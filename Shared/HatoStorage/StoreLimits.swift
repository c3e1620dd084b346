/// The bounds a store keeps, each a setting of whoever opens it.
public struct StoreLimits: Sendable, Hashable {
    /// Writes that share one sync. Measured: 100 a group are as fast as 1,000, and a full group is done in a few
    /// milliseconds.
    public var groupWritesMax = 256
    /// A group ends after the write that reaches this many bytes of keys, values and records.
    public var groupBytesMax = 8 << 20
    /// A group of so many writes is made durable on another thread, and more are planned meanwhile; for fewer, waking
    /// that thread takes longer than planning them.
    public var overlapWritesMin = 64
    /// One answer of `commits` ends after the commit that reaches this many bytes of records.
    public var commitsBytesMax = 4 << 20
    /// Threads that run what `submitRead` is given.
    public var readerThreads = 2

    /// A longer key fails its transaction.
    public static let keyBytesMax = 65_535

    public init() {}
}
