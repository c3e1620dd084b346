import NIOCore
import Testing

@testable import HatoGateway

/// What connections write, and hold until the socket has taken it.
@Suite struct WrittenBuffersTests {
    @Test func aLargeBufferCountsUntilItsLastByteIsTaken() {
        var written = WrittenBuffers()
        written.append(100)
        written.append(16 << 20)
        #expect(written.partlyTaken(waiting: 100 + (16 << 20)) == 0)
        #expect(written.partlyTaken(waiting: 16 << 20) == 0)
        // Of its bytes, 50,000 are left: it is held whole.
        #expect(written.partlyTaken(waiting: 50_000) == (16 << 20) - 50_000)
        written.append(100_000)
        #expect(written.partlyTaken(waiting: 150_000) == (16 << 20) - 50_000)
        #expect(written.partlyTaken(waiting: 100_000) == 0)
        #expect(written.partlyTaken(waiting: 1) == 99_999)
        #expect(written.partlyTaken(waiting: 0) == 0)
    }

    @Test func smallBuffersAreNotLookedAt() {
        var written = WrittenBuffers()
        for _ in 0..<1_000 { written.append(WrittenBuffers.largeBytesMin - 1) }
        #expect(written.partlyTaken(waiting: 1) == 0)
    }

    /// RFC 6455 §5.2: a length in the second byte, in the next two or in the next eight ones.
    @Test(
        arguments: [
            (0, [0x81, 0]), (125, [0x81, 125]), (126, [0x81, 126, 0, 126]), (65_535, [0x81, 126, 0xFF, 0xFF]),
            (65_536, [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]), (16 << 20, [0x81, 127, 0, 0, 0, 0, 1, 0, 0, 0]),
        ] as [(Int, [UInt8])])
    func aTextFrameBeginsWithItsLength(count: Int, head: [UInt8]) {
        let allocator = ByteBufferAllocator()
        #expect(Array(TextFrame.head(count, allocator).readableBytesView) == head)
        let payload = [UInt8](repeating: 0x61, count: count)
        #expect(Array(TextFrame.bytes(payload[...], allocator).readableBytesView) == head + payload)
    }
}
