import CryptoExtras
import HatoModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The public key of a service account, which verifies its custom tokens (RS256, RFC 7518 §3.3).
struct SignerKey: Sendable {
    static let bitsMin = 2048
    static let bitsMax = 4096
    /// UTF-8 bytes of the text with a key.
    private static let bytesMax = 8192

    private let key: _RSA.Signing.PublicKey

    /// Reads a public key in PEM. Nothing of another text is kept, and no error shows any of it.
    init(pem: String) throws(FieldProblem) {
        guard pem.utf8.count <= Self.bytesMax else {
            throw Self.problem("The key should have at most \(Self.bytesMax) bytes")
        }
        guard !pem.contains("PRIVATE KEY") else {
            throw Self.problem(
                "This is the private half, which was not kept: the public half is needed, as "
                    + "`openssl pkey -pubout` or `hato-auth signers set --service-account-file` makes it")
        }
        guard let key = try? _RSA.Signing.PublicKey(unsafePEMRepresentation: pem) else {
            throw Self.problem("The key should be an RSA key in PEM, such as -----BEGIN PUBLIC KEY-----…")
        }
        guard (Self.bitsMin...Self.bitsMax).contains(key.keySizeInBits) else {
            throw Self.problem(
                "The key should have \(Self.bitsMin) to \(Self.bitsMax) bits, not \(key.keySizeInBits)")
        }
        self.key = key
    }

    /// In PEM, without anything that was around it.
    var pem: String { key.pemRepresentation }
    var bits: Int { key.keySizeInBits }

    /// Whether the signature (RSASSA-PKCS1-v1_5 with SHA-256) is that of the key. Takes 30 µs for 2,048 bits.
    func isValid(_ signature: [UInt8], of input: [UInt8]) -> Bool {
        guard signature.count == (bits + 7) / 8 else { return false }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: Data(signature))
        return key.isValidSignature(signature, for: Data(input), padding: .insecurePKCS1v1_5)
    }

    private static func problem(_ message: String) -> FieldProblem {
        FieldProblem("publicKey", "INVALID_PUBLIC_KEY", message)
    }
}

/// The file of a service account, as Google's console makes it: it has the private half of the key alone, which stays
/// in the process that reads the file.
public struct ServiceAccountFile: Sendable {
    /// Why a file is none; the text shows nothing of it.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// The e-mail address of the account.
    public let email: String
    /// The public half in PEM.
    public let publicKey: String

    /// Reads the members `client_email` and `private_key` and computes the public half.
    ///
    /// - Throws: `Problem`.
    public init(_ bytes: [UInt8]) throws(Problem) {
        guard case .object(let file)? = try? JSONParser.parse(bytes, depth: 4),
            let email = file["client_email"]?.string, let pem = file["private_key"]?.string
        else { throw Problem(description: "has no JSON object with the members client_email and private_key") }
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem) else {
            throw Problem(description: "has no RSA key of 2,048 bits or more in private_key")
        }
        self.email = email
        publicKey = key.publicKey.pemRepresentation
    }
}
