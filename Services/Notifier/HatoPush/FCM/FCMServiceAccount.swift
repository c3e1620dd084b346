import CryptoExtras
import HatoFetch
public import HatoModel

/// With what an app proves to FCM that it may send to a Firebase project: a service account of Google's cloud.
///
/// Its description hides the key.
public struct FCMServiceAccount: Sendable {
    /// The e-mail address of the account.
    public let email: String
    /// The Firebase project that it sends to.
    public let projectID: String
    let keyID: String
    let key: _RSA.Signing.PrivateKey
    /// Where access tokens come from, as the file spells it.
    let tokenURL: String
    /// Where pushes go.
    let sendURL: String

    private static let fileBytesMax = 64 << 10
    private static let googleURL = "https://fcm.googleapis.com"
    /// Google's token endpoints; all of them want one audience.
    private static let googleHosts = ["oauth2.googleapis.com", "www.googleapis.com", "accounts.google.com"]
    private static let googleAudience = "https://oauth2.googleapis.com/token"

    /// Reads the file that Google's console makes. Throws `invalid_service_account`, which names the wrong member and
    /// shows nothing of the file.
    ///
    /// - Parameters:
    ///   - file: a JSON object with `client_email`, `private_key`, `private_key_id`, `project_id` and `token_uri`.
    ///   - url: where pushes go instead of `https://fcm.googleapis.com`, without a path.
    ///   - allowsLoopback: whether `url` and `token_uri` may be http on this machine, as tests have them.
    public init(_ file: [UInt8], url: String? = nil, allowsLoopback: Bool = false) throws(ArgumentError) {
        guard file.count <= Self.fileBytesMax, case .object(let json)? = try? JSONParser.parse(file, depth: 8) else {
            throw Self.error("The service account should be a JSON object, as Google's console makes it")
        }
        if let type = json["type"], type != "service_account" {
            throw Self.error("type of the service account should be service_account")
        }
        email = try Self.text(json, "client_email", "an e-mail address") { text in
            text.contains("@") && text.utf8.count <= 320
        }
        projectID = try Self.text(json, "project_id", "the id of a Firebase project") { text in
            text.utf8.count <= 128
                && text.utf8.allSatisfy { byte in
                    (0x61...0x7A).contains(byte) || (0x30...0x3A).contains(byte) || byte == 0x2D || byte == 0x2E
                }
        }
        keyID = try Self.text(json, "private_key_id", "the id of the key") { $0.utf8.count <= 256 }
        let words = "an RSA key of 2,048 bits or more in PEM"
        guard let pem = json["private_key"]?.string, let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem)
        else { throw Self.error("private_key of the service account should be \(words)") }
        self.key = key
        guard let tokenURL = json["token_uri"]?.string, Self.isCallable(tokenURL, allowsLoopback) else {
            throw Self.error("token_uri of the service account should be an https URL")
        }
        self.tokenURL = tokenURL
        var base = url ?? Self.googleURL
        if base.hasSuffix("/") { base.removeLast() }
        guard Self.isCallable(base, allowsLoopback), (try? StrictURL(base))?.target == "/" else {
            throw ArgumentError(reason: "invalid_url", "The url of FCM should be an https URL without a path")
        }
        sendURL = "\(base)/v1/projects/\(projectID)/messages:send"
    }

    /// The assertion that is exchanged for an access token (RFC 7523), which lasts an hour; `now` in seconds since
    /// 1970. Throws the errors of the cryptography library.
    func assertion(now: Int64) throws -> String {
        try SignedToken.rs256(
            header: ["alg": "RS256", "typ": "JWT", "kid": .string(keyID)],
            claims: [
                "iss": .string(email), "scope": "https://www.googleapis.com/auth/firebase.messaging",
                "aud": .string(audience), "iat": .number(Double(now)), "exp": .number(Double(now + 3_600)),
            ], key: key)
    }

    private var audience: String {
        let host = (try? StrictURL(tokenURL))?.host ?? ""
        return Self.googleHosts.contains(host) ? Self.googleAudience : tokenURL
    }

    private static func text(
        _ json: JSONObject, _ name: String, _ words: String, _ isRight: (String) -> Bool
    ) throws(ArgumentError) -> String {
        guard let text = json[name]?.string, !text.isEmpty, isRight(text),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw error("\(name) of the service account should be \(words)") }
        return text
    }

    private static func isCallable(_ text: String, _ allowsLoopback: Bool) -> Bool {
        guard let url = try? StrictURL(text) else { return false }
        return url.scheme == "https"
            || allowsLoopback && (url.host == "localhost" || url.literal?.isLoopback == true)
    }

    private static func error(_ message: String) -> ArgumentError {
        ArgumentError(reason: "invalid_service_account", message)
    }
}

extension FCMServiceAccount: Equatable {
    public static func == (left: Self, right: Self) -> Bool {
        left.email == right.email && left.projectID == right.projectID && left.keyID == right.keyID
            && left.tokenURL == right.tokenURL && left.sendURL == right.sendURL
            && left.key.derRepresentation == right.key.derRepresentation
    }
}

extension FCMServiceAccount: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "FCM project \(projectID) as \(email)" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
