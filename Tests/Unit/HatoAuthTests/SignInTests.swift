import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoAuth

private final class Count: Sendable {
    let value = Mutex(0)
}

private final class Flag: Sendable {
    let isSet = Mutex(false)
}

struct SignInTests {
    @Test func unknownNameAndWrongPasswordHaveTheSameErrorAndCost() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(username: "masuo")
        _ = try await bench.anonymous()
        var errors: [RPCError?] = []
        for attempt in 0..<4 {
            let before = bench.counts.hashes
            errors.append(
                await wireError {
                    switch attempt {
                    case 0: try await bench.signIn("masuo@example.com", "wrong password, alas")
                    case 1: try await bench.signIn("nobody@example.com", "wrong password, alas")
                    case 2: try await bench.signIn(nil, "wrong password, alas", username: "nobody")
                    default: try await bench.signIn("masuo@example.com", String(repeating: "x", count: 5000))
                    }
                })
            #expect(bench.counts.hashes == before + 1)
        }
        #expect(Set(errors).count == 1)
        #expect(errors[0]?.code == .unauthenticated)
        #expect(errors[0]?.reason == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func configurationMayRevealWhichIsWrong() async throws {
        let bench = try await AuthBench.open { $0.hidesWhoExists = false }
        _ = try await bench.signUp()
        #expect(await wireError { try await bench.signIn("masuo@example.com", "wrong") }?.reason == "INVALID_PASSWORD")
        #expect(await wireError { try await bench.signIn("nobody@example.com", "wrong") }?.reason == "EMAIL_NOT_FOUND")
    }

    @Test func fieldsThatAreMissingOrWrongAreNamed() async throws {
        let bench = try await AuthBench.open()
        #expect(await wireError { try await bench.signIn(nil) }?.reason == "MISSING_EMAIL")
        #expect(await wireError { try await bench.signIn("no mail") }?.reason == "INVALID_EMAIL")
        #expect(await wireError { try await bench.signIn("masuo@example.com", "") }?.reason == "MISSING_PASSWORD")
        let both = await wireError { try await bench.signIn("masuo@example.com", username: "masuo") }
        #expect(both?.data["parameter"] == "username")
    }

    @Test func missingParametersHaveFirebasesReasons() throws {
        let signIn = #expect(throws: RPCError.self) { try Auth.SignIn.decode(["email": "masuo@example.com"]) }
        #expect(signIn?.code == .invalidArgument)
        #expect(signIn?.reason == "MISSING_PASSWORD")
        #expect(signIn?.data["parameter"] == "password")
        let refresh = #expect(throws: RPCError.self) { try Auth.Refresh.decode([:]) }
        #expect(refresh?.reason == "MISSING_REFRESH_TOKEN")
        for (reason, decode) in [
            ("MISSING_REQ_TYPE", { _ = try Auth.Code.Request.decode(["email": "masuo@example.com"]) }),
            ("MISSING_OOB_CODE", { _ = try Auth.Code.Check.decode([:]) }),
            ("MISSING_OOB_CODE", { _ = try Auth.Code.Apply.decode(["newPassword": "x"]) }),
            ("MISSING_OOB_CODE", { _ = try Auth.SignInWithCode.decode(["email": "masuo@example.com"]) }),
            ("MISSING_ID_TOKEN", { _ = try Auth.SessionCookie.Create.decode([:]) }),
            ("MISSING_IDENTIFIER", { _ = try Auth.CustomToken.Create.decode([:]) }),
            ("MISSING_CUSTOM_TOKEN", { _ = try Auth.SignInWithCustomToken.decode([:]) }),
        ] as [(String, () throws -> Void)] {
            #expect(#expect(throws: RPCError.self) { try decode() }?.reason == reason)
        }
        let unknown = #expect(throws: RPCError.self) { try Auth.SignIn.decode(["password": "x", "emial": "y"]) }
        #expect(unknown?.code == .invalidParams)
        #expect(unknown?.data["parameter"] == "emial")
    }

    @Test func disabledAccountIsReportedOnlyWithTheRightPassword() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await wireError { try await bench.signIn() }?.reason == "USER_DISABLED")
        #expect(
            await wireError { try await bench.signIn("masuo@example.com", "wrong") }?.reason
                == "INVALID_LOGIN_CREDENTIALS")
        bench.pass(seconds: 2)
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "USER_DISABLED")
        #expect(await wireError { try await bench.account(session) }?.reason == "USER_DISABLED")
        update.disabled = false
        _ = try await bench.service.users.updateUser(update)
        // Earlier sessions stay invalid.
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        #expect(try await bench.signIn().uid == session.uid)
    }

    @Test func hashingIsBoundedByThePoolAndTheRestIsRefused() async throws {
        let bench = try await AuthBench.open { configuration in
            configuration.hashingThreads = 2
            configuration.limits.passwordQueueMax = 8
            configuration.limits.failuresFree = 10_000
            configuration.limits.failuresFreePerAccount = 10_000
        }
        _ = try await bench.signUp()
        bench.hold(true)
        let attempts = (0..<200).map { _ in Task { await wireError { try await bench.signIn() } } }
        // 2 run, 8 wait, the others must be refused while those are still held.
        var refused: [RPCError] = []
        try await eventually("two are hashed, eight wait") {
            bench.counts.running == 2 && bench.service.passwords.waitingCount == 8
        }
        bench.hold(false)
        for attempt in attempts {
            if let error = await attempt.value { refused.append(error) }
        }
        #expect(bench.counts.runningMax == 2)
        #expect(refused.allSatisfy { $0.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" && $0.code == .resourceExhausted })
        #expect(refused.allSatisfy { $0.isRetryable && ($0.data["retryAfterMs"]?.number ?? 0) > 0 })
        #expect(attempts.count - refused.count >= 10)
        #expect(try await bench.signIn().uid.isEmpty == false)
    }

    @Test func oneUsersUpdatesDoNotKeepOthersFromSigningIn() async throws {
        let bench = try await AuthBench.open { configuration in
            configuration.hashingThreads = 1
            configuration.limits.passwordQueueMax = 4
        }
        let busy = try await bench.signUp("sazae@example.com")
        let origin = try await bench.origin(busy)
        _ = try await bench.signUp()
        bench.hold(true)
        let refused = Count()
        var updates: [Task<Void, Never>] = []
        for _ in 0..<20 {
            var update = Auth.Account.Update()
            update.password = "a better one than before"
            updates.append(
                Task { [update] in
                    let error = await wireError { try await bench.service.accounts.updateAccount(update, origin) }
                    if error?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" { refused.value.withLock { $0 += 1 } }
                })
            // The thread may not have ended the sign-up's hash yet: one more would have to wait.
            try await eventually("one is hashed") { bench.counts.running == 1 }
        }
        try await eventually("one is hashed, four wait") {
            bench.service.passwords.waitingCount == 4 && refused.value.withLock { $0 } == 15
        }
        let signIn = Task { await wireError { try await bench.signIn() } }
        try await eventually("the sign-in waits in place of an update") { refused.value.withLock { $0 } == 16 }
        bench.hold(false)
        #expect(await signIn.value == nil)
        for update in updates { _ = await update.value }
    }

    @Test func signInsFromManyAddressesLeaveATurnToAnother() async throws {
        let bench = try await AuthBench.open { configuration in
            configuration.hashingThreads = 1
            configuration.limits.passwordQueueMax = 4
        }
        _ = try await bench.signUp()
        @Sendable func guess(from address: Int) async -> RPCError? {
            await wireError {
                try await bench.signIn("guess\(address)@example.com", "wrong", from: "192.0.2.\(address)")
            }
        }
        for address in 1...5 { #expect(await guess(from: address)?.reason == "INVALID_LOGIN_CREDENTIALS") }
        bench.hold(true)
        let refused = Count()
        var guesses: [Task<Void, Never>] = []
        for address in 1...5 {
            guesses.append(
                Task {
                    if await guess(from: address)?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" {
                        refused.value.withLock { $0 += 1 }
                    }
                })
            try await eventually("it is hashed, or waits") {
                bench.counts.running == 1 && bench.service.passwords.waitingCount == address - 1
            }
        }
        let signIn = Task { await wireError { try await bench.signIn(from: "192.0.2.99") } }
        try await eventually("it waits in place of one of them") { refused.value.withLock { $0 } == 1 }
        bench.hold(false)
        #expect(await signIn.value == nil)
        for guess in guesses { await guess.value }
    }

    @Test func anonymousUserTakesTheTurnOfItsAddress() async throws {
        let bench = try await AuthBench.open()
        let anonymous = try await bench.origin(try await bench.anonymous())
        #expect(anonymous.hashingClient.name == CallOrigin().hashingClient.name)
        let user = try await bench.origin(try await bench.signUp())
        #expect(user.hashingClient.name != CallOrigin().hashingClient.name)
    }

    @Test func passwordIsNotHashedAfterItsConnectionHasClosed() async throws {
        let bench = try await AuthBench.open { configuration in
            configuration.hashingThreads = 1
            configuration.limits.passwordQueueMax = 2
        }
        _ = try await bench.signUp()
        let hashes = bench.counts.hashes
        let hasClosed = Flag()
        @Sendable func signIn(hasGone: @escaping @Sendable () -> Bool = { false }) async -> RPCError? {
            await wireError {
                try await bench.service.signIns.signIn(
                    Auth.SignIn(email: "masuo@example.com", password: AuthBench.password),
                    CallOrigin(hasGone: hasGone))
            }
        }
        bench.hold(true)
        // The one that is being hashed goes on.
        let first = Task { await signIn { hasClosed.isSet.withLock { $0 } } }
        try await eventually("it is hashed") { bench.counts.running == 1 }
        let second = Task { await signIn { hasClosed.isSet.withLock { $0 } } }
        try await eventually("it waits") { bench.service.passwords.waitingCount == 1 }
        let third = Task { await signIn { hasClosed.isSet.withLock { $0 } } }
        try await eventually("both wait") { bench.service.passwords.waitingCount == 2 }
        hasClosed.isSet.withLock { $0 = true }
        // All places have jobs of closed connections.
        let fourth = Task { await signIn() }
        #expect(await second.value?.isRetryable == true)
        #expect(await third.value?.isRetryable == true)
        let fifth = Task { await signIn { true } }
        try await eventually("both wait") { bench.service.passwords.waitingCount == 2 }
        bench.hold(false)
        #expect(await first.value == nil)
        #expect(await fourth.value == nil)
        #expect(await fifth.value?.isRetryable == true)
        #expect(bench.counts.hashes == hashes + 2)
    }

    @Test func consecutiveWrongPasswordsDelayTheAccountForALimitedTime() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        for _ in 0..<10 { _ = await wireError { try await bench.signIn("masuo@example.com", "wrong") } }
        let hashes = bench.counts.hashes
        let locked = await wireError { try await bench.signIn() }
        #expect(locked?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(locked?.data["retryAfterMs"] == 1000)
        #expect(bench.counts.hashes == hashes)
        bench.pass(seconds: 1)
        _ = try await bench.signIn()
        #expect(await wireError { try await bench.signIn("masuo@example.com", "wrong") }?.code == .unauthenticated)
    }

    /// The reason of the error, nil: signed in.
    private func reason(_ bench: AuthBench, _ password: String, from address: String) async -> String? {
        await wireError { try await bench.signIn("masuo@example.com", password, from: address) }?.reason
    }

    @Test func oneAddressThatGuessesDoesNotKeepTheOwnerOut() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress.burst = 0 }
        _ = try await bench.signUp()
        for _ in 0..<30 {
            _ = await reason(bench, "wrong", from: "192.0.2.1")
            bench.pass(seconds: 1)
        }
        #expect(await reason(bench, AuthBench.password, from: "192.0.2.1") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await reason(bench, AuthBench.password, from: "198.51.100.1") == nil)
        #expect(await reason(bench, AuthBench.password, from: "192.0.2.1") == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func guessesFromManyAddressesDoNotKeepAnAddressOutThatWasThereBefore() async throws {
        let bench = try await AuthBench.open { $0.limits.failuresFreePerAccount = 20 }
        _ = try await bench.signUp()
        #expect(await reason(bench, AuthBench.password, from: "198.51.100.1") == nil)
        for index in 1...20 {
            #expect(await reason(bench, "wrong", from: "192.0.2.\(index)") == "INVALID_LOGIN_CREDENTIALS")
        }
        #expect(await reason(bench, AuthBench.password, from: "192.0.2.100") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await reason(bench, AuthBench.password, from: "198.51.100.1") == nil)
        let restarted = try await AuthBench.open(since: bench) { $0.limits.failuresFreePerAccount = 1 }
        #expect(await reason(restarted, "wrong", from: "192.0.2.1") == "INVALID_LOGIN_CREDENTIALS")
        #expect(await reason(restarted, AuthBench.password, from: "192.0.2.2") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await reason(restarted, AuthBench.password, from: "198.51.100.1") == nil, "the account keeps it")
    }

    @Test(arguments: [false, true]) func oneCustomerNeverFillsTheCountOfAllNetworks(hasManyNetworks: Bool) async throws
    {
        let bench = try await AuthBench.open {
            $0.limits.failuresFreePerAccount = 20
            $0.limits.signInsPerAddress.burst = 0
        }
        _ = try await bench.signUp()
        for index in 0..<60 {
            let network = hasManyNetworks ? String(index, radix: 16) : "1"
            let guess = await reason(bench, "wrong", from: "2001:db8:7:\(network)::1")
            #expect(guess == "INVALID_LOGIN_CREDENTIALS", "\(index)")
            // Once it has to wait, it waits the longest time.
            if index >= 9, index < 59 { bench.pass(seconds: 900) }
        }
        #expect(await reason(bench, AuthBench.password, from: "2001:db8:8::1") == nil)
        for site in 1...2 {
            for _ in 0..<10 { _ = await reason(bench, "wrong", from: "2001:db8:1\(site)::1") }
        }
        let locked = await reason(bench, AuthBench.password, from: "2001:db8:9::1")
        #expect(locked == "TOO_MANY_ATTEMPTS_TRY_LATER", "many customers do")
        #expect(await reason(bench, AuthBench.password, from: "2001:db8:8::2") == nil, "it is known")
        let still = await reason(bench, AuthBench.password, from: "2001:db8:9::1")
        #expect(still == "TOO_MANY_ATTEMPTS_TRY_LATER", "its owner's sign-in gives others no further guesses")
    }

    @Test func networksAreKnownFromRefreshesUntilTheSessionsAreRevoked() async throws {
        let bench = try await AuthBench.open { $0.limits.failuresFreePerAccount = 1 }
        let session = try await bench.signUp()
        let home = CallOrigin(address: ClientAddress("198.51.100.1"))
        _ = try await bench.service.sessions.refresh(Auth.Refresh(refreshToken: session.refreshToken), home)
        #expect(await reason(bench, "wrong", from: "192.0.2.1") == "INVALID_LOGIN_CREDENTIALS")
        #expect(await reason(bench, AuthBench.password, from: "192.0.2.2") == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await reason(bench, AuthBench.password, from: "198.51.100.1") == nil)
        bench.pass(seconds: 1)
        _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: session.uid))
        #expect(await reason(bench, "wrong", from: "192.0.2.1") == "INVALID_LOGIN_CREDENTIALS")
        #expect(await reason(bench, AuthBench.password, from: "198.51.100.1") == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func anAccountHasOneBudgetForAllItsNames() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(username: "masuo")
        for _ in 0..<5 { _ = await wireError { try await bench.signIn("masuo@example.com", "wrong") } }
        for _ in 0..<5 { _ = await wireError { try await bench.signIn(nil, "wrong", username: "masuo") } }
        #expect(await wireError { try await bench.signIn() }?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func guessesInParallelAreCountedWhileTheyAreChecked() async throws {
        let bench = try await AuthBench.open { $0.hashingThreads = 1 }
        _ = try await bench.signUp()
        let hashes = bench.counts.hashes
        bench.hold(true)
        let guesses = (0..<66).map { _ in
            Task { await wireError { try await bench.signIn("masuo@example.com", "wrong") } }
        }
        try await eventually("ten are let in") {
            bench.service.passwords.waitingCount == 9 && bench.counts.running == 1
        }
        bench.hold(false)
        for guess in guesses { _ = await guess.value }
        #expect(bench.counts.hashes == hashes + 10)
    }

    @Test func unknownAccountsAreSlowedDownLikeKnownOnes() async throws {
        let bench = try await AuthBench.open()
        for _ in 0..<10 { _ = await wireError { try await bench.signIn("nobody@example.com", "wrong") } }
        let locked = await wireError { try await bench.signIn("nobody@example.com", "wrong") }
        #expect(locked?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func addressHasALimitOfItsOwn() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress = RateLimit(burst: 3, perMinute: 1) }
        _ = try await bench.signUp()
        for _ in 0..<3 { _ = try await bench.signIn(from: "192.0.2.1") }
        let refused = await wireError { try await bench.signIn(from: "192.0.2.1") }
        #expect(refused?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(refused?.data["retryAfterMs"] == 60_000)
        _ = try await bench.signIn(from: "192.0.2.2")
        for _ in 0..<3 { _ = try await bench.signIn(from: "127.0.0.1") }
        let loopback = await wireError { try await bench.signIn(from: "127.0.0.1") }
        #expect(loopback?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "a proxy on the same machine is one, too")
        bench.pass(seconds: 60)
        _ = try await bench.signIn(from: "192.0.2.1")
    }

    @Test func strongerCostReplacesAnOldHashAtTheNextSignIn() async throws {
        let bench = try await AuthBench.open()
        let uid = try await bench.signUp().uid
        let stronger = try await AuthBench.open(since: bench) { $0.scrypt = ScryptCost(logN: 5, r: 1, p: 1) }
        _ = try await stronger.signIn()
        let scheme = try await bench.store.read { try AccountRows.find(uid, in: $0)?.passwordHash?.scheme }
        #expect(scheme == .scrypt(ScryptCost(logN: 5, r: 1, p: 1)))
        _ = try await stronger.signIn()
        #expect(await wireError { try await stronger.signIn("masuo@example.com", "wrong") }?.code == .unauthenticated)
    }

    @Test func leastRecentlyUsedSessionEndsWhenAnAccountHasTooMany() async throws {
        let bench = try await AuthBench.open { $0.limits.sessionsPerAccountMax = 3 }
        var sessions = [try await bench.signUp()]
        for _ in 0..<3 {
            bench.pass(seconds: 1)
            sessions.append(try await bench.signIn())
        }
        #expect(
            await wireError { try await bench.refresh(sessions[0].refreshToken) }?.reason == "TOKEN_EXPIRED")
        for session in sessions.dropFirst() { _ = try await bench.refresh(session.refreshToken) }
    }

    @Test func sessionThatCannotBeReadStopsNoSignIn() async throws {
        let bench = try await AuthBench.open { $0.limits.sessionsPerAccountMax = 2 }
        let uid = try await bench.signUp().uid
        let damaged = try await bench.store.write { rows in
            let ids = try SessionRows.ids(of: uid, in: rows)
            for id in ids { rows.putRow(AuthKey.session(id), [0x7B]) }
            return ids
        }.outcome
        #expect(damaged.count == 1)
        var sessions: [Auth.Session] = []
        for _ in 0..<3 {
            bench.pass(seconds: 1)
            sessions.append(try await bench.signIn())
        }
        #expect(
            await wireError { try await bench.refresh(sessions[0].refreshToken) }?.reason == "TOKEN_EXPIRED")
        for session in sessions.dropFirst() { _ = try await bench.refresh(session.refreshToken) }
        #expect(try await bench.store.read { try SessionRows.ids(of: uid, in: $0) }.count == 3, "the damaged one stays")
    }

    @Test func passwordIsTheSameHoweverItWasTyped() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("masuo@example.com", "ｐａｓｓがんばれ日本の鳩さん！")
        _ = try await bench.signIn("masuo@example.com", "passか\u{3099}んは\u{3099}れ日本の鳩さん!")
    }
}
