import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.providers.…`, `auth.signInMethods`, and identities in imports and exports.
@Suite(.timeLimit(.minutes(10)))
struct ProviderMethodTests {
    private static let masuo = "masuo@example.com"
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func problems(
        _ bench: AuthBench, _ change: (inout Auth.Providers.Set) -> Void
    ) async -> [String] {
        let error = await wireError { try await bench.trust(issuer, change) }
        return error?.data["problems"]?.array?.compactMap { $0["reason"]?.string } ?? []
    }

    @Test func aProviderIsSetListedAndRemoved() async throws {
        let bench = try await AuthBench.open()
        let entry = try await bench.trust(issuer, as: "google.com") { $0.issuer = nil }
        #expect(entry.issuer == "https://accounts.google.com" && !entry.isDiscovered)
        #expect(entry.keyIds == ["ES256-key", "EdDSA-key", "RS256-key"] && entry.keysFetchedAt == nil)
        try await bench.trust(issuer, as: "apple.com") { ($0.issuer, $0.trustsEmail) = (nil, false) }
        #expect(bench.service.providerMethods.list().providers.map(\.id) == ["apple.com", "google.com"])
        #expect(bench.service.settings.settings(CallOrigin()).providers == ["apple.com", "google.com"])
        let reopened = try await AuthBench.open(since: bench)
        #expect(reopened.service.providerMethods.list() == bench.service.providerMethods.list())
        _ = try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "google.com"))
        #expect(bench.service.settings.settings(CallOrigin()).providers == ["apple.com"])
        let twice = await wireError {
            try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "google.com"))
        }
        #expect(twice?.reason == "CONFIGURATION_NOT_FOUND" && twice?.code == .notFound)
    }

    @Test func eachWrongFieldIsNamed() async throws {
        let bench = try await AuthBench.open()
        let long = String(repeating: "a", count: 64)
        for id in [
            "", "password", "anonymous", "phone", "oidc", "a.", ".a", "Google.com", "a b.c", "\(long).com", "1.a",
            "a_.b",
        ] {
            #expect(await problems(bench) { $0.id = id } == ["INVALID_PROVIDER_ID"], "\(id)")
        }
        for issuer in [
            "", "issuer.example", "http://issuer.example", "https://", "https://user@issuer.example",
            "https://issuer.example?x",
            "https://issuer.example#x", "ftp://issuer.example", "HTTPS://issuer.example", "https://issuer.example/ a",
            "https://issuer.example/" + String(repeating: "a", count: 1_024),
        ] {
            #expect(await problems(bench) { $0.issuer = issuer } == ["INVALID_ISSUER"], "\(issuer.prefix(40))")
        }
        #expect(await problems(bench) { $0.issuer = nil } == ["INVALID_ISSUER"])
        for ids in [[], [""], ["a", "a"], ["a\u{0}"], [String(repeating: "a", count: 257)], (0...50).map { "\($0)" }] {
            #expect(await problems(bench) { $0.clientIds = ids } == ["INVALID_CLIENT_ID"])
        }
        for jwks: JSONValue in [[:], ["keys": []], "keys", ["keys": [["kty": "oct", "kid": "a", "k": "AA"]]]] {
            #expect(await problems(bench) { $0.jwks = jwks } == ["INVALID_KEYS"])
        }
        let all = await problems(bench) { ($0.id, $0.issuer, $0.clientIds, $0.jwks) = ("", "", [], [:]) }
        #expect(all == ["INVALID_PROVIDER_ID", "INVALID_ISSUER", "INVALID_CLIENT_ID", "INVALID_KEYS"])
        #expect(bench.service.providerMethods.list().providers.isEmpty)
    }

    @Test func providersHaveALimit() async throws {
        let bench = try await AuthBench.open { $0.limits.providersMax = 2 }
        for id in ["oidc.a", "oidc.b", "oidc.a"] { try await bench.trust(issuer, as: id) }
        let third = await wireError { try await bench.trust(issuer, as: "oidc.c") }
        #expect(third?.reason == "too_many_providers" && third?.code == .resourceExhausted)
    }

    @Test func anIssuerOnThisMachineIsASetting() async throws {
        let bench = try await AuthBench.open { $0.allowsPrivateProviders = true }
        #expect(try await bench.trust(issuer) { $0.issuer = "http://127.0.0.1:9400" }.issuer == "http://127.0.0.1:9400")
        let closed = try await AuthBench.open()
        let inside = await wireError {
            try await closed.trust(issuer) { ($0.issuer, $0.jwks) = ("https://127.0.0.1", nil) }
        }
        #expect(inside?.reason == "discovery_failed" && inside?.message.contains("public internet") == true)
    }

    // MARK: signInMethods

    @Test func methodsAreListedWhereExistenceIsNotHidden() async throws {
        let bench = try await AuthBench.open { $0.hidesWhoExists = false }
        try await bench.trust(issuer)
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.signIn(code: try #require(try await bench.code(.signIn).digits))
        _ = try await bench.signIn(provider: try bench.token(issuer))
        func methods(_ email: String) async throws -> Auth.SignInMethods.Result {
            try await bench.service.providerMethods.signInMethods(Auth.SignInMethods(email: email), CallOrigin())
        }
        #expect(try await methods("MASUO@example.com") == .init(registered: true, methods: ["emailLink", "oidc.work"]))
        #expect(try await methods("nobody@example.com") == .init(registered: false, methods: []))
        #expect(await wireError { try await methods("no address") }?.reason == "INVALID_EMAIL")
        var settings = Auth.Settings.Set()
        settings.hidesWhoExists = true
        _ = try await bench.service.settings.set(settings)
        #expect(try await methods(Self.masuo) == .init(registered: false, methods: []))
        #expect(await wireError { try await methods("no address") }?.reason == "INVALID_EMAIL")
    }

    // MARK: Imports and exports

    private func row(_ uid: String, _ identities: [(String, String)]?) -> Auth.Users.Row {
        var row = Auth.Users.Row(uid: uid)
        row.providerUserInfo = identities?.map { Auth.Account.Provider(providerId: $0.0, rawId: $0.1) }
        return row
    }

    private func imported(
        _ bench: AuthBench, _ rows: [Auth.Users.Row], overwrite: Bool = false
    ) async throws -> Auth.Users.Import.Result {
        var request = Auth.Users.Import(users: rows)
        request.allowOverwrite = overwrite
        return try await MovingMethods(service: bench.service).importUsers(request)
    }

    @Test func anExportGoesIntoAnotherService() async throws {
        let bench = try await AuthBench.open()
        try await bench.trust(issuer)
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        let rows = try await MovingMethods(service: bench.service).exportUsers(Auth.Users.Export()).users
        let other = try await AuthBench.open()
        try await other.trust(issuer)
        #expect(try await imported(other, rows) == .init(imported: 1, errors: []))
        #expect(try await imported(other, rows) == .init(imported: 1, errors: []), "once more")
        let result = try await other.signIn(provider: try other.token(issuer))
        #expect(result.session.uid == session.uid && !result.session.isNewUser)
        let info = try await other.account(result.session).providerUserInfo
        #expect(try await bench.account(session).providerUserInfo == info)
    }

    @Test func anIdentityIsOfOneAccount() async throws {
        let bench = try await AuthBench.open()
        let first = try await imported(bench, [row("a", [("google.com", "1"), ("password", "x"), ("phone", "+81")])])
        #expect(first.errors.isEmpty)
        let account = try await bench.service.users.user(byIdentity: "google.com", "1")
        #expect(account.uid == "a" && account.providerUserInfo.count == 1)
        let taken = try await imported(bench, [row("b", [("google.com", "1")]), row("c", [("apple.com", "1")])])
        #expect(taken.imported == 1 && taken.errors.map(\.reason) == ["FEDERATED_USER_ID_ALREADY_LINKED"])
        let twice = await wireError { try await imported(bench, [row("d", [("x.y", "1")]), row("e", [("x.y", "1")])]) }
        #expect(twice?.reason == "DUPLICATE_RAW_ID")
        let wrong = try await imported(
            bench,
            [
                row("f", [("google", "1")]), row("g", [("google.com", "")]), row("h", [("google.com", "a\u{0}")]),
                row("i", [("google.com", "2"), ("google.com", "3")]),
                row("j", [("google.com", String(repeating: "1", count: 256))]),
            ])
        #expect(wrong.imported == 0 && Set(wrong.errors.map(\.reason)) == ["INVALID_PROVIDER_ID"])
        #expect(try await imported(bench, [row("a", nil)], overwrite: true).errors.isEmpty)
        #expect(try await bench.service.users.user(byIdentity: "google.com", "1").uid == "a", "not said, so it stays")
        #expect(try await imported(bench, [row("a", [])], overwrite: true).errors.isEmpty)
        #expect(try await imported(bench, [row("b", [("google.com", "1")])]).errors.isEmpty, "it is free")
    }

    @Test func anAccountIsFoundByOneName() async throws {
        let bench = try await AuthBench.open()
        for change: @Sendable (inout Auth.Users.Get) -> Void in [
            { $0.provider = "google.com" }, { $0.providerUid = "1" }, { _ in },
            { ($0.uid, $0.provider, $0.providerUid) = ("a", "google.com", "1") },
        ] {
            var request = Auth.Users.Get()
            change(&request)
            #expect(await wireError { try await bench.service.users.user(request) }?.reason == "MISSING_IDENTIFIER")
        }
        #expect(
            await wireError { try await bench.service.users.user(byIdentity: "x", "\u{0}") }?.reason == "USER_NOT_FOUND"
        )
    }
}
