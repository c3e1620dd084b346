import HatoModel
import HatoTesting
import NIOCore
import Testing

@testable import HatoRPC

/// Wires against a plain reading of the same lines, whatever comes and however it is cut.
@Suite struct WireFuzzTests {
    private static let depth = 16
    private static let lineBytesMax = 2_000

    @Test func aWireDeliversWhatTheLinesSayUpToTheFirstThatIsNone() {
        let failures = FuzzInputs.failures(3_000) { random in
            let requests = random.below(6)
            let lines = random.wireLines(requests: requests)
            let peer = try EmbeddedWire {
                $0.nestingMax = Self.depth
                $0.lineBytesMax = Self.lineBytesMax
            }
            for _ in 0..<requests { _ = peer.wire.send("check.echo") }
            peer.run()
            try play(lines, to: peer, &random)
            return problem(of: peer, lines, requests)
        }
        #expect(failures == [])
    }

    /// Hands the lines over in pieces, with pauses, and closes the connection.
    private func play(_ lines: [[UInt8]], to peer: EmbeddedWire, _ random: inout SeededRandom) throws {
        let pauses = random.once(in: 2) ? 1 + random.below(5) : 0
        var count = 0
        peer.log.react = { wire, event in
            guard event.isMessage, pauses > 0 else { return }
            count += 1
            if count.isMultiple(of: pauses) { peer.log.call { wire.pause() } }
        }
        var bytes = Array(lines.joined(separator: [UInt8(ascii: "\n")])) + [UInt8(ascii: "\n")]
        while !bytes.isEmpty, peer.log.end == nil {
            let piece = min(bytes.count, random.once(in: 3) ? 1 : 1 + random.below(200))
            try peer.receive(Array(bytes[..<piece]), by: random.once(in: 2) ? 1 + random.below(40) : .max)
            bytes.removeFirst(piece)
            if random.once(in: 3) { peer.log.call { peer.wire.resume() } }
            if random.once(in: 2) { peer.run() }
        }
        while peer.unreadCount > 0, peer.log.end == nil {
            peer.log.call { peer.wire.resume() }
            try peer.receive()
        }
        if random.once(in: 2) { peer.closeByPeer() } else { peer.log.call { peer.wire.close() } }
        for _ in 0..<lines.count + 1 where peer.log.end == nil {
            peer.log.call { peer.wire.resume() }
            peer.run()
        }
        peer.log.react = { _, _ in }
    }

    private func problem(of peer: EmbeddedWire, _ lines: [[UInt8]], _ requests: Int) -> String? {
        guard peer.log.inside == [] else { return "called inside a call: \(peer.log.inside)" }
        guard case .ended(let end, let unanswered)? = peer.log.events.last else { return "no end" }
        var waiting = Array(1...UInt64(max(requests, 1))).prefix(requests)
        var delivered = peer.log.messages.compactMap { NaiveMessage($0) }[...]
        for line in lines where !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) {
            let expected = NaiveMessage(line, depth: Self.depth)
            let shown = String(decoding: line.prefix(400), as: UTF8.self).debugDescription
            if line.count - (line.last == UInt8(ascii: "\r") ? 1 : 0) > Self.lineBytesMax {
                return isRefused(end) || end == .closed ? nil : "\(end) at \(shown)"
            }
            if expected == .unclear { return nil }
            switch expected {
            case .result(let id, _), .error(let id, _):
                // Ids are compared as texts.
                if delivered.isEmpty, case .protocolError(let words) = end, words.contains("id that no request") {
                    return nil
                }
                guard let index = waiting.firstIndex(of: id) else { return isRefused(end) ? nil : "\(end) at \(shown)" }
                if delivered.isEmpty, end == .closed { break }
                waiting.remove(at: index)
            case .notification: break
            case .refusal, .lie, .unclear:
                // A wire that its owner has closed meanwhile delivers nothing more.
                return isRefused(end) || end == .closed ? nil : "\(end) at \(shown)"
            }
            if delivered.isEmpty, end == .closed { return nil }
            guard delivered.popFirst() == expected else { return "not delivered: \(shown), but \(end)" }
        }
        guard delivered.isEmpty, Array(waiting) == unanswered else { return "\(unanswered) left, not \(waiting)" }
        return end == .lost(nil) || end == .closed ? nil : "\(end)"
    }

    private func isRefused(_ end: RPCWireEnd) -> Bool {
        switch end {
        case .protocolError, .refused, .lineTooLong: true
        default: false
        }
    }
}

