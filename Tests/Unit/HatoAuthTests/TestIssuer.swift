import Crypto
import CryptoExtras
import Foundation
import HatoModel
import Synchronization

@testable import HatoAuth

/// An issuer of OpenID Connect in memory: its keys, its tokens, and the documents of its discovery.
final class TestIssuer: Sendable {
    enum Algorithm: String, CaseIterable, Sendable {
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"

        /// The `kid` of the key.
        var kid: String { "\(rawValue)-key" }
    }

    static let url = "https://issuer.example"
    static let clientId = "com.example.chat"
    /// Seconds since 1970: the time of a new `AuthBench`.
    static let now: Int64 = 1_795_000_000

    private static let rsa = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    private struct State {
        var documents: [String: [UInt8]] = [:]
        var fetched: [String] = []
        var isHolding = false
    }

    struct IsDown: Error {}

    private let p256 = P256.Signing.PrivateKey()
    private let ed25519 = Curve25519.Signing.PrivateKey()
    private let state = Mutex(State())

    init() throws { try serve(keys: jwks()) }

    // MARK: Keys

    func jwks(_ algorithms: [Algorithm] = Algorithm.allCases) throws -> JSONValue {
        .object(["keys": .array(try algorithms.map { .object(try jwk($0)) })])
    }

    func jwk(_ algorithm: Algorithm) throws -> JSONObject {
        func text(_ bytes: some Sequence<UInt8>) -> JSONValue { .string(Base64.url.encode(Array(bytes))) }
        let common: JSONObject = ["kid": .string(algorithm.kid), "use": "sig", "alg": .string(algorithm.rawValue)]
        var jwk = common
        switch algorithm {
        case .rs256:
            let primitives = try Self.rsa.get().publicKey.getKeyPrimitives()
            jwk["kty"] = "RSA"
            jwk["n"] = text(primitives.modulus)
            jwk["e"] = text(primitives.publicExponent)
        case .es256:
            let point = Array(p256.publicKey.rawRepresentation)
            (jwk["kty"], jwk["crv"]) = ("EC", "P-256")
            (jwk["x"], jwk["y"]) = (text(point[..<32]), text(point[32...]))
        case .edDSA:
            (jwk["kty"], jwk["crv"], jwk["x"]) = ("OKP", "Ed25519", text(ed25519.publicKey.rawRepresentation))
        }
        return jwk
    }

    // MARK: Tokens

    static func claims(_ sub: String = "sub-of-masuo", _ change: (inout JSONObject) -> Void = { _ in }) -> JSONObject {
        var claims: JSONObject = [
            "iss": .string(url), "aud": .string(clientId), "sub": .string(sub), "iat": .number(Double(now)),
            "exp": .number(Double(now + 3_600)), "email": "masuo@example.com", "email_verified": true,
            "name": "フグ田マスオ", "picture": "https://issuer.example/masuo.png",
        ]
        change(&claims)
        return claims
    }

    /// A token as the issuer makes it, unless `header` says otherwise.
    func token(
        _ claims: JSONObject = TestIssuer.claims(), _ algorithm: Algorithm = .es256,
        header change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var header: JSONObject = ["alg": .string(algorithm.rawValue), "kid": .string(algorithm.kid), "typ": "JWT"]
        change(&header)
        let input =
            Base64.url.encode(JSONValue.object(header).encoded) + "."
            + Base64.url.encode(JSONValue.object(claims).encoded)
        return "\(input).\(Base64.url.encode(try signature(of: Array(input.utf8), algorithm)))"
    }

    func signature(of input: [UInt8], _ algorithm: Algorithm) throws -> [UInt8] {
        switch algorithm {
        case .rs256:
            let digest = SHA256.hash(data: input)
            let signature = try Self.rsa.get().signature(for: digest, padding: .insecurePKCS1v1_5)
            return Array(signature.rawRepresentation)
        case .es256: return Array(try p256.signature(for: input).rawRepresentation)
        case .edDSA: return Array(try ed25519.signature(for: input))
        }
    }

    // MARK: Discovery

    /// The URLs that were fetched.
    var fetched: [String] { state.withLock { $0.fetched } }

    func serve(keys: JSONValue) throws {
        serve(["issuer": .string(Self.url), "jwks_uri": .string("\(Self.url)/keys")], keys: keys.encoded)
    }

    /// Nil: the issuer is down.
    func serve(_ discovery: JSONObject?, keys: [UInt8] = []) {
        state.withLock { state in
            state.documents = [:]
            guard let discovery else { return }
            state.documents["\(Self.url)/.well-known/openid-configuration"] = JSONValue.object(discovery).encoded
            state.documents["\(Self.url)/keys"] = keys
        }
    }

    /// While held, no document comes.
    func hold(_ isHolding: Bool) { state.withLock { $0.isHolding = isHolding } }

    @Sendable func document(_ url: String) async throws -> [UInt8] {
        state.withLock { $0.fetched.append(url) }
        while state.withLock({ $0.isHolding }) {
            try Task.checkCancellation()
            await Task.yield()
        }
        guard let document = state.withLock({ $0.documents[url] }) else { throw IsDown() }
        return document
    }
}
