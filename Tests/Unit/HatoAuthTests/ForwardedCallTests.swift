import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Testing

@testable import HatoAuth

/// Calls that a gateway forwards (protocol §2) count for the addresses of its clients.
struct ForwardedCallTests {
    private static let gatewayKey = "gateway-key-0123456789-0123456789-0123456789"
    private static let administratorKey = "administrator-key-0123456789-0123456789"

    private func with(
        _ change: (inout AuthConfiguration) -> Void = { _ in }, _ body: (RPCClient, RPCClient) async throws -> Void
    ) async throws {
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 4, r: 1, p: 1)
        configuration.serviceKeys = try ServiceKeys([
            .init(name: "gateway", key: Self.gatewayKey, methods: [], mayForward: true)
        ])
        // Without the gateway nothing of this machine is limited.
        configuration.limitsLoopback = false
        configuration.limits.signInsPerAddress = RateLimit(burst: 2, perMinute: 1)
        change(&configuration)
        let service = try await AuthService.open(
            configuration, store: MemoryStore(),
            administratorKeys: try #require(AdministratorKeys(keys: [Self.administratorKey])),
            environment: AuthEnvironment(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let server = try await AuthServer.start(service, RPCServerConfiguration(service: "auth", version: "0"))
        let plain = RPCClientConfiguration(host: server.host, port: server.port)
        let clients = (RPCClient(plain), RPCClient(plain.with(credential: Self.administratorKey)))
        _ = try await clients.0.call(method: "session.forward", params: ["auth": .string(Self.gatewayKey)])
        try await body(clients.0, clients.1)
        for client in [clients.0, clients.1] { await client.close() }
        await server.shutdown(grace: .seconds(10))
    }

    private func signIn(_ client: RPCClient, from address: String?) async -> RPCError? {
        var params: JSONObject = ["email": "masuo@example.com", "password": "wrong-wrong-wrong"]
        params["from"] = address.map { .string($0) }
        return await wireError { [params] in try await client.call(method: "auth.signIn", params: params) }
    }

    @Test func attemptsCountForEachAddressAlsoForLoopback() async throws {
        try await with { gateway, _ in
            for address in ["203.0.113.7", "127.0.0.1", "2001:db8::7"] {
                for _ in 0..<2 {
                    #expect(await signIn(gateway, from: address)?.reason == "INVALID_LOGIN_CREDENTIALS", "\(address)")
                }
                #expect(await signIn(gateway, from: address)?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "\(address)")
            }
            #expect(await signIn(gateway, from: "2001:db8::8")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "one /64")
        }
    }

    /// As in a stack for development, where an app's tests reach auth through the gateway.
    @Test func attemptsFromLoopbackCountNotWhereTheyNeedNot() async throws {
        try await with({ $0.limitsForwardedLoopback = false }) { gateway, _ in
            for _ in 0..<4 {
                #expect(await signIn(gateway, from: "127.0.0.1")?.reason == "INVALID_LOGIN_CREDENTIALS")
            }
            for _ in 0..<2 {
                #expect(await signIn(gateway, from: "203.0.113.7")?.reason == "INVALID_LOGIN_CREDENTIALS")
            }
            #expect(await signIn(gateway, from: "203.0.113.7")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    /// A gateway that forgets `from` must not be without limits.
    @Test func attemptsOfConnectionsThatForwardCountForTheSocketWithoutAnAddress() async throws {
        try await with { gateway, _ in
            for _ in 0..<2 { #expect(await signIn(gateway, from: nil)?.reason == "INVALID_LOGIN_CREDENTIALS") }
            #expect(await signIn(gateway, from: nil)?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(await signIn(gateway, from: "203.0.113.7")?.reason == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    @Test func auditNamesTheAddressOfTheClient() async throws {
        try await with { gateway, administrator in
            _ = try await gateway.call(method: "auth.signUp", params: ["from": "203.0.113.7"])
            var request = Auth.Audit.List()
            request.limit = 1
            #expect(try await administrator.call(request).entries.first?.address == "203.0.113.7")
        }
    }

    /// It is the time of the oldest entry there.
    @Test func methodWithAParameterOfThisNameKeepsIt() async throws {
        try await with { gateway, _ in
            let list = try await gateway.call(
                method: "auth.audit.list",
                params: ["auth": .string(Self.administratorKey), "from": 1_795_000_000_000, "limit": 1])
            #expect(list["entries"]?.array != nil)
        }
    }
}
