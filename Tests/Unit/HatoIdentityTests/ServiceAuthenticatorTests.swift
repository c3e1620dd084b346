import HatoIdentity
import HatoModel
import HatoTesting
import Synchronization
import Testing

private let start: Int64 = 1_795_000_000_000
private let administratorKey = "administrator-key-0123456789-0123456789"

/// Auth for its verifiers: keys that can change, fail and be counted; and a clock.
private final class World: Sendable {
    struct Down: Error {}

    struct State {
        var now = start
        var keys: [SigningKey] = [SigningKey(kid: "k1")]
        var isDown = false
        /// The number of further fetches that fail.
        var failuresLeft = 0
        var fetches = 0
        var blocked: [CheckedContinuation<Void, Never>] = []
        var isBlocking = false
    }

    let state = Mutex(State())

    var now: Int64 { state.withLock { $0.now } }
    var fetches: Int { state.withLock { $0.fetches } }

    func pass(_ milliseconds: Int64) { state.withLock { $0.now += milliseconds } }

    func authenticator(file: String? = nil, remembered: Int = 100) -> ServiceAuthenticator {
        var configuration = IdentityConfiguration(keysFile: file)
        configuration.rememberedTokensMax = remembered
        return ServiceAuthenticator(
            configuration: configuration,
            administratorKeys: AdministratorKeys(keys: [administratorKey]) ?? .none, now: { self.now },
            fetchKeys: { try await self.fetch() })
    }

    func token(uid: String = "masuo", key: Int = 0, lifetime: Int64 = 3600) throws -> String {
        try token(uid: uid, signedBy: state.withLock { $0.keys[key] }, lifetime: lifetime)
    }

    func token(
        uid: String = "masuo", signedBy key: SigningKey, issuedIn seconds: Int64 = 0, lifetime: Int64 = 3600
    ) throws -> String {
        let issuedAt = now / 1000 + seconds
        return try key.sign([
            "iss": "https://securetoken.google.com/hato", "aud": "hato", "sub": .string(uid),
            "iat": .number(Double(issuedAt)), "exp": .number(Double(issuedAt + lifetime)),
        ])
    }

    private func fetch() async throws -> [Auth.JWK] {
        await withCheckedContinuation { continuation in
            let isBlocking = state.withLock { state in
                state.fetches += 1
                if state.isBlocking { state.blocked.append(continuation) }
                return state.isBlocking
            }
            if !isBlocking { continuation.resume() }
        }
        return try state.withLock { state in
            if state.isDown { throw Down() }
            if state.failuresLeft > 0 {
                state.failuresLeft -= 1
                throw Down()
            }
            return state.keys.map(\.verificationKey.jwk)
        }
    }
}

/// The reason of the RPC error that `body` throws.
private func reason(_ body: () async throws -> Caller) async -> String? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? RPCError)?.reason
    }
}

struct ServiceAuthenticatorTests {
    @Test func administratorKeyIsKnownWithoutAFetch() async throws {
        let world = World()
        let authenticator = world.authenticator()
        #expect(authenticator.remembered(administratorKey) == .administrator)
        #expect(try await authenticator.authenticate(administratorKey) == .administrator)
        #expect(world.fetches == 0)
        #expect(await reason { try await authenticator.authenticate("something else entirely") } == "INVALID_ID_TOKEN")
        #expect(world.fetches == 0)
    }

    @Test func verifiedTokenIsCachedUntilItExpires() async throws {
        let world = World()
        let authenticator = world.authenticator()
        let token = try world.token()
        #expect(authenticator.remembered(token) == nil)
        #expect(try await authenticator.authenticate(token).uid == "masuo")
        #expect(authenticator.remembered(token)?.uid == "masuo")
        world.pass(3_599_999)
        #expect(authenticator.remembered(token)?.uid == "masuo")
        world.pass(1)
        #expect(authenticator.remembered(token) == nil)
        #expect(await reason { try await authenticator.authenticate(token) } == "TOKEN_EXPIRED")
    }

