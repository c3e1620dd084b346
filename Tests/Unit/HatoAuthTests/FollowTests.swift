import HatoFollow
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

struct FollowTests {
    /// The events of all commits that are kept, after `version`.
    private func events(_ bench: AuthBench, after version: UInt64 = 0) throws -> [AccountEvent] {
        let kept = (bench.store.keptCommits.oldest ?? bench.store.version + 1) - 1
        return try bench.store.commits(after: max(version, kept), limit: 10_000).flatMap(AccountEvent.events)
    }

    private func events(_ bench: AuthBench, of body: () async throws -> Void) async throws -> [AccountEvent] {
        let version = bench.store.version
        try await body()
        return try events(bench, after: version)
    }

    private func name(_ session: Auth.Session, _ bench: AuthBench) async throws -> String? {
        try await bench.claims(session.idToken)["sid"]?.string
    }

    @Test func accountIsCreatedChangedAndDeleted() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(name: "マスオさん")
        let created = try events(bench)
        #expect(created.map(\.type) == [.created] && created[0].uid == session.uid && created[0].time == bench.now)
        #expect(created[0].profile == Auth.PublicProfile(displayName: "マスオさん"))

        let renamed = try await events(bench) {
            var request = Auth.Account.Update()
            request.displayName = "フグ田マスオ"
            _ = try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
        }
        #expect(renamed.map(\.type) == [.updated])
        #expect(renamed[0].profile == Auth.PublicProfile(displayName: "フグ田マスオ"))

        let deleted = try await events(bench) {
            _ = try await bench.service.accounts.deleteAccount(try await bench.origin(session))
        }
        #expect(deleted.map(\.type) == [.deleted] && deleted[0].uid == session.uid, "and its session with it")
        // Its tokens may be ahead of the clock; the last of them has expired after their lifetime.
        #expect(deleted[0].since == bench.now / 1000 + 1 && deleted[0].until == bench.now + 3_600_000)
    }

    @Test func endOfTokensAndSessionsIsRecorded() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let second = try await bench.signIn()
        let (one, two) = (try await name(first, bench), try await name(second, bench))
        let signedOut = try await events(bench) {
            _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: first.refreshToken))
        }
        #expect(signedOut.map(\.type) == [.signedOut] && signedOut[0].session == one)
        #expect(signedOut[0].until == bench.now + 3_600_000)

        bench.pass(seconds: 60)
        let revoked = try await events(bench) {
            _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: first.uid))
        }
        #expect(Set(revoked.map(\.type)) == [.revoked, .signedOut])
        #expect(revoked.first { $0.type == .revoked }?.since == bench.now / 1000 + 1)
        #expect(revoked.first { $0.type == .signedOut }?.session == two)

        var disable = Auth.Users.Update(uid: first.uid)
        disable.disabled = true
        let disabled = try await events(bench) { [disable] in _ = try await bench.service.users.updateUser(disable) }
        #expect(disabled.map(\.type) == [.disabled])
        bench.pass(seconds: 60)
        disable.disabled = false
        let enabled = try await events(bench) { [disable] in _ = try await bench.service.users.updateUser(disable) }
        #expect(Set(enabled.map(\.type)) == [.enabled, .revoked])
    }

    @Test func signInsAndRefreshesRecordNothing() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        let found = try await events(bench) {
            let session = try await bench.signIn()
            bench.pass(seconds: 60)
            _ = try await bench.refresh(session.refreshToken)
        }
        #expect(found.isEmpty)
    }

    @Test func eventsAreKeptForTheirTime() async throws {
        let bench = try await AuthBench.open()
        for name in ["masuo", "sazae", "namihei"] {
            _ = try await bench.signUp("\(name)@example.com")
            await bench.service.keepUpOnce()
            if name != "namihei" { bench.pass(seconds: 8 * 86_400) }
        }
        #expect(try events(bench).count == 2, "those of the last seven days, and of the hour before them")
        let marks = try await bench.store.read { try EventMarks.keys(through: .max, in: $0) }
        #expect(marks.count == 1)
    }

    @Test func olderHalfOfTheEventsIsDeletedWhenTheyTakeTooMuchRoom() async throws {
        let bench = try await AuthBench.open { $0.limits.eventsBytesMax = 1 << 20 }
        for number in 0..<8 {
            var request = Auth.Users.Create()
            request.email = "u\(number)@example.com"
            request.password = AuthBench.password
            request.displayName = "\(number)"
            _ = try await bench.service.users.createUser(request)
        }
        await bench.service.keepUpOnce()
        #expect(try events(bench).count == 8)
        let full = try await AuthBench.open(since: bench) { $0.limits.eventsBytesMax = 600 }
        await full.service.keepRoom()
        let kept = try events(full)
        #expect(!kept.isEmpty && kept.count < 8 && full.store.keptCommits.bytes < 2_000)
        #expect(kept.last?.profile?.displayName == "7", "the newest stay")
    }
}
