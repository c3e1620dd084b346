import HatoModel
import HatoRPC
import NIOCore
import Testing

/// Protocol §1, byte by byte.
@Suite(.timeLimit(.minutes(10)))
struct WireTests {
    @Test func responseHasTheIdOfItsRequest() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.ask(#"{"jsonrpc":"2.0","id":7,"method":"check.echo","params":{"value":[1,"a"]}}"#)
        #expect(response == ["jsonrpc": "2.0", "id": 7, "result": ["value": [1, "a"]]])
        await service.stop()
    }

    @Test func idsComeBackByteForByte() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for id in [
            "0", "-1", "1.50", "1e2", "123456789012345678901234567890", #""""#, #""\u0041\n""#, #""鳩🕊""#, "null",
            "-0.0", #""1""#,
        ] {
            try await peer.sendLine("{\"jsonrpc\":\"2.0\",\"id\": \(id) ,\"method\":\"check.echo\"}")
            let line = try await peer.line()
            #expect(line == "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"result\":{}}")
        }
        await service.stop()
    }

    @Test func linesArriveInSegmentsOfOneByte() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for byte
            in "\r\n\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"check.echo\",\"params\":{\"value\":\"é\"}}\r\n"
            .utf8
        {
            try await peer.send(bytes: [byte])
        }
        let response = try await peer.response()
        #expect(response["result"]?["value"] == "é")
        await service.stop()
    }

    @Test func linesOfOneSegmentGetResponsesInOrder() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let lines = (0..<3_000).map { "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"check.echo\"}\n" }
        try await peer.send(lines.joined())
        for id in 0..<3_000 {
            let response = try await peer.response()
            #expect(response["id"] == .number(Double(id)))
        }
        await service.stop()
    }

    @Test func garbageIsAParseErrorAndTheConnectionLives() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let garbage: [[UInt8]] = [
            [0xFF, 0xFE], Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".utf8) + [0xC0, 0xAF] + Array("\"}".utf8),
            Array(#""\ud800""#.utf8), [0], Array("HELLO".utf8), Array("nonsense".utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"check.echo"} x"#.utf8),
            Array(#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"check.echo"}"#.utf8),
            Array(#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"value":1e999}}"#.utf8),
            Array(repeating: UInt8(ascii: "["), count: 60_000), Array("{".utf8),
        ]
        for line in garbage {
            try await peer.send(bytes: line + [UInt8(ascii: "\n")])
            let response = try await peer.response()
            #expect(response["error"]?["code"] == -32700, "\(line.prefix(40))")
            #expect(response["id"] == .null)
        }
        let response = try await peer.call("check.echo")
        #expect(response["result"] != nil)
        await service.stop()
    }

    @Test func aHundredThousandBracketsAreAParseError() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        let response = try await peer.ask(String(repeating: "[", count: 100_000))
        #expect(response["error"]?["code"] == -32700)
        let alive = try await peer.call("check.echo")
        #expect(alive["result"] != nil)
        await service.stop()
    }

    @Test(arguments: [
        (#"{"id":1,"method":"check.echo"}"#, "1"), (#"{"jsonrpc":"1.0","id":"a","method":"check.echo"}"#, #""a""#),
        (#"{"jsonrpc":2.0,"id":1,"method":"check.echo"}"#, "1"), (#"{"jsonrpc":"2.0","id":1}"#, "1"),
        (#"{"jsonrpc":"2.0","id":1,"method":null}"#, "1"),
        (#"{"jsonrpc":"2.0","id":{},"method":"check.echo"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":true,"method":"check.echo"}"#, "null"),
        (#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":"bar"}"#, "1"),
        (#"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":null}"#, "1"), (#""text""#, "null"), ("1", "null"),
        ("null", "null"), ("{}", "null"),
    ])
    func whatIsNoRequestIsInvalid(line: String, id: String) async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.ask(line)
        #expect(response["error"]?["code"] == -32600)
        #expect(try response["id"] == JSONParser.parse(id))
        await service.stop()
    }

    @Test func paramsByPositionAreRefused() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for params in ["[null]", "[1]"] {
            let response = try await peer.call("check.echo", params)
            #expect(response["error"]?["code"] == -32602)
        }
        await service.stop()
    }

    @Test func unknownAndMissingParametersAreNamed() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let unknown = try await peer.call("check.echo", #"{"valeu":1}"#)
        #expect(unknown["error"]?["code"] == -32602)
        #expect(unknown["error"]?["data"]?["parameter"] == "valeu")
        let missing = try await peer.call("check.later", "{}")
        #expect(missing["error"]?["code"] == -32602)
        #expect(missing["error"]?["data"]?["parameter"] == "gate")
        await service.stop()
    }

    @Test func notificationsGetNoResponseNotEvenErrors() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for line in [
            #"{"jsonrpc":"2.0","method":"check.echo"}"#, #"{"jsonrpc":"2.0","method":"no.such"}"#,
            #"{"jsonrpc":"2.0","method":"check.echo","params":[1]}"#, #"{"jsonrpc":"2.0","method":"check.fail"}"#,
            #"{"jsonrpc":"2.0","method":"check.signedIn"}"#,
            #"{"jsonrpc":"2.0","method":"check.echo","params":{"x":1}}"#,
            #"{"jsonrpc":"2.0","method":"check.echo","params":{"auth":"wrong"}}"#,
            #"{"jsonrpc":"2.0","method":"check.forget"}"#,
        ] {
            try await peer.sendLine(line)
        }
        let response = try await peer.call("check.echo", id: 5)
        #expect(response["id"] == 5)
        await service.stop()
    }

    @Test func notificationsAreExecutedInOrder() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(#"{"jsonrpc":"2.0","method":"session.authenticate","params":{"auth":"user-anna"}}"#)
        let response = try await peer.call("check.who")
        #expect(response["result"]?["uid"] == "anna")
        await service.stop()
    }

    /// Nothing would be seen of them.
    @Test func readsWithoutAnIDAreNotDone() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(#"{"jsonrpc":"2.0","method":"check.read","params":{"gate":"unseen"}}"#)
        try await peer.sendLine(#"[{"jsonrpc":"2.0","method":"check.read","params":{"gate":"unseen"}}]"#)
        try await peer.sendLine(#"{"jsonrpc":"2.0","method":"check.later","params":{"gate":"write"}}"#)
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.read","params":{"gate":"seen"}}"#)
        await service.gates.arrivals(2)
        #expect(service.gates.arrived == ["write", "seen"])
        service.gates.open("write")
        service.gates.open("seen")
        #expect(try #require(try await peer.line()).contains("\"id\":1"))
        await service.stop()
    }

    @Test func innerErrorsDoNotReachThePeer() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.fail"}"#)
        let line = try #require(try await peer.line())
        #expect(line.contains("-32603"))
        #expect(!line.contains("do not tell"))
        let forgotten = try await peer.call("check.forget")
        #expect(forgotten["error"]?["code"] == -32603)
        await service.stop()
    }

    @Test func peerThatClosesItsSideStillGetsItsResponses() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"a"}}"#)
        try await peer.sendLine(#"{"jsonrpc":"2.0","id":2,"method":"check.echo"}"#)
        await service.gates.arrivals(1)
        try await peer.channel.close(mode: .output)
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        #expect(try await peer.response()["id"] == 2)
        try await peer.expectClosed()
        await service.stop()
    }
}
