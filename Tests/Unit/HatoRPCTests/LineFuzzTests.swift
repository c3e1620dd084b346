import HatoModel
import HatoTesting
import NIOCore
import Testing

@testable import HatoRPC

/// The reader of lines and the reader of envelopes, on bytes that come as they please.
@Suite struct LineFuzzTests {
    @Test func linesAreTheSameHoweverTheBytesCome() {
        let failures = FuzzInputs.failures(2_000) { random in
            let bytes = random.stream()
            let (expected, rest) = Self.naiveLines(bytes)
            var buffer = LineBuffer()
            var lines: [[UInt8]] = []
            var place = 0
            while place < bytes.count {
                let count = min(bytes.count - place, random.chunkSize())
                buffer.append(random.buffer(bytes[place..<place + count]))
                place += count
                // The reader may be asked less often than bytes come.
                guard place == bytes.count || !random.once(in: 4) else { continue }
                while let line = buffer.nextLine() { lines.append(Array(line.readableBytesView)) }
            }
            guard lines == expected else {
                return "\(lines.count) lines, not \(expected.count), of \(Self.shown(bytes))"
            }
            let unfinished = rest.count - (rest.last == UInt8(ascii: "\r") ? 1 : 0)
            guard buffer.count == rest.count, buffer.unfinishedCount == unfinished else {
                return "\(buffer.count) bytes left of \(Self.shown(bytes))"
            }
            return nil
        }
        #expect(failures == [])
    }

    @Test func envelopeIsReadAsTheWholeLineIs() {
        let failures = FuzzInputs.failures(2_000) { random in
            let line = random.line()
            var limits = RPCLimits()
            let entriesMax = random.one(of: [1, 3, 1_000])
            limits.batchEntriesMax = entriesMax
            limits.nestingMax = random.one(of: [2, 4, 64])
            let whole = try? JSONParser.parse(line, depth: limits.nestingMax)
            let read = try? EnvelopeReader.read(line.span, limits)
            guard let whole else { return read == nil ? nil : "accepted: \(Self.shown(line))" }
            guard let read else { return "refused: \(Self.shown(line))" }
            return Self.isSame(read, whole, entriesMax) ? nil : "read wrongly: \(Self.shown(line))"
        }
        #expect(failures == [])
    }

    // MARK: Plain readings

    private static func naiveLines(_ bytes: [UInt8]) -> (lines: [[UInt8]], rest: [UInt8]) {
        var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Array($0) }
        let rest = pieces.popLast() ?? []
        let lines = pieces.map { $0.last == UInt8(ascii: "\r") ? Array($0.dropLast()) : $0 }
        // Only short lines of blanks are passed over; longer ones are read, and refused.
        return (lines.filter { $0.count >= 256 || !$0.allSatisfy { [0x20, 0x09, 0x0D].contains($0) } }, rest)
    }

    private static func isSame(_ read: ReadLine, _ whole: JSONValue, _ entriesMax: Int) -> Bool {
        switch (read, whole) {
        case (.single(let envelope), _): whole.array == nil && isSame(envelope, whole)
        case (.batch(let envelopes), .array(let elements)):
            elements.count <= entriesMax && envelopes.count == elements.count
                && zip(envelopes, elements).allSatisfy(isSame)
        case (.batchTooLarge, .array(let elements)): elements.count > entriesMax
        default: false
        }
    }

    private static func isSame(_ envelope: ReadEnvelope, _ json: JSONValue) -> Bool {
        let idIsRight = json["id"].map { $0.string != nil || $0.number != nil || $0.isNull } ?? true
        let paramsAreRight = json["params"].map { $0.object != nil || $0.array != nil } ?? true
        let isRequest = json["jsonrpc"] == "2.0" && json["method"]?.string != nil && idIsRight && paramsAreRight
        switch envelope {
        case .request(let request):
            guard isRequest, request.method == json["method"]?.string else { return false }
            guard request.id.map({ try? JSONParser.parse($0) }) == (json["id"].map { $0 }) else { return false }
            switch request.params {
            // The empty list is the same as no params.
            case .object(let object):
                return json["params"]?.array.map { $0.isEmpty && object.isEmpty }
                    ?? (.object(object) == (json["params"] ?? [:]))
            case .positional: return json["params"]?.array?.isEmpty == false
            }
        case .invalid(let id, let detail):
            guard !isRequest, !detail.isEmpty else { return false }
            return id == nil || id.flatMap { try? JSONParser.parse($0) } == json["id"]
        }
    }

    private static func shown(_ bytes: [UInt8]) -> String {
        "\(bytes.count) bytes \(String(decoding: bytes.prefix(400), as: UTF8.self).debugDescription)"
    }
}

