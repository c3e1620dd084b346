import Foundation
import HatoModel
import HatoTesting
import TestCertificates
import Testing

/// The codes and reasons with which the built gateway closes sockets of Firebase's SDKs (RFC 6455 §7.4).
@Suite(.timeLimit(.minutes(10)))
struct SocketCloses {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    private typealias Frame = (opcode: UInt8, payload: [UInt8])

    private static func text(_ text: String) -> [Frame] { [(0x81, Array(text.utf8))] }

    /// What a client sends behind the first message of the server, and the code that it gets.
    private static let rows: [(frames: [Frame], code: Int)] = [
        // No JSON, no number, and numbers of chunks that are none.
        (text("junk"), 1008), (text(""), 1008), (text("-1"), 1008), (text("1.5"), 1008),
        (text(#"{"t":"d","d":{}}"#), 1008), (text(#"{"t":"d","d":{"r":"x","a":"s"}}"#), 1008),
        // No UTF-8, binary, opcodes and bits that mean nothing.
        ([(0x81, [0x22, 0xFF, 0x22])], 1007), ([(0x82, [0x7B, 0x7D])], 1003), ([(0x83, [])], 1002),
        ([(0x8B, [])], 1002), ([(0xC1, [0x7B, 0x7D])], 1002), ([(0xA1, [0x7B, 0x7D])], 1002),
        // A continuation of nothing, and a text inside of another one.
        ([(0x80, [0x7B])], 1002), ([(0x01, [0x7B]), (0x81, [0x7D])], 1002),
        // Close frames.
        ([(0x88, [])], 1000), ([(0x88, [0x03, 0xE9])], 1001), ([(0x88, [0x0F, 0xA1])], 4001), ([(0x88, [0x03])], 1002),
        ([(0x88, [0x03, 0xED])], 1002), ([(0x88, [0x03, 0xE8, 0xFF])], 1007),
    ]

    @Test func eachHasItsCodeAndAReason() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            for row in Self.rows {
                let socket = try FirebaseSocket(stack)
                #expect(try socket.message()?["d"]?["t"] == "h")
                for frame in row.frames { try socket.send(frame.payload, opcode: frame.opcode) }
                let end = try socket.end()
                #expect(end.code == row.code, "\(row)")
                #expect(end.reason.isEmpty == (row.frames.last?.opcode == 0x88 && ![1002, 1007].contains(row.code)))
            }
        }
    }

    /// What follows takes nothing from the code.
    @Test func aFrameThatIsTooLongIsRefusedByItsHead() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            for part in [0, 1 << 20] {
                let socket = try FirebaseSocket(stack)
                try socket.send(frameOf: 17 << 20, Array(repeating: 0x20, count: part))
                let end = try socket.end()
                #expect(end.code == 1009 && end.reason == "the frame has more bytes than a message may have")
            }
        }
    }

    /// Over TLS the connection stays until its client has closed it, too.
    @Test(arguments: [false, true])
    func whatStandsBehindACloseFrameIsNotTaken(isTLS: Bool) async throws {
        let certificates = try TestCertificates()
        let files = [
            "--tls-certificate", certificates.path("server.pem"), "--tls-key", certificates.path("server.key"),
        ]
        try await GatewayStack.run(rules: Self.rules, isTLS ? files : []) { stack in
            let gateway = stack.gateway.address
            let tunnel = isTLS ? try Blocking.wait { try await TLSTunnel(to: gateway, certificates) } : nil
            let address = tunnel?.address ?? gateway
            let socket = try FirebaseSocket(on: try PlainSocket(address))
            #expect(try socket.message()?["d"]?["t"] == "h")
            func put(_ key: String) -> (payload: [UInt8], opcode: UInt8) {
                (Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/\#(key)","d":1}}}"#.utf8), 0x81)
            }
            let close: (payload: [UInt8], opcode: UInt8) = ([0x03, 0xE8], 0x88)
            try socket.send(together: [put("first"), close, put("late"), ([0x7B], 0x82), close])
            #expect(try socket.end().code == 1000)
            #expect(socket.isClosedLater())
            let reader = try PlainSocket(address)
            let end = ContinuousClock.now + .seconds(120)
            while try HTTPResponseText.of("GET /first.json", on: reader).body != "1" {
                guard ContinuousClock.now < end else { throw DeadlineExceeded("the first write") }
            }
            // They would have gone the same way.
            #expect(try HTTPResponseText.of("GET /late.json", on: reader).body == "null")
            if let tunnel { try Blocking.wait { try await tunnel.stop() } }
        }
    }

    @Test func anUnknownDatabaseAndAnOutageSayIt() async throws {
        try await GatewayStack.run(rules: Self.rules) { stack in
            let unknown = try FirebaseSocket(stack, target: "/.ws?v=5&ns=no-such")
            #expect(try unknown.message()?["d"]?["t"] == "s")
            #expect(try unknown.end().code == 1008)
            let socket = try FirebaseSocket(stack)
            #expect(try socket.message()?["d"]?["t"] == "h")
            stack.messages.send(SIGKILL)
            let end = try socket.end()
            #expect(end.code == 1013 && end.reason.hasPrefix("unavailable:"))
        }
    }
}
