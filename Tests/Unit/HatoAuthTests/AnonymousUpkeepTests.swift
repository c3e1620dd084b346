import HatoFollow
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Anonymous accounts that are no longer used.
@Suite struct AnonymousUpkeepTests {
    private static let day: Int64 = 86_400

    private func exists(_ bench: AuthBench, _ session: Auth.Session) async throws -> Bool {
        try await bench.store.read { try AccountRows.find(session.uid, in: $0) != nil }
    }

    @Test func unusedAnonymousAccountsAreDeletedAndNoOthers() async throws {
        let bench = try await AuthBench.open { $0.refresh.idleSeconds = 365 * Self.day }
        let (unused, named, full) = (try await bench.anonymous(), try await bench.anonymous(), try await bench.signUp())
        _ = try await bench.upgrade(named, "tara@example.com")
        var used = try await bench.anonymous()
        bench.pass(seconds: 29 * Self.day)
        used = try await bench.refresh(used.refreshToken)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 0)
        bench.pass(seconds: 2 * Self.day)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 1)
        #expect(try await !exists(bench, unused))
        for session in [named, full, used] { #expect(try await exists(bench, session)) }
        let ended = try bench.store.commits(after: 0, limit: 1_000).flatMap(AccountEvent.events).last
        #expect(ended?.type == .deleted && ended?.until == bench.now, "no token is left to refuse")
        // With its sessions.
        #expect(try await bench.store.read { try SessionRows.ids(of: unused.uid, in: $0) }.isEmpty)
        await #expect(throws: AuthError.self) { try await bench.refresh(unused.refreshToken) }
        _ = try await bench.refresh(used.refreshToken)
    }

    /// Users of custom tokens, and anonymous ones of another service, have no credential here yet.
    @Test func accountsOfAnAdministratorStay() async throws {
        let bench = try await AuthBench.open()
        var row = Auth.Users.Row(uid: "imported")
        (row.createdAt, row.lastLoginAt) = (1_600_000_000_000, 1_600_000_000_000)
        _ = try await MovingMethods(service: bench.service).importUsers(Auth.Users.Import(users: [row]))
        var request = Auth.Users.Create()
        request.uid = "made"
        _ = try await bench.service.users.createUser(request)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 0)
        bench.pass(seconds: 400 * Self.day)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 0)
        #expect(try await bench.service.users.users(Auth.Users.List()).users.map(\.uid) == ["imported", "made"])
    }

    @Test func zeroDaysKeepThemForEver() async throws {
        let bench = try await AuthBench.open { $0.anonymousDays = 0 }
        let session = try await bench.anonymous()
        bench.pass(seconds: 10_000 * Self.day)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 0)
        #expect(try await exists(bench, session))
    }

    @Test func manyAreDeletedPageByPage() async throws {
        let bench = try await AuthBench.open()
        for number in 0..<450 {
            _ = try await bench.service.write { [bench] rows in
                let uid = "u\(number)"
                AccountRows.put(AccountRecord(uid: uid, createdAt: bench.now), replacing: nil, in: rows)
            }
        }
        bench.pass(seconds: 31 * Self.day)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 450)
        #expect(try await AnonymousUpkeep(service: bench.service).forgetUnused() == 0)
    }
}
