import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

/// `auth.signUp` with `dryRun`: the problems of a form while people fill it in.
@Suite(.timeLimit(.minutes(10)))
struct SignUpCheckTests {
    private func problems(
        _ bench: AuthBench, _ change: (inout Auth.SignUp) -> Void
    ) async -> [[String]] {
        var request = Auth.SignUp(email: "masuo@example.com", password: AuthBench.password, username: "masuo")
        change(&request)
        let refused = await wireError { [request] in try await bench.service.signUps.check(request, CallOrigin()) }
        return (refused?.data["problems"]?.array ?? refused.map { [.object($0.data)] } ?? []).map {
            [$0["parameter"]?.string ?? "", $0["reason"]?.string ?? ""]
        }
    }

    @Test func aRightFormHasNoProblemAndMakesNoAccount() async throws {
        let bench = try await AuthBench.open()
        #expect(await problems(bench) { _ in } == [])
        #expect(await problems(bench) { $0 = Auth.SignUp() } == [], "an anonymous account")
        #expect(bench.counts.hashes == 0)
        #expect(try await bench.service.users.users(Auth.Users.List()).users.isEmpty)
    }

    @Test func everyProblemComesAtOnceATakenUsernameAmongThem() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("masuo@example.com", username: "masuo")
        let found = await problems(bench) {
            ($0.email, $0.username, $0.password, $0.displayName) = ("x", "Masuo", "short", "a\nb")
            $0.label = "\u{0}"
        }
        #expect(
            found == [
                ["label", "INVALID_LABEL"], ["username", "USERNAME_EXISTS"], ["email", "INVALID_EMAIL"],
                ["password", "WEAK_PASSWORD"], ["displayName", "INVALID_DISPLAY_NAME"],
            ])
        #expect(
            await problems(bench) { ($0.username, $0.password) = ("sazae", nil) } == [["password", "MISSING_PASSWORD"]])
    }

    @Test func aTakenAddressIsShownOnlyWhereItMayBe() async throws {
        let silent = try await AuthBench.open()
        _ = try await silent.signUp("masuo@example.com")
        #expect(await problems(silent) { _ in } == [])
        let open = try await AuthBench.open { $0.hidesWhoExists = false }
        _ = try await open.signUp("masuo@example.com")
        #expect(await problems(open) { _ in } == [["email", "EMAIL_EXISTS"]])
    }

    @Test func theAccountOfTheTokenMayHaveTheNames() async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.anonymous()
        var update = Auth.Users.Update(uid: anonymous.uid)
        update.username = "masuo"
        _ = try await bench.service.users.updateUser(update)
        #expect(await problems(bench) { _ in } == [["username", "USERNAME_EXISTS"]])
        #expect(await problems(bench) { $0.idToken = anonymous.idToken } == [])
        let full = try await bench.signUp("sazae@example.com")
        #expect(await problems(bench) { $0.idToken = full.idToken } == [["idToken", "PROVIDER_ALREADY_LINKED"]])
    }

    @Test func whereSignUpIsNotOpenNoTakenNameIsShown() async throws {
        for policy in [Auth.SignUpPolicy.invited, .closed] {
            let bench = try await AuthBench.open { ($0.signUp, $0.hidesWhoExists) = (policy, false) }
            var user = Auth.Users.Create()
            (user.email, user.username) = ("masuo@example.com", "masuo")
            _ = try await bench.service.users.createUser(user)
            for email in ["masuo@example.com", "sazae@example.com", "x"] {
                var request = Auth.SignUp(email: email, password: AuthBench.password, username: "masuo")
                request.displayName = "a\nb"
                let refused = await wireError { [request] in
                    try await bench.service.signUps.check(request, CallOrigin())
                }
                #expect(refused?.reason == "ADMIN_ONLY_OPERATION", "\(policy) \(email)")
            }
        }
    }

    /// The names of an account without password stay its own when it gets one.
    @Test(arguments: [true, false]) func anAccountGetsAPasswordForItsOwnNames(namesThem: Bool) async throws {
        let bench = try await AuthBench.open()
        let held = try await withAddress("masuo@example.com", bench)
        var update = Auth.Users.Update(uid: held.uid)
        (update.username, update.emailVerified) = ("masuo", true)
        _ = try await bench.service.users.updateUser(update)
        var request = Auth.SignUp(password: AuthBench.password)
        if namesThem { (request.email, request.username) = ("masuo@example.com", "masuo") }
        request.idToken = held.idToken
        try await bench.service.signUps.check(request, CallOrigin())
        #expect(bench.counts.hashes == 0)
        let after = try await bench.service.signUps.signUp(request, CallOrigin())
        #expect(after.uid == held.uid)
        #expect(try await bench.signIn().uid == held.uid)
        let account = try await bench.account(after)
        #expect(account.emailVerified && account.username == "masuo")
    }

    @Test func aPasswordThatIsTheOwnNameIsWeak() async throws {
        let bench = try await AuthBench.open()
        let held = try await withAddress("masuo.fuguta.of.tokyo@example.com", bench)
        var request = Auth.SignUp(password: "masuo.fuguta.of.tokyo@example.com")
        request.idToken = held.idToken
        for refused in [
            await wireError { [request] in try await bench.service.signUps.check(request, CallOrigin()) },
            await wireError { [request] in _ = try await bench.service.signUps.signUp(request, CallOrigin()) },
        ] { #expect(refused?.reason == "WEAK_PASSWORD") }
    }

    /// An account that has nothing to sign in with again is not held to a sign-in of the last minutes.
    @Test func anAccountThatCannotSignInAgainIsUpgradedAndDeletedAtAnyTime() async throws {
        let bench = try await AuthBench.open()
        let withPhone = try await bench.anonymous()
        var update = Auth.Users.Update(uid: withPhone.uid)
        update.phoneNumber = "+81312345678"
        _ = try await bench.service.users.updateUser(update)
        let withAddress = try await withAddress("masuo@example.com", bench)
        bench.pass(seconds: 3_000)
        _ = try await bench.service.accounts.deleteAccount(try await bench.origin(withPhone))
        let after = try await bench.upgrade(withAddress, "masuo@example.com")
        bench.pass(seconds: 3_000)
        let late = await wireError {
            _ = try await bench.service.accounts.deleteAccount(try await bench.origin(after))
        }
        #expect(late?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN", "it has a password now")
    }

    /// An anonymous account that has taken an address alone.
    private func withAddress(_ email: String, _ bench: AuthBench) async throws -> Auth.Session {
        let session = try await bench.anonymous()
        var request = Auth.Account.Update()
        request.email = email
        let updated = try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
        return Auth.Session(
            uid: session.uid, idToken: updated.idToken, refreshToken: try #require(updated.refreshToken),
            expiresIn: updated.expiresIn, isNewUser: false)
    }

    @Test func checksHaveALimitOfTheirOwn() async throws {
        let bench = try await AuthBench.open {
            $0.limits.signUpChecksPerAddress = RateLimit(burst: 2, perMinute: 1)
        }
        let origin = CallOrigin(address: ClientAddress("192.0.2.1"))
        let request = Auth.SignUp(email: "masuo@example.com", password: AuthBench.password)
        for _ in 0..<2 { try await bench.service.signUps.check(request, origin) }
        let third = await wireError { try await bench.service.signUps.check(request, origin) }
        #expect(third?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        _ = try await bench.service.signUps.signUp(request, origin)
    }
}
