import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// What brings a former address back: the owner of an account has it again, and a thief does not.
@Suite(.timeLimit(.minutes(10)))
struct RecoveryTests {
    private static let masuo = "masuo@example.com"
    private static let thief = "thief@example.com"
    private static let password = "isono-and-namihei"

    /// The account of Masuo, whose address is verified, and a service that sends mails.
    private func verified(_ mails: MailCatcher) async throws -> (AuthBench, Auth.Session) {
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        let session = try await bench.signUp(Self.masuo, username: "masuo")
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        return (bench, session)
    }

    /// Changes the address as its owner, or a thief with a session, does.
    private func change(
        _ bench: AuthBench, _ session: Auth.Session, to email: String, _ mails: MailCatcher
    ) async throws {
        try await bench.request(.changeEmail, by: try await bench.origin(session)) { $0.newEmail = email }
        try await bench.sendMails()
        _ = try await bench.apply(try #require(mails.mails.last { $0.type == .changeEmail }?.code))
        try await bench.sendMails()
        bench.pass(seconds: 1)
    }

    @Test func theFormerAddressIsWrittenToInTheLanguageOfTheRequest() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await bench.request(.changeEmail, by: try await bench.origin(session)) {
            ($0.newEmail, $0.locale) = (Self.thief, "ja")
        }
        try await bench.sendMails()
        _ = try await bench.apply(try #require(mails.mails.last?.code))
        try await bench.sendMails()
        #expect(mails.mails.last?.type == .recoverEmail)
        #expect(mails.mails.last?.subject == "メールアドレスが変更されました")
    }

    private func recovery(_ mails: MailCatcher, to email: String = Self.masuo) throws -> String {
        try #require(mails.mails.last { $0.type == .recoverEmail && $0.to == email }?.code)
    }

    private func update(
        _ bench: AuthBench, _ session: Auth.Session, _ change: (inout Auth.Account.Update) -> Void
    ) async throws {
        var update = Auth.Account.Update()
        change(&update)
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
    }

    @Test func theFormerAddressBringsItselfBack() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        let mail = try #require(mails.mails.last)
        #expect(mail.to == Self.masuo && mail.type == .recoverEmail && mail.text.contains(mail.code))
        #expect(mail.text.contains(Self.masuo) && !mail.text.contains("thief"))
        let session2 = try await bench.signIn(Self.thief)
        let found = try await bench.apply(mail.code)
        #expect(found == Auth.Code.Found(type: .recoverEmail, email: Self.masuo))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo && account.emailVerified)
        #expect(await wireError { try await bench.refresh(session2.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(session2) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.apply(mail.code) }?.reason == "INVALID_OOB_CODE")
        try await bench.sendMails()
        #expect(mails.mails.count == 2, "the address of the thief gets none")
    }

