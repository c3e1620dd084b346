import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import TestAuth
import Testing

@testable import HatoFollow

/// A service that follows auth: whose tokens it refuses, also after it or auth was down.
@Suite(.timeLimit(.minutes(5)))
struct AccountFollowerTests {
    /// A service on a store of its own.
    private final class Following: Sendable {
        let authenticator: ServiceAuthenticator
        let follower: AccountFollower
        private let client: RPCClient
        private let task: Task<Void, Never>

        init(
            _ auth: FakeAuth, on store: any Store, _ time: FakeTime = FakeTime(), refusalsMax: Int = 1_000,
            dependents: (any AccountDependents)? = nil
        ) throws {
            var configuration = IdentityConfiguration()
            configuration.refusalsMax = refusalsMax
            let keys = ["k", "leaked"].map { SigningKey(kid: $0).verificationKey.jwk }
            authenticator = ServiceAuthenticator(
                configuration: configuration, administratorKeys: .none, now: { time.now }, fetchKeys: { keys })
            authenticator.replaceKeys(keys)
            let effects = try RefusalEffects(
                store, RefusalRows(prefix: [9]), authenticator, dependents: dependents, now: { time.now })
            client = auth.client
            follower = AccountFollower(client, effects, logger: .quiet)
            task = Task { [follower] in await follower.run() }
        }

        /// Whether a token of a user and session, issued so many seconds after the start, is refused.
        func refuses(_ uid: String, session: String = "s", kid: String = "k", issued: Int64 = 0) -> Bool {
            authenticator.hasEnded(
                Caller.User(
                    uid: uid,
                    claims: ["iat": .number(Double(FakeTime.start / 1000 + issued)), "sid": .string(session)],
                    kid: kid))
        }

        func until(_ what: String, _ isTrue: @escaping @Sendable (Following) -> Bool) async throws {
            try await eventually(what) { isTrue(self) }
        }

        func stop() async {
            task.cancel()
            await task.value
            await client.close()
        }
    }

    private func keptUsers(_ store: any Store) throws -> [String] {
        let rows = RefusalRows(prefix: [9])
        return try rows.kept(at: 0, until: .max, in: store.snapshot()).refusals.users.keys.sorted()
    }

    @Test func everyKindOfEndIsRefusedAndNothingElse() async throws {
        let auth = try await FakeAuth.start()
        let following = try Following(auth, on: try MemoryStore())
        #expect(!following.refuses("deleted") && !following.refuses("other", kid: "leaked"))
        let second = FakeTime.start / 1000
        try await auth.write(
            FakeEvent(.created, "new"), FakeEvent(.deleted, "deleted"), FakeEvent(.disabled, "disabled"))
        try await auth.write(
            FakeEvent(.revoked, "revoked", since: second + 5), FakeEvent(.signedOut, "u", session: "ended"))
        try await auth.write(FakeEvent(.keyRevoked, kid: "leaked"))
        try await following.until("the key is refused") { $0.refuses("other", kid: "leaked") }
        #expect(following.refuses("deleted", issued: 100) && following.refuses("disabled", issued: 100))
        #expect(following.refuses("revoked", issued: 4) && !following.refuses("revoked", issued: 5))
        #expect(following.refuses("u", session: "ended") && !following.refuses("u") && !following.refuses("new"))
        #expect(following.follower.problem == nil)
        // Both in one part.
        try await auth.write(
            FakeEvent(.disabled, "restored"), FakeEvent(.enabled, "restored"), FakeEvent(.disabled, "last"))
        try await following.until("the last one is refused") { $0.refuses("last") }
        #expect(!following.refuses("restored"))
        // Enabled: what was good before is good again. Made anew: tokens of the former account stay refused.
        try await auth.write(FakeEvent(.enabled, "disabled"), FakeEvent(.created, "deleted"))
        try await following.until("the user is enabled") { !$0.refuses("disabled") }
        #expect(following.refuses("deleted", issued: 0) && !following.refuses("deleted", issued: 1))
        await following.stop()
        await auth.stop()
    }

