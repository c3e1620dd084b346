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
        }
        #expect(
            found == [
                ["username", "USERNAME_EXISTS"], ["email", "INVALID_EMAIL"], ["password", "WEAK_PASSWORD"],
                ["displayName", "INVALID_DISPLAY_NAME"],
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
