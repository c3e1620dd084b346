import HatoModel
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import Testing

@testable import HatoAuth

/// The keys of a provider by discovery: what is fetched, how often, and what a provider that is down stops.
@Suite(.timeLimit(.minutes(10)))
struct ProviderDiscoveryTests {
    private final class Clock: Sendable {
        private let time = Mutex(TestIssuer.now * 1000)
        var now: Int64 { time.withLock { $0 } }
        func pass(seconds: Int64) { time.withLock { $0 += seconds * 1000 } }
    }

    private let issuer: TestIssuer
    private let clock = Clock()
    private let store: any Store

    init() throws {
        issuer = try TestIssuer()
        store = try MemoryStore()
    }

    private var failure: ProviderDiscovery.Failure? {
        get async {
            do throws(ProviderDiscovery.Failure) {
                _ = try await ProviderDiscovery(fetch: issuer.document).keys(of: TestIssuer.url)
                return nil
            } catch { return error }
        }
    }

    private func directory() async throws -> ProviderDirectory {
        let environment = AuthEnvironment(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, now: { [clock] in clock.now })
        return ProviderDirectory(
            try await store.read { try ProviderRows.all(in: $0) }.map { try ProviderRecord($0) },
            ProviderDirectory.Parts(
                store: store, environment: environment, discovery: ProviderDiscovery(fetch: issuer.document),
                metrics: AuthMetrics(), limits: AuthLimits()))
    }

    private func record(_ id: String = "oidc.work", issuer: String = TestIssuer.url) -> ProviderRecord {
        var record = ProviderRecord(id: id, issuer: issuer, clientIds: [TestIssuer.clientId])
        record.isDiscovered = true
        return record
    }

    private func token(_ kid: String = TestIssuer.Algorithm.es256.kid) throws -> String {
        try issuer.token(TestIssuer.claims { $0["iat"] = .number(Double(clock.now / 1000)) }) {
            $0["kid"] = .string(kid)
        }
    }

    private func reason(_ directory: ProviderDirectory, _ token: String) async -> String? {
        await wireError { try await directory.identity("oidc.work", token, nonce: nil) }?.reason
    }

    // MARK: Documents

    @Test func theIssuerOfTheDocumentIsTheIssuer() async throws {
        #expect(await failure == nil)
        #expect(issuer.fetched == ["\(TestIssuer.url)/.well-known/openid-configuration", "\(TestIssuer.url)/keys"])
        let keys = try issuer.jwks().encoded
        for name: JSONValue? in [
            nil, .null, "https://issuer.example/", "https://evil.example", ["https://issuer.example"],
        ] {
            var document: JSONObject = ["jwks_uri": .string("\(TestIssuer.url)/keys")]
            document["issuer"] = name
            issuer.serve(document, keys: keys)
            #expect(await failure?.description.contains("another") == true)
        }
    }

    @Test func keysAreOverHTTPSOnly() async throws {
        for uri: JSONValue? in [nil, .null, "http://issuer.example/keys", "/keys", "file:///etc/passwd", 1] {
            var document: JSONObject = ["issuer": .string(TestIssuer.url)]
            document["jwks_uri"] = uri
            issuer.serve(document, keys: try issuer.jwks().encoded)
            #expect(await failure?.description.contains("jwks_uri") == true)
        }
        #expect(!issuer.fetched.contains { $0.hasPrefix("http:") || $0.hasPrefix("file:") })
    }

    @Test func otherDocumentsAreNoKeys() async throws {
        let document: JSONObject = ["issuer": .string(TestIssuer.url), "jwks_uri": .string("\(TestIssuer.url)/keys")]
        for text in ["", "<html>", "[]", "{}", #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","kid":"a","k":"AA"}]}"#] {
            issuer.serve(document, keys: Array(text.utf8))
            #expect(await failure != nil, "\(text)")
        }
        issuer.serve(nil)
        #expect(await failure != nil)
    }

