import HatoModel
import HatoTesting
import NIOSSL
import TestCertificates
import Testing

/// The built gateway with a certificate: https, wss and the services' own protocol.
@Suite(.timeLimit(.minutes(10)))
struct SecureConnections {
    private static let rules: JSONValue = ["rules": [".read": true, ".write": true]]

    private static func arguments(_ certificates: TestCertificates) -> [String] {
        ["--tls-certificate", certificates.path("server.pem"), "--tls-key", certificates.path("server.key")]
    }

    @Test(arguments: [TLSVersion.tlsv12, .tlsv13])
    func everythingIsServedOverTLS(newest: TLSVersion) async throws {
        let certificates = try TestCertificates()
        try await GatewayStack.run(rules: Self.rules, Self.arguments(certificates)) { stack in
            let gateway = stack.gateway.address
            let tunnel = try Blocking.wait { try await TLSTunnel(to: gateway, certificates, newest: newest) }
            let rest = try PlainSocket(tunnel.address)
            let body = "\"\(String(repeating: "長い", count: 50_000))\""
            #expect(try HTTPResponseText.of("PUT /a.json?print=silent", body: body, on: rest).status == 204)
            #expect(try HTTPResponseText.of("GET /a.json", on: rest).body == body)
            let firebase = try FirebaseSocket(on: try PlainSocket(tunnel.address))
            #expect(try firebase.message()?["d"]?["t"] == "h")
            try firebase.request(1, "g", ["p": "/a", "q": [:]])
            #expect(try firebase.response(to: 1)?["d"]?.string?.count == 100_000)
            let native = try FirebaseSocket(on: try PlainSocket(tunnel.address), target: "/rpc/messages")
            try native.send(#"{"jsonrpc":"2.0","id":1,"method":"service.health"}"#)
            #expect(try native.value()?["result"]?["status"] == "ready")
            try Blocking.wait { try await tunnel.stop() }
        }
    }

    /// Of TLS, and no TLS at all. Others are served meanwhile.
    @Test func oldVersionsAreRefused() async throws {
        let certificates = try TestCertificates()
        try await GatewayStack.run(rules: Self.rules, Self.arguments(certificates)) { stack in
            let gateway = stack.gateway.address
            func tunnel(_ newest: TLSVersion) throws -> TLSTunnel {
                try Blocking.wait { try await TLSTunnel(to: gateway, certificates, newest: newest) }
            }
            for newest in [TLSVersion.tlsv1, .tlsv11] {
                let tunnel = try tunnel(newest)
                let socket = try PlainSocket(tunnel.address)
                try HTTPResponseText.request("GET /a.json", on: socket)
                #expect(socket.isClosed())
                try Blocking.wait { try await tunnel.stop() }
            }
            let plain = try PlainSocket(gateway)
            try HTTPResponseText.request("GET /a.json", on: plain)
            // Before that there is an alert of TLS, and no response.
            #expect(throws: ConnectionEnded.self) { try HTTPResponseText(headOf: plain) }
            #expect(plain.isClosedLater())
            let current = try tunnel(.tlsv12)
            #expect(try HTTPResponseText.of("GET /a.json", on: PlainSocket(current.address)).status == 200)
            try Blocking.wait { try await current.stop() }
        }
    }

    @Test func filesThatCannotBeReadEndTheStart() async throws {
        let (certificates, folder) = (try TestCertificates(), try TemporaryFolder())
        for (certificate, key) in [("none.pem", "server.key"), ("server.pem", "none.key"), ("server.pem", "named.key")]
        {
            let files = ["--tls-certificate", certificates.path(certificate), "--tls-key", certificates.path(key)]
            let key = try folder.write("key", ServingProgram.administratorKey)
            try folder.run("/bin/chmod", ["600", key])
            let ended = try await Executable.run(
                "hato-gateway",
                ["serve", "--port", "0", "--messages", "127.0.0.1:1", "--outgoing-key-file", key] + files)
            #expect(ended.code != 0 && ended.text.isEmpty && ended.error.contains("tls"), "\(ended.error)")
        }
    }
}
