import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

struct RefreshTests {
    @Test func tokenIsValidOnceAndReturnsItsSuccessor() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        bench.pass(seconds: 100)
        let second = try await bench.refresh(first.refreshToken)
        #expect(second.uid == first.uid)
        #expect(second.refreshToken != first.refreshToken)
        let claims = try await bench.claims(second.idToken)
        #expect(claims["iat"] == .number(Double(bench.now / 1000)))
        #expect(claims["auth_time"] == .number(Double(bench.now / 1000 - 100)), "refreshing is not signing in")
        #expect(try await bench.account(second).lastRefreshAt == bench.now)
        let third = try await bench.refresh(second.refreshToken)
        #expect(Set([first, second, third].map(\.refreshToken)).count == 3)
    }

    @Test func lostResponseIsRepeatedWithinTheGraceWindow() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let second = try await bench.refresh(first.refreshToken)
        bench.pass(seconds: 30)
        let again = try await bench.refresh(first.refreshToken)
        #expect(again.refreshToken == second.refreshToken)
        #expect(try await bench.account(again).lastRefreshAt == bench.now)
        _ = try await bench.refresh(second.refreshToken)
    }

    @Test func concurrentRefreshesGetOneSuccessor() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let successors = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await bench.refresh(first.refreshToken).refreshToken } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(successors.count == 1)
    }

    @Test func responseThatWasLostIsRepeatedForDays() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let lost = try await bench.refresh(first.refreshToken)
        for _ in 0..<3 {
            bench.pass(seconds: 2 * 86_400)
            #expect(try await bench.refresh(first.refreshToken).refreshToken == lost.refreshToken)
        }
        let third = try await bench.refresh(lost.refreshToken)
        #expect(third.refreshToken != lost.refreshToken)
        bench.pass(seconds: 7 * 86_400 + 1)
        #expect(await wireError { try await bench.refresh(lost.refreshToken) }?.reason == "INVALID_REFRESH_TOKEN")
    }

    @Test func usedTokenWhoseSuccessorWasUsedEndsTheSessionForAllHolders() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let other = try await bench.signIn()
        let second = try await bench.refresh(first.refreshToken)
        let third = try await bench.refresh(second.refreshToken)
        bench.pass(seconds: 31)
        #expect(await wireError { try await bench.refresh(first.refreshToken) }?.reason == "INVALID_REFRESH_TOKEN")
        #expect(await wireError { try await bench.refresh(third.refreshToken) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(other.refreshToken)
    }

    @Test func threeLateGenerationsInARowAreTwoHolders() async throws {
        let bench = try await AuthBench.open()
        var token = try await bench.signUp().refreshToken
        // A thief holds a copy of each token and is always late.
        for generation in 0..<3 {
            let successor = try await bench.refresh(token).refreshToken
            bench.pass(seconds: 3600)
            let late = await wireError { try await bench.refresh(token) }
            #expect((late == nil) == (generation < 2))
            token = successor
        }
        #expect(await wireError { try await bench.refresh(token) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func tokensOfTheLastSecondsLeadToTheNewestOne() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        var newest = first
        for _ in 0..<8 { newest = try await bench.refresh(newest.refreshToken) }
        bench.pass(seconds: 30)
        #expect(try await bench.refresh(first.refreshToken).refreshToken == newest.refreshToken)
        let ninth = try await bench.refresh(newest.refreshToken)
        #expect(await wireError { try await bench.refresh(first.refreshToken) }?.code == .unauthenticated, "nine steps")
        #expect(await wireError { try await bench.refresh(ninth.refreshToken) }?.code == .unauthenticated)
    }

    @Test func restartBetweenRotationAndResponseLosesNoSession() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let lost = try await bench.refresh(first.refreshToken)
        let restarted = try await AuthBench.open(since: bench)
        let again = try await restarted.refresh(first.refreshToken)
        #expect(again.refreshToken == lost.refreshToken)
        // Tokens from before are still verified, with the same keys.
        #expect(try await restarted.account(lost).uid == first.uid)
        #expect(restarted.service.publishedKeys == bench.service.publishedKeys)
        restarted.pass(seconds: 31)
        #expect(try await restarted.refresh(first.refreshToken).refreshToken == lost.refreshToken)
    }

    @Test func signOutNeedsATokenOfTheSessionNotOnlyItsId() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let forged = String(session.refreshToken.dropLast(8)) + "AAAAAAAA"
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: forged))
        let second = try await bench.refresh(session.refreshToken)
        let third = try await bench.refresh(second.refreshToken)
        let fourth = try await bench.refresh(third.refreshToken)
        // Another tab may have refreshed since.
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        let ended = await wireError { try await bench.refresh(fourth.refreshToken) }
        #expect(ended?.reason == "TOKEN_EXPIRED")
    }

    @Test func signOutEndsTheSessionAndNoOther() async throws {
        let bench = try await AuthBench.open()
        let first = try await bench.signUp()
        let other = try await bench.signIn()
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: first.refreshToken))
        #expect(await wireError { try await bench.refresh(first.refreshToken) }?.reason == "TOKEN_EXPIRED")
        _ = try await bench.refresh(other.refreshToken)
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: first.refreshToken))
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: "nonsense"))
    }

    @Test func sessionUnusedTooLongExpiresAndIsDeleted() async throws {
        let bench = try await AuthBench.open()
        let idle = try await bench.signUp()
        let used = try await bench.signIn()
        bench.pass(seconds: 20 * 86_400)
        let renewed = try await bench.refresh(used.refreshToken)
        bench.pass(seconds: 10 * 86_400)
        #expect(try await bench.service.forgetExpiredSessions() == 1)
        #expect(try await bench.service.forgetExpiredSessions() == 0)
        #expect(await wireError { try await bench.refresh(idle.refreshToken) }?.code == .unauthenticated)
        _ = try await bench.refresh(renewed.refreshToken)
    }

    /// One damaged row stops neither the other sessions nor the records of commits from being deleted.
    @Test func sessionThatCannotBeReadStopsNoUpkeep() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        _ = try await bench.store.write { rows in
            for byte: UInt8 in [0, 0xFF] {
                rows.putRow(AuthKey.session([UInt8](repeating: byte, count: SessionRecord.idBytes)), [0x7B])
            }
        }
        bench.pass(seconds: 30 * 86_400)
        _ = try await bench.signUp("sazae@example.com")
        bench.pass(seconds: 8 * 86_400)
        _ = try await bench.signUp("namihei@example.com")
        await bench.service.keepUpOnce()
        #expect((bench.store.keptCommits.oldest ?? 0) > 1)
        #expect(try await bench.service.forgetExpiredSessions() == 0)
        let sessions = try await bench.store.read { rows in
            var count = 0
            try rows.rows(AuthKey.sessions) { _, _ in
                count += 1
                return true
            }
            return count
        }
        #expect(sessions == 4, "those that cannot be read, and two new ones")
    }

    @Test func expiredSessionSaysSo() async throws {
        let bench = try await AuthBench.open { $0.refresh.absoluteSeconds = 1000 }
        let session = try await bench.signUp()
        bench.pass(seconds: 999)
        let renewed = try await bench.refresh(session.refreshToken)
        bench.pass(seconds: 1)
        #expect(await wireError { try await bench.refresh(renewed.refreshToken) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func textsThatAreNoRefreshTokenAreRefused() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        for text in ["", "x", session.idToken, session.refreshToken + "A"] {
            #expect(await wireError { try await bench.refresh(text) }?.reason == "INVALID_REFRESH_TOKEN")
        }
        let unknown = String(repeating: "A", count: 64)
        #expect(await wireError { try await bench.refresh(unknown) }?.reason == "TOKEN_EXPIRED", "of no session")
    }

    @Test func storeHoldsNeitherTokensNorPasswords() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let second = try await bench.refresh(session.refreshToken)
        let secrets = [AuthBench.password, session.refreshToken, second.refreshToken, session.idToken]
        let rows = try await bench.store.read { rows in
            var all: [String] = []
            try rows.rows(KeyRange(lower: [], upper: nil)) { key, value in
                all.append(String(decoding: key + value, as: UTF8.self))
                return true
            }
            return all
        }
        #expect(rows.count > 5)
        for row in rows {
            for secret in secrets { #expect(!row.contains(secret) && !row.contains(secret.suffix(43))) }
        }
    }
}

