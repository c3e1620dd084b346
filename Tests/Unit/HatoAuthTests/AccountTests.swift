import HatoModel
import HatoStorage
import HatoTesting
import Testing

@testable import HatoAuth

struct AccountTests {
    private func update(
        _ bench: AuthBench, _ session: Auth.Session, _ change: (inout Auth.Account.Update) -> Void
    ) async throws -> Auth.Account.Update.Result {
        var request = Auth.Account.Update()
        change(&request)
        return try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
    }

    @Test func nameAndPhotoChangeWithoutEndingSessions() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        bench.pass(seconds: 1000)
        let result = try await update(bench, session) {
            $0.displayName = "フグ田マスオ"
            $0.photoUrl = "https://example.com/masuo.png"
        }
        #expect(result.account.displayName == "フグ田マスオ")
        #expect(result.refreshToken == nil)
        #expect(result.expiresIn == 2600, "a new ID token lives no longer than the presented one")
        let claims = try await bench.claims(result.idToken)
        #expect(claims["name"] == "フグ田マスオ")
        #expect(claims["picture"] == "https://example.com/masuo.png")
        #expect(claims["auth_time"] == .number(Double(bench.now / 1000 - 1000)))
        _ = try await bench.refresh(session.refreshToken)

        let deleted = try await update(bench, session) { $0.deleteAttributes = [.displayName, .photoUrl] }
        #expect(deleted.account.displayName == nil)
        #expect(deleted.account.photoUrl == nil)
    }

    @Test func newPasswordEndsEveryOtherSession() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let other = try await bench.signIn()
        bench.pass(seconds: 2)
        let result = try await update(bench, session) { $0.password = "a better one than before" }
        #expect(await wireError { try await bench.refresh(other.refreshToken) }?.code == .unauthenticated)
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.code == .unauthenticated)
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
        let token = try #require(result.refreshToken)
        #expect(try await bench.refresh(token).uid == session.uid)
        #expect(try await bench.signIn("masuo@example.com", "a better one than before").uid == session.uid)
        #expect(result.account.passwordUpdatedAt == bench.now)
    }

    @Test func newEmailMovesTheNameAndMustBeVerifiedAgain() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var verify = Auth.Users.Update(uid: session.uid)
        verify.emailVerified = true
        #expect(try await bench.service.users.updateUser(verify).emailVerified)
        let result = try await update(bench, session) { $0.email = "Fuguta@example.com" }
        #expect(result.account.email == "fuguta@example.com")
        #expect(!result.account.emailVerified)
        #expect(result.account.initialEmail == "masuo@example.com")
        #expect(try await bench.signIn("fuguta@example.com").uid == session.uid)
        // The old e-mail is free.
        #expect(try await bench.signUp("masuo@example.com").uid != session.uid)
    }

    @Test func takenNamesAreRefusedAndNothingChanges() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("sazae@example.com", username: "sazae")
        let session = try await bench.signUp()
        let email = await wireError { try await update(bench, session) { $0.email = "sazae@example.com" } }
        #expect(email?.reason == "EMAIL_EXISTS")
        let name = await wireError { try await update(bench, session) { $0.username = "sazae" } }
        #expect(name?.reason == "USERNAME_EXISTS")
        #expect(try await bench.account(session).email == "masuo@example.com")
        _ = try await bench.refresh(session.refreshToken)
    }

    @Test func credentialChangesRequireARecentSignIn() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        bench.pass(seconds: 301)
        let password = await wireError { try await update(bench, session) { $0.password = "a better one than before" } }
        #expect(password?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        let email = await wireError { try await update(bench, session) { $0.email = "new@example.com" } }
        #expect(email?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        let delete = await wireError { try await bench.service.accounts.deleteAccount(try await bench.origin(session)) }
        #expect(delete?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        // A refreshed token is not a recent sign-in.
        let refreshed = try await bench.refresh(session.refreshToken)
        let again = await wireError { try await update(bench, refreshed) { $0.email = "new@example.com" } }
        #expect(again?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        _ = try await update(bench, refreshed) { $0.displayName = "マスオ" }
        _ = try await update(bench, try await bench.signIn()) { $0.email = "new@example.com" }
    }

    @Test func timesOfAnImpersonatedUserThatAreNoTimesAreIgnored() async throws {
        for time in [-9_223_372_036_854_775_808, -1, 1e300, 253_402_300_800] as [Double] {
            let bench = try await AuthBench.open()
            let session = try await bench.signUp()
            let claims: JSONObject = ["auth_time": .number(time), "iat": .number(time)]
            let origin = CallOrigin(caller: .user(Caller.User(uid: session.uid, claims: claims)))
            _ = try await bench.service.accounts.deleteAccount(origin)
            #expect(await wireError { try await bench.account(session) }?.reason == "USER_NOT_FOUND")
        }
    }

    @Test func takenNameCostsNoHash() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("sazae@example.com")
        let session = try await bench.signUp()
        let hashes = bench.counts.hashes
        let refused = await wireError {
            try await update(bench, session) {
                $0.email = "sazae@example.com"
                $0.password = "a better one than before"
            }
        }
        #expect(refused?.reason == "EMAIL_EXISTS")
        #expect(bench.counts.hashes == hashes)
    }

    @Test func recentSignInIsASetting() async throws {
        let bench = try await AuthBench.open { $0.credentialAgeSecondsMax = 0 }
        let session = try await bench.signUp()
        bench.pass(seconds: 3000)
        _ = try await update(bench, session) { $0.email = "new@example.com" }
    }

    @Test func deletedAccountIsGoneWithItsSessionsAndNames() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(username: "masuo")
        _ = try await bench.service.accounts.deleteAccount(try await bench.origin(session))
        #expect(await wireError { try await bench.account(session) }?.reason == "USER_NOT_FOUND")
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
        #expect(try await bench.signUp(username: "masuo").uid != session.uid)
        let rows = try await bench.store.read { rows in
            var count = 0
            try rows.rows(AuthKey.sessions) { _, _ in
                count += 1
                return true
            }
            return count
        }
        #expect(rows == 1)
    }

    @Test func anonymousAccountBecomesFullByUpdateToo() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        bench.pass(seconds: 3000)
        let half = await wireError { try await update(bench, session) { $0.password = AuthBench.password } }
        #expect(half?.reason == "MISSING_EMAIL")
        let result = try await update(bench, session) {
            $0.email = "masuo@example.com"
            $0.password = AuthBench.password
        }
        #expect(result.account.uid == session.uid)
        #expect(try await bench.claims(result.idToken)["provider_id"] == nil)
        #expect(try await bench.signIn().uid == session.uid)
    }

    @Test func anonymousAccountIsNotGivenAUsernameAlone() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        let username = await wireError { try await update(bench, session) { $0.username = "masuo" } }
        #expect(username?.reason == "MISSING_PASSWORD")
        #expect(username?.data["parameter"] == "password")
        let account = try await bench.account(session)
        #expect(account.email == nil && account.username == nil)
        // An account that an administrator made with a name alone changes it.
        var named = Auth.Users.Update(uid: session.uid)
        named.email = "masuo@example.com"
        #expect(try await bench.service.users.updateUser(named).email == "masuo@example.com")
    }

    @Test func lastNameIsDeletedOnlyWithThePassword() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let own = await wireError { try await update(bench, session) { $0.deleteAttributes = [.email] } }
        #expect(own?.reason == "MISSING_EMAIL")
        #expect(own?.data["parameter"] == "deleteAttributes")
        var request = Auth.Users.Update(uid: session.uid)
        request.deleteAttributes = [.email]
        #expect(await wireError { try await bench.service.users.updateUser(request) }?.reason == "MISSING_EMAIL")
        #expect(try await bench.signIn().uid == session.uid)
        // Another name keeps the password.
        request.username = "masuo"
        #expect(try await bench.service.users.updateUser(request).providerUserInfo.map(\.rawId) == ["masuo"])
        request = Auth.Users.Update(uid: session.uid)
        request.deleteAttributes = [.username, .password]
        let anonymous = try await bench.service.users.updateUser(request)
        #expect(anonymous.providerUserInfo.isEmpty && anonymous.passwordUpdatedAt == nil)
    }

    @Test func passwordIsNotDroppedWhenTheNamesAreDeletedWhileItIsHashed() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(username: "masuo")
        bench.hold(true)
        defer { bench.hold(false) }
        // An administrator speaks as the user, whose own token would end with the password.
        let speaking = CallOrigin(caller: .user(Caller.User(uid: session.uid)))
        var change = Auth.Account.Update()
        change.password = "a better one than before"
        let setting = Task { [change] in
            await wireError { try await bench.service.accounts.updateAccount(change, speaking) }
        }
        try await eventually("the new password is being hashed") { bench.counts.running == 1 }
        var request = Auth.Users.Update(uid: session.uid)
        request.deleteAttributes = [.email, .username, .password]
        _ = try await bench.service.users.updateUser(request)
        bench.hold(false)
        let error = await setting.value
        #expect(error?.reason == "MISSING_EMAIL")
        #expect(error?.data["parameter"] == "email")
    }

    @Test func lastNameStaysWhenTheOtherIsDeletedWhileAPasswordIsHashed() async throws {
        for byAdministrator in [false, true] {
            let bench = try await AuthBench.open()
            let session = try await bench.signUp(username: "masuo")
            bench.hold(true)
            defer { bench.hold(false) }
            let taking = Task {
                await wireError {
                    if byAdministrator {
                        var request = Auth.Users.Update(uid: session.uid)
                        request.password = "a better one than before"
                        request.deleteAttributes = [.email]
                        _ = try await bench.service.users.updateUser(request)
                    } else {
                        _ = try await update(bench, session) {
                            $0.password = "a better one than before"
                            $0.deleteAttributes = [.email]
                        }
                    }
                }
            }
            try await eventually("the new password is being hashed") { bench.counts.running == 1 }
            _ = try await update(bench, session) { $0.deleteAttributes = [.username] }
            bench.hold(false)
            #expect(await taking.value?.reason == "MISSING_EMAIL", "by an administrator: \(byAdministrator)")
            #expect(try await bench.signIn().uid == session.uid)
        }
    }

    @Test func changesWhileAPasswordIsHashedStay() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        bench.hold(true)
        defer { bench.hold(false) }
        let setting = Task { try await update(bench, session) { $0.password = "a better one than before" } }
        try await eventually("the new password is being hashed") { bench.counts.running == 1 }
        _ = try await update(bench, session) { $0.displayName = "マスオ" }
        bench.hold(false)
        #expect(try await setting.value.account.displayName == "マスオ")
        #expect(try await bench.signIn("masuo@example.com", "a better one than before").uid == session.uid)
    }

    @Test func settingAndDeletingOneAttributeIsRefused() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let error = await wireError {
            try await update(bench, session) {
                $0.displayName = "マスオ"
                $0.deleteAttributes = [.displayName]
            }
        }
        #expect(error?.data["parameter"] == "deleteAttributes")
    }

    @Test func administratorAndAnonymousCallerHaveNoAccount() async throws {
        let bench = try await AuthBench.open()
        #expect(
            await wireError { try await bench.service.accounts.account(CallOrigin(caller: .administrator)) }?.code
                == .permissionDenied)
        #expect(await wireError { try await bench.service.accounts.account(CallOrigin()) }?.code == .unauthenticated)
        let session = try await bench.signUp()
        bench.pass(seconds: 3000)
        let speaking = CallOrigin(caller: .user(Caller.User(uid: session.uid)))
        #expect(try await bench.service.accounts.account(speaking).uid == session.uid)
    }

    @Test func updateResultHasSessionAndAccountSideBySide() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let result = try await update(bench, session) { $0.displayName = "マスオ" }
        var writer = JSONWriter()
        result.write(into: &writer)
        let value = try JSONParser.parse(writer.bytes)
        #expect(value["uid"] == .string(session.uid))
        #expect(value["displayName"] == "マスオ")
        #expect(value["idToken"]?.string != nil)
        #expect(value["passwordHash"] == nil)
    }
}
