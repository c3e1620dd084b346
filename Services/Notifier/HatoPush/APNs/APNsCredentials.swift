import Crypto
import HatoFetch
public import HatoModel
import NIOSSL

/// With what an app proves to Apple's push service that it may send to its devices: a signing key of a developer team.
///
/// Its description hides the key.
public struct APNsCredentials: Sendable {
    /// Whose key it is, and which app it is for.
    public struct App: Sendable, Hashable {
        /// The id of the key: 10 capital letters and digits.
        public var keyID: String
        /// The id of the team: 10 capital letters and digits.
        public var teamID: String
        /// The bundle id of the app.
        public var topic: String

        public init(keyID: String, teamID: String, topic: String) {
            self.keyID = keyID
            self.teamID = teamID
            self.topic = topic
        }
    }

    /// A server that is called instead of Apple's, for devices of both environments.
    public struct Server: Sendable, Hashable {
        /// An https URL without a path.
        public var url: String
        /// Certificates in PEM, one of which must have signed the server's; nil: those that the system trusts.
        public var authorities: String?

        public init(url: String, authorities: String? = nil) {
            self.url = url
            self.authorities = authorities
        }
    }

    /// The key's id, the team and the topic.
    public let app: App
    /// The environment of devices that name none.
    public let environment: Notifier.APNsEnvironment
    let key: P256.Signing.PrivateKey
    /// Of the public key: it differs between keys.
    let keyFingerprint: [UInt8]
    let trustRoots: [NIOSSLCertificate]?
    private let url: String?

    private static let fileBytesMax = 64 << 10
    static let topicBytesMax = 255

    /// Throws `invalid_key`, `invalid_key_id`, `invalid_team_id`, `invalid_topic`, `invalid_url` or `invalid_ca`. The
    /// error shows nothing of the key.
    ///
    /// - Parameter key: a private key of P-256 in PEM: the contents of the .p8 file that Apple gives.
    public init(
        key: String, app: App, environment: Notifier.APNsEnvironment = .production, server: Server? = nil
    ) throws(ArgumentError) {
        self.key = try Self.privateKey(key)
        keyFingerprint = Array(SHA256.hash(data: self.key.publicKey.x963Representation))
        guard Self.isIdentifier(app.keyID) else {
            throw ArgumentError(
                reason: "invalid_key_id", "The key id of APNs has 10 capital letters and digits, such as ABC123DEFG")
        }
        guard Self.isIdentifier(app.teamID) else {
            throw ArgumentError(
                reason: "invalid_team_id", "The team id of APNs has 10 capital letters and digits, such as DEF123GHIJ")
        }
        guard Self.isTopic(app.topic) else {
            throw ArgumentError(
                reason: "invalid_topic", "The topic of APNs is the bundle id of the app, such as com.example.chat")
        }
        self.app = app
        self.environment = environment
        url = try server.map { server throws(ArgumentError) in try Self.base(of: server.url) }
        trustRoots = try server?.authorities.map { pem throws(ArgumentError) in try Self.certificates(pem) }
    }

    /// Where devices of an environment are reached, without a path.
    func url(of environment: Notifier.APNsEnvironment) -> String {
        if let url { return url }
        return switch environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }

    static func isTopic(_ text: String) -> Bool {
        (1...topicBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
    }

    private static func privateKey(_ text: String) throws(ArgumentError) -> P256.Signing.PrivateKey {
        guard text.utf8.count <= fileBytesMax, let begin = text.firstRange(of: "-----BEGIN ") else {
            throw keyError("it is no PEM text")
        }
        let label = text[begin.upperBound...].prefix { $0 != "-" }
        switch label {
        case "PRIVATE KEY", "EC PRIVATE KEY":
            guard let key = try? P256.Signing.PrivateKey(pemRepresentation: text) else {
                throw keyError("it is damaged, or of another kind than P-256")
            }
            return key
        case "ENCRYPTED PRIVATE KEY": throw keyError("it is encrypted")
        case "PUBLIC KEY": throw keyError("it is a public key")
        case "CERTIFICATE": throw keyError("it is a certificate")
        case "RSA PRIVATE KEY": throw keyError("it is a key of RSA")
        default: throw keyError("its PEM text is of another kind")
        }
    }

    private static func keyError(_ what: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_key",
            "The key of APNs should be a private key of P-256 in PEM, the .p8 file of Apple: \(what)")
    }

    private static func base(of text: String) throws(ArgumentError) -> String {
        guard let url = try? StrictURL(text), url.scheme == "https", url.target == "/" else {
            throw ArgumentError(reason: "invalid_url", "The url of APNs should be an https URL without a path")
        }
        return String(url.text.dropLast())
    }

    private static func certificates(_ pem: String) throws(ArgumentError) -> [NIOSSLCertificate] {
        guard pem.utf8.count <= fileBytesMax,
            let certificates = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)), !certificates.isEmpty
        else {
            throw ArgumentError(
                reason: "invalid_ca", "The authorities of APNs should be certificates in PEM, at most 65,536 bytes")
        }
        return certificates
    }
}

extension APNsCredentials: Equatable {
    public static func == (left: Self, right: Self) -> Bool {
        left.app == right.app && left.environment == right.environment && left.url == right.url
            && left.trustRoots == right.trustRoots && left.key.rawRepresentation == right.key.rawRepresentation
    }
}

extension APNsCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "APNs of \(app.topic) with the key \(app.keyID) of the team \(app.teamID)" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
