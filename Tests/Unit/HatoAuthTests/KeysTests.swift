import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

struct KeysTests {
    @Test func claimsAreAsDeepAsATokenMayHaveThem() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        func nested(_ levels: Int) -> String {
            String(repeating: #"{"a":"#, count: levels) + "1" + String(repeating: "}", count: levels)
        }
        var update = Auth.Users.Update(uid: session.uid)
        update.customAttributes = nested(17)
        let refused = await wireError { try await bench.service.users.updateUser(update) }
        #expect(refused?.reason == "INVALID_CLAIMS")
        update.customAttributes = nested(16)
        _ = try await bench.service.users.updateUser(update)
        let refreshed = try await bench.refresh(session.refreshToken)
        #expect(try await bench.claims(refreshed.idToken)["a"]?["a"] != nil)
    }

    @Test func nextKeyIsPublishedBeforeItSigns() async throws {
        let bench = try await AuthBench.open()
        let before = bench.service.publishedKeys
        #expect(before.count == 2)
        let rotated = try await bench.service.keys.rotateKeys()
        #expect(before.map(\.kid).contains(rotated.kid))
        #expect(rotated.kid != before[0].kid)
        #expect(rotated.keys.count == 3)
    }

    @Test func tokensFromBeforeARotationAreVerifiedUntilTheyExpire() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let oldKid = bench.service.ring.current.kid
        _ = try await bench.service.keys.rotateKeys()
        bench.pass(seconds: 3599)
        #expect(try await bench.account(session).uid == session.uid)
        #expect(bench.service.publishedKeys.map(\.kid).contains(oldKid))
        bench.pass(seconds: 62)
        #expect(!bench.service.publishedKeys.map(\.kid).contains(oldKid))
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
    }

    @Test func restartSignsWithTheRotatedKey() async throws {
        let bench = try await AuthBench.open()
        let rotated = try await bench.service.keys.rotateKeys()
        let restarted = try await AuthBench.open(since: bench)
        #expect(restarted.service.ring.current.kid == rotated.kid)
        #expect(Set(restarted.service.publishedKeys) == Set(rotated.keys))
        _ = try await restarted.account(try await restarted.signUp())
    }

    @Test func retiredKeyLosesItsPrivateHalf() async throws {
        let bench = try await AuthBench.open()
        let old = bench.service.ring.current
        let secret = Base64.url.encode(try #require(old.key).rawRepresentation)
        _ = try await bench.service.keys.rotateKeys()
        let row = try await bench.store.read { try $0.row(AuthKey.signingKey(old.kid)) }
        let text = String(decoding: try #require(row), as: UTF8.self)
        #expect(text.contains("retired"))
        #expect(!text.contains(secret))
    }

    @Test func rotationsAtOnceLeaveOneCurrentAndOneNextKey() async throws {
        let bench = try await AuthBench.open()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { _ = try await bench.service.keys.rotateKeys() } }
            try await group.waitForAll()
        }
        let kept = try await bench.store.read { try SecretRows(encryption: nil).ring(in: $0) }
        #expect(kept?.current.kid == bench.service.ring.current.kid)
        #expect(kept?.retired.count == 8)
        _ = try await bench.account(try await bench.signUp())
    }

    @Test func unknownKeyIdDoesNotBringOldKeysBack() async throws {
        let bench = try await AuthBench.open()
        for _ in 0..<3 { _ = try await bench.service.keys.rotateKeys() }
        let session = try await bench.signUp()
        let claims = try await bench.claims(session.idToken)
        bench.pass(seconds: 61)
        let forged = try SigningKey(kid: "stranger").sign(claims)
        #expect(
            await wireError { try await bench.service.authenticator.authenticate(forged) }?.reason == "INVALID_ID_TOKEN"
        )
        let refreshed = try await bench.refresh(session.refreshToken)
        #expect(try await bench.account(refreshed).uid == session.uid)
    }

    @Test func aRetiredKeyEndsWithItsTokensAndNotAtTheNextRotation() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let leaked = try #require(bench.service.ring.current.key)
        _ = try await bench.service.keys.rotateKeys()
        var claims = try await bench.claims(session.idToken)
        claims["exp"] = .number(Double(bench.now / 1000 + 10_000_000))
        let (remembered, fresh) = (try leaked.sign(claims), try leaked.sign(claims.adding("fresh")))
        bench.pass(seconds: 3659)
        guard case .user(let user) = try await bench.service.authenticator.authenticate(remembered) else { return }
        #expect(user.expiresAt == bench.now + 1000, "a token ends with its key")
        bench.pass(seconds: 2)
        for forged in [remembered, fresh] {
            let refused = await wireError { try await bench.service.authenticator.authenticate(forged) }
            #expect(refused?.reason == "TOKEN_EXPIRED")
        }
    }

    @Test func aRetiredKeyStaysForTheTokensThatItSignedAlsoWhenLaterOnesAreShorter() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.service.keys.rotateKeys()
        let shorter = try await AuthBench.open(since: bench) { $0.tokenLifetimeSeconds = 300 }
        shorter.pass(seconds: 3599)
        #expect(try await shorter.account(session).uid == session.uid)
        // Another rotation does not forget it either.
        _ = try await shorter.service.keys.rotateKeys()
        #expect(try await AuthBench.open(since: shorter).account(session).uid == session.uid)
    }

    @Test func aKeyThatRetiresStaysForTheTokensOfALongerSettingFromBefore() async throws {
        let bench = try await AuthBench.open { $0.tokenLifetimeSeconds = 7200 }
        let session = try await bench.signUp()
        let shorter = try await AuthBench.open(since: bench) { $0.tokenLifetimeSeconds = 300 }
        _ = try await shorter.service.keys.rotateKeys()
        shorter.pass(seconds: 7199)
        #expect(try await shorter.account(session).uid == session.uid)
        _ = try await shorter.service.keys.rotateKeys()
        #expect(try await shorter.store.read { try LongestLifetime.find(in: $0) } == 300_000)
    }

    @Test func aRevokedKeyEndsAtOnceAlsoWhenItIsTheCurrentOne() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let (current, next) = (bench.service.ring.current.kid, bench.service.ring.next.kid)
        _ = try await bench.account(session)
        for _ in 0..<2 {
            let result = try await bench.service.keys.revokeKey(current)
            #expect(result.kid == next && result.keys.count == 2)
            #expect(!result.keys.map(\.kid).contains(current))
        }
        #expect(await wireError { try await bench.account(session) }?.reason == "INVALID_ID_TOKEN")
        let refreshed = try await bench.refresh(session.refreshToken)
        let restarted = try await AuthBench.open(since: bench)
        for service in [bench, restarted] {
            #expect(try await service.account(refreshed).uid == session.uid)
            #expect(await wireError { try await service.account(session) }?.reason == "INVALID_ID_TOKEN")
        }
        #expect(restarted.service.ring.revoked.map(\.kid) == [current])
        #expect(restarted.service.ring.revoked.first?.key == nil)
    }

    @Test func nextAndRetiredKeysAreRevokedAndUnknownOnesAreNone() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let (current, next) = (bench.service.ring.current.kid, bench.service.ring.next.kid)
        #expect(try await bench.service.keys.revokeKey(next).kid == current)
        #expect(bench.service.ring.next.kid != next)
        _ = try await bench.service.keys.rotateKeys()
        #expect(try await bench.account(session).uid == session.uid)
        _ = try await bench.service.keys.revokeKey(current)
        #expect(await wireError { try await bench.account(session) }?.reason == "INVALID_ID_TOKEN")
        #expect(await wireError { try await bench.service.keys.revokeKey("stranger") }?.reason == "key_not_found")
        // The records go with a rotation after their tokens.
        bench.pass(seconds: 3661)
        _ = try await bench.service.keys.rotateKeys()
        #expect(
            try await bench.store.read { try SecretRows(encryption: nil).signingKeys(in: $0).records }.map(\.role).count
            { $0 == .revoked } == 0)
    }

    @Test func verifierWithThePublishedKeysVerifiesEveryToken() async throws {
        let bench = try await AuthBench.open()
        var verifier = TokenVerifier(configuration: IdentityConfiguration())
        verifier.replaceKeys(bench.service.publishedKeys.compactMap { VerificationKey($0) })
        let before = try await bench.signUp("a@example.com")
        _ = try await bench.service.keys.rotateKeys()
        let after = try await bench.signUp("b@example.com")
        for session in [before, after] {
            #expect(try verifier.verify(session.idToken, now: bench.now).uid == session.uid)
        }
    }

    @Test func storeOfANewerFormatIsRefused() async throws {
        let store = try MemoryStore()
        _ = try await store.write { $0.putRow(AuthKey.format, Array("2".utf8)) }
        let error = await #expect(throws: RecordError.self) { try await AuthBench.open(on: store) }
        #expect(error?.description.contains("format 1") == true)
    }

    @Test func damagedRecordsAreRefusedWithoutShowingThem() {
        let good = SigningKeyRecord(role: .current, key: SigningKey(kid: "k1"), createdAt: 1)
        let text = String(decoding: good.bytes(), as: UTF8.self)
        #expect(throws: Never.self) { try SigningKeyRecord(kid: "k1", good.bytes()) }
        for damaged in [
            "", "{", "[]", "{}", text.replacing("current", with: "retired"),
            text.replacing("\"role\"", with: "\"roll\""),
            text.replacing("{", with: "{\"more\":1,"),
        ] {
            let error = #expect(throws: RecordError.self) { try SigningKeyRecord(kid: "k1", Array(damaged.utf8)) }
            #expect(error?.description.contains("signing key") == true)
        }
    }

    @Test func accountRecordIsReadAsItWasWritten() throws {
        var account = AccountRecord(uid: "masuo", createdAt: 1_795_000_000_000)
        account.email = "masuo@example.com"
        account.emailVerified = true
        account.username = "masuo"
        account.displayName = "マスオ \"さん\""
        account.photoUrl = "https://example.com/masuo.png"
        account.passwordHash = PasswordHash(
            cost: ScryptCost(), salt: [UInt8](0..<16), hash: [UInt8](repeating: 0xFB, count: 32))
        account.passwordUpdatedAt = 2
        account.lastLoginAt = 3
        account.lastRefreshAt = 4
        account.validSince = 5
        account.disabled = true
        account.customAttributes = "{\"a\":1}"
        account.initialEmail = "first@example.com"
        let read = try AccountRecord(account.bytes)
        #expect(read.bytes == account.bytes)
        #expect(read.account == account.account)
        #expect(read.passwordHash?.text == account.passwordHash?.text)
    }
}

extension JSONObject {
    /// The same claims with one more, so that the token is another.
    fileprivate func adding(_ name: String) -> JSONObject {
        var object = self
        object[name] = true
        return object
    }
}
