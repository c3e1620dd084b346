import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// A uid that is given to another account after its first one was deleted.
struct FormerAccountTests {
    private static let uid = "masuo-1"

    private func create(_ bench: AuthBench, _ email: String) async throws {
        var request = Auth.Users.Create()
        request.uid = Self.uid
        request.email = email
        request.password = AuthBench.password
        _ = try await bench.service.users.createUser(request)
    }

    /// The session of the first account, which has been deleted since.
    private func former(_ bench: AuthBench) async throws -> Auth.Session {
        try await create(bench, "masuo@example.com")
        let session = try await bench.signIn()
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: Self.uid))
        return session
    }

    private func expectSeparate(_ bench: AuthBench, _ former: Auth.Session) async throws {
        let session = try await bench.signIn("sazae@example.com")
        #expect(session.uid == Self.uid)
        #expect(try await bench.account(session).email == "sazae@example.com")
        let refreshed = try await bench.refresh(session.refreshToken)
        #expect(try await bench.account(refreshed).email == "sazae@example.com")
        var update = Auth.Account.Update()
        update.displayName = "サザエさん"
        let renamed = try await bench.service.accounts.updateAccount(update, try await bench.origin(session))
        let caller = CallOrigin(caller: try await bench.service.authenticator.authenticate(renamed.idToken))
        #expect(try await bench.service.accounts.account(caller).displayName == "サザエさん")
        #expect(await wireError { try await bench.account(former) }?.reason == "TOKEN_EXPIRED")
        let deletion = await wireError {
            try await bench.service.accounts.deleteAccount(try await bench.origin(former))
        }
        #expect(deletion?.reason == "TOKEN_EXPIRED")
        let late = await wireError { try await bench.refresh(former.refreshToken) }
        #expect(late?.reason == "TOKEN_EXPIRED")
    }

    @Test func anAccountTakesNoTokenOfTheFormerOneNotEvenInTheSameSecond() async throws {
        let bench = try await AuthBench.open()
        let former = try await former(bench)
        try await create(bench, "sazae@example.com")
        try await expectSeparate(bench, former)
    }

    @Test func norAfterARestartAndWithAClockThatWasSetBack() async throws {
        let bench = try await AuthBench.open()
        let former = try await former(bench)
        let restarted = try await AuthBench.open(since: bench)
        restarted.pass(seconds: -3)
        try await create(restarted, "sazae@example.com")
        try await expectSeparate(restarted, former)
    }

    @Test func ownersOfADeletedAccountLeaveTheSameRecord() async throws {
        let bench = try await AuthBench.open()
        try await create(bench, "masuo@example.com")
        let session = try await bench.signIn()
        _ = try await bench.service.accounts.deleteAccount(try await bench.origin(session))
        try await create(bench, "sazae@example.com")
        try await expectSeparate(bench, session)
    }

    @Test func whatStaysOfADeletedAccountStaysForADay() async throws {
        let bench = try await AuthBench.open()
        _ = try await former(bench)
        func kept() async throws -> Int {
            try await bench.store.read { rows in
                var count = 0
                try rows.rows(AuthKey.formerAccounts) { _, _ in
                    count += 1
                    return true
                }
                return count
            }
        }
        bench.pass(seconds: 86_400)
        try await bench.service.forgetFormerAccounts()
        #expect(try await kept() == 1)
        bench.pass(seconds: 61)
        try await bench.service.forgetFormerAccounts()
        #expect(try await kept() == 0)
    }

    @Test func recordHasTheseBytes() throws {
        var account = AccountRecord(uid: Self.uid, createdAt: 1_795_000_000_000)
        let bytes = FormerAccountRecord(account, now: 1_795_000_000_999).bytes
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"validSince":1795000001,"until":1795086460999}"#)
        account.lastRefreshAt = 1_795_000_005_000
        #expect(FormerAccountRecord(account, now: 1_795_000_000_999).validSince == 1_795_000_006)
        // A time that an import has brought from another clock keeps the uid for another day at most.
        account.lastLoginAt = 253_000_000_000_000
        let late = FormerAccountRecord(account, now: 1_795_000_000_999)
        #expect(late.validSince == 1_795_086_401 && late.until == 1_795_172_860_999)
        #expect(try FormerAccountRecord(bytes).until == 1_795_086_460_999)
    }
}
