import HatoModel
import Testing

@testable import HatoAuth

/// The last way to sign in, which no owner of an account deletes.
@Suite(.timeLimit(.minutes(10)))
struct WaysInTests {
    private func update(
        _ bench: AuthBench, _ session: Auth.Session, _ change: (inout Auth.Account.Update) -> Void
    ) async throws -> Auth.Account.Update.Result {
        var request = Auth.Account.Update()
        change(&request)
        return try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
    }

    /// What is left counts as the settings are: a code is a way where it is mailed to an address that was confirmed.
    @Test func ownerDeletesThePasswordWhereAnotherWayIsLeft() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp()
        func delete(_ attributes: [Auth.AccountAttribute] = [.password]) async -> String? {
            await wireError { try await update(bench, session) { $0.deleteAttributes = attributes } }?.reason
        }
        #expect(await delete() == "LAST_SIGN_IN_METHOD", "the address may be that of another person")
        #expect(await delete([.email, .password]) == "LAST_SIGN_IN_METHOD")
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        var settings = Auth.Settings.Set()
        // A code sets a password, too, where passwords sign in.
        (settings.codeSignIn, settings.passwordSignIn) = (false, false)
        _ = try await bench.service.settings.set(settings)
        #expect(await delete() == "LAST_SIGN_IN_METHOD")
        (settings.codeSignIn, settings.passwordSignIn) = (true, true)
        _ = try await bench.service.settings.set(settings)
        let silent = try await AuthBench.open(since: bench)
        let refused = await wireError { try await update(silent, session) { $0.deleteAttributes = [.password] } }
        #expect(refused?.reason == "LAST_SIGN_IN_METHOD" && refused?.code == .failedPrecondition, "no mail is sent")
        _ = try await bench.signIn()
        let result = try await update(bench, session) { $0.deleteAttributes = [.password] }
        #expect(result.account.passwordUpdatedAt == nil && result.account.email == "masuo@example.com")
        #expect(await wireError { try await bench.signIn() } != nil)
    }

    /// Its password signs in to nothing any more: it takes another way once an administrator asks for no sign-in.
    @Test func accountsTakeAnotherWayWhereNoSignInIsAskedFor() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let issuer = try TestIssuer()
        try await bench.trust(issuer)
        var settings = Auth.Settings.Set()
        (settings.passwordSignIn, settings.recentSignInSeconds) = (false, 0)
        bench.pass(seconds: 3_000)
        let held = try await bench.refresh(session.refreshToken)
        let late = await bench.refusal(provider: try bench.token(issuer)) { $0.link = held.idToken }
        #expect(late == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        _ = try await bench.service.settings.set(settings)
        let linked = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = held.idToken }
        #expect(linked.session.uid == session.uid)
    }

    @Test func eachWayCountsWhereItIsOn() throws {
        let hash = try #require(
            PasswordHash("$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Wrq55NJ01yBjlUwz4KJPeRyTma0wmu3la7NgYlwqfH0"))
        func ways(password: Bool = false, codes: Bool = false, _ providers: [String] = []) -> WaysIn {
            WaysIn(allowsPassword: password, mailsCodes: codes, providers: providers)
        }
        func account(_ change: (inout AccountRecord) -> Void) -> AccountRecord {
            var account = AccountRecord(uid: "masuo", createdAt: 0)
            change(&account)
            return account
        }
        let all = ways(password: true, codes: true, ["google.com"])
        let withPassword = account { ($0.passwordHash, $0.username) = (hash, "masuo") }
        #expect(ways(password: true).isLeft(withPassword) && !ways(codes: true, ["google.com"]).isLeft(withPassword))
        let confirmed = account { ($0.email, $0.emailVerified) = ("masuo@example.com", true) }
        #expect(ways(codes: true).isLeft(confirmed) && !ways(password: true, ["google.com"]).isLeft(confirmed))
        #expect(!all.isLeft(account { $0.email = "masuo@example.com" }))
        #expect(!all.isLeft(account { $0.phoneNumber = "+819012345678" }))
        let linked = account { $0.identities = [LinkedIdentity(provider: "google.com", uid: "1")] }
        #expect(ways(["google.com"]).isLeft(linked) && !ways(password: true, codes: true, ["apple.com"]).isLeft(linked))
        #expect(ways().isLeft(account { $0.signsInWithCustomToken = true }))
        // What takes nothing away is not refused, though nothing is left.
        let nothing = account { _ in }
        #expect(throws: AuthError.lastSignInMethod) { try all.check(nothing, replacing: linked) }
        try all.check(nothing, replacing: nothing)
        try ways().check(withPassword, replacing: withPassword)
    }
}
