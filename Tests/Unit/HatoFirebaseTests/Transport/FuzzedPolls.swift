import HatoModel

@testable import HatoFirebase

/// A polling session with its messages, as a fuzzing test asks it for responses.
struct FuzzedPolls {
    private var polls: PollStateMachine
    private var session = FuzzedSession()
    private var request = 0
    private var nextResponse = 0
    /// What came out of the segments.
    private(set) var received: [ReceivedMessage] = []

    init?() {
        guard let secrets = PollScript.Secrets(id: "a", password: "b") else { return nil }
        polls = PollStateMachine(secrets, callback: 1)
        _ = perform(polls.handle(.started(request: 0)))
        _ = perform(polls.handle(.send(Array("{}".utf8))) + polls.handle(.timerFired(.flush)))
    }

    /// The segments of messages, each cut anywhere.
    static func segments(of messages: [[UInt8]], _ random: inout SeededInputs) -> [SegmentAssembler.Segment] {
        var segments: [SegmentAssembler.Segment] = []
        for message in messages {
            var text = Array(Base64.url.encode(message).utf8)
            while text.count % 4 > 0 { text.append(UInt8(ascii: ".")) }
            // What pads a message stands in its last segment.
            var pieces = FuzzedMessage.pieces(of: text, &random, mayBeEmpty: false)
            if pieces.isEmpty { pieces = [[]] }
            for piece in pieces {
                segments.append(.init(number: segments.count, count: pieces.count, data: piece))
            }
        }
        return segments
    }

    /// The targets of requests that carry them, a few each.
    static func targets(of segments: [SegmentAssembler.Segment], _ random: inout SeededInputs) -> [String] {
        var targets: [String] = []
        var rest = segments[...]
        repeat {
            var target = "/.lp?id=a&pw=b&ser=\(random.next() % 1_000_000_000_000)"
            for (index, segment) in rest.prefix(random.below(5)).enumerated() {
                let data = String(decoding: segment.data, as: UTF8.self)
                target += "&seg\(index)=\(segment.number)&ts\(index)=\(segment.count)&d\(index)=\(data)"
                rest.removeFirst()
            }
            targets.append(target)
        } while !rest.isEmpty
        return targets
    }

    /// Takes a request. Returns what is wrong with what follows.
    mutating func take(_ target: String) -> String? {
        guard case .poll(_, _, let poll)? = try? PollRequest(target: target) else { return nil }
        request += 1
        if let problem = perform(polls.handle(.polled(request: request, poll))) { return problem }
        for text in session.sent {
            if let problem = perform(polls.handle(.send(text))) { return problem }
        }
        session.sent = []
        if let problem = perform(polls.handle(.timerFired(.flush))) { return problem }
        let most = PollLimits().segmentBytesMax + PollLimits().messageBytesMax + 1_024 * 64
        return polls.heldBytes <= most ? nil : "\(polls.heldBytes) bytes are held"
    }

    private mutating func perform(_ actions: [PollStateMachine.Action]) -> String? {
        for action in actions {
            switch action {
            case .received(let message):
                received.append(message)
                if let problem = session.take(message) { return problem }
            case .respond(_, let script): if let problem = problem(of: script) { return problem }
            case .schedule, .cancel, .end: break
            }
        }
        return nil
    }

    /// Each line is one call of a function that the client knows, and responses are numbered without a gap.
    private mutating func problem(of script: [UInt8]) -> String? {
        let text = String(decoding: script, as: UTF8.self)
        guard script.isEmpty || script.last == 0x0A else { return "no line: \(text)" }
        for line in text.split(separator: "\n") {
            if line.hasPrefix("pRTLPCB("), line.hasSuffix(");"), let comma = line.firstIndex(of: ",") {
                guard Int(line[..<comma].dropFirst("pRTLPCB(".count)) == nextResponse else { return "number: \(line)" }
                nextResponse += 1
                let messages = String(line[line.index(after: comma)...].dropLast(2))
                guard (try? JSONParser.parse(messages))?.array != nil else { return "no JSON: \(line)" }
                guard !messages.contains("<") else { return "the start of a tag: \(line)" }
            } else if !line.hasPrefix("pLPCommand('"), !line.hasPrefix("function p") {
                return "another line: \(line)"
            }
        }
        return nil
    }
}
