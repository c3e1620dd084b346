import NIOSSL

/// A file of TLS that cannot be used.
public struct TLSFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The part of TLS that a file is for.
    public enum Part: Sendable, Hashable {
        case certificate, key, authority
    }

    /// What the file is for.
    public var part: Part
    /// The path of the file.
    public var file: String
    /// What is wrong, and what would be right.
    public var problem: String

    public var description: String { "\(file) \(problem)" }
}

/// Reads the PEM files of listeners and links.
enum TLSFiles {
    static func certificates(_ file: String, _ part: TLSFileError.Part) throws(TLSFileError) -> [NIOSSLCertificate] {
        try checkReadable(file, part)
        guard let chain = try? NIOSSLCertificate.fromPEMFile(file), !chain.isEmpty else {
            throw TLSFileError(
                part: part, file: file, problem: "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
        }
        return chain
    }

    /// The key, with the context that shows whether it belongs to the certificate.
    static func privateKey(_ file: String) throws(TLSFileError) -> NIOSSLPrivateKey {
        try checkReadable(file, .key)
        guard let key = try? NIOSSLPrivateKey(file: file, format: .pem) else {
            throw TLSFileError(
                part: .key, file: file,
                problem: "holds no private key in PEM (-----BEGIN PRIVATE KEY-----), or one that needs a pass phrase")
        }
        return key
    }

    static func context(_ configuration: TLSConfiguration, keyFile: String?) throws -> NIOSSLContext {
        do { return try NIOSSLContext(configuration: configuration) } catch {
            guard let keyFile else { throw error }
            throw TLSFileError(part: .key, file: keyFile, problem: "is not the key of the certificate")
        }
    }

    private static func checkReadable(_ file: String, _ part: TLSFileError.Part) throws(TLSFileError) {
        if let problem = FileProblem.ofReading(file) {
            throw TLSFileError(part: part, file: file, problem: "cannot be read: \(problem)")
        }
    }
}

extension RPCClientTLS {
    /// Reads the files, so that what is wrong with them is reported before anything is called. Throws `TLSFileError`.
    public func check() throws { _ = try ClientTLS.context(self) }
}
