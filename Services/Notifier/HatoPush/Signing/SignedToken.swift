import Crypto
import HatoModel

/// A JWT that authenticates the notifier to a provider (RFC 7515, RFC 7519).
enum SignedToken {
    /// Signs with ES256 (RFC 7518 §3.4).
    static func es256(header: JSONObject, claims: JSONObject, key: P256.Signing.PrivateKey) throws -> String {
        let input = signingInput(header: header, claims: claims)
        let signature = try key.signature(for: Array(input.utf8))
        return "\(input).\(Base64.url.encode(signature.rawRepresentation))"
    }

    private static func signingInput(header: JSONObject, claims: JSONObject) -> String {
        Base64.url.encode(JSONValue.object(header).encoded) + "."
            + Base64.url.encode(JSONValue.object(claims).encoded)
    }
}
