import Crypto
import Foundation
import HatoModel
import TestCertificates

@testable import HatoPush

/// Credentials of an app, as Apple would give them.
struct APNsTestKey {
    let key = P256.Signing.PrivateKey()

    func credentials(
        topic: String = "com.example.chat", port: Int = 1, trusting files: TestCertificates? = nil
    ) throws -> APNsCredentials {
        let authorities = try files.map { try String(contentsOfFile: $0.path("ca.pem"), encoding: .utf8) }
        return try APNsCredentials(
            key: key.pemRepresentation, app: .init(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: topic),
            server: .init(url: "https://localhost:\(port)", authorities: authorities))
    }

    /// The header and the claims of a provider token; nil when this key has not signed it.
    func read(_ token: String) -> (header: JSONValue, claims: JSONValue)? {
        let words = token.split(separator: ".")
        let parts = words.map { Base64.url.decode($0.utf8) ?? [] }
        guard parts.count == 3, let signature = try? P256.Signing.ECDSASignature(rawRepresentation: parts[2]),
            key.publicKey.isValidSignature(signature, for: Array("\(words[0]).\(words[1])".utf8)),
            let header = try? JSONParser.parse(parts[0]), let claims = try? JSONParser.parse(parts[1])
        else { return nil }
        return (header, claims)
    }
}