    @Test(arguments: [true, false])
    func thePasswordOfTheThiefDoesNotStay(setsPassword: Bool) async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        try await update(bench, try await bench.signIn(Self.thief)) { $0.password = "password-of-a-thief" }
        bench.pass(seconds: 1)
        _ = try await bench.signIn(Self.thief, "password-of-a-thief")
        let code = try recovery(mails)
        if setsPassword {
            let weak = await wireError { try await bench.apply(code, newPassword: "short") }
            #expect(weak?.reason == "WEAK_PASSWORD")
        }
        _ = try await bench.apply(code, newPassword: setsPassword ? Self.password : nil)
        for name in [(Self.masuo, nil), (nil, "masuo")] as [(String?, String?)] {
            let error = await wireError {
                try await bench.signIn(name.0, "password-of-a-thief", username: name.1)
            }
            #expect(error?.reason == "INVALID_LOGIN_CREDENTIALS")
        }
        if setsPassword { _ = try await bench.signIn(Self.masuo, Self.password) }
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect((account.passwordUpdatedAt != nil) == setsPassword)
    }

    @Test func thiefThatChangesTheAddressTwiceGetsACodeOfNoUse() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        try await change(bench, try await bench.signIn(Self.thief), to: "other@example.com", mails)
        let (owners, thiefs) = (try recovery(mails), try recovery(mails, to: Self.thief))
        _ = try await bench.apply(thiefs)
        bench.pass(seconds: 1)
        _ = try await bench.apply(owners)
        var account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo)
        // Again, with the owner first.
        let reset = try #require(try await bench.code(.passwordReset).code)
        _ = try await bench.apply(reset, newPassword: Self.password)
        try await change(bench, try await bench.signIn(Self.masuo, Self.password), to: Self.thief, mails)
        try await change(bench, try await bench.signIn(Self.thief, Self.password), to: "other@example.com", mails)
        let second = try recovery(mails, to: Self.thief)
        _ = try await bench.apply(try recovery(mails))
        #expect(await wireError { try await bench.apply(second) }?.reason == "INVALID_OOB_CODE")
        account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo)
    }

    @Test func eachFormerAddressGetsACode() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: "fuguta@example.com", mails)
        bench.pass(seconds: 86_400)
        try await change(bench, try await bench.signIn("fuguta@example.com"), to: Self.thief, mails)
        #expect(mails.mails.filter { $0.type == .recoverEmail }.map(\.to) == [Self.masuo, "fuguta@example.com"])
        _ = try await bench.apply(try recovery(mails, to: "fuguta@example.com"))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == "fuguta@example.com")
    }

    @Test func anAddressThatWasNeverVerifiedGetsNoCode() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp("typo@example.com")
        try await update(bench, session) { $0.email = Self.masuo }
        try await bench.sendMails()
        #expect(mails.mails.isEmpty)
    }

    @Test func aVerifiedAddressIsReplacedWithACodeOnly() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        let error = await wireError { try await update(bench, session) { $0.email = "victim@example.com" } }
        #expect(error?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION" && error?.code == .failedPrecondition)
        let without = try await AuthBench.open(since: bench)
        try await update(without, session) { $0.email = "victim@example.com" }
    }

    /// The owner of an account could otherwise give it the address of another person, wait until that person sets a
    /// password by mail, and bring the former address back.
    @Test func whileAnAddressMayComeBackNoOtherComesWithoutProof() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await update(bench, session) { $0.deleteAttributes = [.email] }
        bench.pass(seconds: 1)
        let named = try await bench.signIn(nil, username: "masuo")
        let update = await wireError { try await self.update(bench, named) { $0.email = "victim@example.com" } }
        #expect(update?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION")
        try await empty(bench, named.uid)
        bench.pass(seconds: 1)
        let anonymous = try await self.anonymous(bench, named.uid)
        let upgrade = await wireError { try await bench.upgrade(anonymous, "victim@example.com") }
        #expect(upgrade?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION")
        bench.pass(seconds: 7 * 86_400)
        _ = try await bench.upgrade(try await self.anonymous(bench, named.uid), "victim@example.com")
    }

    /// Takes the password and the username of an account away, as its owner could before that was refused.
    private func empty(_ bench: AuthBench, _ uid: String) async throws {
        _ = try await bench.service.write { rows in
            let before = try #require(try AccountRows.find(uid, in: rows))
            var account = before
            (account.username, account.passwordHash, account.passwordUpdatedAt) = (nil, nil, nil)
            AccountRows.put(account, replacing: before, in: rows)
        }
    }

    /// A new session of an account.
    private func anonymous(_ bench: AuthBench, _ uid: String) async throws -> Auth.Session {
        let service = bench.service
        let new = try service.newSession(nil, CallOrigin())
        let now = bench.now
        let granted = try await service.write { rows in
            let account = try #require(try AccountRows.find(uid, in: rows))
            let record = new.record(of: account, now: now)
            SessionRows.put(record, in: rows)
            return AuthService.Granted(account: account, record: record, at: now)
        }.outcome
        return try service.session(granted, new.token)
    }

    /// However an account with a code for a former address came to an address that its owner did not prove.
    @Test(arguments: [Auth.CodeType.passwordReset, .signIn])
    func thePersonWhoseAddressAnAccountGotKeepsIt(type: Auth.CodeType) async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        _ = try await bench.service.write { rows in
            let before = try #require(try AccountRows.find(session.uid, in: rows))
            var account = before
            (account.email, account.emailVerified) = ("victim@example.com", false)
            AccountRows.put(account, replacing: before, in: rows)
        }
        let code = try #require(try await bench.code(type, "victim@example.com").code)
        if type == .signIn {
            _ = try await bench.signIn(code: code, "victim@example.com")
        } else {
            _ = try await bench.apply(code, newPassword: Self.password)
        }
        let recovery = try recovery(mails)
        #expect(await wireError { try await bench.apply(recovery) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func thiefThatDeletesTheAddressAndProvesAnotherEndsNoCode() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await update(bench, session) { $0.deleteAttributes = [.email] }
        bench.pass(seconds: 1)
        let thief = try await bench.signIn(nil, username: "masuo")
        try await bench.request(.signIn, Self.thief)
        try await bench.sendMails()
        let code = try #require(mails.mails.last { $0.type == .signIn }?.code)
        _ = try await bench.signIn(code: code, Self.thief) { $0.idToken = thief.idToken }
        bench.pass(seconds: 1)
        let reset = try #require(try await bench.code(.passwordReset, Self.thief).code)
        _ = try await bench.apply(reset, newPassword: "password-of-a-thief")
        _ = try await bench.apply(try recovery(mails))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo)
    }

    /// Also when an identity of the thief is all that is left to sign in with.
    @Test func thiefThatLinksAnIdentityEndsNoCode() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        let issuer = try TestIssuer()
        try await bench.trust(issuer)
        var request = Auth.Account.Update()
        request.deleteAttributes = [.email]
        let left = try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
        try await empty(bench, session.uid)
        try await bench.sendMails()
        bench.pass(seconds: 2)
        let token = try bench.token(issuer) { $0["email"] = .string(Self.thief) }
        _ = try await bench.signIn(provider: token) { $0.link = left.idToken }
        _ = try await bench.apply(try recovery(mails))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo && account.emailVerified)
    }

    @Test func theFreedAddressIsTakenFromAnAccountThatDidNotProveIt() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        let squatter = try await bench.signUp(Self.masuo, "password-of-a-thief")
        _ = try await bench.apply(try recovery(mails))
        let account = try await bench.service.users.user(Auth.Users.Get(email: Self.masuo))
        #expect(account.uid == session.uid && account.emailVerified)
        let other = try await bench.service.users.user(Auth.Users.Get(uid: squatter.uid))
        #expect(other.email == nil && other.passwordUpdatedAt == nil)
        #expect(await wireError { try await bench.refresh(squatter.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(squatter) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func anAddressThatAnotherAccountHasProvedStaysThere() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        let code = try recovery(mails)
        #expect(await wireError { try await bench.apply(code) }?.reason == "EMAIL_EXISTS")
    }

    enum Decision: CaseIterable { case password, email, revoke, importOver, deleteAndCreate }

    @Test(arguments: Decision.allCases)
    func anAdministratorDecidesWhoseTheAccountIs(decision: Decision) async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        let users = bench.service.users
        var update = Auth.Users.Update(uid: session.uid)
        switch decision {
        case .password: update.password = Self.password
        case .email: update.email = "owner@example.com"
        case .revoke: _ = try await users.revokeUser(Auth.Users.Revoke(uid: session.uid))
        case .importOver:
            var row = Auth.Users.Row(uid: session.uid)
            row.email = "owner@example.com"
            var request = Auth.Users.Import(users: [row])
            request.allowOverwrite = true
            #expect(try await MovingMethods(service: bench.service).importUsers(request).imported == 1)
        case .deleteAndCreate:
            _ = try await users.deleteUser(Auth.Users.Delete(uid: session.uid))
            var row = Auth.Users.Row(uid: session.uid)
            (row.email, row.createdAt) = ("owner@example.com", 1)
            _ = try await MovingMethods(service: bench.service).importUsers(Auth.Users.Import(users: [row]))
        }
        if update.password != nil || update.email != nil { _ = try await users.updateUser(update) }
        let code = try recovery(mails)
        #expect(await wireError { try await bench.apply(code) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func anotherNameLeavesTheCode() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await change(bench, session, to: Self.thief, mails)
        var update = Auth.Users.Update(uid: session.uid)
        update.displayName = "マスオさん"
        _ = try await bench.service.users.updateUser(update)
        _ = try await bench.apply(try recovery(mails))
    }
}
