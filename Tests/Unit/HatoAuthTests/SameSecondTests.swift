import HatoIdentity
import HatoModel
import Testing

@testable import HatoAuth

/// What ends ID tokens also ends those of the same second.
struct SameSecondTests {
    private func expectEnded(_ bench: AuthBench, _ session: Auth.Session) async throws {
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        let signedIn = try await bench.signIn()
        #expect(try await bench.account(signedIn).uid == session.uid)
        let refreshed = try await bench.refresh(signedIn.refreshToken)
        #expect(try await bench.account(refreshed).uid == session.uid)
    }

    @Test func aNewPasswordOrEmailEndsThem() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp("sazae@example.com")
        var update = Auth.Account.Update()
        update.password = "a better one than before"
        let first = try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        let own = CallOrigin(caller: try await bench.service.authenticator.authenticate(first.idToken))
        #expect(try await bench.service.accounts.account(own).uid == session.uid)
        (update.email, update.password) = ("masuo@example.com", AuthBench.password)
        _ = try await bench.service.accounts.updateAccount(update, own)
        #expect(await wireError { try await bench.service.accounts.account(own) }?.reason == "TOKEN_EXPIRED")
        try await expectEnded(bench, session)
    }

    @Test func revokingEndsThem() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        for _ in 0..<2 { _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: session.uid)) }
        try await expectEnded(bench, session)
    }

    @Test func enablingEndsThem() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var update = Auth.Users.Update(uid: session.uid)
        for isDisabled in [true, false] {
            update.disabled = isDisabled
            _ = try await bench.service.users.updateUser(update)
        }
        try await expectEnded(bench, session)
    }

    @Test func anImportThatChangesTheEmailEndsThem() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp("sazae@example.com")
        let moving = MovingMethods(service: bench.service)
        var row = try #require(try await moving.exportUsers(Auth.Users.Export()).users.first)
        row.email = "masuo@example.com"
        var request = Auth.Users.Import(users: [row])
        request.allowOverwrite = true
        #expect(try await moving.importUsers(request).imported == 1)
        try await expectEnded(bench, session)
    }

    @Test func manyChangesInASecondIssueNoTokenThatOthersRefuse() async throws {
        let bench = try await AuthBench.open()
        var token = try await bench.signUp().idToken
        func change(_ index: Int) async throws {
            let origin = CallOrigin(caller: try await bench.service.authenticator.authenticate(token))
            let update = Auth.Account.Update(password: "isono-and-namihei-\(index)")
            token = try await bench.service.accounts.updateAccount(update, origin).idToken
        }
        var refused: RPCError?
        for index in 0..<10 where refused == nil {
            refused = await wireError { try await change(index) }
            let issuedAt = try #require(try await bench.claims(token)["iat"]?.number)
            #expect(issuedAt <= Double(bench.now / 1000 + 5), "the leeway of other services")
        }
        #expect(refused?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" && refused?.retryAfter == .seconds(1))
        bench.pass(seconds: 1)
        try await change(10)
    }

    @Test func theFirstTokenOfAnAccountIsOfNow() async throws {
        let bench = try await AuthBench.open()
        var create = Auth.Users.Create()
        (create.email, create.password) = ("masuo@example.com", AuthBench.password)
        let created = try await bench.service.users.createUser(create)
        #expect(created.validSince == bench.now / 1000)
        for session in [try await bench.signIn(), try await bench.signUp("sazae@example.com")] {
            #expect(try await bench.claims(session.idToken)["iat"] == .number(Double(bench.now / 1000)))
        }
    }
}
