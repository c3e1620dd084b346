import Crypto
import CryptoExtras
import HatoModel

extension SignedToken {
    /// Signs with RS256 (RFC 7518 §3.3).
    static func rs256(header: JSONObject, claims: JSONObject, key: _RSA.Signing.PrivateKey) throws -> String {
        let input =
            Base64.url.encode(JSONValue.object(header).encoded) + "."
            + Base64.url.encode(JSONValue.object(claims).encoded)
        let digest = SHA256.hash(data: Array(input.utf8))
        let signature = try key.signature(for: digest, padding: .insecurePKCS1v1_5)
        return "\(input).\(Base64.url.encode(signature.rawRepresentation))"
    }
}
