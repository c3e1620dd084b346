import HatoIdentity
import HatoModel
import HatoRPC
import HatoTesting
import Testing

@testable import HatoAuth

/// A signing key that others know, and what they sign with it.
@Suite(.timeLimit(.minutes(5)))
struct LeakedKeyTests {
    private static let password = "a better one than before"
    private static let lastSecond = 253_402_300_799.0

    /// A token of the current key that ends in the year 9999 and names neither a session nor a sign-in.
    private func forged(
        _ bench: AuthBench, _ uid: String, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "iss": .string(IdentityConfiguration.issuer(of: "hato")), "aud": "hato", "sub": .string(uid),
            "iat": .number(Double(bench.now / 1000)), "exp": .number(Self.lastSecond),
        ]
        change(&claims)
        return try #require(bench.service.ring.current.key).sign(claims)
    }

    private func origin(_ bench: AuthBench, _ idToken: String) async throws -> CallOrigin {
        CallOrigin(caller: try await bench.service.authenticator.authenticate(idToken))
    }

    @Test func aConnectionEndsWithTheKeyOfItsToken() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let server = try await AuthServer.start(bench.service, RPCServerConfiguration(service: "auth", version: "0"))
        func client(_ idToken: String) -> RPCClient {
            RPCClient(RPCClientConfiguration(host: server.host, port: server.port).with(credential: idToken))
        }
        let (thief, owner) = (client(try forged(bench, session.uid)), client(session.idToken))
        for client in [thief, owner] { #expect(try await client.call(Auth.Account.Get()).uid == session.uid) }
        _ = try await bench.service.keys.revokeKey(bench.service.ring.current.kid)
        var update = Auth.Account.Update()
        update.email = "thief@example.com"
        update.password = Self.password
        for client in [thief, owner] {
            let change = await wireError { [update] in try await client.call(update) }
            #expect(change?.code == .unauthenticated)
            #expect(await wireError { try await client.call(Auth.Account.Get()) }?.code == .unauthenticated)
        }
        #expect(try await bench.signIn().uid == session.uid)
        for client in [thief, owner] { await client.close() }
        await server.shutdown(grace: .seconds(10))
    }

    @Test func aTokenWithoutSessionOrSignInChangesNoCredential() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let own = try await bench.claims(session.idToken)
        let (sid, now) = (own["sid"], Double(bench.now / 1000))
        var update = Auth.Account.Update()
        update.password = Self.password
        for (sid, time, reason) in [
            (nil, nil, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"), (sid, nil, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"),
            (sid, now + 3600, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"), (nil, now, "TOKEN_EXPIRED"),
        ] as [(JSONValue?, Double?, String)] {
            let token = try forged(bench, session.uid) { claims in
                claims["sid"] = sid
                claims["auth_time"] = time.map { .number($0) }
            }
            let origin = try await origin(bench, token)
            let change = await wireError { [update] in try await bench.service.accounts.updateAccount(update, origin) }
            #expect(change?.reason == reason)
            let deletion = await wireError { try await bench.service.accounts.deleteAccount(origin) }
            #expect(deletion?.reason == reason)
        }
        #expect(try await bench.signIn().uid == session.uid)
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(try await bench.signIn()))
    }

    @Test func aTokenWithoutSessionTakesNoAnonymousAccount() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        let token = try forged(bench, session.uid)
        var request = Auth.SignUp(email: "thief@example.com", password: Self.password)
        request.idToken = token
        let upgrade = await wireError { [request] in try await bench.service.signUps.signUp(request, CallOrigin()) }
        #expect(upgrade?.reason == "TOKEN_EXPIRED")
        var update = Auth.Account.Update()
        (update.email, update.password) = ("thief@example.com", Self.password)
        let origin = try await origin(bench, token)
        let change = await wireError { [update] in try await bench.service.accounts.updateAccount(update, origin) }
        #expect(change?.reason == "TOKEN_EXPIRED")
        #expect(try await bench.upgrade(session, "masuo@example.com").uid == session.uid)
    }
}