    @Test func cacheOfTokensIsBounded() async throws {
        let world = World()
        let authenticator = world.authenticator(remembered: 3)
        let tokens = try (0..<10).map { try world.token(uid: "user\($0)") }
        for token in tokens { _ = try await authenticator.authenticate(token) }
        #expect(tokens.filter { authenticator.remembered($0) != nil } == Array(tokens.suffix(3)))
        #expect(try await authenticator.authenticate(tokens[0]).uid == "user0")
    }

    @Test func fourRotationsWithinAMinuteLockNoUserOut() async throws {
        let world = World()
        let authenticator = world.authenticator()
        _ = try await authenticator.authenticate(try world.token())
        for index in 1...4 {
            world.pass(5_000)
            world.state.withLock { $0.keys.append(SigningKey(kid: "r\(index)")) }
            let token = try world.token(uid: "user\(index)", key: index)
            #expect(try await authenticator.authenticate(token).uid == "user\(index)")
        }
        #expect(world.fetches == 5)
    }

    @Test func keyPublishedRightAfterAFetchIsFetchedAgain() async throws {
        let world = World()
        let authenticator = world.authenticator()
        _ = try await authenticator.authenticate(try world.token())
        world.state.withLock { $0.keys.append(SigningKey(kid: "k2")) }
        let rotated = try world.token(key: 1)
        await #expect {
            try await authenticator.authenticate(rotated)
        } throws: {
            ($0 as? RPCError)?.reason == "key_not_fetched" && ($0 as? RPCError)?.isRetryable == true
        }
        #expect(world.fetches == 1)
        world.pass(1_000)
        #expect(try await authenticator.authenticate(rotated).uid == "masuo")
        #expect(world.fetches == 2)
    }

    @Test func unauthenticatedCallersCannotUseUpAllFetches() async throws {
        let world = World()
        let authenticator = world.authenticator()
        _ = try await authenticator.authenticate(try world.token())
        let stranger = { (index: Int) in try world.token(signedBy: SigningKey(kid: "made-up-\(index)")) }
        // A minute of tokens with ever new key ids, ten a second.
        for index in 0..<600 {
            world.pass(100)
            let token = try stranger(index)
            #expect(await reason { try await authenticator.authenticate(token) } != nil)
        }
        #expect((7...17).contains(world.fetches), "a few at once, then one each six seconds")
        world.state.withLock { $0.keys.append(SigningKey(kid: "k2")) }
        let rotated = try world.token(key: 1)
        var waited: Int64 = 0
        for index in 600... where waited <= 6_000 {
            if await reason({ try await authenticator.authenticate(rotated) }) == nil { break }
            world.pass(100)
            waited += 100
            let token = try stranger(index)
            _ = await reason { try await authenticator.authenticate(token) }
        }
        #expect(try await authenticator.authenticate(rotated).uid == "masuo")
    }

    @Test func absentKeyIDIsFetchedOnce() async throws {
        let world = World()
        let authenticator = world.authenticator()
        _ = try await authenticator.authenticate(try world.token())
        let foreign = SigningKey(kid: "foreign")
        for _ in 0..<20 {
            world.pass(2_000)
            let token = try world.token(signedBy: foreign)
            #expect(await reason { try await authenticator.authenticate(token) } == "INVALID_ID_TOKEN")
        }
        #expect(world.fetches == 2)
    }

    @Test func tokenFromBeforeTheFetchCausesNoFetch() async throws {
        let world = World()
        let old = try world.token(signedBy: SigningKey(kid: "retired"))
        let tomorrow = try world.token(signedBy: SigningKey(kid: "tomorrow"), issuedIn: 86_400)
        world.pass(120_000)
        let authenticator = world.authenticator()
        _ = try await authenticator.authenticate(try world.token())
        world.pass(10_000)
        for token in [old, tomorrow] {
            #expect(await reason { try await authenticator.authenticate(token) } == "INVALID_ID_TOKEN")
        }
        #expect(world.fetches == 1)
    }

    @Test func concurrentCallersShareOneFetch() async throws {
        let world = World()
        world.state.withLock { $0.isBlocking = true }
        let authenticator = world.authenticator()
        let token = try world.token()
        let callers = (0..<20).map { _ in Task { try await authenticator.authenticate(token) } }
        let deadline = ContinuousClock.now + .seconds(240)
        while world.state.withLock({ $0.blocked.isEmpty }), ContinuousClock.now < deadline { await Task.yield() }
        for _ in 0..<1000 { await Task.yield() }
        world.state.withLock { state in
            state.isBlocking = false
            for continuation in state.blocked { continuation.resume() }
            state.blocked = []
        }
        for caller in callers { #expect(try await caller.value.uid == "masuo") }
        #expect(world.fetches == 1)
    }

    @Test func withoutKeysAndWithoutAuthTheServiceIsUnavailableNotMistaken() async throws {
        let world = World()
        world.state.withLock { $0.isDown = true }
        let authenticator = world.authenticator()
        let token = try world.token()
        #expect(await reason { try await authenticator.authenticate(token) } == "auth_unavailable")
        guard case .degraded = authenticator.health else {
            Issue.record("not degraded")
            return
        }
        world.state.withLock { $0.isDown = false }
        world.pass(1_000)
        #expect(try await authenticator.authenticate(token).uid == "masuo")
        #expect(authenticator.health == .ready)
    }

    @Test func keysOnDiskStartAServiceWhileAuthIsDown() async throws {
        let world = World()
        let file = try TemporaryFile(nil)
        let token = try world.token()
        _ = try await world.authenticator(file: file.path).authenticate(token)
        #expect(file.mode == 0o600)
        world.state.withLock { $0.isDown = true }
        let restarted = world.authenticator(file: file.path)
        #expect(restarted.health == .ready)
        #expect(try await restarted.authenticate(token).uid == "masuo")
    }

    @Test func damagedOrForeignKeyFileIsNotTrusted() async throws {
        let world = World()
        let token = try world.token()
        for (text, mode) in [("{", 0o600), ("{\"keys\":[]}", 0o600), (goodFile(world), 0o666)] {
            let file = try TemporaryFile(text, mode: mode)
            let authenticator = world.authenticator(file: file.path)
            #expect(authenticator.health != .ready)
            #expect(try await authenticator.authenticate(token).uid == "masuo")
        }
    }

    @Test func withdrawnKeysVerifyNothing() async throws {
        let world = World()
        let authenticator = world.authenticator()
        let token = try world.token()
        _ = try await authenticator.authenticate(token)
        let kept = SigningKey(kid: "k9")
        world.state.withLock { $0.keys = [kept] }
        authenticator.replaceKeys([kept.verificationKey.jwk])
        world.pass(2_000)
        #expect(authenticator.remembered(token) == nil)
        #expect(await reason { try await authenticator.authenticate(token) } == "INVALID_ID_TOKEN")
    }

    /// A token that is verified while its key is removed must not be remembered beyond it.
    @Test func tokenOfAKeyThatIsRemovedMeanwhileIsNotRemembered() async throws {
        let world = World()
        let authenticator = world.authenticator(remembered: 10_000)
        let (leaked, kept) = (SigningKey(kid: "k1"), SigningKey(kid: "k2"))
        for round in 0..<20 {
            authenticator.replaceKeys([leaked, kept].map(\.verificationKey.jwk))
            let tokens = try (0..<40).map { try world.token(uid: "u\(round)-\($0)", signedBy: leaked) }
            let verifying = Task.detached {
                for token in tokens { _ = try? authenticator.verify(token) }
            }
            while authenticator.remembered(tokens[round]) == nil { await Task.yield() }
            authenticator.replaceKeys([kept.verificationKey.jwk])
            await verifying.value
            #expect(tokens.filter { authenticator.remembered($0) != nil }.isEmpty)
        }
    }

    @Test func identitiesEndWithTheirKeyOrTheRefusalOfTheirUser() async throws {
        let world = World()
        let authenticator = world.authenticator()
        let calls = Mutex(0)
        authenticator.onEndings { calls.withLock { $0 += 1 } }
        let (leaked, kept) = (SigningKey(kid: "k1"), SigningKey(kid: "k2"))
        func keys(_ keys: [SigningKey]) { authenticator.replaceKeys(keys.map(\.verificationKey.jwk)) }
        keys([leaked, kept])
        let users = try [leaked, kept].map { try authenticator.verify(try world.token(signedBy: $0)).caller }
        #expect(users.map { authenticator.hasEnded($0) } == [false, false] && authenticator.endings == 0)
        // More keys end nothing, and a user without a token never ends.
        keys([leaked, kept, SigningKey(kid: "k3")])
        #expect(authenticator.endings == 0)
        keys([kept])
        #expect(users.map { authenticator.hasEnded($0) } == [true, false])
        #expect(authenticator.endings == 1 && calls.withLock { $0 } == 1)
        authenticator.apply(
            .refuse(.user(uid: "masuo", issuedBefore: world.now / 1000 + 1), at: world.now / 1000, until: .max))
        #expect(authenticator.hasEnded(users[1]) && !authenticator.hasEnded(Caller.User(uid: "masuo")))
        #expect(authenticator.endings == 2)
        try await eventually("the watch is called again") { calls.withLock { $0 } == 2 }
    }

    @Test func refusedUserIsAcceptedWithANewerTokenOnly() async throws {
        let world = World()
        let authenticator = world.authenticator()
        let old = try world.token()
        _ = try await authenticator.authenticate(old)
        world.pass(2_000)
        authenticator.apply(
            .refuse(.user(uid: "masuo", issuedBefore: world.now / 1000), at: world.now / 1000, until: .max))
        #expect(authenticator.remembered(old) == nil)
        #expect(await reason { try await authenticator.authenticate(old) } == "TOKEN_EXPIRED")
        #expect(try await authenticator.authenticate(try world.token()).uid == "masuo")
        // Disabled: all of them. Enabled again: those that were good before.
        let new = try world.token()
        authenticator.apply(.refuse(.account(uid: "masuo"), at: world.now / 1000, until: .max))
        #expect(authenticator.remembered(new) == nil)
        #expect(await reason { try await authenticator.authenticate(new) } == "TOKEN_EXPIRED")
        authenticator.apply(.allow(uid: "masuo"))
        #expect(try await authenticator.authenticate(new).uid == "masuo")
        #expect(await reason { try await authenticator.authenticate(old) } == "TOKEN_EXPIRED")
    }

    @Test func leakedKeyStaysRefusedWhateverAFetchBrings() async throws {
        let world = World()
        let authenticator = world.authenticator()
        let (leaked, kept) = (SigningKey(kid: "k1"), SigningKey(kid: "k2"))
        let keys = [leaked, kept].map(\.verificationKey.jwk)
        authenticator.replaceKeys(keys)
        let user = try authenticator.verify(try world.token(signedBy: leaked)).caller
        authenticator.apply(.refuse(.key(kid: "k1"), at: 0, until: 0))
        #expect(authenticator.hasEnded(user))
        // The response of a fetch that began before.
        authenticator.replaceKeys(keys)
        #expect(throws: TokenError.unknownKey("k1")) { try authenticator.verify(try world.token(signedBy: leaked)) }
        _ = try authenticator.verify(try world.token(signedBy: kept))
    }

    @Test func runFetchesUntilItHasKeys() async throws {
        let world = World()
        world.state.withLock { $0.failuresLeft = 2 }
        let authenticator = world.authenticator()
        let run = Task { await authenticator.run() }
        try await eventually("the keys have come") { authenticator.health == .ready }
        #expect(world.fetches == 3)
        run.cancel()
        await run.value
    }

    private func goodFile(_ world: World) -> String {
        let jwk = world.state.withLock { $0.keys[0].verificationKey.jwk }
        let value: JSONValue = [
            "keys": [
                [
                    "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": .string(jwk.kid),
                    "x": .string(jwk.x), "y": .string(jwk.y),
                ]
            ]
        ]
        return String(decoding: value.encoded, as: UTF8.self)
    }
}
