import Crypto
import HatoModel
import HatoStorage
import Logging
import Testing

@testable import HatoAuth

/// Which keys of a provider are taken, and when they are fetched.
@Suite(.timeLimit(.minutes(10)))
struct ProviderKeyTests {
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func isKey(_ algorithm: TestIssuer.Algorithm, _ change: (inout JSONObject) -> Void) throws -> Bool {
        var jwk = try issuer.jwk(algorithm)
        change(&jwk)
        return ProviderKey(.object(jwk)) != nil
    }

    @Test func keysOfThreeKindsAreTaken() throws {
        for algorithm in TestIssuer.Algorithm.allCases {
            #expect(try isKey(algorithm) { _ in })
            #expect(try isKey(algorithm) { ($0["use"], $0["alg"]) = (nil, nil) })
            #expect(try isKey(algorithm) { ($0["use"], $0["key_ops"]) = (nil, ["verify"]) })
            #expect(try !isKey(algorithm) { $0["use"] = "enc" })
            #expect(try !isKey(algorithm) { $0["key_ops"] = ["sign"] })
            #expect(try !isKey(algorithm) { $0["alg"] = "HS256" })
            #expect(try !isKey(algorithm) { $0["kty"] = "oct" })
            #expect(try !isKey(algorithm) { $0["kid"] = nil })
            #expect(try !isKey(algorithm) { $0["kid"] = "" })
            #expect(try !isKey(algorithm) { $0["kid"] = .string(String(repeating: "k", count: 257)) })
        }
        #expect(try !isKey(.rs256) { $0["alg"] = "PS256" })
        #expect(try !isKey(.es256) { $0["crv"] = "P-384" })
        #expect(try !isKey(.es256) { $0["x"] = $0["y"] }, "not on the curve")
        #expect(try !isKey(.edDSA) { $0["crv"] = "X25519" })
        for value: JSONValue in [.null, 1, "keys", [], [:]] { #expect(ProviderKey(value) == nil) }
    }

    @Test func anRSAModulusHas2048To4096Bits() throws {
        func isKey(bits: Int, e: [UInt8] = [1, 0, 1], zeros: Int = 0) throws -> Bool {
            var n = [UInt8](repeating: 0xC5, count: bits / 8)
            n[n.count - 1] = 0xC5
            return try self.isKey(.rs256) { jwk in
                jwk["n"] = .string(Base64.url.encode([UInt8](repeating: 0, count: zeros) + n))
                jwk["e"] = .string(Base64.url.encode(e))
            }
        }
        #expect(try isKey(bits: 2048) && isKey(bits: 3072) && isKey(bits: 4096) && isKey(bits: 2048, zeros: 1))
        #expect(try !isKey(bits: 1024) && !isKey(bits: 2040) && !isKey(bits: 4104) && !isKey(bits: 16_384))
        #expect(try isKey(bits: 2048, e: [3]))
        for e: [UInt8] in [[], [0], [1], [2], [1, 0, 0], [1, 0, 0, 0, 1]] { #expect(try !isKey(bits: 2048, e: e)) }
    }

    @Test func aSetHasUsableKeysAndNoSecrets() throws {
        #expect(try ProviderKeySet(given: try issuer.jwks()).keyIDs == ["ES256-key", "EdDSA-key", "RS256-key"])
        var mixed = try #require(try issuer.jwks([.es256])["keys"]?.array)
        mixed += [["kty": "oct", "kid": "o"], 7, ["kty": "EC", "crv": "P-384", "kid": "p"]]
        #expect(try ProviderKeySet(.object(["keys": .array(mixed)])).keyIDs == ["ES256-key"])
        let many = JSONValue.object(["keys": .array([JSONValue](repeating: [:], count: 101))])
        for value: JSONValue in [.null, [], [:], ["keys": []], ["keys": [:]], ["keys": [["kty": "oct"]]], many] {
            #expect(throws: ProviderKeySet.Problem.self) { try ProviderKeySet(given: value) }
        }
        for member in ["d", "p", "k"] {
            var jwk = try issuer.jwk(.es256)
            jwk[member] = "c2VjcmV0"
            let problem = #expect(throws: ProviderKeySet.Problem.self) {
                try ProviderKeySet(given: .object(["keys": [.object(jwk)]]))
            }
            #expect(problem?.message.contains("private") == true)
        }
        var long = try issuer.jwk(.es256)
        long["x5c"] = .string(String(repeating: "A", count: 64 << 10))
        #expect(throws: ProviderKeySet.Problem.self) { try ProviderKeySet(given: .object(["keys": [.object(long)]])) }
    }

    /// What makes no key is not stored.
    @Test func aSetIsReadAsItWasWritten() throws {
        var jwk = try issuer.jwk(.rs256)
        jwk["x5c"] = ["MIIB"]
        let keys = try ProviderKeySet(.object(["keys": [.object(jwk), .object(try issuer.jwk(.edDSA))]]))
        #expect(keys.json["keys"]?.array?.contains { $0["x5c"] != nil } == false)
        #expect(try ProviderKeySet(keys.json).json == keys.json)
    }

    // MARK: When keys are fetched

    @Test func anUnknownKeyIsOneFetchAMinute() {
        var machine = ProviderKeyFetch()
        #expect(machine.keyWasMissed(now: 1_000_000) == .fetch)
        machine.started(now: 1_000_000)
        #expect(machine.keyWasMissed(now: 1_000_500) == .wait)
        machine.ended(isSuccess: true)
        #expect(machine.keyWasMissed(now: 1_001_000) == .refuse)
        #expect(machine.keyWasMissed(now: 1_059_999) == .refuse)
        #expect(machine.keyWasMissed(now: 1_060_000) == .fetch)
        machine.started(now: 1_060_000)
        machine.ended(isSuccess: false)
        #expect(machine.keyWasMissed(now: 1_070_000) == .unavailable(retryAfterMilliseconds: 50_000))
        #expect(machine.keyWasMissed(now: 1_120_000) == .fetch)
        #expect(machine.keyWasMissed(now: 500_000) == .fetch, "the clock was set back")
    }
}
