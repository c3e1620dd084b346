import HatoModel

@testable import HatoFirebase

/// Messages of a client for fuzzing tests, and the frames that carry them.
enum FuzzedMessage {
    private static let samples = [
        #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.12-18-0":1}}}}"#, #"{"t":"c","d":{"t":"p","d":{}}}"#,
        #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/a/b","q":{"i":"n","sp":3,"sn":"k","l":2},"t":1,"h":""}}}"#,
        #"{"t":"d","d":{"r":3,"a":"n","b":{"p":"/a/b"}}}"#, #"{"t":"d","d":{"r":4,"a":"g","b":{"p":"/鳩","q":{}}}}"#,
        #"{"t":"d","d":{"r":5,"a":"p","b":{"p":"/a","d":{"x":[1,2.5e3,"é\u00e9",null,true],".priority":1},"h":""}}}"#,
        #"{"t":"d","d":{"r":6,"a":"m","b":{"p":"/a","d":{"b/c":1,"d":{".sv":{"increment":1}}}}}}"#,
        #"{"t":"d","d":{"r":7,"a":"om","b":{"p":"/a","d":{"b":{".sv":"timestamp"}}}}}"#,
        #"{"t":"d","d":{"r":8,"a":"auth","b":{"cred":"eyJ.e30.x","authvar":{"uid":"u"}}}}"#,
        #"{"t":"d","d":{"r":9,"a":"oc","b":{"p":"/a"}}}"#, "0", "12", "", "{", "null",
    ]

    /// Mostly a right one, sometimes a damaged or a long one.
    static func any(_ random: inout SeededInputs) -> [UInt8] {
        if random.once(in: 6) {
            let text = String(repeating: random.one(of: ["x", "é", "鳩"]), count: random.below(600))
            return Array(#"{"t":"d","d":{"r":10,"a":"p","b":{"p":"/long","d":"\#(text)"}}}"#.utf8)
        }
        var bytes = Array(random.one(of: samples).utf8)
        if random.once(in: 4) { random.damage(&bytes) }
        return bytes
    }

    /// One frame, or the number of the chunks and the chunks; before them, sometimes what keeps the connection alive.
    static func frames(of message: [UInt8], _ random: inout SeededInputs) -> [[UInt8]] {
        let alive: [[UInt8]] = random.once(in: 3) ? [Array("0".utf8)] : []
        let isNumber = !message.isEmpty && message.count <= 6 && message.allSatisfy { (0x30...0x39).contains($0) }
        guard isNumber || random.once(in: 2) else { return alive + [message] }
        let chunks = pieces(of: message, &random, mayBeEmpty: true)
        return alive + [Array(String(chunks.count).utf8)] + chunks
    }

    /// The bytes, cut anywhere.
    ///
    /// - Parameter mayBeEmpty: whether pieces may be empty; then there is at least one.
    static func pieces(of bytes: [UInt8], _ random: inout SeededInputs, mayBeEmpty: Bool) -> [[UInt8]] {
        var cuts = (0..<random.below(5)).map { _ in random.below(bytes.count + 1) }.sorted()
        cuts.append(bytes.count)
        var start = 0
        let pieces = cuts.map { cut in
            defer { start = cut }
            return Array(bytes[start..<cut])
        }
        return mayBeEmpty ? pieces : pieces.filter { !$0.isEmpty }
    }

    /// A frame with a payload of so many bytes (RFC 6455 §5.2).
    static func bytes(ofFrame count: Int, _ random: inout SeededInputs) -> [UInt8] {
        let mask: UInt8 = random.once(in: 2) ? 0x80 : 0
        var frame: [UInt8] = [0x81]
        func sizes(_ bytes: Int) -> [UInt8] {
            (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        }
        switch count {
        case ..<126: frame += [mask | UInt8(count)]
        case ..<65_536: frame += [mask | 126] + sizes(2)
        default: frame += [mask | 127] + sizes(8)
        }
        if mask > 0 { frame += [1, 2, 3, 4] }
        return frame + [UInt8](repeating: 7, count: count)
    }

    /// How a received message differs from what was sent; nil: in nothing.
    static func difference(_ received: ReceivedMessage, _ sent: [UInt8], bytesMax: Int) -> String? {
        switch received {
        case .whole(let bytes):
            guard sent.count <= bytesMax else { return "\(sent.count) bytes are no large message" }
            return bytes == sent ? nil : "\(String(decoding: bytes, as: UTF8.self)) came"
        case .oversized(let start, let end):
            guard sent.count > bytesMax else { return "\(sent.count) bytes are too large" }
            guard start == Array(sent.prefix(start.count)), end == Array(sent.suffix(end.count)) else {
                return "another start or end"
            }
            return start.isEmpty || end.isEmpty ? "no start or no end" : nil
        }
    }
}

extension [[UInt8]] {
    /// Each with whether it is the last one.
    func marked() -> [(bytes: [UInt8], isLast: Bool)] {
        enumerated().map { (bytes: $0.element, isLast: $0.offset == count - 1) }
    }
}

/// A session whose texts are looked at.
struct FuzzedSession {
    private var machine = SessionStateMachine(database: nil, host: "h", session: "s")
    /// The messages for the client since the last look.
    var sent: [[UInt8]] = []

    init() {
        _ = machine.handle(.accepted)
        _ = machine.handle(.wireOpened(at: 1))
    }

    /// Takes a message of the client. Returns what is wrong with what follows.
    mutating func take(_ message: ReceivedMessage) -> String? {
        for action in machine.handle(.message(message)) {
            guard case .send(let text) = action else {
                if case .call(_, _, let params) = action, let problem = Self.problem(params) { return problem }
                continue
            }
            if let problem = Self.problem(text) { return problem }
            sent.append(text)
        }
        return nil
    }

    private static func problem(_ text: [UInt8]) -> String? {
        let shown = String(decoding: text, as: UTF8.self)
        guard (try? JSONParser.parse(text)) != nil else { return "no JSON: \(shown)" }
        return text.contains(0x0A) || text.contains(0x0D) ? "a line end: \(shown)" : nil
    }
}
