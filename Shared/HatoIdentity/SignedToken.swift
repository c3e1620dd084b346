public import HatoModel

/// A JWT in its compact form (RFC 7515 §7.1) whose signature is not verified yet. Critical extensions are refused, and
/// keys in the header are ignored.
public struct SignedToken: Sendable {
    /// The `alg` of the header; empty without one.
    public let algorithm: String
    /// The `kid` of the header.
    public let kid: String?
    /// The `typ` of the header.
    public let type: String?
    /// The bytes that are signed.
    public let signedInput: [UInt8]
    /// The signature, which may be empty.
    public let signature: [UInt8]
    private let payload: ArraySlice<UInt8>

    /// Throws `TokenError.malformed` for a text that is no JWT, or that is longer than `bytesMax`.
    public init(_ token: String, bytesMax: Int) throws(TokenError) {
        guard token.utf8.count <= bytesMax else { throw .malformed }
        let (bytes, dot) = (Array(token.utf8), UInt8(ascii: "."))
        guard let first = bytes.firstIndex(of: dot), let last = bytes.lastIndex(of: dot), first < last,
            !bytes[(first + 1)..<last].contains(dot),
            let headerBytes = Base64.url.decode(bytes[..<first]),
            let signature = Base64.url.decode(bytes[(last + 1)...]),
            case .object(let header)? = try? JSONParser.parse(headerBytes, depth: 4),
            header["crit"] == nil, header["typ"] == nil || header["typ"]?.string != nil
        else { throw .malformed }
        algorithm = header["alg"]?.string ?? ""
        kid = header["kid"]?.string
        type = header["typ"]?.string
        self.signature = signature
        signedInput = Array(bytes[..<last])
        payload = bytes[(first + 1)..<last]
    }

    /// The claims, whose objects and arrays are at most `depth` deep. Throws `TokenError.malformed`.
    public func claims(depth: Int) throws(TokenError) -> JSONObject {
        guard let bytes = Base64.url.decode(payload),
            case .object(let claims)? = try? JSONParser.parse(bytes, depth: depth)
        else { throw .malformed }
        return claims
    }
}
