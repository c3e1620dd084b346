import NIOCore
import NIOSSL
import NIOTLS

/// TLS of a listener: version 1.2 or newer; with an authority for clients, mutual.
enum ServerTLS {
    static func context(_ tls: RPCServerTLS) throws -> NIOSSLContext {
        let chain = try read(tls.certificateFile) { try NIOSSLCertificate.fromPEMFile($0) }
        let key = try read(tls.keyFile) { try NIOSSLPrivateKey(file: $0, format: .pem) }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        if let authority = tls.clientAuthorityFile {
            let authorities = try read(authority) { try NIOSSLCertificate.fromPEMFile($0) }
            configuration.trustRoots = .certificates(authorities)
            configuration.certificateVerification = .noHostnameVerification
        }
        return try read(tls.certificateFile) { _ in try NIOSSLContext(configuration: configuration) }
    }

    private static func read<Value>(_ file: String, _ body: (String) throws -> Value) throws -> Value {
        do {
            return try body(file)
        } catch {
            throw RPCServerError.badTLS(file: file, reason: String(describing: error))
        }
    }
}

/// Tells the connection handler that the handshake is done, in a word that does not need NIOSSL.
final class HandshakeWatcher: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            context.fireUserInboundEventTriggered(ServerTLSReady())
        }
        context.fireUserInboundEventTriggered(event)
    }
}
