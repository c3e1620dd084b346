/// The large buffers of one connection that the socket has not wholly taken: a value.
struct WrittenBuffers {
    /// Smaller ones are not looked at: the channel counts as writable with as much.
    static let largeBytesMin = 64 << 10

    /// Bytes that were written.
    private var total = 0
    /// Where each begins and ends among them.
    private var large: ArraySlice<Range<Int>> = []

    mutating func append(_ bytes: Int) {
        if bytes >= Self.largeBytesMin { large.append(total..<total + bytes) }
        total += bytes
    }

    /// Bytes that the socket has taken of a buffer that is held for the rest of it.
    ///
    /// - Parameter waiting: bytes that the socket has not taken.
    mutating func partlyTaken(waiting: Int) -> Int {
        guard !large.isEmpty else { return 0 }
        let taken = total - waiting
        while let first = large.first, first.upperBound <= taken { large.removeFirst() }
        return large.first.map { max(0, taken - $0.lowerBound) } ?? 0
    }
}
