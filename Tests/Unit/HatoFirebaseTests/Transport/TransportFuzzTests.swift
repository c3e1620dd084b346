import HatoModel
import Testing

@testable import HatoFirebase

/// Frames and polls from their bytes to the session: whatever a client sends, in whatever pieces.
@Suite struct TransportFuzzTests {
    // MARK: Frames

    /// In any pieces: chunks with their number, parts of frames, and what one read brings.
    @Test func messagesComeOutOfAnyFramesAsTheyWentIn() {
        let failures = SeededInputs.failures(1_500) { random in
            let bytesMax = random.one(of: [700, 16 << 20])
            var assembler = FrameAssembler(messageBytesMax: bytesMax)
            var session = FuzzedSession()
            for _ in 0..<1 + random.below(6) {
                let message = FuzzedMessage.any(&random)
                var received: [ReceivedMessage] = []
                for frame in FuzzedMessage.frames(of: message, &random) {
                    for part in FuzzedMessage.pieces(of: frame, &random, mayBeEmpty: true).marked() {
                        if let message = assembler.received(part.bytes[...], isLast: part.isLast) {
                            received.append(message)
                        }
                    }
                }
                guard received.count == 1, let one = received.first else { return "\(received.count) messages" }
                if let problem = FuzzedMessage.difference(one, message, bytesMax: bytesMax) { return problem }
                guard assembler.heldBytes == 0 else { return "\(assembler.heldBytes) bytes stay" }
                if let problem = session.take(one) { return problem }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    private static let frames = [
        "0", "1", "2", "3", "00", "-1", "9999", "10000", "999999", "1234567", "", "{}", "[", "é", "\n",
    ]

    /// Wrong numbers of chunks, frames inside of each other, and no messages at all.
    @Test func anyFramesAreBoundedAndBreakNoLine() {
        let failures = SeededInputs.failures(1_500) { random in
            var assembler = FrameAssembler(messageBytesMax: 300)
            var session = FuzzedSession()
            for _ in 0..<1 + random.below(30) {
                var frame = random.once(in: 2) ? FuzzedMessage.any(&random) : Array(random.one(of: Self.frames).utf8)
                if random.once(in: 4) { random.damage(&frame) }
                let message = assembler.received(frame[...], isLast: !random.once(in: 3))
                // Of a message and of a frame, each of which may be too large: then its start and its end.
                let most = 2 * max(300, 2 * RequestNumber.bytesMax)
                guard assembler.heldBytes <= most else { return "\(assembler.heldBytes) bytes are held" }
                if let message, let problem = session.take(message) { return problem }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    /// The bytes of a frame that is not complete, for any reads.
    @Test func unfinishedFramesAreCountedExactly() {
        let failures = SeededInputs.failures(1_000) { random in
            var (stream, ends): ([UInt8], [Int]) = ([], [0])
            for _ in 0..<1 + random.below(8) {
                stream += FuzzedMessage.bytes(ofFrame: random.one(of: [0, 1, 125, 126, 700, 65_536]), &random)
                ends.append(stream.count)
            }
            var progress = FrameProgress()
            var position = 0
            for piece in FuzzedMessage.pieces(of: stream, &random, mayBeEmpty: false) {
                progress.received(piece.span)
                position += piece.count
                let unfinished = position - (ends.last { $0 <= position } ?? 0)
                guard progress.unfinishedBytes == unfinished else {
                    return "\(progress.unfinishedBytes) in place of \(unfinished) at \(position)"
                }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    // MARK: Polls

    /// Segments of any size, in any order and more than once, as targets of requests.
    @Test func messagesComeOutOfAnyPollsAsTheyWentIn() {
        let failures = SeededInputs.failures(1_000) { random in
            let messages = (0..<1 + random.below(5)).map { _ in FuzzedMessage.any(&random) }
            var segments = FuzzedPolls.segments(of: messages, &random)
            for index in segments.indices where random.once(in: 3) {
                segments.swapAt(index, min(segments.count - 1, index + random.below(4)))
            }
            for index in segments.indices where random.once(in: 8) {
                segments.insert(segments[index], at: random.below(segments.count))
            }
            guard var polls = FuzzedPolls() else { return "no polls" }
            for target in FuzzedPolls.targets(of: segments, &random) {
                if let problem = polls.take(target) { return problem }
            }
            guard polls.received == messages.map(ReceivedMessage.whole) else {
                return "\(polls.received.count) of \(messages.count) messages, or other ones"
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    /// Damaged targets are refused, or end the session, or change nothing: scripts stay scripts.
    @Test func anyPollsAreBoundedAndBreakNoScript() {
        let failures = SeededInputs.failures(1_500) { random in
            guard var polls = FuzzedPolls() else { return "no polls" }
            for _ in 0..<1 + random.below(4) {
                let messages = (0..<1 + random.below(2)).map { _ in FuzzedMessage.any(&random) }
                var segments = FuzzedPolls.segments(of: messages, &random)
                for index in segments.indices where random.once(in: 6) {
                    switch random.below(4) {
                    case 0: segments[index].number = random.one(of: [0, 5, 2_000, 999_999_999_999_999])
                    case 1: segments[index].count = random.one(of: [0, 1, 1_000_000, 1_000_001])
                    case 2: random.damage(&segments[index].data)
                    default: segments[index].data = Array("%2".utf8) + segments[index].data
                    }
                }
                for target in FuzzedPolls.targets(of: segments, &random) {
                    var bytes = Array(target.utf8)
                    if random.once(in: 5) { random.damage(&bytes) }
                    if let problem = polls.take(String(decoding: bytes, as: UTF8.self)) { return problem }
                }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
