import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Cuts what a socket delivered into lines, whole reads at a time.
///
/// A read that begins and ends with a line is never copied. What was searched for a line end is not searched again, so
/// a line that arrives byte by byte costs no more than one that arrives at once.
struct LineBuffer {
    private var bytes = ByteBuffer()
    /// How many readable bytes are known to hold no line end.
    private var searched = 0

    var count: Int { bytes.readableBytes }
    var isEmpty: Bool { bytes.readableBytes == 0 }
    /// The memory behind it: buffers grow by doubling.
    var capacity: Int { isEmpty ? 0 : bytes.storageCapacity }

    /// The memory that so many bytes lie in.
    static func capacity(for count: Int) -> Int {
        count <= 1 ? count : 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount)
    }

    mutating func append(_ chunk: ByteBuffer) {
        if bytes.readableBytes == 0 {
            bytes = chunk
            searched = 0
        } else {
            var chunk = chunk
            bytes.discardReadBytes()
            bytes.writeBuffer(&chunk)
        }
    }

    /// The next line without its end (`\n` or `\r\n`), or nil when none is complete. Blank lines are passed over.
    mutating func nextLine() -> ByteBuffer? {
        while let length = lengthToLineEnd() {
            searched = 0
            guard var line = bytes.readSlice(length: length) else { break }
            bytes.moveReaderIndex(forwardBy: 1)
            if line.readableBytes > 0, line.getInteger(at: line.writerIndex - 1, as: UInt8.self) == UInt8(ascii: "\r") {
                line.moveWriterIndex(to: line.writerIndex - 1)
            }
            guard !isBlank(line) else { continue }
            // From here on the line alone holds its memory: the next one may not be asked for before it has gone.
            releaseSpare()
            return line
        }
        releaseSpare()
        return nil
    }

    /// Whether the unfinished line at the front opens an HTTP request; asked before its end has come.
    var beginsWithHTTP: Bool {
        let bytes = bytes
        return HTTPGuard.isHTTP(bytes.readableBytesUInt8Span)
    }

    /// The bytes of the line at the front, of which no end has come; a `\r` may belong to the end.
    var unfinishedCount: Int {
        let last = bytes.readableBytes == 0 ? nil : bytes.getInteger(at: bytes.writerIndex - 1, as: UInt8.self)
        return bytes.readableBytes - (last == UInt8(ascii: "\r") ? 1 : 0)
    }

    /// What has come of the line at the front.
    var unfinished: ByteBuffer { bytes }

    mutating func removeAll() {
        bytes = ByteBuffer()
        searched = 0
    }

    private mutating func lengthToLineEnd() -> Int? {
        let from = searched
        let found: Int? = bytes.withUnsafeReadableBytes { pointer in
            guard let start = pointer.baseAddress, pointer.count > from,
                let end = memchr(start + from, Int32(UInt8(ascii: "\n")), pointer.count - from)
            else { return nil }
            return UnsafeRawPointer(end) - start
        }
        if found == nil { searched = bytes.readableBytes }
        return found
    }

    private func isBlank(_ line: ByteBuffer) -> Bool {
        line.readableBytes < 256 && line.readableBytesView.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    }

    /// An idle connection must not keep the memory of its last read, nor the beginning of a line that of a long one
    /// before it.
    private mutating func releaseSpare() {
        if isEmpty {
            removeAll()
        } else if capacity > Self.spareMin, capacity / 4 > count {
            bytes = ByteBuffer(bytes: bytes.readableBytesView)
        }
    }

    /// Buffers as small as one read are not worth a copy.
    private static let spareMin = 64 << 10
}
