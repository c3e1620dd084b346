import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// What becomes of identities, keys and tokens when a provider is set again, removed, or restored.
@Suite(.timeLimit(.minutes(10)))
struct ProviderChangeTests {
    private static let other = "https://other.example"
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func signUp(_ bench: AuthBench) async throws -> Auth.Session {
        try await bench.trust(issuer)
        return try await bench.signIn(provider: try bench.token(issuer)).session
    }

    /// A token of the other issuer, whose user has the same id.
    private func otherToken(_ bench: AuthBench) throws -> String {
        try bench.token(issuer) { ($0["iss"], $0["email"]) = (.string(Self.other), nil) }
    }

    private func setOther(_ bench: AuthBench, keepsIdentities: Bool? = nil) async -> RPCError? {
        await wireError {
            try await bench.trust(issuer) { ($0.issuer, $0.keepsIdentities) = (Self.other, keepsIdentities) }
        }
    }

    // MARK: Identities

    @Test func anotherIssuerDoesNotGetTheIdentitiesOfTheFormer() async throws {
        let bench = try await AuthBench.open()
        let session = try await signUp(bench)
        let refused = await setOther(bench)
        #expect(refused?.reason == "provider_has_identities" && refused?.code == .failedPrecondition)
        #expect(await setOther(bench, keepsIdentities: false)?.reason == "provider_has_identities")
        #expect(bench.service.providerMethods.list().providers.map(\.issuer) == [TestIssuer.url])
        // The same one again is no other.
        try await bench.trust(issuer) { $0.trustsEmail = false }
        #expect(try await bench.signIn(provider: try bench.token(issuer)).session.uid == session.uid)
        // Removing it first changes nothing.
        _ = try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "oidc.work"))
        let reopened = try await AuthBench.open(since: bench)
        #expect(await setOther(reopened)?.reason == "provider_has_identities")
        try await reopened.trust(issuer)
        #expect(try await reopened.signIn(provider: try bench.token(issuer)).session.uid == session.uid)
        // Without identities it is a provider like others.
        var update = Auth.Users.Update(uid: session.uid)
        update.deleteProviders = ["oidc.work"]
        _ = try await reopened.service.users.updateUser(update)
        #expect(await setOther(reopened) == nil)
        let next = try await reopened.signIn(provider: try otherToken(reopened)).session
        #expect(next.isNewUser && next.uid != session.uid)
    }

    @Test func anIssuerWithTheSameUsersKeepsTheirAccounts() async throws {
        let bench = try await AuthBench.open()
        let session = try await signUp(bench)
        #expect(await setOther(bench, keepsIdentities: true) == nil)
        #expect(try await bench.signIn(provider: try otherToken(bench)).session.uid == session.uid)
    }

    @Test func changesOfProvidersAreInTheAudit() async throws {
        let bench = try await AuthBench.open()
        let call = AuditedCall(Auth.Providers.Set.method, CallOrigin(caller: .administrator))
        try await AuditedCall.$current.withValue(call) { _ = try await bench.trust(issuer) }
        bench.pass(seconds: 1)
        _ = try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "oidc.work"))
        let entries = try await AuditMethods(service: bench.service).entries(Auth.Audit.List()).entries
        #expect(entries.map(\.type) == [.providerRemoved, .providerSet])
        #expect(entries.map(\.provider) == ["oidc.work", "oidc.work"])
        #expect(entries.last?.method == "auth.providers.set" && entries.last?.time == bench.now - 1000)
        let bytes = try await bench.store.read { rows in
            (try StoreFigures.find(in: rows).auditBytes, try Int(rows.bytes(of: AuthKey.audits)))
        }
        #expect(bytes.0 == bytes.1)
    }

    // MARK: Limits

    @Test func signUpsWithAProviderAreLimitedAsSignUps() async throws {
        let address = "192.0.2.1"
        let bench = try await AuthBench.open { configuration in
            configuration.limits.signUpsPerAddress = RateLimit(burst: 2, perMinute: 1)
            configuration.limits.signUps = RateLimit(burst: 3, perMinute: 1)
        }
        try await bench.trust(issuer)
        func signIn(_ sub: String, _ token: String? = nil, from address: String) async throws {
            let token = try token ?? bench.token(issuer, sub) { $0["email"] = nil }
            _ = try await bench.signIn(provider: token, from: address)
        }
        for sub in ["a", "b"] { try await signIn(sub, from: address) }
        let token = try bench.token(issuer, "c") { $0["email"] = nil }
        let refused = await wireError { try await signIn("c", token, from: address) }
        #expect(refused?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        // A known user makes no account.
        try await signIn("a", from: address)
        let form = await wireError {
            try await bench.service.signUps.signUp(
                Auth.SignUp(email: "sazae@example.com", password: AuthBench.password),
                CallOrigin(address: ClientAddress(address)))
        }
        #expect(form?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "both count as one")
        try await signIn("c", token, from: "192.0.2.2")
        #expect(await wireError { try await signIn("d", from: "192.0.2.3") }?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    // MARK: Keys

    private func row(fetchedAt: Int64?, _ kid: String) -> ProviderRow {
        ProviderRow(
            id: "oidc.work", issuer: TestIssuer.url, clientIds: [TestIssuer.clientId], trustsEmail: false,
            allowsSignUp: false, isDiscovered: fetchedAt != nil, keys: ["keys": [["kid": .string(kid)]]],
            keysFetchedAt: fetchedAt)
    }

    /// Keys that the issuer has withdrawn meanwhile do not come back.
    @Test func theNewestKeysStay() async throws {
        let store = try MemoryStore()
        func written(_ row: ProviderRow, isKept: Bool) async throws -> String? {
            try await store.write { rows in
                let change = ProviderChange(row: row, hasKeptKeys: isKept, keepsIdentities: false, countMax: 9)
                return try change.row(now: 2_000, in: rows)?.keys["keys"]?.array?.first?["kid"]?.string
            }.outcome
        }
        #expect(try await written(row(fetchedAt: 1_000, "old"), isKept: true) == nil, "it was removed meanwhile")
        #expect(try await written(row(fetchedAt: 1_000, "old"), isKept: false) == "old")
        _ = try await store.write { ProviderRows.put(row(fetchedAt: 1_500, "stored"), in: $0) }
        #expect(try await written(row(fetchedAt: 1_000, "old"), isKept: true) == "stored")
        #expect(try await written(row(fetchedAt: 1_000, "old"), isKept: false) == "stored")
        #expect(try await written(row(fetchedAt: 1_600, "new"), isKept: false) == "new")
        #expect(try await written(row(fetchedAt: nil, "given"), isKept: false) == "given")
        _ = try await store.write { ProviderRows.put(row(fetchedAt: 9_000, "stored"), in: $0) }
        #expect(try await written(row(fetchedAt: 1_600, "new"), isKept: false) == "new", "the clock was set back")
        _ = try await store.write { ProviderRows.put(row(fetchedAt: nil, "given"), in: $0) }
        #expect(try await written(row(fetchedAt: 1_000, "old"), isKept: true) == nil, "other keys were given meanwhile")
    }

    // MARK: Restored stores

    /// A backup does not know which tokens signed in after it.
    @Test func aTokenFromBeforeARestoreSignsInNoMore() async throws {
        let bench = try await AuthBench.open()
        try await bench.trust(issuer)
        let backup = try await bench.rows()
        let token = try bench.token(issuer)
        _ = try await bench.signIn(provider: token)
        bench.pass(seconds: 60)
        func restored(_ keepsSessions: Bool) async throws -> AuthBench {
            let store = try MemoryStore()
            _ = try await store.write { rows in
                for (key, value) in backup where keepsSessions || !Self.isOfSessions(key) { rows.putRow(key, value) }
            }
            return try await AuthBench.open(on: store, since: bench)
        }
        let without = try await restored(false)
        #expect(await without.refusal(provider: token) == "MISSING_OR_INVALID_NONCE")
        let again = try await AuthBench.open(since: without)
        #expect(await again.refusal(provider: token) == "MISSING_OR_INVALID_NONCE", "after the next start, too")
        _ = try await again.signIn(provider: try bench.token(issuer))
        _ = try await restored(true).signIn(provider: token)
    }

    private static func isOfSessions(_ key: [UInt8]) -> Bool {
        AuthService.rowsOfSessionsAndKeys.contains { range in
            !key.lexicographicallyPrecedes(range.lower)
                && range.upper.map { key.lexicographicallyPrecedes($0) } ?? true
        }
    }
}
