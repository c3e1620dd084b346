import Crypto
public import HatoModel

/// What a browser, or a distributor of UnifiedPush, gives an app to be reached by (RFC 8030, RFC 8291).
public struct WebPushSubscription: Sendable, Hashable {
    /// The URL that is called.
    public var endpoint: String
    /// The receiver's public key: a point of P-256, 65 bytes, uncompressed.
    public var p256dh: [UInt8]
    /// The receiver's authentication secret, 16 bytes.
    public var auth: [UInt8]

    /// Throws `invalid_key` for a key that is no point of P-256, or a secret that has not 16 bytes. The endpoint is
    /// checked by `WebPushChannel.check`.
    public init(endpoint: String, p256dh: [UInt8], auth: [UInt8]) throws(ArgumentError) {
        guard p256dh.count == 65, p256dh.first == 4,
            (try? P256.KeyAgreement.PublicKey(x963Representation: p256dh)) != nil
        else {
            throw ArgumentError(reason: "invalid_key", "p256dh is the base64url of 65 bytes, a point of P-256")
        }
        guard auth.count == 16 else {
            throw ArgumentError(reason: "invalid_key", "auth is the base64url of 16 bytes")
        }
        self.endpoint = endpoint
        self.p256dh = p256dh
        self.auth = auth
    }
}
