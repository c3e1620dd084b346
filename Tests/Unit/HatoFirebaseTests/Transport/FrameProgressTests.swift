import Testing

@testable import HatoFirebase

@Suite struct FrameProgressTests {
    /// A frame with a mask, its length written in so many bytes.
    private func frame(_ count: Int, lengthBytes: Int) -> [UInt8] {
        let digits = (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        let second: UInt8 = lengthBytes == 0 ? UInt8(count) : lengthBytes == 2 ? 126 : 127
        return [0x81, 0x80 | second] + digits + [1, 2, 3, 4] + Array(repeating: 7, count: count)
    }

    @Test(arguments: [0, 1, 125, 126, 300, 70_000], [0, 2, 8])
    func bytesCountUntilTheFrameIsComplete(_ count: Int, _ lengthBytes: Int) {
        guard lengthBytes > 0 || count < 126, lengthBytes != 2 || count < 1 << 16 else { return }
        let bytes = frame(count, lengthBytes: lengthBytes)
        var progress = FrameProgress()
        for (index, byte) in bytes.enumerated() {
            progress.received([byte].span)
            #expect(progress.unfinishedBytes == (index + 1 == bytes.count ? 0 : index + 1))
        }
        var whole = FrameProgress()
        let several = bytes + bytes + bytes.dropLast()
        whole.received(several.span)
        #expect(whole.unfinishedBytes == bytes.count - 1)
        whole.received([7].span)
        #expect(whole.unfinishedBytes == 0)
    }

    @Test func framesWithoutAMaskAreFollowedToo() {
        var progress = FrameProgress()
        progress.received([0x81, 3, 1, 2].span)
        #expect(progress.unfinishedBytes == 4)
        progress.received([3, 0x89].span)
        #expect(progress.unfinishedBytes == 1)
        progress.received([0].span)
        #expect(progress.unfinishedBytes == 0)
    }

    /// Cut anywhere, the same frames leave the same rest.
    @Test func cutsMakeNoDifference() {
        var random = SeededInputs(seed: 17)
        for _ in 0..<2_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                let count = Int.random(in: 0...300, using: &random)
                bytes += frame(count, lengthBytes: count < 126 ? [0, 2, 8].randomElement(using: &random) ?? 0 : 2)
            }
            let end = Int.random(in: 0...bytes.count, using: &random)
            var (whole, parts) = (FrameProgress(), FrameProgress())
            let first = Array(bytes[..<end])
            whole.received(first.span)
            var start = 0
            while start < end {
                let next = Int.random(in: start + 1...end, using: &random)
                let part = Array(bytes[start..<next])
                parts.received(part.span)
                start = next
            }
            #expect(whole == parts)
        }
    }

    @Test func lengthsBeyondMemoryDoNotTrap() {
        var progress = FrameProgress()
        let bytes = [0x81, 0xFF] + Array(repeating: UInt8(0xFF), count: 8) + [1, 2, 3, 4, 5]
        progress.received(bytes.span)
        #expect(progress.unfinishedBytes == 15)
    }
}
