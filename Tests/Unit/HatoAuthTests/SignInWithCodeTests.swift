import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.signInWithCode`: the receiver of the mail of an address has its account.
@Suite(.timeLimit(.minutes(10)))
struct SignInWithCodeTests {
    private static let masuo = "masuo@example.com"

    @Test func aCodeSignsInOnce() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(Self.masuo)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        let digits = try #require(try await bench.code(.signIn).digits)
        let signedIn = try await bench.signIn(code: digits) { $0.label = "マスオさんのiPhone" }
        #expect(signedIn.uid == session.uid && !signedIn.isNewUser)
        #expect(await wireError { try await bench.signIn(code: digits) }?.reason == "INVALID_OOB_CODE")
        _ = try await bench.refresh(session.refreshToken)
        _ = try await bench.signIn(Self.masuo)
        let claims = try await bench.claims(signedIn.idToken)
        #expect(claims["email_verified"] == true && claims["firebase"]?["sign_in_provider"] == "password")
    }

    @Test func anAccountIsMadeOnlyWhereTheCallerSaysSo() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        try await bench.request(.signIn, Self.masuo)
        try await bench.sendMails()
        let digits = try #require(mails.mails.first?.digits)
        let none = await wireError { try await bench.signIn(code: digits) }
        #expect(none?.reason == "EMAIL_NOT_FOUND")
        let session = try await bench.signIn(code: digits) { $0.createAccount = true }
        #expect(session.isNewUser)
        let account = try await bench.account(session)
        #expect(account.email == Self.masuo && account.emailVerified && account.passwordUpdatedAt == nil)
        #expect(account.providerUserInfo.map(\.providerId) == ["password"])
        #expect(await wireError { try await bench.signIn(Self.masuo) }?.reason == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func whereSignUpIsNotOpenNoAccountIsMadeByCode() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.emailDomains = ["example.com"] }
        try await bench.request(.signIn, "a@example.org")
        try await bench.request(.signIn, Self.masuo)
        var settings = Auth.Settings.Set()
        settings.signUp = .invited
        _ = try await bench.service.settings.set(settings)
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo])
        let error = await wireError {
            try await bench.signIn(code: try #require(mails.mails.first?.digits)) { $0.createAccount = true }
        }
        #expect(error?.reason == "ADMIN_ONLY_OPERATION")
        settings.signUp = .open
        settings.emailDomains = ["example.org"]
        _ = try await bench.service.settings.set(settings)
        let domain = await wireError {
            try await bench.signIn(code: try #require(mails.mails.first?.digits)) { $0.createAccount = true }
        }
        #expect(domain?.reason == "UNAUTHORIZED_DOMAIN")
        settings.codeSignIn = false
        _ = try await bench.service.settings.set(settings)
        #expect(await wireError { try await bench.signIn(code: "123456") }?.reason == "OPERATION_NOT_ALLOWED")
    }

    @Test func thePersonThatSignedUpWithTheAddressOfAnotherIsOut() async throws {
        let bench = try await AuthBench.open()
        let thief = try await bench.signUp(Self.masuo, "password-of-a-thief")
        bench.pass(seconds: 1)
        let owner = try await bench.signIn(code: try #require(try await bench.code(.signIn).digits))
        #expect(owner.uid == thief.uid)
        #expect(await wireError { try await bench.refresh(thief.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(
            await wireError { try await bench.account(thief) }?.reason == "TOKEN_EXPIRED", "its ID token, too")
        let password = await wireError { try await bench.signIn(Self.masuo, "password-of-a-thief") }
        #expect(password?.reason == "INVALID_LOGIN_CREDENTIALS")
        _ = try await bench.refresh(owner.refreshToken)
        #expect(try await bench.account(owner).emailVerified)
    }

    @Test func anAnonymousAccountGetsTheAddressAndKeepsItsUid() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let anonymous = try await bench.anonymous()
        try await bench.request(.signIn, Self.masuo)
        try await bench.sendMails()
        let digits = try #require(mails.mails.first?.digits)
        let session = try await bench.signIn(code: digits) { $0.idToken = anonymous.idToken }
        #expect(session.uid == anonymous.uid && !session.isNewUser)
        #expect(try await bench.account(session).email == Self.masuo)
        #expect(try await bench.claims(session.idToken)["provider_id"] == nil)
        #expect(await wireError { try await bench.refresh(anonymous.refreshToken) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func anExportKeepsThatAUserSignsInWithCodes() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(Self.masuo)
        _ = try await bench.signIn(code: try #require(try await bench.code(.signIn).code))
        let rows = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export()).users
        #expect(rows.map(\.emailLinkSignin) == [true])
        let other = try await AuthBench.open()
        _ = try await MovingMethods(service: other.service).importUsers(Auth.Users.Import(users: rows))
        let account = try await other.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.providerUserInfo.map(\.providerId) == ["password"])
    }

    @Test func anAddressOfAnotherAccountIsNotLinked() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let anonymous = try await bench.anonymous()
        let other = try await bench.signUp("sazae@example.com")
        let code = try #require(try await bench.code(.signIn).code)
        let taken = await wireError { try await bench.signIn(code: code) { $0.idToken = anonymous.idToken } }
        #expect(taken?.reason == "EMAIL_EXISTS")
        let linked = try #require(try await bench.code(.signIn, "free@example.com").code)
        let second = await wireError {
            try await bench.signIn(code: linked, "free@example.com") { $0.idToken = other.idToken }
        }
        #expect(second?.reason == "PROVIDER_ALREADY_LINKED")
        _ = try await bench.signIn(code: code)
    }

    @Test func aDisabledAccountIsNotSignedIn() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(Self.masuo)
        let code = try #require(try await bench.code(.signIn).code)
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await wireError { try await bench.signIn(code: code) }?.reason == "USER_DISABLED")
    }
}
