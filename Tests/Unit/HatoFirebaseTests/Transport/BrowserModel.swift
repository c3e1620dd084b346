import HatoModel

@testable import HatoFirebase

/// A browser as it polls and switches to a socket (spec realtime-database §8.9): requests and responses overtake each
/// other, at most two at a time.
struct BrowserModel {
    private(set) var received: [Int] = []
    private(set) var isClosed = false
    private(set) var failure: String?
    /// Polls on their way to the server.
    var requests: [(number: Int, segments: [SegmentAssembler.Segment])] = []
    /// Frames on their way to the server on the socket.
    var frames: [[UInt8]] = []
    private(set) var hasSwitched = false

    private var outstanding = 0
    private var lastRequest = 1
    private var segments: [SegmentAssembler.Segment] = []
    private var nextSegment = 0
    /// Responses that came before an earlier one.
    private var responses: [Int: [JSONValue]] = [:]
    private var nextResponse = 0
    private var closesAfter: Int?
    private var pollsAreClosed = false
    private var sendsOnSocket = false
    private var receivesOnSocket = false
    /// What came on the socket before the last message over polls.
    private var pending: [Int] = []
    private var assembled: (missing: Int, text: [UInt8]) = (0, [])

    // MARK: Sending

    mutating func send(_ value: Int, padding: Int) {
        let text = "{\"t\":\"d\",\"d\":{\"x\":\"\(String(repeating: "é", count: padding))\",\"n\":\(value)}}"
        send(Array(text.utf8))
    }

    private mutating func send(_ text: [UInt8]) {
        if sendsOnSocket { return frames += split(text) }
        var data = Array(Base64.url.encode(text).utf8)
        while data.count % 4 > 0 { data.append(UInt8(ascii: ".")) }
        let pieces = stride(from: 0, to: data.count, by: 24).map { Array(data[$0..<min($0 + 24, data.count)]) }
        for piece in pieces {
            segments.append(.init(number: nextSegment, count: pieces.count, data: piece))
            nextSegment += 1
        }
    }

    private func split(_ text: [UInt8]) -> [[UInt8]] {
        guard text.count > 40 else { return [text] }
        let pieces = stride(from: 0, to: text.count, by: 40).map { Array(text[$0..<min($0 + 40, text.count)]) }
        return [Array(String(pieces.count).utf8)] + pieces
    }

    /// Opens polls as long as there may be more of them.
    mutating func poll() {
        while nextResponse > 0, !pollsAreClosed, closesAfter == nil, outstanding < (segments.isEmpty ? 1 : 2) {
            lastRequest += 1
            outstanding += 1
            let count = min(segments.count, 3)
            requests.append((lastRequest, Array(segments.prefix(count))))
            segments.removeFirst(count)
        }
    }

    // MARK: Receiving

    /// Runs the script of a response.
    mutating func run(_ script: [UInt8], isStart: Bool) {
        if !isStart { outstanding -= 1 }
        for line in String(decoding: script, as: UTF8.self).split(separator: "\n") {
            if let match = line.wholeMatch(of: #/pRTLPCB\((\d+),(\[.*\])\);/#), let number = Int(match.1) {
                guard case .array(let messages)? = try? JSONParser.parse(String(match.2)) else {
                    failure = "no JSON: \(line)"
                    continue
                }
                responses[number] = messages
                handleResponses()
            } else if let match = line.wholeMatch(of: #/pLPCommand\('close'(?:,(\d+))?\);/#) {
                if let number = match.1.flatMap({ Int($0) }), number > 0 {
                    closesAfter = number
                    if number < nextResponse { closePolls() }
                } else {
                    closePolls()
                }
            }
        }
        poll()
    }

    private mutating func handleResponses() {
        while !pollsAreClosed, let messages = responses.removeValue(forKey: nextResponse) {
            for message in messages { handle(message) }
            let number = nextResponse
            nextResponse += 1
            if number == closesAfter { return closePolls() }
        }
    }

    private mutating func closePolls() {
        guard !pollsAreClosed else { return }
        pollsAreClosed = true
        if !receivesOnSocket { isClosed = true }
    }

    private mutating func handle(_ message: JSONValue) {
        if message["t"] == "c" {
            guard message["d"]?["t"] == "n" else { return }
            if !sendsOnSocket { failure = "the polls end without an acknowledgement" }
            receivesOnSocket = true
            hasSwitched = true
            received += pending
            pending = []
        } else if let value = message["d"]?.integer {
            received.append(Int(value))
        }
    }

    /// Takes a frame of the socket.
    mutating func take(_ frame: [UInt8]) {
        if frame.isEmpty || frame == [0x30] { failure = "a frame that clients never recover from" }
        if assembled.missing > 0 {
            assembled.text += frame
            assembled.missing -= 1
            if assembled.missing > 0 { return }
        } else if frame.count <= 6, let count = Int(String(decoding: frame, as: UTF8.self)) {
            assembled = (count, [])
            return
        } else {
            assembled.text = frame
        }
        guard let message = try? JSONParser.parse(assembled.text) else {
            failure = "no JSON on the socket"
            return
        }
        assembled.text = []
        if receivesOnSocket { return handle(message) }
        guard message["t"] == "c" else {
            if let value = message["d"]?.integer { pending.append(Int(value)) }
            return
        }
        // The offer, and one pong more, are enough here.
        switch message["d"]?["t"] {
        case "a": frames.append(Array(#"{"t":"c","d":{"t":"p","d":{}}}"#.utf8))
        case "o":
            frames.append(Array(#"{"t":"c","d":{"t":"a","d":{}}}"#.utf8))
            send(Array(#"{"t":"c","d":{"t":"n","d":{}}}"#.utf8))
            sendsOnSocket = true
            poll()
        default: break
        }
    }
}
