import Testing

@testable import HatoFirebase

/// Frames with counts, both ways (spec realtime-database §8.2).
@Suite struct FrameTests {
    private func assemble(_ frames: [String], max: Int = 100) -> [ReceivedMessage] {
        var assembler = FrameAssembler(messageBytesMax: max)
        return frames.compactMap { assembler.received(Array($0.utf8)[...]) }
    }

    private func whole(_ text: String) -> ReceivedMessage { .whole(Array(text.utf8)) }

    @Test func frameIsAMessage() {
        #expect(assemble([#"{"a":1}"#, "{}", ""]) == [whole(#"{"a":1}"#), whole("{}"), whole("")])
    }

    @Test func countedChunksAreAMessage() {
        #expect(assemble(["3", "{\"a\":", "12", "}", "{}"]) == [whole("{\"a\":12}"), whole("{}")])
        #expect(assemble(["1", "7", "0", "002", "a", "b"]) == [whole("7"), whole("ab")])
    }

    @Test func zeroBetweenMessagesKeepsAlive() {
        #expect(assemble(["0", "0", "{}", "0"]) == [whole("{}")])
        // Among chunks it is one.
        #expect(assemble(["2", "1", "0"]) == [whole("10")])
    }

    @Test func textThatIsNoCountIsAMessage() {
        for text in ["-1", "1e3", "1.5", "+2", "1234567", "٣", " 2"] {
            #expect(assemble([text]) == [whole(text)])
        }
    }

    @Test func messageThatIsTooLargeKeepsItsStartAndItsEnd() {
        let long = String(repeating: "x", count: 60)
        #expect(
            assemble(["3", "start", long, long, "{}"])
                == [
                    .oversized(start: Array("start\(long)\(long)".utf8), end: Array("start\(long)\(long)".utf8)),
                    whole("{}"),
                ])
        #expect(
            assemble(["start" + long + long, "{}"])
                == [
                    .oversized(start: Array("start\(long)\(long)".utf8), end: Array("start\(long)\(long)".utf8)),
                    whole("{}"),
                ])
    }

    @Test func longMessageIsNotKept() {
        let kept = 16 << 10
        var assembler = FrameAssembler(messageBytesMax: 100_000)
        #expect(assembler.received(Array("100".utf8)[...]) == nil)
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 16_384)
        for _ in 0..<99 {
            #expect(assembler.received(chunk[...]) == nil)
            #expect(assembler.heldBytes <= 100_000)
        }
        #expect(assembler.heldBytes <= 2 * kept)
        #expect(
            assembler.received(Array("end".utf8)[...])
                == .oversized(start: chunk, end: Array(chunk.dropFirst(3)) + Array("end".utf8)))
        #expect(assembler.heldBytes == 0)
        #expect(assembler.received(Array("{}".utf8)[...]) == whole("{}"))
    }

    @Test func moreChunksThanAllowedAreTooLargeAMessage() {
        var assembler = FrameAssembler()
        #expect(assembler.received(Array("10000".utf8)[...]) == nil)
        for _ in 0..<9_999 { #expect(assembler.received(Array("x".utf8)[...]) == nil) }
        guard case .oversized(let start, _)? = assembler.received(Array("y".utf8)[...]) else {
            Issue.record("not too large")
            return
        }
        #expect(start.count == 10_000)
    }

    @Test func splitFramesArePutTogether() {
        var assembler = FrameAssembler(messageBytesMax: 10)
        #expect(assembler.received([0x7B], isLast: false) == nil)
        #expect(assembler.received([], isLast: false) == nil)
        #expect(assembler.received([0x7D]) == whole("{}"))
        // A count, and a chunk, in parts.
        #expect(assembler.received(Array("0".utf8)[...], isLast: false) == nil)
        #expect(assembler.received(Array("2".utf8)[...]) == nil)
        #expect(assembler.received(Array("a".utf8)[...], isLast: false) == nil)
        #expect(assembler.received(Array("b".utf8)[...]) == nil)
        #expect(assembler.received(Array("c".utf8)[...]) == whole("abc"))
        // A chunk that is too large by itself.
        #expect(assembler.received(Array("2".utf8)[...]) == nil)
        #expect(assembler.received([UInt8](repeating: 0x78, count: 9)[...], isLast: false) == nil)
        #expect(assembler.received([UInt8](repeating: 0x78, count: 9)[...]) == nil)
        #expect(
            assembler.received([0x79])
                == .oversized(
                    start: [UInt8](repeating: 0x78, count: 18) + [0x79],
                    end: [UInt8](repeating: 0x78, count: 18) + [0x79]))
    }

    @Test func shortMessageIsOneFrame() {
        let message = [UInt8](repeating: UInt8(ascii: "x"), count: 16_384)
        #expect(FrameSplitter.frames(of: message) == [message[...]])
        #expect(FrameSplitter.frames(of: []).isEmpty)
    }

    @Test func longMessageHasACountAndNoEmptyChunk() {
        for count in [16_385, 32_768, 32_769, 100_000] {
            let message = [UInt8](repeating: UInt8(ascii: "x"), count: count)
            let frames = FrameSplitter.frames(of: message)
            #expect(frames.first.map { String(decoding: $0, as: UTF8.self) } == String((count + 16_383) / 16_384))
            #expect(frames.dropFirst().allSatisfy { !$0.isEmpty && $0.count <= 16_384 })
            #expect(Array(frames.dropFirst().joined()) == message)
        }
    }

    @Test func noCharacterIsSplit() {
        for prefix in ["", "x", "xx", "xxx"] {
            let message = Array((prefix + String(repeating: "😀é家", count: 6_000)).utf8)
            for frame in FrameSplitter.frames(of: message) {
                #expect(String(validating: frame, as: UTF8.self) != nil)
                #expect(String(decoding: frame, as: UTF8.self).utf16.count <= 16_384)
            }
        }
    }

    @Test func hugeMessageHasFewerThanTenThousandChunks() {
        let message = [UInt8](repeating: UInt8(ascii: "x"), count: 170_000_000)
        let frames = FrameSplitter.frames(of: message)
        #expect(frames.count <= 10_000 && frames[0].count == 4)
    }

    @Test func whatClientsSplitComesBack() {
        let failures = SeededInputs.failures(200) { random in
            var assembler = FrameAssembler(messageBytesMax: 4_000)
            for _ in 0..<4 {
                let message = (0..<1 + random.below(300)).map { _ in UInt8(0x61 + random.below(26)) } + [0x7D]
                var frames: [ArraySlice<UInt8>] = []
                let size = 1 + random.below(80)
                var index = 0
                while index < message.count {
                    frames.append(message[index..<min(message.count, index + size)])
                    index += size
                }
                if frames.count > 1 || message.count < 7 { frames.insert(Array(String(frames.count).utf8)[...], at: 0) }
                if random.once(in: 3) { frames.insert([0x30], at: 0) }
                var messages: [ReceivedMessage] = []
                for frame in frames {
                    let cut = random.once(in: 3) ? frame.startIndex + random.below(frame.count + 1) : frame.startIndex
                    if cut > frame.startIndex, assembler.received(frame[..<cut], isLast: false) != nil {
                        return "a message before the end of its frame"
                    }
                    if let message = assembler.received(frame[cut...]) { messages.append(message) }
                }
                if messages != [.whole(message)] { return "\(messages.count) messages of \(frames.count) frames" }
            }
            return nil
        }
        #expect(failures.isEmpty)
    }
}
