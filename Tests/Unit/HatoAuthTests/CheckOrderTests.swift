import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

/// Which mistake is reported where a call has several (spec auth §3, order of checks).
@Suite(.timeLimit(.minutes(10)))
struct CheckOrderTests {
    private static let taken = "sazae@example.com"
    private static let weak = "short"

    /// With an account that has the taken address.
    private func bench(
        hides: Bool, _ change: (inout AuthConfiguration) -> Void = { _ in }
    ) async throws -> AuthBench {
        let bench = try await AuthBench.open {
            $0.hidesWhoExists = hides
            change(&$0)
        }
        _ = try await bench.signUp(Self.taken)
        return bench
    }

    private func update(
        _ bench: AuthBench, _ session: Auth.Session, _ email: String, _ password: String? = CheckOrderTests.weak
    ) async throws -> String? {
        var request = Auth.Account.Update()
        (request.email, request.password) = (email, password)
        let origin = try await bench.origin(session)
        return await wireError { [request] in
            _ = try await bench.service.accounts.updateAccount(request, origin)
        }?.reason
    }

    @Test func aTakenAddressComesBeforeAWeakPassword() async throws {
        let bench = try await bench(hides: false)
        let hashes = bench.counts.hashes
        let signUp = await wireError { try await bench.signUp(Self.taken, Self.weak) }
        #expect(signUp?.reason == "EMAIL_EXISTS" && signUp?.code == .alreadyExists)
        let anonymous = try await bench.anonymous()
        var upgrade = Auth.SignUp(email: Self.taken, password: Self.weak)
        upgrade.idToken = anonymous.idToken
        let upgraded = await wireError { [upgrade] in
            _ = try await bench.service.signUps.signUp(upgrade, CallOrigin())
        }
        #expect(upgraded?.reason == "EMAIL_EXISTS")
        #expect(try await update(bench, anonymous, Self.taken) == "EMAIL_EXISTS")
        var create = Auth.Users.Create()
        (create.email, create.password) = (Self.taken, Self.weak)
        let created = await wireError { [create] in _ = try await bench.service.users.createUser(create) }
        #expect(created?.reason == "EMAIL_EXISTS")
        var change = Auth.Users.Update(uid: anonymous.uid)
        (change.email, change.password) = (Self.taken, Self.weak)
        let changed = await wireError { [change] in _ = try await bench.service.users.updateUser(change) }
        #expect(changed?.reason == "EMAIL_EXISTS")
        #expect(bench.counts.hashes == hashes)
    }

    @Test func anAddressThatIsFreeOrTheOwnLeavesTheWeakPassword() async throws {
        let bench = try await bench(hides: false)
        let session = try await bench.signUp()
        #expect(await wireError { try await bench.signUp("namihei@example.com", Self.weak) }?.reason == "WEAK_PASSWORD")
        for email in ["masuo@example.com", "namihei@example.com"] {
            #expect(try await update(bench, session, email) == "WEAK_PASSWORD")
            var change = Auth.Users.Update(uid: session.uid)
            (change.email, change.password) = (email, Self.weak)
            let changed = await wireError { [change] in _ = try await bench.service.users.updateUser(change) }
            #expect(changed?.reason == "WEAK_PASSWORD")
        }
    }

    @Test func whatIsMissingAndAWrongAddressComeFirst() async throws {
        let bench = try await bench(hides: false)
        #expect(await wireError { try await bench.signUp(Self.taken, nil) }?.reason == "MISSING_PASSWORD")
        #expect(await wireError { try await bench.signUp("sazae@@example.com", Self.weak) }?.reason == "INVALID_EMAIL")
        var settings = Auth.Settings.Set()
        settings.passwordSignIn = false
        _ = try await bench.service.settings.set(settings)
        #expect(await wireError { try await bench.signUp(Self.taken, Self.weak) }?.reason == "OPERATION_NOT_ALLOWED")
        (settings.passwordSignIn, settings.signUp) = (true, .closed)
        _ = try await bench.service.settings.set(settings)
        #expect(await wireError { try await bench.signUp(Self.taken, Self.weak) }?.reason == "ADMIN_ONLY_OPERATION")
    }

    /// A form with a weak password leaves nothing behind, and would find every account.
    @Test func whereAccountsAreHiddenAWeakPasswordShowsNone() async throws {
        let bench = try await bench(hides: true)
        let session = try await bench.anonymous()
        for email in [Self.taken, "namihei@example.com"] {
            #expect(await wireError { try await bench.signUp(email, Self.weak) }?.reason == "WEAK_PASSWORD")
            #expect(try await update(bench, session, email) == "WEAK_PASSWORD")
        }
        let silent = try await self.bench(hides: true) { $0.signUpAlwaysAccepts = true }
        let other = try await silent.anonymous()
        for email in [Self.taken, "namihei@example.com"] {
            #expect(try await update(silent, other, email) == "EMAIL_CHANGE_NEEDS_VERIFICATION")
        }
    }

    @Test func addressesAreNotTriedWithoutLimit() async throws {
        let bench = try await bench(hides: false) {
            $0.limits.signUpChecksPerAddress = RateLimit(burst: 2, perMinute: 1)
        }
        let origin = CallOrigin(address: ClientAddress("192.0.2.1"))
        func signUp(_ email: String, _ password: String) async -> String? {
            await wireError {
                _ = try await bench.service.signUps.signUp(Auth.SignUp(email: email, password: password), origin)
            }?.reason
        }
        for _ in 0..<2 { #expect(await signUp(Self.taken, Self.weak) == "EMAIL_EXISTS") }
        #expect(await signUp(Self.taken, Self.weak) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await signUp("namihei@example.com", AuthBench.password) == nil, "sign-ups have a limit of their own")
        let session = try await bench.signUp()
        let first = try await refusedChange(bench, session)
        #expect(first == bench.service.configuration.limits.credentialChanges.burst)
    }

    /// The first change to a taken address with a weak password that is one too many; nil: none of a thousand was.
    private func refusedChange(_ bench: AuthBench, _ session: Auth.Session) async throws -> Int? {
        for number in 0..<1000 where try await update(bench, session, Self.taken) == "TOO_MANY_ATTEMPTS_TRY_LATER" {
            return number
        }
        return nil
    }

    @Test func aSignInOfLongAgoComesBeforeTheFields() async throws {
        let bench = try await bench(hides: false)
        let session = try await bench.signUp()
        bench.pass(seconds: 301)
        let tooOld = "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"
        for email in [Self.taken, "sazae@@example.com", "namihei@example.com"] {
            #expect(try await update(bench, session, email) == tooOld)
        }
        #expect(try await update(bench, try await bench.signIn(), "sazae@@example.com") == "INVALID_EMAIL")
    }

    @Test func aTakenAddressComesBeforeTheNeedOfProofWhereItMayBeShown() async throws {
        for hides in [false, true] {
            let bench = try await AuthBench.mailing(to: MailCatcher()) { $0.hidesWhoExists = hides }
            _ = try await bench.signUp(Self.taken)
            let session = try await bench.signUp()
            _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
            let verified = try await bench.signIn()
            #expect(verified.uid == session.uid)
            let needsProof = "EMAIL_CHANGE_NEEDS_VERIFICATION"
            let ofTaken = hides ? needsProof : "EMAIL_EXISTS"
            for password in [nil, Self.weak, AuthBench.password + " of another kind"] {
                #expect(try await update(bench, verified, Self.taken, password) == ofTaken)
                #expect(try await update(bench, verified, "namihei@example.com", password) == needsProof)
            }
        }
    }
}
