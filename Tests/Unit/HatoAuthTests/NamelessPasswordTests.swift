import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Passwords that administrators set before there is an e-mail address or a username (spec auth §2, §5).
@Suite(.timeLimit(.minutes(10)))
struct NamelessPasswordTests {
    private func created(_ bench: AuthBench, _ uid: String = "masuo") async throws -> Auth.Account {
        var request = Auth.Users.Create()
        (request.uid, request.password) = (uid, AuthBench.password)
        return try await bench.service.users.createUser(request)
    }

    private func update(
        _ bench: AuthBench, _ uid: String = "masuo", _ change: (inout Auth.Users.Update) -> Void
    ) async throws -> Auth.Account {
        var request = Auth.Users.Update(uid: uid)
        change(&request)
        return try await bench.service.users.updateUser(request)
    }

    private func record(_ bench: AuthBench, _ uid: String = "masuo") async throws -> AccountRecord {
        try #require(try await bench.store.read { try AccountRows.find(uid, in: $0) })
    }

    @Test func itIsKeptAndSignsInOnceThereIsAName() async throws {
        let bench = try await AuthBench.open()
        let account = try await created(bench)
        #expect(account.passwordUpdatedAt == bench.now)
        #expect(account.providerUserInfo.isEmpty, "nothing signs in with it")
        let before = await wireError { try await bench.signIn("masuo@example.com") }
        #expect(before?.reason == "INVALID_LOGIN_CREDENTIALS")
        // What has nothing to do with it leaves it as it is.
        #expect(try await update(bench) { $0.displayName = "マスオ" }.passwordUpdatedAt == bench.now)
        let named = try await update(bench) { $0.email = "masuo@example.com" }
        #expect(named.providerUserInfo.map(\.rawId) == ["masuo@example.com"])
        #expect(try await bench.signIn("masuo@example.com").uid == "masuo")
        let other = try await created(bench, "sazae")
        #expect(try await update(bench, other.uid) { $0.username = "sazae" }.providerUserInfo.map(\.rawId) == ["sazae"])
        #expect(try await bench.signIn(nil, username: "sazae").uid == "sazae")
    }

    @Test func aWeakOneIsRefused() async throws {
        let bench = try await AuthBench.open()
        var request = Auth.Users.Create()
        request.password = "short"
        let refused = await wireError { [request] in _ = try await bench.service.users.createUser(request) }
        #expect(refused?.reason == "WEAK_PASSWORD")
        #expect(try await bench.service.users.users(Auth.Users.List()).users.isEmpty)
    }

    @Test func anAdministratorSetsAndDeletesIt() async throws {
        let bench = try await AuthBench.open()
        var request = Auth.Users.Create()
        request.uid = "masuo"
        _ = try await bench.service.users.createUser(request)
        #expect(try await update(bench) { $0.password = AuthBench.password }.passwordUpdatedAt == bench.now)
        #expect(try await record(bench).passwordHash != nil)
        #expect(try await update(bench) { $0.deleteAttributes = [.password] }.passwordUpdatedAt == nil)
        #expect(try await record(bench).passwordHash == nil)
    }

    @Test func itMovesToAnotherService() async throws {
        let bench = try await AuthBench.open()
        _ = try await created(bench)
        let exported = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export())
        #expect(exported.users.map(\.uid) == ["masuo"])
        let other = try await AuthBench.open()
        let imported = try await MovingMethods(service: other.service)
            .importUsers(Auth.Users.Import(users: exported.users))
        #expect(imported.imported == 1 && imported.errors.isEmpty)
        #expect(try await record(other).passwordHash?.text == record(bench).passwordHash?.text)
        _ = try await update(other) { $0.email = "masuo@example.com" }
        #expect(try await other.signIn("masuo@example.com").uid == "masuo")
    }

    /// The owner has signed in with a custom token, and not with the password.
    @Test func theOwnerGivesItANameOrReplacesIt() async throws {
        for replaces in [false, true] {
            let bench = try await AuthBench.open()
            _ = try await created(bench)
            let session = try await bench.signIn(customToken: try bench.customToken("masuo"))
            var rename = Auth.Account.Update()
            rename.displayName = "マスオ"
            let renamed = try await bench.service.accounts.updateAccount(rename, try await bench.origin(session))
            #expect(renamed.account.passwordUpdatedAt != nil)
            if replaces {
                var request = Auth.SignUp(email: "masuo@example.com", password: "a better one than before")
                request.idToken = session.idToken
                #expect(try await bench.service.signUps.signUp(request, CallOrigin()).uid == "masuo")
                #expect(try await bench.signIn("masuo@example.com", "a better one than before").uid == "masuo")
                #expect(await wireError { try await bench.signIn("masuo@example.com") } != nil)
            } else {
                var request = Auth.Account.Update()
                request.email = "masuo@example.com"
                _ = try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
                #expect(try await bench.signIn("masuo@example.com").uid == "masuo")
            }
        }
    }

    /// It is no way to sign in, and people set none for themselves.
    @Test func itIsNoWayInForItsOwner() async throws {
        #expect(!WaysIn(allowsPassword: true, mailsCodes: false, providers: []).isLeft(nameless))
        #expect(!nameless.hasCredential(byMail: true))
        var named = nameless
        named.username = "masuo"
        #expect(WaysIn(allowsPassword: true, mailsCodes: false, providers: []).isLeft(named))
        let bench = try await AuthBench.open()
        let session = try await bench.anonymous()
        var request = Auth.Account.Update()
        request.password = AuthBench.password
        let origin = try await bench.origin(session)
        let refused = await wireError { [request] in
            _ = try await bench.service.accounts.updateAccount(request, origin)
        }
        #expect(refused?.reason == "MISSING_EMAIL")
    }

    private var nameless: AccountRecord {
        var account = AccountRecord(uid: "masuo", createdAt: 0)
        account.passwordHash = PasswordHash("$2b$10$" + String(repeating: "a", count: 53))
        return account
    }

    @Test func anAnonymousAccountThatGotOneIsNotDeletedForBeingUnused() async throws {
        let bench = try await AuthBench.open()
        let (kept, unused) = (try await bench.anonymous(), try await bench.anonymous())
        _ = try await update(bench, kept.uid) { $0.password = AuthBench.password }
        bench.pass(seconds: 400 * 86_400)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 1)
        #expect(try await record(bench, kept.uid).passwordHash != nil)
        #expect(try await bench.store.read { try AccountRows.find(unused.uid, in: $0) } == nil)
    }
}