struct RefreshRotationStateMachineTests {
    private let policy = RefreshPolicy()
    private let hashes = (0..<24).map { [UInt8](repeating: $0, count: 32) }

    /// The chain of the token with this number.
    private func chain(_ number: Int) -> [[UInt8]] {
        Array(hashes[number...].prefix(RefreshRotationStateMachine.stepsMax + 1))
    }

    @Test func currentTokenRotates() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        #expect(machine.tokenWasPresented(chain(0), now: 5, policy: policy) == .rotate)
        #expect(machine.currentHash == hashes[1])
        #expect(machine.previousHash == hashes[0])
        #expect(machine.rotatedAt == 5)
    }

    @Test func previousTokenRepeatsForTheGraceWindowAndChangesNothing() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        _ = machine.tokenWasPresented(chain(0), now: 0, policy: policy)
        let before = machine
        #expect(machine.tokenWasPresented(chain(0), now: 30_000, policy: policy) == .repeatNewest(steps: 1))
        #expect(machine == before)
        #expect(machine.tokenWasPresented(chain(0), now: 30_001, policy: policy) == .repeatLate)
        #expect(machine.lateInARow == 1)
        let late = machine
        #expect(machine.tokenWasPresented(chain(0), now: 7 * 86_400_000, policy: policy) == .repeatLate)
        #expect(machine == late, "a generation counts once")
        #expect(machine.tokenWasPresented(chain(0), now: 7 * 86_400_000 + 1, policy: policy) == .endReused)
    }

    @Test func aGenerationWithoutALateRepetitionEndsTheRow() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        var now: Int64 = 0
        for number in 0..<12 {
            #expect(machine.tokenWasPresented(chain(number), now: now, policy: policy) == .rotate)
            now += 3_600_000
            if number % 3 < 2 {
                #expect(machine.tokenWasPresented(chain(number), now: now, policy: policy) == .repeatLate)
            }
        }
    }

    @Test func earlierTokensLeadToTheNewestWithinTheWindowOfTheirOwnUse() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        for number in 0..<4 {
            #expect(machine.tokenWasPresented(chain(number), now: Int64(number) * 10_000, policy: policy) == .rotate)
        }
        // Used at 0, 10, 20 and 30 s.
        for (number, steps) in [(0, 4), (1, 3), (2, 2), (3, 1)] {
            var machine = machine
            let end = Int64(number) * 10_000 + 30_000
            #expect(machine.tokenWasPresented(chain(number), now: end, policy: policy) == .repeatNewest(steps: steps))
            guard steps > 1 else { continue }
            #expect(machine.tokenWasPresented(chain(number), now: end + 1, policy: policy) == .endReused)
        }
    }

    @Test func usesAreKeptAsLongAsTheyCount() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        for number in 0..<12 { _ = machine.tokenWasPresented(chain(number), now: 1, policy: policy) }
        #expect(machine.earlierUses?.count == RefreshRotationStateMachine.stepsMax - 1)
        _ = machine.tokenWasPresented(chain(12), now: 60_000, policy: policy)
        #expect(machine.earlierUses == nil)
    }

    @Test func unknownTokenOfASessionEndsIt() {
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        #expect(machine.tokenWasPresented(chain(5), now: 0, policy: policy) == .endReused)
    }

    @Test func idleAndAbsoluteExpiryAreCheckedFirst() {
        var policy = RefreshPolicy()
        policy.idleSeconds = 10
        policy.absoluteSeconds = 15
        var machine = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        #expect(machine.tokenWasPresented(chain(0), now: 9_999, policy: policy) == .rotate)
        #expect(machine.tokenWasPresented(chain(1), now: 15_000, policy: policy) == .endExpired)
        var idle = RefreshRotationStateMachine(currentHash: hashes[0], createdAt: 0)
        #expect(idle.tokenWasPresented(chain(0), now: 10_000, policy: policy) == .endExpired)
    }
}
