import NIOCore
package import NIOSSL
import NIOTLS

/// TLS of a listener: version 1.2 or newer; with an authority for clients, mutual.
package enum ServerTLS {
    /// Throws `TLSFileError`.
    ///
    /// - Parameter protocols: which the client may choose from (ALPN, RFC 7301), e.g. `http/1.1`; with none of its own
    ///   among them it goes on without.
    package static func context(_ tls: RPCServerTLS, protocols: [String] = []) throws -> NIOSSLContext {
        let chain = try TLSFiles.certificates(tls.certificateFile, .certificate)
        let key = try TLSFiles.privateKey(tls.keyFile)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = protocols
        if let authority = tls.clientAuthorityFile {
            configuration.trustRoots = .certificates(try TLSFiles.certificates(authority, .authority))
            configuration.certificateVerification = .noHostnameVerification
        }
        return try TLSFiles.context(configuration, keyFile: tls.keyFile)
    }
}

/// Reports to the connection handler that the handshake is done, with an event that does not need NIOSSL.
final class HandshakeWatcher: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            context.fireUserInboundEventTriggered(ServerTLSReady())
        }
        context.fireUserInboundEventTriggered(event)
    }
}
