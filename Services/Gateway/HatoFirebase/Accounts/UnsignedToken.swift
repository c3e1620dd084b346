public import HatoModel

/// A token of an emulator: a JWT with the algorithm `none` and an empty signature (spec auth §8). It proves nothing:
/// it counts in emulator mode alone. Its times are not checked: the JS SDK writes 1970.
public struct UnsignedToken: Sendable, Hashable, SecretHolder {
    /// The longest text that is read, in bytes.
    public static let bytesMax = 16 << 10

    /// The claims.
    public let claims: JSONObject
    /// The user: the claim `sub`, or else `user_id`.
    public let uid: String

    /// Nil for a text that is none: another algorithm, a signature, no user.
    public init?(_ text: String) {
        guard let token = CompactToken(text), token.signature.isEmpty, token.header["alg"]?.string == "none"
        else { return nil }
        self.init(claims: token.claims)
    }

    /// Nil for claims without a user.
    public init?(claims: JSONObject) {
        let uid = [claims["sub"], claims["user_id"]].lazy.compactMap { $0?.string }.first { !$0.isEmpty }
        guard let uid, uid.unicodeScalars.count <= 128 else { return nil }
        self.claims = claims
        self.uid = uid
    }

    /// The token as emulators and SDKs write it.
    public var text: String { CompactToken.text(header: ["alg": "none", "typ": "JWT"], claims: claims) }

    public var description: String { "UnsignedToken" }
}

/// A credential that counts in emulator mode only.
public enum EmulatorCredential: Sendable, Hashable {
    /// The administrator: `owner` in any case, or what begins with `ya29.`, an access token of Google's.
    case owner
    case user(UnsignedToken)

    /// Nil for any other text.
    public init?(_ text: String) {
        if text.lowercased() == "owner" || text.hasPrefix("ya29.") {
            self = .owner
        } else if let token = UnsignedToken(text) {
            self = .user(token)
        } else {
            return nil
        }
    }
}

/// The parts of a JWT in compact form (RFC 7519 §3), not verified.
struct CompactToken: Sendable, Hashable {
    let header: JSONObject
    let claims: JSONObject
    let signature: String

    /// Nil for a text that is too long, has not three parts, or parts that are no base64url of JSON objects.
    init?(_ text: String) {
        guard text.utf8.count <= UnsignedToken.bytesMax else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
            Self.isBase64(parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        signature = String(parts[2])
    }

    private static func object(_ part: Substring) -> JSONObject? {
        guard let bytes = Base64.url.decode(unpadded(part)) else { return nil }
        return (try? JSONParser.parse(bytes, depth: 16))?.object
    }

    private static func isBase64(_ part: Substring) -> Bool { Base64.url.decode(unpadded(part)) != nil }

    /// Some writers pad.
    private static func unpadded(_ part: Substring) -> [UInt8] {
        var bytes = Array(part.utf8)
        while bytes.last == UInt8(ascii: "="), bytes.count > part.utf8.count - 2 { bytes.removeLast() }
        return bytes
    }

    /// A token without signature.
    static func text(header: JSONObject, claims: JSONObject) -> String {
        let parts = [header, claims].map { Base64.url.encode(JSONValue.object($0).encoded) }
        return "\(parts[0]).\(parts[1])."
    }
}
