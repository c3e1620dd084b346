import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

/// `auth.signUp` with `signUpAlwaysAccepts`: only the receiver of the mail learns whether the address has an account.
@Suite(.timeLimit(.minutes(10)))
struct AcceptedSignUpTests {
    private static let masuo = "masuo@example.com"
    private static let otherPassword = "tama-the-cat-of-isono"

    private func bench(_ mails: MailCatcher, _ change: (inout AuthConfiguration) -> Void = { _ in }) async throws
        -> AuthBench
    {
        try await AuthBench.mailing(to: mails) {
            $0.signUpAlwaysAccepts = true
            change(&$0)
        }
    }

    private func accept(
        _ bench: AuthBench, _ email: String = masuo, username: String? = nil,
        _ change: (inout Auth.SignUp) -> Void = { _ in }
    ) async throws {
        var request = Auth.SignUp(
            email: email, password: AuthBench.password, username: username, displayName: "マスオさん")
        change(&request)
        try await bench.service.signUps.accept(request, CallOrigin())
    }

    private func makeUser(_ bench: AuthBench, _ email: String = masuo, username: String? = nil) async throws -> String {
        var user = Auth.Users.Create()
        (user.email, user.username, user.password) = (email, username, Self.otherPassword)
        return try await bench.service.users.createUser(user).uid
    }

    private func digits(of mails: MailCatcher, to email: String = masuo) throws -> String {
        try #require(mails.mails.last { $0.to == email }?.digits)
    }

    @discardableResult
    private func apply(_ bench: AuthBench, _ mails: MailCatcher, _ email: String = masuo) async throws
        -> Auth.Code.Found
    {
        try await bench.apply(try digits(of: mails, to: email), email, newPassword: AuthBench.password)
    }

