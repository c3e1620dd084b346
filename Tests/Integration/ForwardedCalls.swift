import Foundation
import HatoModel
import Testing

/// A gateway's key in the built services (protocol §2): each lets its connections speak for others, and none lets them
/// do more.
@Suite(.timeLimit(.minutes(10)))
struct ForwardedCalls {
    private static let gatewayKey = "gateway-key-of-the-tests-0123456789-0123456789"
    private static let otherKey = "other-key-of-the-tests-0123456789-0123456789"

    private static func keys(in folder: TemporaryFolder) throws -> [String] {
        let path = try folder.write(
            "callers",
            """
            - {name: gateway, key: \(gatewayKey), forward: true}
            - {name: other, key: \(otherKey), methods: [service.metrics]}
            """)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return ["--service-keys-file", path]
    }

    private static func response(_ socket: PlainSocket, _ method: String, _ params: JSONObject) throws -> JSONValue {
        try socket.send(method, params)
        return try JSONParser.parse(socket.line())
    }

    @Test func everyServiceLetsAGatewayForward() async throws {
        let folder = try TemporaryFolder()
        for (name, peers) in [
            ("auth", []), ("messages", ["--auth", "127.0.0.1:1"]),
            ("notifier", ["--auth", "127.0.0.1:1", "--messages", "127.0.0.1:1"]),
        ] {
            let arguments = ["--data", "\(folder.path)/\(name)-data"] + peers
            let service = try await ServingProgram("hato-\(name)", arguments + Self.keys(in: folder), in: folder)
            let socket = try PlainSocket(service.address)
            let early = try Self.response(socket, "service.health", ["from": "203.0.113.7"])
            #expect(early["error"]?["code"] == -32002, "\(name)")
            let other = try Self.response(socket, "session.forward", ["auth": .string(Self.otherKey)])
            #expect(other["error"]?["code"] == -32002, "\(name)")
            try socket.call("session.forward", ["auth": .string(Self.gatewayKey), "from": "203.0.113.7"])
            try socket.call("service.health", ["from": "2001:db8::7"])
            let wrong = try Self.response(socket, "service.health", ["from": "203.0.113.7:80"])
            #expect(wrong["error"]?["data"]?["reason"] == "invalid_address", "\(name)")
            #expect(try Self.response(socket, "service.metrics", [:])["error"]?["code"] == -32001, "\(name)")
            let own = try Self.response(socket, "service.metrics", ["auth": .string(Self.gatewayKey)])
            #expect(own["error"]?["code"] == -32002, "\(name)")
            try socket.call("session.forward", ["auth": .string(ServingProgram.administratorKey)])
            #expect(try Self.response(socket, "service.metrics", [:])["error"]?["code"] == -32001, "\(name)")
            socket.end()
            await service.stop()
            #expect(!service.log.contains(Self.gatewayKey))
        }
    }

    /// Of another machine, as behind a gateway: `ServingProgram` leaves loopback unlimited.
    @Test func attemptsBehindAGatewayAreLimitedByAddress() async throws {
        let folder = try TemporaryFolder()
        let arguments = ["--data", "\(folder.path)/data", "--scrypt-log-n", "4", "--sign-ins-per-address-burst", "3"]
        let auth = try await ServingProgram("hato-auth", arguments + Self.keys(in: folder), in: folder)
        let socket = try PlainSocket(auth.address)
        try socket.call("session.forward", ["auth": .string(Self.gatewayKey)])
        func reason(from address: String) throws -> String? {
            try Self.response(
                socket, "auth.signIn",
                ["email": "masuo@example.com", "password": "wrong-wrong-wrong", "from": .string(address)])["error"]?[
                    "data"]?["reason"]?.string
        }
        for _ in 0..<3 { #expect(try reason(from: "203.0.113.7") == "INVALID_LOGIN_CREDENTIALS") }
        #expect(try reason(from: "203.0.113.7") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(try reason(from: "203.0.113.8") == "INVALID_LOGIN_CREDENTIALS")
        socket.end()
        await auth.stop()
    }
}
