import Crypto
public import Foundation
import SwiftASN1
import X509

/// An authority and certificates that it has signed, as PEM files in a temporary folder: `ca.pem`, and `NAME.pem` with
/// `NAME.key` for each name. Valid for an hour before and a day after.
///
/// They are made in the process, not by the openssl command: Foundation's `Process` crashes on Linux in a process with
/// more than some 1,300 open files, which tests of many connections have.
public final class TestCertificates: Sendable {
    /// What a certificate is valid for.
    public enum Subject: Sendable {
        case dns(String)
        /// The four octets of an IPv4 address.
        case address(UInt8, UInt8, UInt8, UInt8)
    }

    private let folder: URL

    /// Throws errors of the file system.
    public init(_ certificates: [String: [Subject]] = TestCertificates.server) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "hato-certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let authority = try DistinguishedName { CommonName("authority") }
        try write(
            "ca",
            signed(
                for: key.publicKey, authority, by: (authority, key),
                constraints: .isCertificateAuthority(maxPathLength: nil)))
        for (name, subjects) in certificates {
            let own = Certificate.PrivateKey(P256.Signing.PrivateKey())
            let subject = try DistinguishedName { CommonName(name) }
            try write(
                name,
                signed(
                    for: own.publicKey, subject, by: (authority, key), constraints: .notCertificateAuthority,
                    names: subjects.map(\.name)))
            let contents = try Data(own.serializeAsPEM().pemString.utf8)
            try contents.write(to: file("\(name).key"))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path("\(name).key"))
        }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// A server for `localhost` and 127.0.0.1, one for the name only, and a client.
    public static let server: [String: [Subject]] = [
        "server": [.dns("localhost"), .address(127, 0, 0, 1)], "named": [.dns("localhost")],
        "client": [.dns("localhost")],
    ]

    /// The path of a file, such as `server.key`.
    public func path(_ name: String) -> String { file(name).path }

    private func file(_ name: String) -> URL { folder.appending(path: name) }

    private func write(_ name: String, _ certificate: Certificate) throws {
        try Data(certificate.serializeAsPEM().pemString.utf8).write(to: file("\(name).pem"))
    }
}

private func signed(
    for key: Certificate.PublicKey, _ subject: DistinguishedName,
    by issuer: (name: DistinguishedName, key: Certificate.PrivateKey), constraints: BasicConstraints,
    names: [GeneralName] = []
) throws -> Certificate {
    let now = Date()
    return try Certificate(
        version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: key,
        notValidBefore: now.addingTimeInterval(-3_600), notValidAfter: now.addingTimeInterval(86_400),
        issuer: issuer.name, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
        extensions: try Certificate.Extensions {
            Critical(constraints)
            if !names.isEmpty { SubjectAlternativeNames(names) }
        },
        issuerPrivateKey: issuer.key)
}

extension TestCertificates.Subject {
    fileprivate var name: GeneralName {
        switch self {
        case .dns(let name): .dnsName(name)
        case .address(let a, let b, let c, let d): .ipAddress(ASN1OctetString(contentBytes: [a, b, c, d]))
        }
    }
}
