import HatoModel
import HatoTesting
import Testing

/// Requests of accounts with bodies that are too long, also where no body is read: no call is made for them.
@Suite(.timeLimit(.minutes(10)))
struct LongBodies {
    private static let length = 300_000
    private static let refusal = "Request payload size exceeds the limit: 262144 bytes."

    /// Announces a body, and sends nothing of it; or sends as much of one without an end.
    private static func response(to line: String, isChunked: Bool, _ address: String) throws -> HTTPResponseText {
        let socket = try PlainSocket(address)
        let length = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(length)"
        try socket.send(Array("\(line) HTTP/1.1\r\nHost: localhost\r\n\(length)\r\n\r\n".utf8))
        if isChunked {
            let size = String(Self.length, radix: 16)
            try socket.send(Array("\(size)\r\n\(String(repeating: " ", count: Self.length))\r\n".utf8))
        }
        let response = try HTTPResponseText(next: socket)
        #expect(socket.isClosed(), "\(line)")
        return response
    }

    /// Of a service that never responds: a call would have no response before the end of the request.
    @Test(arguments: [false, true])
    func requestsThatReadNoBodyHaveTheirResponse(isChunked: Bool) async throws {
        let (silent, folder) = (try SilentService(), try TemporaryFolder())
        let gateway = try await ServingProgram(
            "hato-gateway",
            // A test that pauses amid its body reads its response then.
            ["--messages", "127.0.0.1:1", "--auth", silent.address, "--lingering-ms-max", "60000"], in: folder)
        for line in ["GET /.well-known/jwks.json", "GET /v2/passwordPolicy?key=k", "POST /v1/accounts:signUp?key=k"] {
            let response = try await Blocking.run {
                try Self.response(to: line, isChunked: isChunked, gateway.address)
            }
            #expect(response.status == 400 && response.message == Self.refusal, "\(line)")
        }
        await gateway.stop()
    }

    @Test func theAccountsOfAnEmulatorAreDeletedByACompleteRequestOnly() async throws {
        var options = GatewayStack.Options()
        options.isEmulator = true
        try await GatewayStack.run(rules: ["rules": [:]], options) { stack in
            let (address, deletion) = (stack.gateway.address, "DELETE /emulator/v1/projects/hato/accounts")
            let client = AccountsClient(socket: try PlainSocket(address))
            let token = JSONValue.string(try client.post("signUp", [:]).text("idToken"))
            for isChunked in [false, true] {
                let refused = try Self.response(to: deletion, isChunked: isChunked, address)
                #expect(refused.status == 400 && refused.message == Self.refusal)
            }
            #expect(try client.post("lookup", ["idToken": token]).status == 200)
            #expect(try client.send(deletion, [:]).status == 200)
            #expect(try client.post("lookup", ["idToken": token]).status == 400)
        }
    }
}