    /// The refusals are there before the service can ask auth, and what happened meanwhile comes when it can.
    @Test func refusalsOutliveTheServiceAndAuth() async throws {
        let (time, store) = (FakeTime(), try MemoryStore())
        let auth = try await FakeAuth.start()
        let first = try Following(auth, on: store, time)
        try await auth.write(
            FakeEvent(.disabled, "a"), FakeEvent(.signedOut, "u", session: "ended"),
            FakeEvent(.keyRevoked, kid: "leaked"))
        try await first.until("the key is refused") { $0.refuses("x", kid: "leaked") && $0.refuses("a") }
        try await eventually("all is kept") {
            try await RefusalRows(prefix: [9]).position(in: store.snapshot()) != nil
        }
        await first.stop()
        await auth.stop()
        try await auth.write(FakeEvent(.disabled, "b"))
        let second = try Following(auth, on: store, time)
        #expect(second.refuses("a") && second.refuses("u", session: "ended") && second.refuses("x", kid: "leaked"))
        #expect(!second.refuses("b") && second.follower.problem != nil)
        let again = try await FakeAuth.start(on: auth.store, port: auth.port)
        try await second.until("what was missed has come") { $0.refuses("b") && $0.follower.problem == nil }
        #expect(!second.refuses("x"))
        await second.stop()
        await again.stop()
    }

    /// What is no longer kept may have been anything: each client refreshes its token once.
    @Test(arguments: [true, false])
    func missedEventsRefuseEverythingIssuedBefore(isAnotherHistory: Bool) async throws {
        let (time, store) = (FakeTime(), try MemoryStore())
        let auth = try await FakeAuth.start(time: time)
        let first = try Following(auth, on: store, time)
        try await auth.write(FakeEvent(.disabled, "a"))
        try await first.until("the user is refused") { $0.refuses("a") }
        try await eventually("it is kept") {
            try await RefusalRows(prefix: [9]).position(in: store.snapshot()) != nil
        }
        await first.stop()
        for _ in 0..<3 { try await auth.write(FakeEvent(.disabled, "b")) }
        let later: FakeAuth
        if isAnotherHistory {
            later = try await FakeAuth.start(time: time)
            try await later.write(FakeEvent(.created, "c"))
        } else {
            later = auth
            try auth.store.compactCommits(through: auth.store.version)
        }
        time.pass(seconds: 10)
        let reconciled = Reconciled()
        let second = try Following(later, on: store, time, dependents: reconciled)
        try await second.until("all users are refused") { $0.refuses("anybody", issued: 9) }
        #expect(!second.refuses("anybody", issued: 10))
        try await eventually("it is reconciled") { reconciled.count == 1 }
        try await later.write(FakeEvent(.disabled, "d"))
        try await second.until("it goes on") { $0.refuses("d", issued: 100) }
        await second.stop()
        // And it stays.
        let third = try Following(later, on: store, time, dependents: reconciled)
        #expect(third.refuses("anybody", issued: 9) && third.refuses("d", issued: 100))
        try await third.until("it follows") { $0.follower.problem == nil }
        #expect(reconciled.count == 1)
        await third.stop()
        if isAnotherHistory { await later.stop() }
        await auth.stop()
    }

    /// Commits without events are no gap, however many of them are no longer kept.
    @Test func quietTimeIsNoGap() async throws {
        let (time, store) = (FakeTime(), try MemoryStore())
        let auth = try await FakeAuth.start(time: time)
        let first = try Following(auth, on: store, time)
        try await auth.write(FakeEvent(.created, "x"), FakeEvent(.disabled, "a"))
        try await first.until("the user is refused") { $0.refuses("a") }
        try await eventually("it is kept") { try keptUsers(store) == ["a"] }
        await first.stop()
        for _ in 0..<3 { try await auth.write() }
        try auth.store.compactCommits(through: auth.store.version)
        time.pass(seconds: 10)
        let second = try Following(auth, on: store, time)
        try await second.until("it follows") { $0.follower.problem == nil }
        #expect(second.refuses("a") && !second.refuses("other"))
        try await auth.write(FakeEvent(.disabled, "b"))
        try await second.until("it goes on") { $0.refuses("b") }
        #expect(!second.refuses("other"))
        await second.stop()
        await auth.stop()
    }

