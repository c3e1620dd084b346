import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.code.request`: who gets a mail, how often, and what the response shows.
@Suite(.timeLimit(.minutes(10)))
struct CodeRequestTests {
    private static let masuo = "masuo@example.com"
    private static let administrator = CallOrigin(caller: .administrator)

    @Test func aRequestThatIsRefusedDoesNotCount() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        let old = try await bench.signUp(Self.masuo)
        bench.pass(seconds: 301)
        for _ in 0..<7 {
            let origin = try await bench.origin(old)
            let refused = await wireError {
                try await bench.request(.changeEmail, by: origin) { $0.newEmail = "fuguta@example.com" }
            }
            #expect(refused?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        }
        let origin = try await bench.origin(try await bench.signIn())
        try await bench.request(.changeEmail, by: origin) { $0.newEmail = "fuguta@example.com" }
    }

    @Test func theResponseIsTheSameForKnownAndUnknownAddresses() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.signUp = .closed }
        var create = Auth.Users.Create()
        create.email = Self.masuo
        _ = try await bench.service.users.createUser(create)
        for type in [Auth.CodeType.passwordReset, .signIn] {
            let before = try await bench.rows()
            let known = try await bench.request(type, Self.masuo)
            let unknown = try await bench.request(type, "nobody@example.com")
            #expect(known.email == Self.masuo && unknown.email == "nobody@example.com")
            #expect(known.code == nil && unknown.code == nil && known.digits == nil)
            #expect(try await bench.rows().count == before.count + 4 + (type == .signIn ? 0 : 6), "both were written")
            for email in [Self.masuo, "nobody@example.com"] {
                let again = await wireError { try await bench.request(type, email) }
                #expect(again?.code == .resourceExhausted && again?.retryAfter != nil)
                let wrong = await wireError { try await bench.check("000000", email) }
                #expect(wrong?.reason == "INVALID_OOB_CODE")
            }
            bench.pass(seconds: 61)
        }
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo, Self.masuo])
    }

    @Test func withoutHidingTheErrorSaysWhatIsWrong() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.hidesWhoExists = false }
        let unknown = await wireError { try await bench.request(.passwordReset, "nobody@example.com") }
        #expect(unknown?.reason == "EMAIL_NOT_FOUND" && unknown?.code == .unauthenticated)
        let session = try await bench.signUp(Self.masuo)
        _ = try await bench.signUp("sazae@example.com")
        let origin = try await bench.origin(session)
        let taken = await wireError {
            try await bench.request(.changeEmail, by: origin) { $0.newEmail = "sazae@example.com" }
        }
        #expect(taken?.reason == "EMAIL_EXISTS" && taken?.data["parameter"] == "newEmail")
    }

    @Test func aTakenAddressGetsNoMail() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let origin = try await bench.origin(try await bench.signUp(Self.masuo))
        _ = try await bench.signUp("sazae@example.com")
        let answer = try await bench.request(.changeEmail, by: origin) { $0.newEmail = "sazae@example.com" }
        #expect(answer.email == "sazae@example.com")
        bench.pass(seconds: 301)
        for newEmail in ["sazae@example.com", "free@example.com"] {
            let old = await wireError { try await bench.request(.changeEmail, by: origin) { $0.newEmail = newEmail } }
            #expect(old?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
            bench.pass(seconds: 61)
        }
        try await bench.sendMails()
        #expect(mails.mails.isEmpty)
    }

    @Test func oneAMinuteAndFiveAnHourForAnAddressAndAnAccount() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.credentialAgeSecondsMax = 0 }
        let origin = try await bench.origin(try await bench.signUp(Self.masuo))
        for index in 0..<5 {
            try await bench.request(.passwordReset, Self.masuo)
            let early = await wireError { try await bench.request(.passwordReset, Self.masuo) }
            #expect(early?.reason == "RESET_PASSWORD_EXCEED_LIMIT")
            #expect(early?.retryAfter == .seconds(index < 4 ? 60 : 3360))
            bench.pass(seconds: 60)
        }
        let late = await wireError { try await bench.request(.signIn, Self.masuo) }
        #expect(late?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" && late?.retryAfter == .seconds(3300))
        for index in 0..<5 {
            try await bench.request(.changeEmail, by: origin) { $0.newEmail = "a\(index)@example.com" }
            bench.pass(seconds: 60)
        }
        let account = await wireError {
            try await bench.request(.changeEmail, by: origin) { $0.newEmail = "b@example.com" }
        }
        #expect(account?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        bench.pass(seconds: 3600)
        try await bench.request(.passwordReset, Self.masuo)
    }

    @Test func oneClientRequestsForFewAddresses() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher()) {
            $0.limits.codesPerAddress = RateLimit(burst: 3, perMinute: 1)
            $0.limits.codes = RateLimit(burst: 5, perMinute: 1)
        }
        func request(_ index: Int, from address: String) async -> RPCError? {
            await wireError {
                try await bench.request(
                    .passwordReset, "a\(index)@example.com", by: CallOrigin(address: ClientAddress(address)))
            }
        }
        for index in 0..<3 { #expect(await request(index, from: "192.0.2.1") == nil) }
        #expect(await request(3, from: "192.0.2.1")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        for index in 4..<6 { #expect(await request(index, from: "192.0.2.2") == nil) }
        #expect(await request(6, from: "192.0.2.3")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "all together")
    }

    @Test func onlyAdministratorsGetCodesInTheResponse() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp(Self.masuo)
        for origin in [CallOrigin(), try await bench.origin(session)] {
            let error = await wireError {
                try await bench.request(.passwordReset, Self.masuo, by: origin) { $0.returnCode = true }
            }
            #expect(error?.reason == "INSUFFICIENT_PERMISSION" && error?.code == .permissionDenied)
        }
        let code = try await bench.code(.passwordReset)
        #expect(code.code != nil && code.digits != nil && code.link == nil)
        for _ in 0..<10 { _ = try await bench.code(.passwordReset) }
        try await bench.sendMails()
        #expect(mails.mails.isEmpty)
        let unknown = await wireError { try await bench.code(.passwordReset, "nobody@example.com") }
        #expect(unknown?.reason == "EMAIL_NOT_FOUND", "administrators may know")
        let noUser = await wireError { try await bench.code(.verifyEmail, "nobody@example.com") }
        #expect(noUser?.reason == "USER_NOT_FOUND")
    }

    @Test func usersVerifyTheirOwnAddress() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp(Self.masuo)
        let origin = try await bench.origin(session)
        #expect(await wireError { try await bench.request(.verifyEmail) }?.code == .unauthenticated)
        let other = await wireError { try await bench.request(.verifyEmail, "sazae@example.com", by: origin) }
        #expect(other?.reason == "INVALID_REQ_TYPE" && other?.data["parameter"] == "email")
        #expect(try await bench.request(.verifyEmail, by: origin).email == Self.masuo)
        try await bench.sendMails()
        _ = try await bench.apply(try #require(mails.mails.first?.code))
        #expect(try await bench.account(session).emailVerified, "the session goes on")
        let anonymous = try await bench.origin(try await bench.anonymous())
        let none = await wireError { try await bench.request(.verifyEmail, by: anonymous) }
        #expect(none?.reason == "MISSING_EMAIL")
    }

    @Test func refusalsComeInTheOrderOfTheSpecification() async throws {
        let bench = try await AuthBench.open { $0.allowsCodeSignIn = false }
        func reason(
            _ type: Auth.CodeType, by origin: CallOrigin = CallOrigin(),
            _ change: @escaping (inout Auth.Code.Request) -> Void
        ) async -> String? { await wireError { try await bench.request(type, by: origin, change) }?.reason }
        #expect(await reason(.invite) { $0.returnCode = true } == "INSUFFICIENT_PERMISSION")
        #expect(await reason(.invite) { $0.continueUrl = "x" } == "INVALID_REQ_TYPE")
        #expect(await reason(.signIn) { $0.continueUrl = "x" } == "OPERATION_NOT_ALLOWED")
        #expect(await reason(.passwordReset) { $0.continueUrl = "x" } == "INVALID_CONTINUE_URI")
        #expect(await reason(.passwordReset) { $0.continueUrl = "https://example.com/" } == "UNAUTHORIZED_DOMAIN")
        #expect(await reason(.passwordReset) { $0.locale = "ja\n" } == "INVALID_LOCALE")
        #expect(await reason(.passwordReset) { _ in } == "mail_not_configured")
        let administrator = Self.administrator
        #expect(await reason(.passwordReset, by: administrator) { $0.returnCode = true } == "MISSING_EMAIL")
        #expect(
            await reason(.changeEmail, by: administrator) {
                $0.returnCode = true
                $0.email = "nobody@example.com"
            } == "MISSING_NEW_EMAIL")
    }

    @Test(arguments: [
        "http://example.com/", "https://", "https://user@example.com/", "https://example.com/#a", "javascript:alert(1)",
        "https://example.com/ x", "https://exam\"ple.com/", "ftp://example.com/", "//example.com/",
        "https:\\\\example.com\\", "https://" + String(repeating: "a", count: 2048) + ".example.com/",
    ])
    func whatIsNoPageIsNoContinueUrl(url: String) async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher()) { $0.continueDomains = ["example.com"] }
        let error = await wireError { try await bench.request(.passwordReset, Self.masuo) { $0.continueUrl = url } }
        #expect(error?.reason == "INVALID_CONTINUE_URI", "\(url)")
    }

    @Test func linksGoToAllowedPagesOnly() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.continueDomains = ["chat.example.com", "localhost"] }
        _ = try await bench.signUp(Self.masuo)
        for other in ["https://evil.example.com/", "https://chat.example.com.evil.com/", "https://example.com/"] {
            let error = await wireError {
                try await bench.request(.passwordReset, Self.masuo) { $0.continueUrl = other }
            }
            #expect(error?.reason == "UNAUTHORIZED_DOMAIN", "\(other)")
        }
        let code = try await bench.code(.passwordReset) { $0.continueUrl = "https://Chat.example.com/a?b=c" }
        let text = try #require(code.code)
        #expect(code.link == "https://Chat.example.com/a?b=c&mode=resetPassword&oobCode=\(text)&lang=en")
        let links = CodeLinks(actionUrl: "https://example.com/account")
        #expect(
            links.link(.changeEmail, code: "x", locale: "ja", continueUrl: "http://localhost:3000/?a=1&b=あ")
                == "https://example.com/account?mode=verifyAndChangeEmail&oobCode=x&lang=ja"
                + "&continueUrl=http%3A%2F%2Flocalhost%3A3000%2F%3Fa%3D1%26b%3D%E3%81%82")
        try await bench.request(.verifyEmail, Self.masuo, by: Self.administrator) {
            $0.continueUrl = "http://localhost:3000/done"
        }
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.link?.hasPrefix("http://localhost:3000/done?mode=verifyEmail&oobCode=") == true)
        #expect(mail.text.contains(try #require(mail.link)))
    }

    @Test func noCodeGoesToADomainThatIsNotAllowedAnyMore() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        _ = try await bench.signUp(Self.masuo)
        func allow(_ domains: [String]) async throws {
            var request = Auth.Settings.Set()
            request.continueDomains = domains
            _ = try await bench.service.settings.set(request)
        }
        for seconds: Int64 in [0, 601] {
            try await allow(["chat.example.com"])
            try await bench.request(.passwordReset, Self.masuo) { $0.continueUrl = "https://chat.example.com/" }
            try await allow([])
            bench.pass(seconds: seconds)
            try await bench.sendMails()
        }
        let mail = try #require(mails.mails.first)
        #expect(mails.mails.count == 1 && mail.digits != nil && mail.link == nil && !mail.text.contains("https:"))
        let error = try #require(try await bench.queue(.dead).first?.error)
        #expect(error.hasPrefix("continueUrl is not allowed"), "without the digits it has nothing")
    }

    @Test func timesOfTheFutureBlockNoRequest() {
        let policy = CodeRequestPolicy(pauseMs: 60_000, perHourMax: 5)
        #expect(policy.wait([10_000_000], now: 5_000_000) == nil)
        #expect(policy.wait([0], now: 1) == 59_999)
        #expect(policy.wait([1, 2, 3, 4, 5], now: 100_000) == 3_500_001)
        #expect(policy.requested([1, 2, 3, 4, 5], now: 6) == [2, 3, 4, 5, 6])
        #expect(CodeRequestPolicy(pauseMs: 0, perHourMax: 0).wait([1, 2, 3, 4, 5, 6], now: 6) == nil)
    }
}
