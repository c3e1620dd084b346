import HatoModel
import NIOCore
import NIOSSL

/// TLS of a link to a server: version 1.2 or newer.
enum ClientTLS {
    static func context(_ tls: RPCClientTLS) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let authority = tls.authorityFile {
            configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
        }
        if let certificate = tls.certificateFile, let key = tls.keyFile {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) }
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
        }
        return try NIOSSLContext(configuration: configuration)
    }

    /// An address cannot be named in a handshake, but the certificate is checked for it all the same.
    static func handler(_ context: NIOSSLContext, host: String, _ tls: RPCClientTLS) throws -> NIOSSLClientHandler {
        let name = tls.serverName ?? host
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
    }
}
