import Crypto
import Foundation
import SwiftASN1
import X509

/// What apps and sinks need, made for one run in a temporary folder: a certificate for 127.0.0.1 with its key, a
/// signing key of APNs, and the file of the apps.
struct PushFolder: Sendable {
    static let keyID = "ABC123DEFG"
    static let team = "DEF123GHIJ"
    static let topic = "com.example.chat"

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "hato-bench-push-\(UUID().uuidString)")

    var certificate: String { path("server.pem") }
    var certificateKey: String { path("server.key") }
    var signingKey: String { path("AuthKey.p8") }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let key = P256.Signing.PrivateKey()
        try write(try Self.selfSigned(key).serializeAsPEM().pemString, to: certificate)
        try write(key.pemRepresentation, to: certificateKey)
        try write(P256.Signing.PrivateKey().pemRepresentation, to: signingKey)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// The setting that names each app with the port of its sink.
    func apps(_ ports: [String: Int]) throws -> [String] {
        let lines = ports.sorted { $0.key < $1.key }.map { app, port in
            """
            \(app):
              apns: {key-file: "\(signingKey)", key-id: \(Self.keyID), team-id: \(Self.team), topic: \(Self.topic), \
            url: "https://127.0.0.1:\(port)", ca-file: "\(certificate)"}
            """
        }
        let file = path("apps-\(UUID().uuidString).yaml")
        try write(lines.joined(separator: "\n") + "\n", to: file)
        return ["--apps-file", file]
    }

    /// A file with these bytes.
    func file(_ name: String, _ text: String) throws -> String {
        try write(text, to: path(name))
        return path(name)
    }

    /// The path of a file or folder of this name.
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func write(_ text: String, to path: String) throws {
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: path, contents: Data(text.utf8), attributes: attributes) else {
            throw BenchError("cannot write \(path)")
        }
    }

    /// Its own authority, for a day.
    private static func selfSigned(_ key: P256.Signing.PrivateKey) throws -> Certificate {
        let (name, now) = (try DistinguishedName { CommonName("hato-bench") }, Date())
        let own = Certificate.PrivateKey(key)
        return try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: own.publicKey,
            notValidBefore: now.addingTimeInterval(-3_600), notValidAfter: now.addingTimeInterval(86_400),
            issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                SubjectAlternativeNames([.ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))])
            },
            issuerPrivateKey: own)
    }
}
