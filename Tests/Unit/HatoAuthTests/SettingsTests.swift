import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.settings`: kept in the store, obeyed at once, and fixed by what is given at the start.
struct SettingsTests {
    private func set(_ bench: AuthBench, _ change: (inout Auth.Settings.Set) -> Void) async throws {
        var request = Auth.Settings.Set()
        change(&request)
        _ = try await bench.service.settings.set(request)
    }

    @Test func noPasswordIsSetWhereNoneSignsIn() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let closed = try await AuthBench.open(since: bench) { $0.allowsPasswordSignIn = false }
        var request = Auth.Account.Update()
        request.password = "tama-the-cat-of-isono"
        let origin = try await closed.origin(session)
        let refused = await wireError { [request] in try await closed.service.accounts.updateAccount(request, origin) }
        #expect(refused?.reason == "OPERATION_NOT_ALLOWED")
    }

    private func signUp(_ bench: AuthBench, _ email: String?, username: String? = nil) async -> RPCError? {
        await wireError {
            try await bench.signUp(email, email ?? username == nil ? nil : AuthBench.password, username: username)
        }
    }

    @Test func settingsAreObeyedAtOnceAndAfterARestart() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp("masuo@example.com")
        try await set(bench) {
            $0.passwordLengthMin = 30
            $0.hidesWhoExists = false
            $0.recentSignInSeconds = 5
        }
        for bench in [bench, try await AuthBench.open(since: bench)] {
            let short = await wireError { try await bench.signUp("a@example.com", "sazae-and-friends") }
            #expect(short?.reason == "WEAK_PASSWORD")
            let wrong = await wireError { try await bench.signIn("masuo@example.com", "wrong") }
            #expect(wrong?.reason == "INVALID_PASSWORD")
        }
        bench.pass(seconds: 6)
        let deletion = await wireError {
            try await bench.service.accounts.deleteAccount(try await bench.origin(session))
        }
        #expect(deletion?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    }

    @Test func settingsFromTheStartStayInEffectAndAreNamed() async throws {
        let bench = try await AuthBench.open {
            $0.passwordLengthMin = 20
            $0.fixedSettings = ["passwordLengthMin"]
        }
        try await set(bench) {
            $0.passwordLengthMin = 8
            $0.anonymous = false
        }
        let settings = bench.service.settings.settings(CallOrigin(caller: .administrator))
        #expect(settings.passwordLengthMin == 20 && settings.fixed == ["passwordLengthMin"])
        #expect(settings.anonymous == false)
        #expect(try await AuthBench.open(since: bench).service.configuration.passwordLengthMin == 8)
    }

    @Test func allCallersReadTheSettingsOfAFormAndAdministratorsTheOthers() async throws {
        let bench = try await AuthBench.open { $0.emailDomains = ["example.com"] }
        let some = bench.service.settings.settings(CallOrigin())
        #expect(some == Auth.Settings(signUp: .open, anonymous: true, passwordSignIn: true, passwordLengthMin: 15))
        let all = bench.service.settings.settings(CallOrigin(caller: .administrator))
        #expect(all.emailDomains == ["example.com"] && all.hidesWhoExists == true && all.recentSignInSeconds == 300)
        #expect(all.fixed == [])
        try await set(bench) { $0.continueDomains = ["Chat.example.com", "localhost"] }
        let open = bench.service.settings.settings(CallOrigin())
        #expect(open.continueDomains == ["chat.example.com", "localhost"] && open.codeSignIn)
        for wrong in ["https://a.example.com", "a b", "a@example.com", "example.com:80", "", "a/b"] {
            let error = await wireError { try await set(bench) { $0.continueDomains = [wrong] } }
            #expect(error?.data["parameter"] == "continueDomains", "\(wrong)")
        }
    }

    @Test(arguments: [Auth.SignUpPolicy.invited, .closed])
    func whereSignUpIsNotOpenAdministratorsMakeTheAccounts(policy: Auth.SignUpPolicy) async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.anonymous()
        try await set(bench) { $0.signUp = policy }
        for error in [
            await signUp(bench, "a@example.com"), await signUp(bench, nil),
            await wireError { try await bench.upgrade(anonymous, "a@example.com") },
        ] {
            #expect(error?.reason == "ADMIN_ONLY_OPERATION" && error?.code == .permissionDenied)
        }
        var update = Auth.Account.Update(email: "a@example.com", password: AuthBench.password)
        let refused = await wireError {
            try await bench.service.accounts.updateAccount(update, try await bench.origin(anonymous))
        }
        #expect(refused?.reason == "ADMIN_ONLY_OPERATION", "the same by another way")
        update = Auth.Account.Update(displayName: "マスオさん")
        _ = try await bench.service.accounts.updateAccount(update, try await bench.origin(anonymous))
        var request = Auth.Users.Create()
        request.email = "a@example.com"
        request.password = AuthBench.password
        _ = try await bench.service.users.createUser(request)
        _ = try await bench.signIn("a@example.com")
    }

    @Test func anonymousAccountsAndPasswordsAreTurnedOffEach() async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.anonymous()
        try await set(bench) { $0.anonymous = false }
        #expect(await signUp(bench, nil)?.reason == "ADMIN_ONLY_OPERATION")
        #expect(await signUp(bench, "a@example.com") == nil)
        let full = try await bench.upgrade(anonymous, "b@example.com")
        try await set(bench) { $0.passwordSignIn = false }
        let signIn = await wireError { try await bench.signIn("a@example.com") }
        #expect(signIn?.reason == "PASSWORD_LOGIN_DISABLED" && signIn?.code == .failedPrecondition)
        let form = await signUp(bench, "c@example.com")
        #expect(form?.reason == "OPERATION_NOT_ALLOWED" && form?.code == .failedPrecondition)
        let missing = await wireError { try await bench.signUp("c@example.com", nil) }
        #expect(missing?.reason == "MISSING_PASSWORD", "what is missing comes first")
        #expect(try await bench.refresh(full.refreshToken).uid == anonymous.uid)
    }

    @Test func noCodeSetsAPasswordWhereNoneSignsIn() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        _ = try await bench.signUp("masuo@example.com")
        let code = try #require(try await bench.code(.passwordReset).code)
        try await set(bench) { $0.passwordSignIn = false }
        let request = await wireError { try await bench.request(.passwordReset, "masuo@example.com") }
        #expect(request?.reason == "PASSWORD_LOGIN_DISABLED" && request?.code == .failedPrecondition)
        let apply = await wireError { try await bench.apply(code, newPassword: "tama-the-cat-of-isono") }
        #expect(apply?.reason == "PASSWORD_LOGIN_DISABLED" && apply?.code == .failedPrecondition)
        try await set(bench) { $0.passwordSignIn = true }
        _ = try await bench.apply(code, newPassword: "tama-the-cat-of-isono")
    }

    @Test func peopleSignUpWithAddressesOfTheDomains() async throws {
        let bench = try await AuthBench.open()
        try await set(bench) { $0.emailDomains = ["EXAMPLE.com", "xn--r8jz45g.jp"] }
        #expect(bench.service.configuration.emailDomains == ["example.com", "例え.jp"])
        let session = try await bench.signUp("masuo@Example.com")
        #expect(await signUp(bench, "b@例え.jp") == nil)
        for other in ["a@example.org", "a@notexample.com", "a@mail.example.com"] {
            let error = await signUp(bench, other)
            #expect(error?.reason == "UNAUTHORIZED_DOMAIN" && error?.data["parameter"] == "email", "\(other)")
        }
        #expect(await signUp(bench, nil, username: "masuo")?.reason == "MISSING_EMAIL")
        let update = Auth.Account.Update(email: "a@example.org")
        let moved = await wireError {
            try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
        }
        #expect(moved?.reason == "UNAUTHORIZED_DOMAIN")
        var request = Auth.Users.Create()
        request.email = "guest@example.org"
        _ = try await bench.service.users.createUser(request)
        try await set(bench) { $0.emailDomains = [] }
        #expect(await signUp(bench, "a@example.org") == nil)
    }

    @Test func oneAddressIsOneAccount() {
        let error = #expect(throws: RPCError.self) { try Auth.Settings.Set.decode(["allowDuplicateEmails": true]) }
        #expect(error?.data["parameter"] == "allowDuplicateEmails" && error?.reason == "INVALID_SETTING")
    }

    @Test func settingsHaveTheseBytes() async throws {
        let bench = try await AuthBench.open()
        try await set(bench) {
            $0.signUp = .closed
            $0.emailDomains = ["example.com"]
        }
        let row = try await bench.store.read { try $0.row(AuthKey.settings) }
        #expect(
            String(decoding: try #require(row), as: UTF8.self)
                == #"{"signUp":"closed","emailDomains":["example.com"]}"#)
    }
}
