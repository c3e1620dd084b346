import Crypto
import HatoModel

@testable import HatoPush

/// A browser: it has the keys of a subscription and reads what is sent to it.
struct WebPushReceiver {
    let key = P256.KeyAgreement.PrivateKey()
    let auth: [UInt8] = Array(0..<16)

    func subscription(_ endpoint: String) throws -> WebPushSubscription {
        try WebPushSubscription(endpoint: endpoint, p256dh: Array(key.publicKey.x963Representation), auth: auth)
    }

    /// The text of a body without its padding, by RFC 8188 and RFC 8291.
    func text(of body: [UInt8]) throws -> [UInt8] {
        let record = try record(of: body)
        let end = record.lastIndex { $0 != 0 } ?? 0
        return Array(record[..<end])
    }

    /// The text with its end and its padding.
    func record(of body: [UInt8]) throws -> [UInt8] {
        let (salt, point) = (Array(body[..<16]), Array(body[21..<86]))
        let sender = try P256.KeyAgreement.PublicKey(x963Representation: point)
        let input = try key.sharedSecretFromKeyAgreement(with: sender).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: auth,
            sharedInfo: Array("WebPush: info\0".utf8) + Array(key.publicKey.x963Representation) + point,
            outputByteCount: 32)
        func derived(_ label: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: input, salt: salt, info: Array("Content-Encoding: \(label)\0".utf8),
                outputByteCount: count)
        }
        let box = try AES.GCM.SealedBox(combined: derived("nonce", 12).withUnsafeBytes { Array($0) } + body[86...])
        return Array(try AES.GCM.open(box, using: derived("aes128gcm", 16)))
    }
}

/// The claims of a JWT whose signature is right; nil otherwise.
func es256Claims(_ token: String, _ publicKey: String) throws -> (header: JSONValue, claims: JSONValue)? {
    let parts = token.split(separator: ".").map(String.init)
    let bytes = parts.compactMap { Base64.url.decode($0.utf8) }
    guard bytes.count == 3, let point = Base64.url.decode(publicKey.utf8) else { return nil }
    let key = try P256.Signing.PublicKey(x963Representation: point)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: bytes[2])
    guard key.isValidSignature(signature, for: Array("\(parts[0]).\(parts[1])".utf8)) else { return nil }
    return (try JSONParser.parse(bytes[0]), try JSONParser.parse(bytes[1]))
}
