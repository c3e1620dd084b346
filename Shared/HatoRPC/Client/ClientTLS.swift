import HatoModel
import NIOCore
import NIOSSL

/// TLS of a link to a server: version 1.2 or newer.
enum ClientTLS {
    /// Throws `TLSFileError`.
    static func context(_ tls: RPCClientTLS) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let authority = tls.authorityFile {
            configuration.trustRoots = .certificates(try TLSFiles.certificates(authority, .authority))
        }
        if let certificate = tls.certificateFile, let key = tls.keyFile {
            configuration.certificateChain = try TLSFiles.certificates(certificate, .certificate).map {
                .certificate($0)
            }
            configuration.privateKey = .privateKey(try TLSFiles.privateKey(key))
        }
        return try TLSFiles.context(configuration, keyFile: tls.keyFile)
    }

    /// An address cannot be named in a handshake, but the certificate is checked for it all the same.
    static func handler(_ context: NIOSSLContext, host: String, _ tls: RPCClientTLS) throws -> NIOSSLClientHandler {
        let name = tls.serverName ?? host
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : name)
    }
}