    /// Its documents are of 64 KiB at most, and written by others.
    @Test func whatAnIssuerSaysIsCut() async throws {
        let long = "https://issuer.example/" + String(repeating: "a", count: 10_000)
        for uri in [long, "https://issuer.example/\r\n\u{1B}[2J\u{202E}keys"] {
            issuer.serve(["issuer": .string(TestIssuer.url), "jwks_uri": .string(uri)])
            let text = try #require(await failure?.description)
            #expect(text.utf8.count < 600 && text.contains("issuer.example"))
            #expect(!text.unicodeScalars.contains { ["\r", "\n", "\u{1B}", "\u{202E}"].contains($0) })
        }
        // An error of a fetch may repeat the address.
        struct Repeating: Error { var text: String }
        let discovery = ProviderDiscovery(fetch: { _ in throw Repeating(text: long + "\n") })
        let error = await #expect(throws: ProviderDiscovery.Failure.self) {
            try await discovery.keys(of: TestIssuer.url)
        }
        #expect((error?.description.utf8.count ?? .max) < 600 && error?.description.contains("\n") == false)
    }

    // MARK: Fetches

    @Test func aProviderIsSetWithItsKeys() async throws {
        let directory = try await directory()
        let set = try await directory.set(record())
        #expect(set.entry.keyIds == ["ES256-key", "EdDSA-key", "RS256-key"] && set.keysFetchedAt == clock.now)
        #expect(try await directory.identity("oidc.work", try token(), nonce: nil).uid == "sub-of-masuo")
        #expect(issuer.fetched.count == 2, "the token needs no fetch")
        issuer.serve(nil)
        let other = await wireError { try await directory.set(record("oidc.other", issuer: "https://down.example")) }
        #expect(other?.reason == "discovery_failed")
        #expect(directory.ids == ["oidc.work"])
        var changed = record()
        changed.trustsEmail = true
        #expect(try await directory.set(changed).entry.keyIds.count == 3, "its keys are here, while it is down")
    }

    /// Users whose key is here sign in while the provider is down, after a restart, too.
    @Test func keysAreKept() async throws {
        _ = try await directory().set(record())
        issuer.serve(nil)
        let restarted = try await directory()
        #expect(try await restarted.identity("oidc.work", try token(), nonce: nil).uid == "sub-of-masuo")
        #expect(await reason(restarted, try token("new")) == "provider_unavailable")
        #expect(try await restarted.identity("oidc.work", try token(), nonce: nil).uid == "sub-of-masuo")
    }

    @Test func anUnknownKeyIsAskedForOnceAMinute() async throws {
        let directory = try await directory()
        _ = try await directory.set(record())
        let before = issuer.fetched.count
        for _ in 0..<100 { #expect(await reason(directory, try token("../../keys")) == "INVALID_IDP_RESPONSE") }
        #expect(issuer.fetched.count == before + 2)
        clock.pass(seconds: 60)
        #expect(await reason(directory, try token("other")) == "INVALID_IDP_RESPONSE")
        #expect(issuer.fetched.count == before + 4)
        issuer.serve(nil)
        clock.pass(seconds: 60)
        for _ in 0..<100 { #expect(await reason(directory, try token("other")) == "provider_unavailable") }
        #expect(issuer.fetched.count == before + 5)
    }

    @Test func aNewKeySignsInAtOnce() async throws {
        try issuer.serve(keys: try issuer.jwks([.rs256]))
        let directory = try await directory()
        _ = try await directory.set(record())
        try issuer.serve(keys: try issuer.jwks())
        #expect(try await directory.identity("oidc.work", try token(), nonce: nil).uid == "sub-of-masuo")
        try issuer.serve(keys: try issuer.jwks([.rs256]))
        clock.pass(seconds: 60)
        _ = await reason(directory, try token("other"))
        #expect(await reason(directory, try token()) == "INVALID_IDP_RESPONSE", "the provider has withdrawn the key")
    }

    @Test func manyTokensOfANewKeyAreOneFetch() async throws {
        try issuer.serve(keys: try issuer.jwks([.rs256]))
        let directory = try await directory()
        _ = try await directory.set(record())
        try issuer.serve(keys: try issuer.jwks())
        let before = issuer.fetched.count
        issuer.hold(true)
        let token = try token()
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask { try await directory.identity("oidc.work", token, nonce: nil).uid }
            }
            try await eventually("a fetch") { issuer.fetched.count == before + 1 }
            issuer.hold(false)
            for try await uid in group { #expect(uid == "sub-of-masuo") }
        }
        #expect(issuer.fetched.count == before + 2)
    }

    @Test func givenKeysNeedNoNetwork() async throws {
        let directory = try await directory()
        var given = record()
        given.isDiscovered = false
        given.keys = try ProviderKeySet(given: try issuer.jwks([.es256]))
        _ = try await directory.set(given)
        #expect(try await directory.identity("oidc.work", try token(), nonce: nil).uid == "sub-of-masuo")
        #expect(await reason(directory, try token("other")) == "INVALID_IDP_RESPONSE")
        clock.pass(seconds: 200_000)
        await directory.refreshKeys()
        #expect(issuer.fetched.isEmpty)
    }

    @Test func keysAreFetchedAgainOnceADay() async throws {
        let directory = try await directory()
        _ = try await directory.set(record())
        try issuer.serve(keys: try issuer.jwks([.rs256]))
        clock.pass(seconds: 86_399)
        await directory.refreshKeys()
        #expect(directory.all.first?.keys.keyIDs.count == 3)
        clock.pass(seconds: 1)
        await directory.refreshKeys()
        #expect(directory.all.first?.keys.keyIDs == ["RS256-key"])
        issuer.serve(nil)
        clock.pass(seconds: 86_400)
        await directory.refreshKeys()
        #expect(directory.all.first?.keys.keyIDs == ["RS256-key"], "a failure leaves them")
    }

    @Test func aSlowIssuerDelaysNoOtherAndNoStop() async throws {
        let keys = try ProviderKeySet(given: try issuer.jwks())
        let records = [record(), record("oidc.other", issuer: "https://other.example")].map {
            var record = $0
            record.keys = keys
            return record
        }
        _ = try await store.write { rows in
            for record in records { ProviderRows.put(record.row, in: rows) }
        }
        let directory = try await directory()
        issuer.hold(true)
        let upkeep = Task { await directory.refreshKeys() }
        try await eventually("the first document of both") { issuer.fetched.count == 2 }
        upkeep.cancel()
        await upkeep.value
        issuer.hold(false)
        #expect(Set(issuer.fetched).count == 2)
    }

    /// Another administrator, or the upkeep, has fetched keys while this call was under way.
    @Test func aWithdrawnKeyDoesNotComeBack() async throws {
        let first = try await directory()
        _ = try await first.set(record())
        clock.pass(seconds: 2 * 86_400)
        try issuer.serve(keys: issuer.jwks([.rs256]))
        let other = try await directory()
        await other.refreshKeys()
        var changed = record()
        changed.trustsEmail = true
        #expect(try await first.set(changed).entry.keyIds == ["RS256-key"])
        #expect(await reason(first, try token()) == "INVALID_IDP_RESPONSE")
    }

    @Test func aRemovedProviderIsUnknown() async throws {
        let directory = try await directory()
        _ = try await directory.set(record())
        try await directory.remove("oidc.work")
        #expect(await reason(directory, try token()) == "OPERATION_NOT_ALLOWED")
        #expect(await wireError { try await directory.remove("oidc.work") }?.reason == "CONFIGURATION_NOT_FOUND")
        #expect(try await self.directory().ids.isEmpty)
    }
}
