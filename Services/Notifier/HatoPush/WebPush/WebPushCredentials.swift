import Crypto
public import HatoModel

/// With what an app proves to push services that a push is its own (VAPID, RFC 8292).
///
/// Its description hides the key.
public struct WebPushCredentials: Sendable {
    /// How a push service reaches the sender: a `mailto:` or `https:` URL.
    public let subject: String
    /// Whether endpoints may be loopback and private addresses, and plain http.
    public let allowsPrivate: Bool
    let key: P256.Signing.PrivateKey

    private static let subjectBytesMax = 512
    private static let keyBytesMax = 8_192

    /// Throws `invalid_key` when `key` is no private key of P-256, and `invalid_subject`.
    ///
    /// - Parameters:
    ///   - key: in PEM, or the base64url of its 32 bytes.
    ///   - subject: a `mailto:` or `https:` URL.
    public init(key: String, subject: String, allowsPrivate: Bool = false) throws(ArgumentError) {
        guard let key = Self.privateKey(key) else {
            throw ArgumentError(
                reason: "invalid_key",
                "The key of Web Push is a private key of P-256: in PEM, or the base64url of its 32 bytes")
        }
        try Self.check(subject: subject)
        self.key = key
        self.subject = subject
        self.allowsPrivate = allowsPrivate
    }

    /// Throws `invalid_subject` unless it is a `mailto:` or `https:` URL.
    public static func check(subject: String) throws(ArgumentError) {
        guard isSubject(subject) else {
            throw ArgumentError(
                reason: "invalid_subject",
                "The subject of Web Push is a URL such as mailto:admin@example.com or https://example.com, at most "
                    + "\(subjectBytesMax) bytes of ASCII")
        }
    }

    /// A new private key, as `init` reads it.
    public static func newKey() -> String {
        Base64.url.encode(P256.Signing.PrivateKey().rawRepresentation)
    }

    /// What a browser takes as `applicationServerKey`: the base64url of 65 bytes.
    public var publicKey: String { Base64.url.encode(key.publicKey.x963Representation) }

    private static func privateKey(_ text: String) -> P256.Signing.PrivateKey? {
        guard text.utf8.count <= keyBytesMax else { return nil }
        if text.contains("-----BEGIN") { return try? P256.Signing.PrivateKey(pemRepresentation: text) }
        // A file ends with a line break.
        let line = text.utf8.filter { $0 != 0x0A && $0 != 0x0D }
        guard let bytes = Base64.url.decode(line), bytes.count == 32 else { return nil }
        return try? P256.Signing.PrivateKey(rawRepresentation: bytes)
    }

    private static func isSubject(_ text: String) -> Bool {
        let rest = ["mailto:", "https://"].first { text.hasPrefix($0) }.map { text.utf8.dropFirst($0.utf8.count) }
        guard let rest, !rest.isEmpty, text.utf8.count <= subjectBytesMax else { return false }
        return rest.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

extension WebPushCredentials: Equatable {
    public static func == (left: Self, right: Self) -> Bool {
        left.subject == right.subject && left.allowsPrivate == right.allowsPrivate
            && left.key.rawRepresentation == right.key.rawRepresentation
    }
}

extension WebPushCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Web Push of \(subject)" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
