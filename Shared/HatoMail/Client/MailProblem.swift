import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Why there is no connection, in words for operators.
enum MailProblem {
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode)).lowercased()
        case let error as NIOConnectionError: error.connectionErrors.last.map { words($0.error) } ?? unknownHost
        case is SocketAddressError, is SocketAddressError.UnknownHost: unknownHost
        case ChannelError.connectTimeout: "no connection in time"
        case let error as MailFieldError: error.description
        case NIOSSLError.uncleanShutdown: "the server closed the connection"
        case NIOSSLError.handshakeFailed(let cause): handshake(cause)
        case is NIOSSLExtraError: otherHost
        case is BoringSSLError, is NIOSSLError: "TLS failed"
        default: "the connection failed"
        }
    }

    static let otherHost = "the server's certificate is not for this host"
    private static let unknownHost = "the host is unknown"

    /// BoringSSL names its reasons inside the text of an error only.
    private static func handshake(_ error: BoringSSLError) -> String {
        let text = String(describing: error)
        let reasons = [
            (
                "CERTIFICATE_VERIFY_FAILED",
                "the server's certificate has expired, or no authority trusted here has signed it"
            ),
            ("WRONG_VERSION_NUMBER", "the server does not speak TLS"),
        ]
        return reasons.first { text.contains($0.0) }?.1 ?? "the TLS handshake failed; does the server speak TLS 1.2?"
    }
}
