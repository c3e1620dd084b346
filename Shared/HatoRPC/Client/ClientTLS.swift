import HatoModel
import NIOCore
package import NIOSSL

/// TLS of the connections to a server: version 1.2 or newer. Made once for all of them.
package struct ClientTLS: Sendable {
    private let context: NIOSSLContext
    /// Nil where the server has no name that a handshake can carry.
    private let serverName: String?

    /// Reads the files. Throws `TLSFileError`.
    package init(_ tls: RPCClientTLS, host: String) throws {
        context = try Self.context(tls)
        let name = tls.serverName ?? host
        let isAddress = (try? SocketAddress(ipAddress: name, port: 0)) != nil
        serverName = isAddress ? nil : name
    }

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

    /// The handler of one connection. An address cannot be named in a handshake, but the certificate is checked for it
    /// all the same.
    package func handler() throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: context, serverHostname: serverName)
    }
}