    /// Another person that signs up with the address, before or after, gets no account with the help of its owner.
    @Test(arguments: [true, false]) func noPasswordOfAnotherPersonIsConfirmed(thiefIsFirst: Bool) async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for isThief in thiefIsFirst ? [true, false] : [false, true] {
            try await accept(bench) { if isThief { $0.password = Self.otherPassword } }
            bench.pass(seconds: 61)
        }
        try await bench.sendMails()
        try await apply(bench, mails)
        _ = try await bench.signIn()
        let thief = await wireError { try await bench.signIn(Self.masuo, Self.otherPassword) }
        #expect(thief?.reason == "INVALID_LOGIN_CREDENTIALS")
    }

    /// A sign-up that is refused takes nothing of the address.
    @Test func whatIsRefusedDoesNotCount() async throws {
        let bench = try await bench(MailCatcher())
        _ = try await makeUser(bench, "taken@example.com", username: "masuo")
        for _ in 0..<7 {
            let taken = await wireError { try await accept(bench, username: "masuo") }
            #expect(taken?.reason == "USERNAME_EXISTS")
        }
        try await accept(bench)
    }

    @Test func anAddressIsGivenWhereNoCodeSignsIn() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails) { $0.allowsCodeSignIn = false }
        let origin = try await bench.origin(try await bench.anonymous())
        try await bench.request(.changeEmail, by: origin) { $0.newEmail = Self.masuo }
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo])
    }

    @Test func anAccountIsThereOnceTheCodeOfTheMailIsUsed() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await accept(bench, username: "masuo")
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
        #expect(try await bench.service.users.users(Auth.Users.List()).users.isEmpty)
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mails.mails.count == 1 && mail.to == Self.masuo && mail.type == .signUp)
        #expect(mail.subject == "Your new account")
        let digits = try digits(of: mails)
        let found = try await bench.check(digits, Self.masuo)
        #expect(found.email == Self.masuo && found.type == .signUp)
        let missing = await wireError { try await bench.apply(digits, Self.masuo) }
        #expect(missing?.reason == "MISSING_PASSWORD")
        let weak = await wireError { try await bench.apply(digits, Self.masuo, newPassword: Self.masuo) }
        #expect(weak?.reason == "WEAK_PASSWORD")
        #expect(try await apply(bench, mails).email == Self.masuo)
        let account = try await bench.account(try await bench.signIn())
        #expect(account.emailVerified && account.username == nil && account.displayName == nil)
        var names = Auth.Account.Update()
        (names.username, names.displayName) = ("masuo", "マスオさん")
        let origin = try await bench.origin(try await bench.signIn())
        #expect(try await bench.service.accounts.updateAccount(names, origin).account.username == "masuo")
        #expect(account.initialEmail == Self.masuo && account.passwordUpdatedAt != nil)
        let again = await wireError { try await apply(bench, mails) }
        #expect(again?.reason == "INVALID_OOB_CODE")
    }

    @Test func theHolderOfATakenAddressGetsAMailThatSaysSo() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        let uid = try await makeUser(bench)
        let before = try await bench.signIn(Self.masuo, Self.otherPassword)
        try await accept(bench) { $0.locale = "ja" }
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mails.mails.count == 1 && mail.to == Self.masuo && mail.type == .passwordReset)
        #expect(mail.subject == "すでにアカウントがあります")
        #expect(try await bench.account(before).displayName == nil, "the account is as it was")
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
        _ = try await bench.apply(try digits(of: mails), Self.masuo, newPassword: "katsuo-and-wakame-chan")
        #expect(try await bench.signIn(Self.masuo, "katsuo-and-wakame-chan").uid == uid)
    }

    @Test func newAndTakenAddressesCostTheSame() async throws {
        let bench = try await bench(MailCatcher())
        _ = try await makeUser(bench, "taken@example.com")
        let disabled = try await makeUser(bench, "disabled@example.com")
        var update = Auth.Users.Update(uid: disabled)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        // The first mail makes a row of the queue.
        try await accept(bench, "first@example.com")
        var added: [Int] = []
        for email in ["new@example.com", "taken@example.com", "disabled@example.com"] {
            let (hashes, rows) = (bench.counts.hashes, try await bench.rows().count)
            try await accept(bench, email)
            #expect(bench.counts.hashes == hashes, "\(email)")
            added.append(try await bench.rows().count - rows)
            let soon = await wireError { try await accept(bench, email) }
            #expect(soon?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "\(email)")
        }
        #expect(added[0] == added[1] && added[2] > 0, "\(added)")
    }

    @Test func aDisabledAccountGetsNoMail() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        var update = Auth.Users.Update(uid: try await makeUser(bench))
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        try await accept(bench)
        try await bench.sendMails()
        #expect(mails.mails.isEmpty)
    }

    @Test func aTakenUsernameIsRefusedForEveryAddressAndAWaitingOneIsNotTaken() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        _ = try await makeUser(bench, username: "masuo")
        for email in [Self.masuo, "sazae@example.com"] {
            let taken = await wireError { try await accept(bench, email, username: "masuo") }
            #expect(taken?.reason == "USERNAME_EXISTS", "\(email)")
        }
        try await accept(bench, "katsuo@example.com", username: "katsuo")
        try await accept(bench, "wakame@example.com", username: "katsuo")
    }

    @Test func anAccountThatGotTheAddressMeanwhileStays() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await accept(bench)
        try await bench.sendMails()
        let uid = try await makeUser(bench)
        let late = await wireError { try await apply(bench, mails) }
        #expect(late?.reason == "INVALID_OOB_CODE")
        let check = await wireError { try await bench.check(try digits(of: mails), Self.masuo) }
        #expect(check?.reason == "INVALID_OOB_CODE")
        #expect(try await bench.signIn(Self.masuo, Self.otherPassword).uid == uid)
    }

    @Test func noAccountIsMadeWithAnAddressOfAnotherDomain() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await accept(bench)
        try await bench.sendMails()
        var settings = Auth.Settings.Set()
        settings.emailDomains = ["example.jp"]
        _ = try await bench.service.settings.set(settings)
        #expect(await wireError { try await apply(bench, mails) }?.reason == "UNAUTHORIZED_DOMAIN")
    }

    /// The result is the same where others have signed up with the address too often.
    @Test func noMailIsSentWhereOthersHaveAskedTooOften() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for index in 0..<7 {
            let request = Auth.SignUp(email: Self.masuo, password: AuthBench.password)
            let origin = CallOrigin(address: ClientAddress("192.0.2.\(index)"))
            try await bench.service.signUps.accept(request, origin)
            bench.pass(seconds: 61)
        }
        try await bench.sendMails()
        #expect(try await bench.queue().isEmpty && mails.mails.count == 1, "the newest code of five")
    }

    @Test func noAccountIsMadeOnceSignUpIsClosed() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await accept(bench)
        try await bench.sendMails()
        var settings = Auth.Settings.Set()
        settings.signUp = .closed
        _ = try await bench.service.settings.set(settings)
        let closed = await wireError { try await apply(bench, mails) }
        #expect(closed?.reason == "ADMIN_ONLY_OPERATION")
        let refused = await wireError { try await accept(bench, "sazae@example.com") }
        #expect(refused?.reason == "ADMIN_ONLY_OPERATION")
    }

    /// Otherwise an anonymous account shows which addresses are taken.
    @Test func anAddressForOnesOwnAccountNeedsACode() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        _ = try await makeUser(bench, "taken@example.com")
        let session = try await bench.anonymous()
        for email in [Self.masuo, "taken@example.com"] {
            let upgrade = await wireError { try await bench.upgrade(session, email) }
            #expect(upgrade?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION", "\(email)")
            var update = Auth.Account.Update()
            update.email = email
            let origin = try await bench.origin(session)
            let updated = await wireError { [update] in
                _ = try await bench.service.accounts.updateAccount(update, origin)
            }
            #expect(updated?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION", "\(email)")
            var dryRun = Auth.SignUp(email: email, password: AuthBench.password)
            try await bench.service.signUps.check(dryRun, CallOrigin())
            dryRun.idToken = session.idToken
            let checked = await wireError { [dryRun] in
                try await bench.service.signUps.check(dryRun, CallOrigin())
            }
            #expect(checked?.reason == "EMAIL_CHANGE_NEEDS_VERIFICATION", "\(email)")
        }
        let origin = try await bench.origin(session)
        try await bench.request(.changeEmail, by: origin) { $0.newEmail = Self.masuo }
        try await bench.sendMails()
        try await bench.apply(try digits(of: mails), Self.masuo)
        // The account has another address, so that its sessions have ended; the code signs in to it.
        bench.pass(seconds: 61)
        try await bench.request(.signIn, Self.masuo)
        try await bench.sendMails()
        let after = try await bench.signIn(code: try digits(of: mails))
        var password = Auth.SignUp(password: AuthBench.password)
        password.idToken = after.idToken
        #expect(try await bench.service.signUps.signUp(password, CallOrigin()).uid == session.uid)
    }

    /// A provider whose users choose any address shows no more.
    @Test func anAddressThatNoProviderProvesIsLeftOut() async throws {
        let bench = try await bench(MailCatcher())
        let issuer = try TestIssuer()
        try await bench.trust(issuer) { $0.trustsEmail = false }
        _ = try await makeUser(bench, "taken@example.com")
        for email in [Self.masuo, "taken@example.com"] {
            let token = try bench.token(issuer, "sub-of-\(email)") {
                ($0["email"], $0["email_verified"]) = (.string(email), true)
            }
            let session = try await bench.signIn(provider: token).session
            #expect(try await bench.service.users.user(Auth.Users.Get(uid: session.uid)).email == nil, "\(email)")
        }
    }

    @Test func theSettingNeedsMails() async throws {
        let bench = try await AuthBench.open()
        var settings = Auth.Settings.Set()
        settings.signUpAlwaysAccepts = true
        let refused = await wireError { [settings] in _ = try await bench.service.settings.set(settings) }
        #expect(refused?.reason == "mail_not_configured")
        var configuration = AuthConfiguration()
        configuration.signUpAlwaysAccepts = true
        #expect(throws: (any Error).self) { try configuration.setMail { _ in nil } }
        let mailing = try await AuthBench.mailing(to: MailCatcher()) { $0.hidesWhoExists = false }
        let set = try await mailing.service.settings.set(settings)
        #expect(set.signUpAlwaysAccepts == true && set.hidesWhoExists == true)
    }

    @Test func wrongFormsAreRefusedAsEverAndNoMailIsSent() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for (change, reason) in [
            ({ $0.password = "short" }, "WEAK_PASSWORD"), ({ $0.password = nil }, "MISSING_PASSWORD"),
            ({ $0.email = "x" }, "INVALID_EMAIL"), ({ $0.label = "\u{0}" }, "INVALID_LABEL"),
            ({ $0.locale = "../ja" }, "INVALID_LOCALE"),
            ({ $0.continueUrl = "https://a.example" }, "UNAUTHORIZED_DOMAIN"),
            ({ $0.continueUrl = "javascript:1" }, "INVALID_CONTINUE_URI"),
        ] as [((inout Auth.SignUp) -> Void, String)] {
            #expect(await wireError { try await accept(bench, Self.masuo, change) }?.reason == reason)
        }
        try await bench.sendMails()
        #expect(mails.mails.isEmpty && bench.counts.hashes == 0)
    }
}
