import Crypto
import Foundation
import HatoModel

/// An issuer of OpenID Connect whose keys are given as a JWK Set, so that no network is needed.
struct GivenKeysIssuer {
    static let url = "https://issuer.example"
    static let clientId = "com.example.chat"
    private static let kid = "key-1"

    private let key = P256.Signing.PrivateKey()

    /// The request that sets it as a provider.
    func provider(_ id: String) -> Auth.Providers.Set {
        let point = Array(key.publicKey.rawRepresentation)
        var request = Auth.Providers.Set(id: id, clientIds: [Self.clientId])
        request.issuer = Self.url
        request.jwks = [
            "keys": [
                [
                    "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": .string(Self.kid),
                    "x": .string(Base64.url.encode(point[..<32])), "y": .string(Base64.url.encode(point[32...])),
                ]
            ]
        ]
        return request
    }

    /// An ID token that is valid for an hour.
    func token(_ sub: String, email: String) throws -> String {
        let header: JSONValue = ["alg": "ES256", "kid": .string(Self.kid), "typ": "JWT"]
        let now = Date.now.timeIntervalSince1970.rounded(.down)
        let claims: JSONValue = [
            "iss": .string(Self.url), "aud": .string(Self.clientId), "sub": .string(sub), "iat": .number(now),
            "exp": .number(now + 3_600), "email": .string(email), "email_verified": true,
        ]
        let input = "\(Base64.url.encode(header.encoded)).\(Base64.url.encode(claims.encoded))"
        let signature = try key.signature(for: Array(input.utf8)).rawRepresentation
        return "\(input).\(Base64.url.encode(signature))"
    }
}
