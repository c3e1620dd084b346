import NIOCore

/// The buffers that a connection of a server reads into.
///
/// What a connection reads first is held without asking. So while all connections hold more than half of what the
/// process may, none reads into a larger buffer than the one that its channel keeps: thousands that send much at once
/// would each hold one.
struct ReadBufferAllocator: RecvByteBufferAllocator {
    private var buffers: ReadBuffers
    private let budget: ProcessBudget

    /// - Parameters:
    ///   - maximum: the size of the largest buffer, in bytes.
    ///   - budget: what decides whether buffers are large.
    init(maximum: Int, _ budget: ProcessBudget) {
        self.budget = budget
        buffers = ReadBuffers(maximum: maximum)
    }

    private var isScarce: Bool { budget.freeBytes < budget.limit / 2 }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        isScarce ? allocator.buffer(capacity: ReadBuffers.keptBytes) : buffers.buffer(allocator: allocator)
    }

    /// Returns whether the next buffer is another one than that which the channel keeps.
    mutating func record(actualReadBytes: Int) -> Bool {
        buffers.record(actualReadBytes: actualReadBytes) && !isScarce
    }

    func nextBufferSize() -> Int? { buffers.nextBufferSize() }
}
