import NIOCore

/// The buffers that a connection reads into: they grow and shrink with what its peer sends, like
/// `AdaptiveRecvByteBufferAllocator`'s.
///
/// A channel keeps the first buffer it gets for as long as it lives (`NIOPooledRecvBufferAllocator`): that one has
/// `keptBytes`, and all that are larger go when their bytes have been read. So a connection that has sent long lines
/// and is silent now holds no more than any other.
struct ReadBuffers: RecvByteBufferAllocator {
    /// The size of the buffer that the channel keeps.
    static let keptBytes = 2 << 10

    private var adaptive: AdaptiveRecvByteBufferAllocator

    /// - Parameter maximum: the size of the largest buffer, in bytes.
    init(maximum: Int) {
        adaptive = AdaptiveRecvByteBufferAllocator(
            minimum: Self.keptBytes, initial: Self.keptBytes, maximum: max(maximum, Self.keptBytes))
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { adaptive.buffer(allocator: allocator) }

    /// Returns whether the next buffer is another one than that which the channel keeps.
    mutating func record(actualReadBytes: Int) -> Bool {
        _ = adaptive.record(actualReadBytes: actualReadBytes)
        return (adaptive.nextBufferSize() ?? 0) > Self.keptBytes
    }

    /// None: with a size, the channel would enlarge the buffer that it keeps.
    func nextBufferSize() -> Int? { nil }
}
