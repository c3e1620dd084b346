import Crypto
import CryptoExtras
import HatoModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A public key of a provider, with the one algorithm that it verifies: no token can select another.
struct ProviderKey: Sendable {
    enum Algorithm: String, Sendable {
        /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
        case rs256 = "RS256"
        /// ECDSA on P-256 with SHA-256 (RFC 7518 §3.4).
        case es256 = "ES256"
        /// Ed25519 (RFC 8037 §3.1).
        case edDSA = "EdDSA"
    }

    private enum Key: Sendable {
        case rsa(_RSA.Signing.PublicKey)
        case p256(P256.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)
    }

    /// Bits of an RSA modulus: a shorter one can be factored, and a longer one makes each check expensive.
    static let rsaBits = 2048...4096
    static let kidBytesMax = 256

    let kid: String
    let algorithm: Algorithm
    /// The members that make the key, as a JWK.
    let jwk: JSONObject
    private let key: Key

    /// Nil for a JWK (RFC 7517) without a `kid`, for another use than signatures, or of another kind.
    init?(_ jwk: JSONValue) {
        func bytes(_ name: String) -> [UInt8]? { jwk[name]?.string.flatMap { Base64.url.decode($0.utf8) } }
        guard let kid = jwk["kid"]?.string, (1...Self.kidBytesMax).contains(kid.utf8.count),
            jwk["use"] == nil || jwk["use"]?.string == "sig",
            jwk["key_ops"] == nil || jwk["key_ops"]?.array?.contains("verify") == true
        else { return nil }
        let names: [String]
        switch (jwk["kty"]?.string, jwk["crv"]?.string) {
        case ("RSA", nil):
            guard let n = bytes("n"), let e = bytes("e"), let key = Self.rsa(n, e) else { return nil }
            (self.key, algorithm, names) = (.rsa(key), .rs256, ["n", "e"])
        case ("EC", "P-256"):
            guard let x = bytes("x"), let y = bytes("y"), x.count == 32, y.count == 32,
                let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
            else { return nil }
            (self.key, algorithm, names) = (.p256(key), .es256, ["crv", "x", "y"])
        case ("OKP", "Ed25519"):
            guard let x = bytes("x"), x.count == 32,
                let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x)
            else { return nil }
            (self.key, algorithm, names) = (.ed25519(key), .edDSA, ["crv", "x"])
        default: return nil
        }
        guard jwk["alg"] == nil || jwk["alg"]?.string == algorithm.rawValue else { return nil }
        self.kid = kid
        self.jwk = JSONObject(
            uniqueMembers: (["kty", "kid"] + names).compactMap { name in
                jwk[name].map { JSONObject.Member(name, $0) }
            })
    }

    private static func rsa(_ n: [UInt8], _ e: [UInt8]) -> _RSA.Signing.PublicKey? {
        let modulus = Array(n.drop { $0 == 0 })
        let exponent = Array(e.drop { $0 == 0 })
        // 65537 with nearly all; a longer exponent makes each check expensive, and an even one is none.
        guard let first = modulus.first, modulus.count <= rsaBits.upperBound / 8,
            rsaBits.contains(modulus.count * 8 - first.leadingZeroBitCount), (1...4).contains(exponent.count),
            let last = exponent.last, last & 1 == 1, exponent != [1]
        else { return nil }
        return try? _RSA.Signing.PublicKey(n: modulus, e: exponent)
    }

    /// Takes some 50 µs.
    func isValid(_ signature: [UInt8], of input: [UInt8]) -> Bool {
        switch key {
        case .rsa(let key):
            let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
            return key.isValidSignature(signature, for: SHA256.hash(data: input), padding: .insecurePKCS1v1_5)
        case .p256(let key):
            guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: input)
        case .ed25519(let key): return key.isValidSignature(signature, for: input)
        }
    }
}

/// The public keys of a provider (a JWK Set, RFC 7517 §5), those that can verify ID tokens.
struct ProviderKeySet: Sendable {
    /// Why a set is none.
    struct Problem: Error, Hashable {
        /// Says what is right.
        var message: String
    }

    static let bytesMax = 64 << 10
    static let countMax = 100
    /// Members that only a private or a shared key has.
    private static let secretMembers = ["d", "p", "q", "dp", "dq", "qi", "k"]

    static let none = ProviderKeySet(keys: [:])

    /// By `kid`; the first with each.
    private(set) var keys: [String: ProviderKey]

    private init(keys: [String: ProviderKey]) { self.keys = keys }

    /// Keys that cannot verify ID tokens are left out. Throws `Problem` when none is left.
    init(_ json: JSONValue) throws(Problem) {
        guard let list = json["keys"]?.array else {
            throw Problem(message: #"it should be a JWK Set, such as {"keys":[{"kty":"RSA","kid":"1",…}]}"#)
        }
        guard list.count <= Self.countMax else {
            throw Problem(message: "it should have at most \(Self.countMax) keys, not \(list.count)")
        }
        keys = Dictionary(list.compactMap { ProviderKey($0) }.map { ($0.kid, $0) }) { first, _ in first }
        guard !keys.isEmpty else {
            throw Problem(
                message: "it should have a key with a kid that is RSA of 2048 to 4096 bits, P-256 or Ed25519")
        }
    }

    /// A set that an administrator gives: whole at most 64 KiB, and without secrets. Throws `Problem`.
    init(given json: JSONValue) throws(Problem) {
        guard json.encoded.count <= Self.bytesMax else {
            throw Problem(message: "it should have at most \(Self.bytesMax) bytes")
        }
        let secret = (json["keys"]?.array ?? []).contains { key in Self.secretMembers.contains { key[$0] != nil } }
        guard !secret else {
            throw Problem(message: "it should have public keys alone: one of these has a private or a shared half")
        }
        try self.init(json)
    }

    /// The usable keys as a JWK Set.
    var json: JSONValue {
        let sorted = keys.values.sorted { $0.kid < $1.kid }
        return .object(["keys": .array(sorted.map { .object($0.jwk) })])
    }

    /// The key, where there is one alone.
    var only: ProviderKey? { keys.count == 1 ? keys.values.first : nil }

    var keyIDs: [String] { keys.keys.sorted() }
}
