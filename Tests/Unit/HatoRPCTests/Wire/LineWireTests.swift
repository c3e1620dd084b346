import HatoModel
import HatoTesting
import NIOCore
import NIOPosix
import Testing

@testable import HatoRPC

/// What a wire of lines has delivered.
private enum LineEvent: Hashable, Sendable {
    case opened
    case line(String)
    case ended(RPCWireEnd)
}

private final class LineLog: RPCLineWireDelegate {
    let kept = Shared<[LineEvent]>([])

    func lineWireOpened(_ wire: RPCLineWire) { kept.change { $0.append(.opened) } }

    func lineWire(_ wire: RPCLineWire, received line: ByteBuffer) {
        kept.change { $0.append(.line(String(buffer: line))) }
    }

    func lineWireDelivered(_ wire: RPCLineWire) {}

    func lineWireBecameWritable(_ wire: RPCLineWire) {}

    func lineWireEnded(_ wire: RPCLineWire, _ end: RPCWireEnd) { kept.change { $0.append(.ended(end)) } }
}

/// A wire of lines on an event loop of its own, as a test on another thread sees it.
private struct LoopLineWire: Sendable {
    let loop: any EventLoop
    let kept: Shared<[LineEvent]>
    private let wire: NIOLoopBound<RPCLineWire>

    init(_ port: Int, opening: String = "session.forward", _ params: String) async throws {
        let connector = try RPCWireConnector(RPCWireConfiguration(host: "127.0.0.1", port: port))
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        self.loop = loop
        (kept, wire) = try await loop.submit {
            let log = LineLog()
            let wire = connector.connectLines(on: loop, opening: opening, params: Array(params.utf8), log)
            return (log.kept, NIOLoopBound(wire, eventLoop: loop))
        }.get()
    }

    var events: [LineEvent] { kept.current }

    var lines: [String] { events.compactMap { if case .line(let line) = $0 { line } else { nil } } }

    var end: RPCWireEnd? { if case .ended(let end)? = events.last { end } else { nil } }

    /// Calls the wire on its loop.
    func call<Result: Sendable>(_ body: @escaping @Sendable (RPCLineWire) -> Result) async throws -> Result {
        try await loop.submit { body(wire.value) }.get()
    }

    func send(_ texts: String...) async throws {
        try await call { wire in for text in texts { wire.send(Array(text.utf8).span) } }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct LineWireTests {
    private static let declaration = #"{"auth":"gateway","from":"203.0.113.7","clientLines":true}"#

    @Test func linesAndResponsesPassAsTheyAre() async throws {
        let service = try await TestService()
        let wire = try await LoopLineWire(service.port, Self.declaration)
        // Sent before the wire is open.
        try await wire.send(
            #"{"jsonrpc":"2.0","id":"a","method":"check.echo","params":{"value":1}}"#, "nonsense", "  ",
            "{\"jsonrpc\":\"2.0\",\r\n\"id\":1.50,\n\"method\":\"check.echo\"}",
            #"{"jsonrpc":"2.0","id":2,"method":"check.client"}"#)
        try await eventually("all came") { wire.lines.count == 4 }
        #expect(wire.events.first == .opened)
        #expect(wire.lines[0] == #"{"jsonrpc":"2.0","id":"a","result":{"value":1}}"#)
        #expect(wire.lines[1].contains("-32700") && wire.lines[1].contains(#""id":null"#))
        #expect(wire.lines[2].hasPrefix(#"{"jsonrpc":"2.0","id":1.50,"#))
        #expect(wire.lines[3].contains("203.0.113.7"))
        try await wire.call { $0.close() }
        try await eventually("it ended") { wire.end == .closed }
        await service.stop()
    }

    /// A text with a line end is one line: else it would bring a request of its own.
    @Test func aTextIsOneLine() async throws {
        let service = try await TestService()
        let wire = try await LoopLineWire(service.port, Self.declaration)
        let echo = #"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"#
        try await wire.send("\(echo)\n\(echo)", echo)
        try await eventually("both came") { wire.lines.count == 2 }
        #expect(wire.lines[0].contains("-32700") && wire.lines[1].contains("result"))
        try await wire.call { $0.close() }
        await service.stop()
    }

    /// JSON has no line end inside of a string, whatever stands before it.
    @Test func aLineEndInAStringIsNoJSON() {
        let rows = [
            ("{\n\"a\":\r\n1}", "{ \"a\":  1}"), ("[\"a\nb\",\n1]", "[\"a\u{1}b\", 1]"),
            ("\"a\\\"\r\"", "\"a\\\"\u{1}\""),
            ("\"a\\\\\"\n", "\"a\\\\\" "), ("\"\\\n\"", "\"\\\u{1}\""), ("\"a\"", "\"a\""), ("", ""),
        ]
        for (text, line) in rows {
            var output = ByteBuffer(string: "before")
            RequestLine.writeUnread(Array(text.utf8).span, into: &output)
            #expect(String(buffer: output) == "before" + line, "\(text)")
        }
    }

    @Test func aServiceThatRefusesTheOpeningGetsNothingElse() async throws {
        let service = try await TestService()
        for (opening, params) in [
            ("session.forward", #"{"auth":"user-anna","from":"203.0.113.7","clientLines":true}"#),
            ("session.forward", #"{"auth":"gateway","from":"203.0.113.7","clientlines":true}"#), ("no.such", "{}"),
        ] {
            let wire = try await LoopLineWire(service.port, opening: opening, params)
            try await wire.send(#"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"#)
            try await eventually("it ended") { wire.end != nil }
            guard case .refused? = wire.end else { return #expect(Bool(false), "\(wire.events)") }
            #expect(wire.events.count == 1)
        }
        await service.stop()
    }

    /// The service responds to what it has, and closes.
    @Test func whatWasSentHasItsResponsesBeforeTheEnd() async throws {
        let service = try await TestService()
        let wire = try await LoopLineWire(service.port, Self.declaration)
        try await eventually("it is open") { wire.events == [.opened] }
        try await wire.call { wire in
            for number in 0..<100 {
                let text = "{\"jsonrpc\":\"2.0\",\"id\":\(number),\"method\":\"check.echo\"}"
                wire.send(Array(text.utf8).span)
            }
            wire.finish()
        }
        try await eventually("it ended") { wire.end != nil }
        #expect(wire.lines.count == 100 && wire.end == .lost(nil))
        let early = try await LoopLineWire(service.port, Self.declaration)
        // Open by now, or not.
        try await early.call { $0.finish() }
        try await eventually("it ended") { early.end != nil }
        #expect(early.lines.isEmpty)
        await service.stop()
    }
}
