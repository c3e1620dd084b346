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
            capacity: 1,
            recvAllocator: ReadBufferAllocator(maximum: LineIntake.readBytesMax, ProcessBudget(RPCLimits())))
        let growing = (0..<8).map { _ in read(.max, &pool) }
        #expect(growing.first == ReadBuffers.keptBytes)
        #expect(growing.last == LineIntake.readBytesMax)
        let shrinking = (0..<16).map { _ in read(10, &pool) }
        #expect(shrinking.last == ReadBuffers.keptBytes, "the buffer that the channel keeps has not grown")
    }

    @Test func noBufferIsLargeWhileMuchIsHeld() {
        let budget = ProcessBudget(RPCLimits())
        let account = budget.clients.enter("address 192.0.2.1")
        var pool = NIOPooledRecvBufferAllocator(
            capacity: 1, recvAllocator: ReadBufferAllocator(maximum: LineIntake.readBytesMax, budget))
        for _ in 0..<8 { _ = read(.max, &pool) }
        budget.add(budget.limit / 2 + 1, to: account)
        // The size of the next one may have been chosen before.
        _ = read(.max, &pool)
        let scarce = (0..<8).map { _ in read(.max, &pool) }
        #expect(scarce.allSatisfy { $0 == ReadBuffers.keptBytes }, "\(scarce)")
        budget.add(-budget.limit / 2, to: account)
        #expect((0..<8).map { _ in read(.max, &pool) }.last == LineIntake.readBytesMax)
    }
}