    @Test func tooManyRefusalsBecomeOneAlsoInTheStore() async throws {
        let store = try MemoryStore()
        let auth = try await FakeAuth.start()
        let following = try Following(auth, on: store, refusalsMax: 10)
        for number in 0..<30 { try await auth.write(FakeEvent(.disabled, "u\(number)")) }
        try await auth.write(FakeEvent(.keyRevoked, kid: "leaked"))
        try await following.until("the last one is refused") { $0.refuses("x", kid: "leaked", issued: 100) }
        #expect((0..<30).allSatisfy { following.refuses("u\($0)") })
        await following.stop()
        #expect(try keptUsers(store).count <= 10)
        let again = try Following(auth, on: store, refusalsMax: 10)
        #expect((0..<30).allSatisfy { again.refuses("u\($0)") } && again.refuses("x", kid: "leaked", issued: 100))
        await again.stop()
        await auth.stop()
    }

    @Test func refusalsLeaveTheStoreWhenTheirLastTokenHasExpired() async throws {
        let (time, store) = (FakeTime(), try MemoryStore())
        let auth = try await FakeAuth.start()
        let following = try Following(auth, on: store, time)
        try await auth.write(FakeEvent(.disabled, "a"), FakeEvent(.signedOut, "u", session: "ended"))
        try await following.until("they are refused") { $0.refuses("a") && $0.refuses("u", session: "ended") }
        time.pass(seconds: 100_000)
        var event = FakeEvent(.disabled, "b")
        event.time = time.now
        try await auth.write(event)
        try await eventually("only the last one is kept") {
            try keptUsers(store) == ["b"]
        }
        #expect(following.refuses("b") && !following.refuses("a"))
        await following.stop()
        await auth.stop()
    }

    /// Ends of accounts and sessions that were not used for long leave nothing to refuse, and others no longer than
    /// their tokens are valid.
    @Test func refusalsLastAsLongAsTheTokens() async throws {
        let (time, store) = (FakeTime(), try MemoryStore())
        let auth = try await FakeAuth.start(time: time)
        let following = try Following(auth, on: store, time)
        var (unused, short) = (FakeEvent(.deleted, "unused"), FakeEvent(.deleted, "short"))
        (unused.until, short.until) = (time.now, time.now + 3_600_000)
        try await auth.write(unused, short)
        try await following.until("it is refused") { $0.refuses("short") }
        #expect(!following.refuses("unused"))
        try await eventually("one is kept") { try keptUsers(store) == ["short"] }
        time.pass(seconds: 3_600 + 600)
        var last = FakeEvent(.disabled, "last")
        last.time = time.now
        try await auth.write(last)
        try await eventually("the other is kept") { try keptUsers(store) == ["last"] }
        #expect(!following.refuses("short"))
        await following.stop()
        await auth.stop()
    }

    /// A store that refuses for a while: the events come again.
    @Test func eventsAreHandledAgainUntilTheyAreKept() async throws {
        let store = try MemoryStore()
        let auth = try await FakeAuth.start()
        let failing = FailsTwice()
        let following = try Following(auth, on: store, dependents: failing)
        try await auth.write(FakeEvent(.disabled, "a"))
        try await eventually("it is kept") {
            try RefusalRows(prefix: [9]).position(in: store.snapshot()) != nil
        }
        #expect(failing.count >= 3 && following.refuses("a"))
        await following.stop()
        await auth.stop()
    }
}

private final class Reconciled: AccountDependents {
    private let calls = Mutex(0)
    var count: Int { calls.withLock { $0 } }

    func changes(
        for events: [Auth.Event], in rows: any StoreTransaction
    ) throws -> (@Sendable (any StoreTransaction) throws -> Void)? { nil }
    func reconcile() async throws { calls.withLock { $0 += 1 } }
}

private final class FailsTwice: AccountDependents {
    private struct Failure: Error {}

    private let calls = Mutex(0)
    var count: Int { calls.withLock { $0 } }

    func changes(
        for events: [Auth.Event], in rows: any StoreTransaction
    ) throws -> (@Sendable (any StoreTransaction) throws -> Void)? {
        let count = calls.withLock { calls in
            calls += 1
            return calls
        }
        if count <= 2 { throw Failure() }
        return nil
    }
    func reconcile() async throws {}
}
