import Crypto
import HatoModel

/// The public id of a session: the claim `sid` of its ID tokens, and `session` of `auth.sessions`.
///
/// It is made of the id inside its refresh tokens by a key, so that it does not reveal them.
enum SessionName {
    private static let bytes = 16

    static func text(_ id: [UInt8], key: [UInt8]) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Array("session ".utf8) + id, using: SymmetricKey(data: key))
        return Base64.url.encode(Array(code.prefix(bytes)))
    }
}
