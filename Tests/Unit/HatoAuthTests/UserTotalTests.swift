import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// The number of all accounts, which no method reads all of them for.
@Suite(.timeLimit(.minutes(10)))
struct UserTotalTests {
    private func total(_ bench: AuthBench) async throws -> Int? {
        var request = Auth.Users.List(limit: 1)
        request.total = true
        return try await bench.service.users.users(request).total
    }

    @Test func allWaysToMakeAndDeleteAccountsCount() async throws {
        let bench = try await AuthBench.open()
        #expect(try await total(bench) == 0)
        #expect(try await bench.service.users.users(Auth.Users.List()).total == nil)
        let masuo = try await bench.signUp()
        let anonymous = try await bench.anonymous()
        _ = try await bench.signIn(customToken: try bench.customToken("custom"))
        #expect(await wireError { try await bench.signUp() } != nil)
        var create = Auth.Users.Create()
        create.email = "sazae@example.com"
        _ = try await bench.service.users.createUser(create)
        let rows = ["a", "b", "custom"].map { Auth.Users.Row(uid: $0) }
        _ = try await MovingMethods(service: bench.service).importUsers(Auth.Users.Import(users: rows))
        #expect(try await total(bench) == 6)
        // Changes are none.
        _ = try await bench.upgrade(anonymous, "tara@example.com")
        _ = try await bench.signIn()
        #expect(try await total(bench) == 6)
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: "a"))
        bench.pass(seconds: 2)
        let again = try await bench.signIn()
        _ = try await bench.service.accounts.deleteAccount(try await bench.origin(again))
        #expect(try await total(bench) == 4)
        #expect(try await bench.service.users.users(Auth.Users.List()).users.count == 4)
        _ = try await bench.anonymous()
        bench.pass(seconds: 31 * 86_400)
        try await AnonymousUpkeep(service: bench.service).forgetUnused()
        #expect(try await total(bench) == 4)
        #expect(masuo.uid == again.uid)
    }

    @Test func aStoreFromBeforeIsCounted() async throws {
        let bench = try await AuthBench.open { $0.keepAuditDays = 0 }
        for number in 0..<3 { _ = try await bench.signUp("u\(number)@example.com") }
        #expect(try await total(bench) == 3)
        _ = try await bench.store.write { $0.deleteRow(AuthKey.figures) }
        let reopened = try await AuthBench.open(since: bench) { $0.keepAuditDays = 0 }
        #expect(try await total(reopened) == 3)
        _ = try await reopened.anonymous()
        #expect(try await total(reopened) == 4)
    }
}