extension SeededRandom {
    private static let tokens: [[UInt8]] =
        [
            "\"id\":1", "\"id\":null", "\"id\":\"1\"", "\"id\":1.0", "\"result\":1", "\"error\":{\"code\":1}",
            "\"error\":{}", "\"method\":\"a\"", "\"method\":1", "\"params\":{\"subscription\":\"s\"}", "\"params\":[]",
            "\"x\":{\"id\":7}", ",", ":", "{", "}", "[", "]", "\"", "\\", "\\u00", " ", "\t", "\r", "\u{0}", "鳩",
            "1e400",
            "[[[[[[[[", "]]]]]]]]",
        ].map { Array($0.utf8) } + [[0xFF], [0xED, 0xA0, 0x80]]

    /// Lines as a service sends them to a wire with so many requests, and some that no service sends.
    fileprivate mutating func wireLines(requests: Int) -> [[UInt8]] {
        var ids = Array(0..<requests).map { $0 + 1 }
        let hasLies = once(in: 2)
        return (0..<below(14)).map { _ in
            if hasLies, once(in: 6) { return (0..<below(6)).flatMap { _ in one(of: Self.tokens) } }
            var members: [[UInt8]] = once(in: 2) ? ["\"jsonrpc\":\"2.0\""].map { Array($0.utf8) } : []
            if !ids.isEmpty, once(in: 2) {
                let id = ids.remove(at: once(in: 4) ? below(ids.count) : 0)
                members.append(Array("\"id\":\(id)".utf8))
                let text = text()
                members.append(
                    once(in: 4)
                        ? Array("\"error\":{\"code\":-32003,\"data\":".utf8) + text + [UInt8(ascii: "}")]
                        : Array("\"result\":".utf8) + text)
            } else {
                members.append(Array("\"method\":\"m.event\"".utf8))
                let text = text()
                members.append(
                    Array("\"params\":{".utf8) + (once(in: 2) ? Array("\"v\":1,".utf8) : [])
                        + Array("\"subscription\":\"s\(below(3))\",\"events\":".utf8) + text + [UInt8(ascii: "}")])
            }
            members.shuffle(using: &self)
            var line = [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
            if hasLies, once(in: 4) { mutate(&line, inserting: Self.tokens) }
            if once(in: 6) { line.append(UInt8(ascii: "\r")) }
            // What is inserted may bring a line end.
            return line.filter { $0 != UInt8(ascii: "\n") }
        }
    }

    private mutating func text(depth: Int = 3) -> [UInt8] {
        switch below(depth > 0 ? 6 : 4) {
        case 0: return Array(one(of: ["null", "true", "false", "0", "-1.5e3", "17"]).utf8)
        case 1:
            return Array(one(of: ["\"\"", "\"鳩\"", "\"}]\"", "\"\\\"\\\\\"", "\"\\ud83d\\ude00\"", "\"\\n\""]).utf8)
        case 2: return Array("\"\(String(repeating: "x", count: below(once(in: 20) ? 3_000 : 40)))\"".utf8)
        case 3: return Array(one(of: ["[]", "{}", "[1,2]", "{\"a\":1}"]).utf8)
        case 4: return [UInt8(ascii: "[")] + text(depth: depth - 1) + [UInt8(ascii: "]")]
        default: return Array("{\"id\":".utf8) + text(depth: depth - 1) + Array(",\"method\":1}".utf8)
        }
    }
}
