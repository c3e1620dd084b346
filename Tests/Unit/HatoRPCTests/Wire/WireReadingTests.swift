import HatoModel
import Testing

@testable import HatoRPC

/// What a wire delivers of the bytes that come, and what it refuses.
@Suite struct WireReadingTests {
    private static let refused = RPCError(received: .notFound, message: "No", data: ["reason": "x", "n": 1])

    /// Lines with every kind of message, requests 1 to 4 of which have been sent.
    private static let session =
        [
            #"{"jsonrpc":"2.0","id":1,"result":{"a":[1,{"b":"}]\"\\"}],"鳩":null}}"#, "", " \t",
            #"{"jsonrpc":"2.0","method":"m.event","params":{"subscription":"s1","version":7,"events":[{"path":"/"}]}}"#,
            #" { "result" : [ ] , "id" : 3 } "# + "\r",
            #"{"error":{"code":-32003,"message":"No","data":{"reason":"x","n":1}},"id":2}"#,
            #"{"params":{"n":"\u00e9","subscription":"s\u0032"},"method":"m.cancelled"}"#,
            #"{"x":{"id":9},"id":4,"result":"\ud83d\ude00","y":[[]]}"#,
        ].joined(separator: "\n") + "\n"

    private static let messages: [WireEvent] = [
        .result(1, #"{"a":[1,{"b":"}]\"\\"}],"鳩":null}"#),
        .notification("m.event", "s1", [#""version":7"#, #""events":[{"path":"/"}]"#]),
        .result(3, "[ ]"),
        .error(2, refused, #"{"code":-32003,"message":"No","data":{"reason":"x","n":1}}"#),
        .notification("m.cancelled", "s2", [#""n":"\u00e9""#]),
        .result(4, #""\ud83d\ude00""#),
    ]

    private func peer(requests: Int = 4, _ change: (inout RPCWireConfiguration) -> Void = { _ in }) throws
        -> EmbeddedWire
    {
        let peer = try EmbeddedWire(change)
        for _ in 0..<requests { _ = peer.wire.send("check.echo") }
        peer.run()
        return peer
    }

    @Test func messagesComeInTheirOrderWhereverTheBytesAreCut() throws {
        let bytes = Array(Self.session.utf8)
        for place in 0...bytes.count {
            let peer = try peer()
            try peer.receive(Array(bytes[..<place]))
            try peer.receive(Array(bytes[place...]))
            #expect(peer.log.messages == Self.messages, "cut at \(place)")
            #expect(peer.wire.requestsInFlight == 0)
        }
    }

    @Test(arguments: [1, 2, 3, 7, 64]) func messagesComeInTheirOrderByAFewBytes(_ count: Int) throws {
        let peer = try peer()
        try peer.receive(Array(Self.session.utf8), by: count)
        #expect(peer.log.messages == Self.messages)
    }

    @Test func whatCameIsFollowedByTheMomentToPassItOn() throws {
        let peer = try peer()
        try peer.receive(Self.session)
        #expect(peer.log.events == [.connected] + Self.messages + [.delivered])
        try peer.receive("{")
        #expect(peer.log.events.count == Self.messages.count + 2)
    }

    /// Lines that are no message of the protocol, and what the end says of them. Request 1 waits for its response.
    private static let lies: [(line: String, words: String)] = [
        ("x", "what is no JSON"), ("1", "what is no JSON"), ("[]", "what is no JSON"), ("null", "what is no JSON"),
        (#"{"id":1,"result":1"#, "what is no JSON"), (#"{"id":1,"result":1}}"#, "what is no JSON"),
        (#"{"id":1,"result":01}"#, "what is no JSON"), (#"{"id":1,"result":"\x"}"#, "what is no JSON"),
        (#"{"id":1,"result":[1}}"#, "what is no JSON"), (#"{"id":1,"id":1,"result":1}"#, "twice"),
        (#"{"id":1,"result":1,"result":2}"#, "twice"), (#"{"method":1,"params":{}}"#, "what is no JSON"),
        (#"{"method":"a","params":{"subscription":"s","subscription":"t"}}"#, "twice"),
        ("{}", "neither a response nor a notification"), (#"{"id":1}"#, "neither result nor error"),
        (#"{"id":1,"result":1,"error":{"code":1}}"#, "both result and error"), (#"{"result":1}"#, "without an id"),
        (#"{"error":{"code":1}}"#, "without an id"), (#"{"id":2,"result":1}"#, "waits for one (2)"),
        (#"{"id":0,"result":1}"#, "waits for one (0)"),
        (#"{"id":99999999999999999999,"result":1}"#, "an id that no request has"),
        (#"{"id":"1","result":1}"#, "an id that no request has"), (#"{"id":1.0,"result":1}"#, "an id that no request"),
        (#"{"id":-1,"result":1}"#, "an id that no request"), (#"{"id":[1],"result":1}"#, "an id that no request has"),
        (#"{"id":null,"result":1}"#, "without an id"), (#"{"id":null}"#, "without an id"),
        (#"{"id":null,"method":"a"}"#, "without an id"), (#"{"id":1,"method":"a","result":1}"#, "a request"),
        (#"{"id":1,"error":{"message":"x"}}"#, "without a code"), (#"{"id":1,"error":"x"}"#, "without a code"),
        (#"{"id":1,"error":null}"#, "without a code"), (#"{"method":"a"}"#, "without a subscription"),
        (#"{"method":"a","params":[]}"#, "without a subscription"),
        (#"{"method":"a","params":{"subscription":1}}"#, "without a subscription"),
        (#"{"id":1,"result":[[[[[[[[1]]]]]]]]}"#, "nested deeper"),
        (#"{"id":1,"error":{"code":1,"data":{"a":{},"a":{}}}}"#, "twice"),
        (#"{\#((0..<65).map { "\"m\($0)\":1" }.joined(separator: ","))}"#, "what is no JSON"),
        (
            #"{"method":"a","params":{"subscription":"s",\#((0..<1_024).map { "\"m\($0)\":1" }.joined(separator: ","))}}"#,
            "what is no JSON"
        ),
    ]

    @Test func whatTheProtocolDoesNotHaveEndsTheWire() throws {
        for (line, words) in Self.lies {
            let peer = try peer(requests: 1) { $0.nestingMax = 8 }
            try peer.receive(#"{"method":"a","params":{"subscription":"s"}}"# + "\n\(line)\n" + Self.session)
            let events = peer.log.events
            #expect(events.dropLast() == [.connected, .notification("a", "s", [])], "\(line)")
            guard case .ended(.protocolError(let problem), [1])? = events.last else {
                Issue.record("\(line): \(events)")
                continue
            }
            #expect(problem.contains(words), "\(line): \(problem)")
            #expect(!peer.isOpen && peer.wire.send("check.echo") == nil)
        }
    }

    @Test func textThatIsNoUTF8EndsTheWire() throws {
        let peer = try peer()
        try peer.receive(Array(#"{"id":1,"result":""#.utf8) + [0xFF] + Array("\"}\n".utf8))
        #expect(peer.log.end == .protocolError("what is no JSON: bytes that are not UTF-8 (byte 18)"))
    }

    @Test func theSameResponseTwiceEndsTheWire() throws {
        let peer = try peer(requests: 2)
        let line = #"{"id":1,"result":1}"# + "\n"
        try peer.receive(line + line)
        #expect(peer.log.messages == [.result(1, "1")])
        #expect(peer.log.events.last == .ended(.protocolError("a response to no request that waits for one (1)"), [2]))
    }

    @Test func anErrorForTheWholeConnectionEndsTheWire() throws {
        let peer = try peer(requests: 2)
        let error =
            #"{"jsonrpc":"2.0","id":null,"error":{"code":-32007,"message":"Stop","data":{"reason":"stopping"}}}"#
        try peer.receive(#"{"id":1,"result":1}"# + "\n\(error)\n" + #"{"id":2,"result":1}"# + "\n")
        let expected = RPCError(received: .unavailable, message: "Stop", data: ["reason": "stopping"])
        #expect(peer.log.events == [.connected, .result(1, "1"), .ended(.refused(expected), [2])])
    }

    // MARK: Limits

    @Test(arguments: [0, 1]) func aLineMayHaveSoManyBytes(_ excess: Int) throws {
        for size in [10, 1_000, 200_000] {
            let peer = try peer(requests: 1) { $0.lineBytesMax = 20 + size - excess }
            try peer.receive(
                Array((#"{"id":1,"result":"\#(String(repeating: "x", count: size))"}"# + "\r\n").utf8), by: 64 << 10)
            let end: WireEvent = .ended(.lineTooLong(20 + size - excess), [1])
            #expect(peer.log.events.last == (excess == 0 ? .delivered : end), "\(size)")
        }
    }

    @Test func aLineWithoutAnEndIsNotHeldBeyondTheLimit() throws {
        let peer = try peer(requests: 1) { $0.lineBytesMax = 1_000_000 }
        try peer.receive([UInt8](repeating: UInt8(ascii: " "), count: 4_000_000), by: 64 << 10)
        #expect(peer.log.end == .lineTooLong(1_000_000))
        #expect(peer.unreadCount > 2_900_000)
    }

    /// The deepest line that is read, and what lies one level deeper.
    @Test(arguments: [(127, true), (128, false)]) func depthIsBounded(_ depth: Int, _ isRead: Bool) throws {
        let peer = try peer(requests: 1)
        let value = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        try peer.receive(#"{"id":1,"result":\#(value)}"# + "\n")
        #expect(peer.log.messages == (isRead ? [.result(1, value)] : []))
    }
}
