import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Tokens that end by their own `exp`, over the built messages and gateway (spec realtime-database §7.5, §8.4).
@Suite(.timeLimit(.minutes(10)))
struct EndingTokens {
    private static let rules: JSONValue = [
        "rules": ["open": [".read": true, ".write": true], "signed": [".read": "auth != null"]]
    ]

    private static func run(_ body: @Sendable @escaping (ServingProgram, TokenIssuer) throws -> Void) async throws {
        let (issuer, folder) = (try await TokenIssuer(), try TemporaryFolder())
        let messages = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/messages", "--auth", issuer.address], in: folder)
        let gateway = try await ServingProgram(
            "hato-gateway", ["--messages", messages.address, "--keep-alive-ms", "3600000"], in: folder)
        let client = try messages.client()
        _ = try await client.call(
            method: "messages.rules.set", params: ["rules": .string(EncodedJSON(rules).text)])
        await client.close()
        let result: Result<Void, any Error>
        do {
            result = .success(try await Blocking.run { try body(gateway, issuer) })
        } catch { result = .failure(error) }
        for program in [gateway, messages] { await program.stop() }
        await issuer.stop()
        try result.get()
    }

    /// Calls `open` with tokens that live longer and longer, until it returns something: in the life of a token.
    private static func first<Opened>(_ open: (_ seconds: Int) throws -> Opened?) throws -> Opened {
        var seconds = 2
        while true {
            if let opened = try open(seconds) { return opened }
            seconds *= 2
        }
    }

    private static let target = "/.ws?v=5&ns=hato"
    private static let revoked: JSONValue = [
        "t": "d", "d": ["a": "ac", "b": ["s": "expired_token", "d": "Auth token is expired."]],
    ]

    /// A signed-in socket that listens at these paths; nil: its token has ended before.
    private static func listener(
        _ gateway: ServingProgram, _ token: String, at paths: [String]
    ) throws -> FirebaseSocket? {
        let socket = try FirebaseSocket(gateway, target: target)
        _ = try socket.message()
        try socket.request(1, "auth", ["cred": .string(token)])
        guard try socket.response(to: 1)?["s"] == "ok" else { return nil }
        for (index, path) in paths.enumerated() {
            try socket.request(index + 2, "q", ["p": .string(path), "h": ""])
            guard try socket.response(to: index + 2)?["s"] == "ok" else { return nil }
        }
        return socket
    }

    /// No listen gets a `c`, which would end it in the app: the client comes back with another token.
    @Test(arguments: [[], ["/signed"], ["/signed", "/signed/a", "/open"]])
    func theEndOfATokenIsOnePushOfASocket(paths: [String]) async throws {
        try await Self.run { gateway, issuer in
            let (socket, token) = try Self.first { seconds in
                let token = try issuer.token(of: "tara", seconds: seconds)
                return try Self.listener(gateway, token.text, at: paths).map { ($0, token) }
            }
            #expect(try socket.message() == Self.revoked)
            #expect(Date.now.timeIntervalSince1970 > token.end - 0.5)
            // Others go on, and nothing of it reaches a client without identity.
            let writer = try FirebaseSocket(gateway, target: Self.target)
            _ = try writer.message()
            try writer.request(1, "p", ["p": "/open", "d": 1])
            #expect(try writer.response(to: 1)?["s"] == "ok")
            try socket.request(10, "g", ["p": "/open", "q": [:]])
            #expect(try socket.message() == nil)
            try writer.request(2, "auth", ["cred": .string(token.text)])
            #expect(try writer.response(to: 2) == ["s": "expired_token", "d": "Auth token is expired."])
        }
    }

    @Test func theEndOfATokenIsTheLastEventOfAStream() async throws {
        try await Self.run { gateway, issuer in
            let (stream, token) = try Self.first { seconds in
                let token = try issuer.token(of: "tara", seconds: seconds)
                let stream = try PlainSocket(gateway.address)
                let request = "GET /signed.json?auth=\(token.text)"
                try HTTPResponseText.request(request, ["Accept: text/event-stream"], on: stream)
                return try HTTPResponseText(headOf: stream).status == 200 ? (stream, token) : nil
            }
            var lines: [String] = []
            do {
                while true { lines.append(String(decoding: try stream.line(), as: UTF8.self)) }
            } catch is ConnectionEnded {}
            let events = lines.filter { $0.hasPrefix("event: ") || $0.hasPrefix("data: ") }
            #expect(Date.now.timeIntervalSince1970 > token.end - 0.5)
            #expect(
                events == [
                    "event: put", #"data: {"path":"/","data":null}"#, "event: auth_revoked",
                    "data: credential is no longer valid",
                ])
            let late = try HTTPResponseText.of(
                "GET /signed.json?auth=\(token.text)", on: try PlainSocket(gateway.address))
            #expect(late.status == 401 && late.json == ["error": "Auth token is expired"])
        }
    }
}
