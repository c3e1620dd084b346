import NIOCore

/// What is on its way to one peer and not yet given to its socket, in order.
///
/// Small texts gather in one buffer. Large ones are neither copied into it nor given to the socket as a whole: their
/// bytes are copied in pieces as the socket takes them, so that what a peer does not take can be let go. Texts that
/// connections share are not copied at all.
struct OutputQueue {
    /// What is given to the socket at once, in order.
    struct Write {
        var buffers: [ByteBuffer] = []
        var last = ByteBuffer()
        var count = 0
        /// Bytes whose memory is free when the socket has taken it: of a text that is taken in pieces nothing before
        /// its last piece.
        var releasedBytes = 0
        /// How many of those are shared.
        var releasedSharedBytes = 0
        /// What the buffers are a part of.
        var shared: [SharedBytes] = []

        fileprivate mutating func append(_ buffer: ByteBuffer) {
            if last.readableBytes > 0 { buffers.append(last) }
            last = buffer
            count += buffer.readableBytes
        }
    }

    private enum Chunk {
        case gathered(ByteBuffer)
        case large([UInt8])
        case shared(SharedBytes)
    }

    /// What gathers before the next buffer begins.
    static let gatheredBytesMax = 256 << 10
    /// A line of more is large: in a buffer, whose capacity is a power of two, it would take up to twice its bytes.
    static let gatheredLineBytesMax = 32 << 10
    /// Of a large text, at a time.
    static let pieceBytes = 64 << 10
    /// What one write takes, unless a buffer is larger. TLS copies what it is given while it encrypts it.
    static let writeBytesMax = 256 << 10

    private var full: CircularBuffer<Chunk> = CircularBuffer(initialCapacity: 1)
    /// Bytes of the first text in `full` that are taken out.
    private var offset = 0
    private var gathering = ByteBuffer()
    /// All bytes that were ever appended.
    private(set) var appendedBytes = 0
    /// Where among them the last text ends that connections share.
    private(set) var sharedEnd = 0

    var isEmpty: Bool { gathering.readableBytes == 0 && full.isEmpty }

    // MARK: Appending

    /// A line, to which the line end is added.
    mutating func append(line: [UInt8]) {
        if line.count > Self.gatheredLineBytesMax {
            endGathering()
            full.append(.large(line))
            appendedBytes += line.count
            append(about: 1) { $0.writeInteger(UInt8(ascii: "\n")) }
        } else {
            append(about: line.count + 1) {
                $0.writeBytes(line)
                $0.writeInteger(UInt8(ascii: "\n"))
            }
        }
    }

    /// A text of about so many bytes that `write` writes. Returns how many it wrote.
    @discardableResult
    mutating func append(about count: Int, _ write: (inout ByteBuffer) -> Void) -> Int {
        if gathering.readableBytes > 0, gathering.readableBytes + count > Self.gatheredBytesMax { endGathering() }
        if gathering.capacity == 0 {
            gathering = ByteBufferAllocator().buffer(capacity: max(count, full.isEmpty ? 512 : leastFurtherBytes))
        }
        let before = gathering.readableBytes
        write(&gathering)
        let written = gathering.readableBytes - before
        appendedBytes += written
        return written
    }

    mutating func append(_ shared: SharedBytes) {
        endGathering()
        full.append(.shared(shared))
        appendedBytes += shared.count
        sharedEnd = appendedBytes
    }

    /// Returns how many bytes it took.
    mutating func append(_ notification: OutgoingNotification) -> Int {
        let members = notification.members
        var written = append(about: notification.byteCount - (members.shared?.count ?? 0)) { buffer in
            buffer.writeStaticString("{\"jsonrpc\":\"2.0\",\"method\":\"")
            buffer.writeString(notification.method)
            buffer.writeStaticString("\",\"params\":{\"subscription\":\"")
            buffer.writeString(notification.subscription)
            buffer.writeStaticString("\"")
            if members.count > 0 { buffer.writeStaticString(",") }
            guard members.shared == nil else { return }
            buffer.writeBytes(members.bytes)
            buffer.writeStaticString("}}\n")
        }
        if let shared = members.shared {
            append(shared)
            written += shared.count
            written += append(about: 3) { $0.writeStaticString("}}\n") }
        }
        return written
    }

    /// Behind a large or shared text there is usually only the end of its line.
    private var leastFurtherBytes: Int { if case .gathered = full.last { 4_096 } else { 256 } }

    private mutating func endGathering() {
        guard gathering.readableBytes > 0 else { return }
        full.append(.gathered(gathering))
        gathering = ByteBuffer()
    }

    // MARK: Taking

    /// The next bytes for the socket; nil: there are none.
    mutating func next() -> Write? {
        guard !isEmpty else { return nil }
        var write = Write()
        while write.count < Self.writeBytesMax, let first = full.first { take(first, into: &write) }
        if full.isEmpty, gathering.readableBytes > 0, write.count < Self.writeBytesMax {
            write.releasedBytes += gathering.readableBytes
            write.append(gathering)
            gathering = ByteBuffer()
        }
        // An idle connection keeps no memory here.
        if full.isEmpty, full.capacity > 64 { full = CircularBuffer(initialCapacity: 1) }
        return write
    }

    private mutating func take(_ first: Chunk, into write: inout Write) {
        switch first {
        case .gathered(let buffer):
            full.removeFirst()
            write.releasedBytes += buffer.readableBytes
            write.append(buffer)
        case .large(let bytes):
            let end = min(bytes.count, offset + Self.pieceBytes)
            write.append(ByteBuffer(bytes: bytes[offset..<end]))
            if advance(to: end, of: bytes.count) { write.releasedBytes += bytes.count }
        case .shared(let shared):
            let end = min(shared.count, offset + Self.writeBytesMax - write.count)
            guard let slice = shared.buffer.getSlice(at: shared.buffer.readerIndex + offset, length: end - offset)
            else { return _ = full.removeFirst() }
            write.append(slice)
            write.shared.append(shared)
            if advance(to: end, of: shared.count) {
                write.releasedBytes += shared.count
                write.releasedSharedBytes += shared.count
            }
        }
    }

    /// True when the first text is taken as a whole.
    private mutating func advance(to end: Int, of count: Int) -> Bool {
        guard end == count else {
            offset = end
            return false
        }
        offset = 0
        full.removeFirst()
        return true
    }
}
