import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// What a thief does with codes: of a session, of an address of another person, of a service key, and by guessing.
@Suite(.timeLimit(.minutes(10)))
struct CodeAttackTests {
    private static let masuo = "masuo@example.com"
    private static let thief = "thief@example.com"
    private static let password = "isono-and-namihei"

    /// A person that waits for a code types in that of another account, which has asked for the same address.
    @Test func aUserConfirmsNoAccountOfAnother() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let thief = try await bench.origin(try await bench.signUp("thief@example.com"))
        let owner = try await bench.origin(try await bench.signUp("sazae@example.com"))
        try await bench.request(.changeEmail, by: thief) { $0.newEmail = "new@example.com" }
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        for code in [mail.code, try #require(mail.digits)] {
            let request = Auth.Code.Apply(code: code, email: "new@example.com")
            let refused = await wireError { _ = try await bench.service.codes.apply(request, owner) }
            #expect(refused?.reason == "INVALID_OOB_CODE")
            let check = await wireError {
                _ = try await bench.service.codes.check(Auth.Code.Check(code: code, email: "new@example.com"), owner)
            }
            #expect(check?.reason == "INVALID_OOB_CODE")
        }
        _ = try await bench.service.codes.apply(Auth.Code.Apply(code: mail.code), thief)
    }

    @Test func guessesByCheckAreInTheAudit() async throws {
        let bench = try await AuthBench.open()
        _ = await wireError { try await bench.check("000000", "masuo@example.com") }
        await bench.service.auditWriter.write()
        let entries = try await AuditMethods(service: bench.service).entries(Auth.Audit.List()).entries
        #expect(entries.contains { $0.type == .signInFailed })
    }

    @Test func aServiceKeyThatDoesNotListTheMethodGetsNoCode() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        _ = try await bench.signUp(Self.masuo)
        let service = CallOrigin(caller: .service(Caller.Service(name: "notifier", methods: ["auth.follow"])))
        let code = await wireError {
            try await bench.request(.passwordReset, Self.masuo, by: service) { $0.returnCode = true }
        }
        #expect(code?.reason == "INSUFFICIENT_PERMISSION")
        let verify = await wireError { try await bench.request(.verifyEmail, Self.masuo, by: service) }
        #expect(verify?.code == .permissionDenied)
        try await bench.request(.passwordReset, Self.masuo, by: service)
        let again = await wireError { try await bench.request(.passwordReset, Self.masuo, by: service) }
        #expect(again?.reason == "RESET_PASSWORD_EXCEED_LIMIT", "as any caller")
    }

    enum Ending: CaseIterable { case password, reset, revoke, disableAndEnable, sessionsEnd }

    @Test(arguments: Ending.allCases)
    func theCodesOfAThiefEndWithItsSession(ending: Ending) async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        let stolen = try await bench.signUp(Self.masuo)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        try await bench.request(.changeEmail, by: try await bench.origin(stolen)) { $0.newEmail = Self.thief }
        try await bench.sendMails()
        let change = try #require(mails.mails.last?.code)
        let signIn = try #require(try await bench.code(.signIn).code)
        // In the same second.
        let own = try await bench.signIn(Self.masuo)
        let users = bench.service.users
        switch ending {
        case .password:
            var update = Auth.Account.Update()
            update.password = Self.password
            _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(own))
        case .reset:
            let reset = try #require(try await bench.code(.passwordReset).code)
            _ = try await bench.apply(reset, newPassword: Self.password)
        case .revoke: _ = try await users.revokeUser(Auth.Users.Revoke(uid: own.uid))
        case .disableAndEnable:
            for isDisabled in [true, false] {
                var update = Auth.Users.Update(uid: own.uid)
                update.disabled = isDisabled
                _ = try await users.updateUser(update)
            }
        case .sessionsEnd:
            var request = Auth.Sessions.End()
            request.others = true
            _ = try await SessionListMethods(service: bench.service).end(request, try await bench.origin(own))
        }
        #expect(await wireError { try await bench.check(change) }?.reason == "INVALID_OOB_CODE")
        #expect(await wireError { try await bench.apply(change) }?.reason == "INVALID_OOB_CODE")
        if ending != .sessionsEnd {
            #expect(await wireError { try await bench.signIn(code: signIn) }?.reason == "INVALID_OOB_CODE")
        }
    }

    @Test func aCodeFromBeforeAnAddressWasProvedIsNoneAfter() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        try await bench.request(.signIn, Self.masuo)
        try await bench.sendMails()
        let early = try #require(mails.mails.last?.code)
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        #expect(await wireError { try await bench.signIn(code: early) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func theTokensOfAThiefEndWithOrWithoutASession() async throws {
        let bench = try await AuthBench.open()
        let thief = try await bench.signUp(Self.masuo, "password-of-a-thief")
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: thief.refreshToken))
        let owner = try await bench.signIn(code: try #require(try await bench.code(.signIn).digits))
        #expect(await wireError { try await bench.account(thief) }?.reason == "TOKEN_EXPIRED", "in the same second")
        #expect(try await bench.account(owner).uid == thief.uid)
    }

    @Test func linkingAnAddressNeedsARecentSignIn() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let named = try await bench.signUp(nil, username: "masuo")
        bench.pass(seconds: 301)
        try await bench.request(.signIn, Self.thief)
        try await bench.sendMails()
        let code = try #require(mails.mails.first?.code)
        let old = await wireError { try await bench.signIn(code: code, Self.thief) { $0.idToken = named.idToken } }
        #expect(old?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        let recent = try await bench.signIn(nil, username: "masuo")
        _ = try await bench.signIn(code: code, Self.thief) { $0.idToken = recent.idToken }
    }

    @Test func aSessionThatIsOverRequestsNoChange() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        let session = try await bench.signUp(Self.masuo)
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        let origin = try await bench.origin(session)
        let error = await wireError { try await bench.request(.changeEmail, by: origin) { $0.newEmail = Self.thief } }
        #expect(error?.reason == "TOKEN_EXPIRED")
    }

    @Test func accountsDoNotEndTheCodesOfEachOtherForAnAddress() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        for email in [Self.masuo, Self.thief] {
            let origin = try await bench.origin(try await bench.signUp(email))
            try await bench.request(.changeEmail, by: origin) { $0.newEmail = "fuguta@example.com" }
            try await bench.sendMails()
        }
        let digits = mails.mails.compactMap(\.digits)
        #expect(mails.mails.first?.text.contains(Self.masuo) == true, "the mail names the account")
        try #require(digits.count == 2 && digits[0] != digits[1])
        let found = try await bench.apply(digits[0], "fuguta@example.com")
        #expect(found.email == Self.masuo)
    }

    // MARK: Limits

    private func request(
        _ bench: AuthBench, _ email: String, from address: String, _ type: Auth.CodeType = .passwordReset
    ) async -> RPCError? {
        await wireError {
            try await bench.request(type, email, by: CallOrigin(address: ClientAddress(address)))
        }
    }

    @Test func aCustomerWithManyNetworksIsOneClient() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher()) {
            $0.limits.codesPerAddress = RateLimit(burst: 3, perMinute: 1)
        }
        for index in 0..<3 {
            #expect(await request(bench, "a\(index)@example.com", from: "2001:db8:1:\(index)::1") == nil)
        }
        let more = await request(bench, "a3@example.com", from: "2001:db8:1:3::1")
        #expect(more?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await request(bench, "a3@example.com", from: "2001:db8:2:3::1") == nil)
    }

    @Test func requestsTooOftenForAnAddressTakeNothingFromOthers() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher()) {
            $0.limits.codes = RateLimit(burst: 2, perMinute: 1)
        }
        #expect(await request(bench, "a@example.com", from: "192.0.2.1") == nil)
        for _ in 0..<5 {
            let error = await request(bench, "a@example.com", from: "192.0.2.1")
            #expect(error?.reason == "RESET_PASSWORD_EXCEED_LIMIT")
        }
        #expect(await request(bench, "b@example.com", from: "192.0.2.2") == nil)
        // No code was sent for the third one: it may be requested as soon as there is one for all.
        #expect(await request(bench, "c@example.com", from: "192.0.2.3")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        bench.pass(seconds: 50)
        #expect(await request(bench, "c@example.com", from: "192.0.2.3")?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        bench.pass(seconds: 11)
        #expect(await request(bench, "c@example.com", from: "192.0.2.3") == nil)
    }

    @Test func othersDoNotUseUpTheCodesOfANetworkThatIsKnown() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.signIn(Self.masuo, from: "192.0.2.7")
        // The answers do not show from where the owner signs in, nor whether there is one.
        for address in [Self.masuo, "nobody@example.com"] {
            #expect(await request(bench, address, from: "203.0.113.1") == nil)
            try await bench.sendMails()
            let sent = mails.mails.count
            #expect(await request(bench, address, from: "203.0.113.2") == nil)
            try await bench.sendMails()
            #expect(mails.mails.count == sent)
            #expect(await request(bench, address, from: "203.0.113.2")?.reason == "RESET_PASSWORD_EXCEED_LIMIT")
            #expect(await request(bench, address, from: "192.0.2.7") == nil)
            #expect(await request(bench, address, from: "192.0.2.7")?.reason == "RESET_PASSWORD_EXCEED_LIMIT")
        }
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
    }

    @Test func aRequestToVerifyCountsForTheAddress() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        let origin = try await bench.origin(try await bench.signUp(Self.masuo))
        try await bench.request(.verifyEmail, by: origin)
        let error = await wireError { try await bench.request(.passwordReset, Self.masuo) }
        #expect(error?.reason == "RESET_PASSWORD_EXCEED_LIMIT")
    }

    private func guess(
        _ bench: AuthBench, _ email: String, _ code: String = "123456", from address: String
    ) async -> String? {
        await wireError {
            _ = try await bench.service.codes.check(
                Auth.Code.Check(code: code, email: email), CallOrigin(address: ClientAddress(address)))
        }?.reason
    }

    @Test func oneClientGuessesALittleForAllAddresses() async throws {
        let bench = try await AuthBench.open {
            $0.limits.wrongDigitsPerAddress = RateLimit(burst: 3, perMinute: 1)
        }
        _ = try await bench.signUp(Self.masuo)
        let code = try await bench.code(.verifyEmail)
        let digits = try #require(code.digits)
        // Right ones do not count.
        for _ in 0..<10 { #expect(await guess(bench, Self.masuo, digits, from: "2001:db8:1::1") == nil) }
        for index in 0..<6 {
            let reason = await guess(bench, "a\(index)@example.com", from: "2001:db8:1:\(index)::1")
            #expect(reason == (index < 3 ? "INVALID_OOB_CODE" : "TOO_MANY_ATTEMPTS_TRY_LATER"))
        }
        let refused = await guess(bench, Self.masuo, digits, from: "2001:db8:1::1")
        #expect(refused == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await guess(bench, Self.masuo, try #require(code.code), from: "2001:db8:1::1") == nil)
        #expect(await guess(bench, "a6@example.com", from: "192.0.2.1") == "INVALID_OOB_CODE")
    }

    /// Those of 17 networks that guess as much as each may.
    @Test func manyNetworksDoNotTakeTheDigitsOfOthersAway() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let digits = try #require(try await bench.code(.verifyEmail).digits)
        for index in 0..<1_020 {
            let reason = await guess(bench, "a\(index)@example.com", from: "203.0.113.\(index % 17)")
            #expect(reason == "INVALID_OOB_CODE")
        }
        #expect(await guess(bench, Self.masuo, digits, from: "192.0.2.1") == nil)
    }

    @Test func othersDoNotKeepTheOwnerOutWhereTheOwnerHasSignedIn() async throws {
        let bench = try await AuthBench.open {
            $0.limits.failuresFree = 10
            $0.limits.failuresFreePerAccount = 20
        }
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.signIn(Self.masuo, from: "192.0.2.7")
        for index in 0..<20 { _ = await guess(bench, Self.masuo, from: "203.0.113.\(index)") }
        #expect(await guess(bench, Self.masuo, from: "203.0.113.99") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await guess(bench, Self.masuo, from: "192.0.2.7") == "INVALID_OOB_CODE")
    }

    // MARK: Links

    @Test(arguments: ["?oobCode=x", "?a=b&MODE=x", "?%6Fobcode", "?lang=ja", "?continueUrl=https://evil.example/"])
    func aPageDoesNotReadTheParametersOfTheCaller(query: String) async throws {
        let url = "https://example.com/\(query)"
        #expect(throws: AuthError.self) { try CodeLinks(actionUrl: nil).check(url, domains: ["example.com"]) }
        try CodeLinks(actionUrl: "https://example.com/account").check(url, domains: ["example.com"])
    }

    @Test func aPageOfAnAllowedHostHasNoOtherPort() throws {
        let links = CodeLinks(actionUrl: nil)
        let domains = ["example.com", "localhost"]
        for url in ["https://example.com/", "https://example.com:443/", "http://localhost:3000/"] {
            try links.check(url, domains: domains)
        }
        for url in ["https://example.com:8443/", "https://example.com:80/"] {
            #expect(throws: AuthError.self) { try links.check(url, domains: domains) }
        }
    }
}
