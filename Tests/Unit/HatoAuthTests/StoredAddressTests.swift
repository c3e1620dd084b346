import HatoModel
import Testing

@testable import HatoAuth

/// Addresses to which no mail can be sent, of accounts that an earlier version has made.
struct StoredAddressTests {
    /// Its first label has more than 63 bytes in ASCII.
    private static let email = "masuo@" + String(repeating: "鳩", count: 60) + ".jp"

    private func importing(_ row: Auth.Users.Row, to bench: AuthBench) async throws -> Int {
        try await MovingMethods(service: bench.service).importUsers(Auth.Users.Import(users: [row])).imported
    }

    private func bench() async throws -> AuthBench {
        let bench = try await AuthBench.mailing(to: MailCatcher()) {
            $0.limits.codePauseMs = 0
            $0.hidesWhoExists = false
        }
        var row = Auth.Users.Row(uid: "masuo")
        row.email = Self.email
        row.initialEmail = Self.email
        #expect(try await importing(row, to: bench) == 1)
        var update = Auth.Users.Update(uid: "masuo")
        update.password = AuthBench.password
        _ = try await bench.service.users.updateUser(update)
        return bench
    }

    @Test func itsAccountSignsInAndIsFound() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(Self.email)
        #expect(session.uid == "masuo")
        #expect(try await bench.service.users.user(Auth.Users.Get(email: Self.email)).uid == "masuo")
        let methods = try await ProviderMethods(service: bench.service).signInMethods(
            Auth.SignInMethods(email: Self.email), CallOrigin())
        #expect(methods.methods == ["password"])
        var update = Auth.Account.Update()
        (update.email, update.displayName) = (Self.email, "マスオさん")
        let origin = try await bench.origin(session)
        _ = try await bench.service.accounts.updateAccount(update, origin)
        #expect(try await bench.account(session).displayName == "マスオさん")
    }

    @Test func itsAccountGoesToAnotherService() async throws {
        let bench = try await bench()
        let rows = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export()).users
        let row = try #require(rows.first)
        #expect(row.email == Self.email)
        let other = try await AuthBench.open()
        #expect(try await importing(row, to: other) == 1)
        #expect(try await other.signIn(Self.email).uid == "masuo")
    }

    @Test func itGetsNoMailAndIsNotSetAnew() async throws {
        let bench = try await bench()
        let request = await wireError { try await bench.request(.passwordReset, Self.email) }
        #expect(request?.reason == "INVALID_EMAIL")
        let origin = try await bench.origin(try await bench.signIn(Self.email))
        let own = await wireError { try await bench.request(.verifyEmail, by: origin) }
        #expect(own?.reason == "INVALID_EMAIL")
        #expect(try await bench.queue().isEmpty)
        let other = "a" + Self.email
        #expect(await wireError { try await bench.signUp(other) }?.reason == "INVALID_EMAIL")
        var update = Auth.Users.Update(uid: "masuo")
        update.email = other
        let updated = await wireError { [update] in try await bench.service.users.updateUser(update) }
        #expect(updated?.reason == "INVALID_EMAIL")
        // An administrator gives the code to the person.
        let code = try await bench.code(.signIn, Self.email)
        #expect(try await bench.signIn(code: try #require(code.digits), Self.email).uid == "masuo")
    }
}