extension SeededRandom {
    private static let tokens: [[UInt8]] =
        [
            "\"jsonrpc\":\"2.0\"", "\"jsonrpc\":\"1.0\"", "\"id\":1", "\"id\":null", "\"id\":\"\\ud83d\\ude00\"",
            "\"id\":1e400",
            "\"id\":123456789012345678901234567890123456789012345678901234567890", "\"id\":[1]", "\"id\":{}",
            "\"id\":true",
            "\"method\":\"a.b\"", "\"method\":1", "\"method\":null", "\"params\":{}", "\"params\":[]",
            "\"params\":[1,{}]",
            "\"params\":{\"a\":{\"b\":[1]}}", "\"params\":null", "\"params\":\"x\"", "\"x\":1", "\"id\":-0.0", ",", "{",
            "}", "[", "]",
            "\"", "\\", " ", "\t", "\r", "\n", "\r\n", "\u{0}", "\u{FEFF}", "é", "1", "null", "GET / HTTP/1.1",
        ].map { Array($0.utf8) } + [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80]]

    fileprivate mutating func chunkSize() -> Int { once(in: 3) ? 1 : once(in: 3) ? 1 + below(100_000) : 1 + below(30) }

    /// Bytes as a socket hands them over: sometimes behind others that were read already.
    fileprivate mutating func buffer(_ bytes: ArraySlice<UInt8>) -> ByteBuffer {
        let skipped = below(3)
        var buffer = ByteBuffer(repeating: 0x0A, count: skipped)
        buffer.writeBytes(bytes)
        buffer.moveReaderIndex(forwardBy: skipped)
        return buffer
    }

    /// Lines, blank or long or damaged, and the beginning of another one.
    fileprivate mutating func stream() -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<below(8) {
            switch below(6) {
            case 0: bytes += (0..<below(4)).map { _ in one(of: [0x20, 0x09, 0x0D]) }
            case 1: bytes += [UInt8](repeating: one(of: [0x20, 0x61]), count: below(once(in: 30) ? 200_000 : 600))
            default: bytes += line()
            }
            if !once(in: 12) { bytes += once(in: 3) ? [0x0D, 0x0A] : [0x0A] }
        }
        return bytes
    }

    /// A request, a batch, or something near them.
    fileprivate mutating func line() -> [UInt8] {
        if once(in: 8) {
            var bytes: [UInt8] = []
            for _ in 0..<below(6) { bytes += one(of: Self.tokens) }
            return bytes
        }
        var bytes: [UInt8] = []
        if once(in: 3) {
            bytes.append(UInt8(ascii: "["))
            for index in 0..<below(5) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes += once(in: 6) ? Array("[1]".utf8) : envelope()
            }
            bytes.append(UInt8(ascii: "]"))
        } else {
            bytes = envelope()
        }
        if once(in: 2) { mutate(&bytes, inserting: Self.tokens) }
        return bytes
    }

    private mutating func envelope() -> [UInt8] {
        var members: [[UInt8]] = []
        members.append(once(in: 10) ? Self.tokens[1] : Self.tokens[0])
        if !once(in: 5) { members.append(Self.tokens[2 + below(once(in: 3) ? 8 : 3)]) }
        members.append(Self.tokens[once(in: 8) ? 11 : 10])
        if !once(in: 3) { members.append(Self.tokens[13 + below(6)]) }
        if once(in: 6) { members.append(Self.tokens[19]) }
        members.shuffle(using: &self)
        return [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }
}
