import NIOCore
import NIOSSL

extension MailURL {
    /// Whether a text is an address, not a name.
    static func isAddress(_ text: String) -> Bool { (try? SocketAddress(ipAddress: text, port: 0)) != nil }
}

/// TLS to a server: version 1.2 or newer, with a certificate that is signed by a trusted authority and names the host.
struct SMTPTLS: Sendable {
    private let context: NIOSSLContext
    private let host: String

    /// Throws `MailFieldError` for a file of authorities that cannot be used.
    init(host: String, authorityFile: String?, authorities: [UInt8]? = nil) throws(MailFieldError) {
        self.host = host
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        do {
            if let authorities {
                let certificates = try NIOSSLCertificate.fromPEMBytes(authorities)
                guard !certificates.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
                configuration.trustRoots = .certificates(certificates)
            } else if let authorityFile {
                configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authorityFile))
            }
            context = try NIOSSLContext(configuration: configuration)
        } catch {
            let name = authorityFile.map { ": \($0)" } ?? ""
            throw MailFieldError("mail-authority-file", "must be readable, with certificates in PEM\(name)")
        }
    }

    /// An address cannot be named in a handshake, but the certificate is checked for it all the same.
    func handler() throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: context, serverHostname: MailURL.isAddress(host) ? nil : host)
    }

    /// Whether the verified certificate names the host. NIOSSL also takes one for the address that a name was resolved
    /// to: an authority gives such a certificate to each owner of an address, also to one who forges the resolution.
    func namesHost(_ certificate: NIOSSLCertificate?) -> Bool {
        if MailURL.isAddress(host) { return true }
        guard let names = certificate?._subjectAlternativeNames() else { return false }
        return names.contains { name in
            guard name.nameType == .dnsName else { return false }
            let text = name.contents.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
            return Self.name(text, isFor: host)
        }
    }

    /// Whether a name of a certificate is the host's, or a wildcard for its first label (RFC 9525 §6.3).
    static func name(_ name: String, isFor host: String) -> Bool {
        let name = name.lowercased()
        let host = host.lowercased()
        guard name.hasPrefix("*.") else { return name == host }
        guard let dot = host.firstIndex(of: "."), dot > host.startIndex else { return false }
        return name.dropFirst() == host[dot...]
    }
}
