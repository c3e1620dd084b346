import HatoModel
import Testing

@testable import HatoFirebase

/// Segments of polls (spec realtime-database §8.9 b).
@Suite struct SegmentAssemblerTests {
    private typealias Segment = SegmentAssembler.Segment

    /// The segments of a message as the JS client makes them, from a number on.
    private static func segments(of text: String, from number: Int, size: Int = 8) -> [Segment] {
        var data = Array(Base64.url.encode(Array(text.utf8)).utf8)
        while data.count % 4 > 0 { data.append(UInt8(ascii: ".")) }
        let pieces = stride(from: 0, to: data.count, by: size).map { Array(data[$0..<min($0 + size, data.count)]) }
        return pieces.enumerated().map { Segment(number: number + $0.offset, count: pieces.count, data: $0.element) }
    }

    private func whole(_ text: String) -> ReceivedMessage { .whole(Array(text.utf8)) }

    @Test func segmentsBecomeMessages() throws {
        var assembler = SegmentAssembler()
        let one = Self.segments(of: #"{"t":"d","d":{"é":1}}"#, from: 0)
        let other = Self.segments(of: "{}", from: one.count)
        #expect(try assembler.received(one + other) == [whole(#"{"t":"d","d":{"é":1}}"#), whole("{}")])
        #expect(assembler.heldBytes == 0)
    }

    @Test func overtakenSegmentsWait() throws {
        var assembler = SegmentAssembler()
        let one = Self.segments(of: "{\"first\":1}", from: 0)
        let other = Self.segments(of: "{\"second\":2}", from: one.count)
        #expect(try assembler.received(other).isEmpty)
        #expect(try assembler.received(Array(one.dropFirst())).isEmpty)
        #expect(assembler.heldBytes > 0)
        #expect(try assembler.received([one[0]]) == [whole("{\"first\":1}"), whole("{\"second\":2}")])
        #expect(assembler.heldBytes == 0)
    }

    @Test func segmentThatComesTwiceCountsOnce() throws {
        var assembler = SegmentAssembler()
        let segments = Self.segments(of: "{\"first\":1}", from: 0)
        #expect(try assembler.received(segments + segments) == [whole("{\"first\":1}")])
        #expect(try assembler.received(segments).isEmpty)
        let next = Self.segments(of: "{\"second\":2}", from: segments.count)
        #expect(
            try assembler.received([next[1], next[1], next[0], next[0]] + next.dropFirst(2)) == [
                whole("{\"second\":2}")
            ])
    }

    @Test func piecesMayEndInsideAGroup() throws {
        for size in 1...9 {
            var assembler = SegmentAssembler()
            let segments = Self.segments(of: "{\"磯野家\":true}", from: 0, size: size)
            #expect(try assembler.received(segments) == [whole("{\"磯野家\":true}")])
        }
    }

    @Test func segmentTooFarAheadEndsIt() {
        var limits = PollLimits()
        limits.segmentsWaitingMax = 4
        var assembler = SegmentAssembler(limits)
        let segment = { Segment(number: $0, count: 1, data: []) }
        #expect(throws: Never.self) { try assembler.received([segment(3)]) }
        #expect(throws: SegmentAssembler.Failure.tooFarAhead) { try assembler.received([segment(4)]) }
        #expect(throws: SegmentAssembler.Failure.tooFarAhead) { try assembler.received([segment(999_999_999_999_999)]) }
    }

    @Test func bytesThatWaitAreBounded() {
        var limits = PollLimits()
        limits.segmentBytesMax = 20
        var assembler = SegmentAssembler(limits)
        let data = [UInt8](repeating: UInt8(ascii: "A"), count: 12)
        #expect(throws: Never.self) { try assembler.received([Segment(number: 1, count: 1, data: data)]) }
        #expect(throws: SegmentAssembler.Failure.tooFarAhead) {
            try assembler.received([Segment(number: 2, count: 1, data: data)])
        }
    }

    @Test func wrongCountsAndCharactersEndIt() {
        let wrong: [([(Int, String)], SegmentAssembler.Failure)] = [
            ([(0, "e30.")], .wrongCount), ([(1_000_001, "e30.")], .wrongCount),
            ([(2, "e30A"), (3, "e30.")], .wrongCount),
            ([(1, "e3!.")], .notBase64), ([(1, "e")], .notBase64), ([(2, "e30."), (2, "e30.")], .notBase64),
            ([(1, "e30=")], .notBase64), ([(1, "e31.")], .notBase64), ([(1, "e30+")], .notBase64),
        ]
        for (rows, failure) in wrong {
            var assembler = SegmentAssembler()
            let segments = rows.enumerated().map {
                Segment(number: $0.offset, count: $0.element.0, data: Array($0.element.1.utf8))
            }
            #expect(throws: failure, "\(rows)") { try assembler.received(segments) }
        }
    }

    @Test func messageThatIsTooLargeIsPassedOver() throws {
        var limits = PollLimits()
        limits.messageBytesMax = 30
        var assembler = SegmentAssembler(limits)
        let text = "{\"r\":7,\"x\":\"" + String(repeating: "y", count: 40) + "\"}"
        let segments = Self.segments(of: text, from: 0)
        #expect(
            try assembler.received(segments) == [.oversized(start: Array(text.utf8), end: Array(text.utf8))])
        #expect(try assembler.received(Self.segments(of: "{}", from: segments.count)) == [whole("{}")])
    }

    @Test func shuffledSegmentsBecomeTheSameMessages() {
        let failures = SeededInputs.failures(200) { random in
            var assembler = SegmentAssembler()
            var segments: [Segment] = []
            var texts: [ReceivedMessage] = []
            for _ in 0..<1 + random.below(6) {
                let text = String(repeating: random.one(of: ["x", "é", "家"]), count: random.below(40))
                texts.append(whole("{\(text)}"))
                segments += Self.segments(of: "{\(text)}", from: segments.count, size: 1 + random.below(12))
            }
            if random.once(in: 2) { segments += segments.prefix(random.below(5)) }
            segments.shuffle(using: &random)
            var messages: [ReceivedMessage] = []
            while !segments.isEmpty {
                let count = min(segments.count, 1 + random.below(4))
                guard let some = try? assembler.received(Array(segments.prefix(count))) else { return "refused" }
                messages += some
                segments.removeFirst(count)
            }
            return messages == texts && assembler.heldBytes == 0 ? nil : "\(messages.count) of \(texts.count)"
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    @Test func anySegmentsTrapNowhere() {
        let failures = SeededInputs.failures(2_000) { random in
            var limits = PollLimits()
            limits.segmentsWaitingMax = 8
            (limits.segmentBytesMax, limits.messageBytesMax) = (200, 50)
            var assembler = SegmentAssembler(limits)
            for _ in 0..<20 {
                let data = (0..<random.below(30)).map { _ in random.one(of: Array("eE30-_.A=".utf8)) }
                let number = random.one(of: [random.below(12), -1, Int.max, Int.min, 0])
                let count = random.one(of: [1, 2, random.below(5), -3, Int.max])
                _ = try? assembler.received([Segment(number: number, count: count, data: data)])
                if assembler.heldBytes > 260 + 2 * (16 << 10) { return "\(assembler.heldBytes) bytes are held" }
            }
            return nil
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
