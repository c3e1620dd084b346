/// Splits the messages of the server into text frames (spec realtime-database §8.2): a long message becomes a frame
/// with the number of its chunks, and the chunks. No frame is empty, and none is `0`: clients would never recover.
public enum FrameSplitter {
    /// Bytes of one chunk, and so at most as many UTF-16 units.
    public static let chunkBytesMax = 16_384

    /// The frames of one message, in order; none for an empty message.
    public static func frames(of message: [UInt8]) -> [ArraySlice<UInt8>] {
        guard message.count > chunkBytesMax else { return message.isEmpty ? [] : [message[...]] }
        // Chunks end between characters, so they may be some bytes shorter.
        let size = max(chunkBytesMax, message.count / (FrameAssembler.chunksMax - 1) + 4)
        var chunks: [ArraySlice<UInt8>] = []
        chunks.reserveCapacity(message.count / size + 2)
        var start = 0
        while start < message.count {
            let end = self.end(of: message, from: start, size: size)
            chunks.append(message[start..<end])
            start = end
        }
        return [Array(String(chunks.count).utf8)[...]] + chunks
    }

    private static func end(of message: [UInt8], from start: Int, size: Int) -> Int {
        var end = start + size
        guard end < message.count else { return message.count }
        // A character has at most three bytes behind its first one.
        for _ in 0..<3 where message[end] & 0xC0 == 0x80 { end -= 1 }
        return end
    }
}
