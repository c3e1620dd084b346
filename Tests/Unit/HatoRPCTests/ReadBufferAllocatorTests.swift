import NIOCore
import Testing

@testable import HatoRPC

struct ReadBufferAllocatorTests {
    /// Reads so many bytes as a channel does; returns the size of the buffer it read into.
    private func read(_ count: Int, _ pool: inout NIOPooledRecvBufferAllocator) -> Int {
        let (buffer, _) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
            buffer.writeRepeatingByte(0x20, count: min(count, buffer.writableBytes))
        }
        pool.record(actualReadBytes: buffer.readableBytes)
        return buffer.capacity
    }

    @Test func takenLineLeavesNothingBehind() {
        var lines = LineBuffer()
        lines.append(ByteBuffer(string: String(repeating: "x", count: 1_000_000) + "\n{"))
        let line = lines.nextLine()
        #expect(line?.readableBytes == 1_000_000)
        #expect(lines.count == 1)
        #expect(lines.capacity < 1_000)
    }

    @Test func buffersGrowWithWhatComesAndOnlyASmallOneIsKept() {
        var pool = NIOPooledRecvBufferAllocator(
            capacity: 1, recvAllocator: ReadBufferAllocator(maximum: LineIntake.readBytesMax))
        let growing = (0..<8).map { _ in read(.max, &pool) }
        #expect(growing.first == ReadBufferAllocator.keptBytes)
        #expect(growing.last == LineIntake.readBytesMax)
        let shrinking = (0..<16).map { _ in read(10, &pool) }
        #expect(shrinking.last == ReadBufferAllocator.keptBytes, "the buffer that the channel keeps has not grown")
    }
}
