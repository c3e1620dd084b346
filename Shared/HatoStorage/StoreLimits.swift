/// The limits of a store, each a setting for its opening.
public struct StoreLimits: Sendable, Hashable {
    /// Writes that share one sync. Measured: groups of 100 are as fast as groups of 1,000, and a full group is durable
    /// within a few milliseconds.
    public var groupWritesMax = 256
    /// A group ends after the write that reaches this many bytes of keys, values and records.
    public var groupBytesMax = 8 << 20
    /// A group ends after the write with which planning it has taken so long, if no other is being made durable: its
    /// writes wait for each other.
    public var groupMicrosecondsMax = 5_000
    /// A group of at least this many writes is made durable on another thread while more are planned; for fewer, waking
    /// that thread takes longer than planning them.
    public var overlapWritesMin = 64
    /// One result of `commits` ends after the commit that reaches this many bytes of records.
    public var commitsBytesMax = 4 << 20
    /// Threads that run the short reads of `submitRead`. One client has all but one of them at most (`ReaderPool`):
    /// with three, its reads still keep two processors busy.
    public var readerThreads = 3
    /// Threads that run the long ones, with a lower priority.
    public var longReaderThreads = 2

    /// A longer key fails its transaction.
    public static let keyBytesMax = 65_535

    public init() {}
}
