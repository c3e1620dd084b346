import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Encrypts the body of a push for its receiver alone: `aes128gcm` (RFC 8188) with the keys of RFC 8291, in one record.
struct WebPushEncryption {
    /// A push service takes bodies of 4,096 bytes: 86 are the header, 16 the tag, and one ends the text.
    static let bodyBytesMax = 4_096
    static let plaintextBytesMax = 3_993
    /// Bodies have few lengths, so that a length says little about a text.
    static let bucketBytes = 256
    private static let recordBytes: UInt32 = 4_096

    /// The sender's key, which serves one message.
    var key: P256.KeyAgreement.PrivateKey
    /// 16 random bytes.
    var salt: [UInt8]

    /// A new key and a new salt.
    init() {
        key = P256.KeyAgreement.PrivateKey()
        salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
    }

    init(key: P256.KeyAgreement.PrivateKey, salt: [UInt8]) {
        self.key = key
        self.salt = salt
    }

    /// Bytes of a text and its padding: the next multiple of 256, or the most there may be.
    static func paddedCount(_ count: Int) -> Int {
        let buckets = max(1, count / bucketBytes + (count % bucketBytes == 0 ? 0 : 1))
        return min(buckets * bucketBytes, plaintextBytesMax)
    }

    /// The body of the request. Throws the errors of the cryptography library when the receiver's key is none.
    ///
    /// - Parameters:
    ///   - plaintext: at most `plaintextBytesMax` bytes.
    ///   - count: to how many bytes it is padded; a smaller count than that of the text pads nothing.
    func body(_ plaintext: [UInt8], for receiver: WebPushSubscription, paddedTo count: Int) throws -> [UInt8] {
        let receiverKey = try P256.KeyAgreement.PublicKey(x963Representation: receiver.p256dh)
        let senderPoint = Array(key.publicKey.x963Representation)
        let input = try key.sharedSecretFromKeyAgreement(with: receiverKey).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: receiver.auth,
            sharedInfo: Array("WebPush: info\0".utf8) + receiver.p256dh + senderPoint, outputByteCount: 32)
        let contentKey = derived(from: input, "Content-Encoding: aes128gcm\0", bytes: 16)
        let nonce = derived(from: input, "Content-Encoding: nonce\0", bytes: 12)
        // 2 ends the text of the last record; zeros are its padding.
        let record = plaintext + [2] + [UInt8](repeating: 0, count: max(0, count - plaintext.count))
        let sealed = try AES.GCM.seal(
            record, using: contentKey, nonce: AES.GCM.Nonce(data: nonce.withUnsafeBytes { Array($0) }))
        let recordBytes = withUnsafeBytes(of: Self.recordBytes.bigEndian) { Array($0) }
        return salt + recordBytes + [UInt8(senderPoint.count)] + senderPoint + sealed.ciphertext + sealed.tag
    }

    private func derived(from input: SymmetricKey, _ label: String, bytes: Int) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: input, salt: salt, info: Array(label.utf8), outputByteCount: bytes)
    }
}
