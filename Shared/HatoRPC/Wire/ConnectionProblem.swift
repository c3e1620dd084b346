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

/// Why there is no connection, or no port to listen on, for people: the errors below have the names of their libraries'
/// types and line numbers of TLS.
public enum ConnectionProblem {
    /// Returns why a connection failed, in words for people, without a full stop.
    public static func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError: words(errorNumber: error.errnoCode)
        case let error as NIOConnectionError: words(error)
        case let error as NIOSSLError: words(error)
        case let error as TLSFileError: error.description
        case is SocketAddressError, is SocketAddressError.UnknownHost: unknownHost
        case ChannelError.connectTimeout(let limit): "no response within \(limit.nanoseconds / 1_000_000) ms"
        case is NIOSSLExtraError: "the server's certificate is not for this host"
        case let error as BoringSSLError: words(error)
        default: "\(error)"
        }
    }

    /// Whether the TLS handshake failed, so that no request was sent.
    static func isFailedHandshake(_ error: any Error) -> Bool {
        if case NIOSSLError.handshakeFailed = error { return true }
        return error is NIOSSLExtraError
    }

    private static let unknownHost = "the host is unknown"

    private static func words(errorNumber: Int32) -> String {
        let words = FileProblem.words(errorNumber)
        switch errorNumber {
        case ECONNREFUSED: return "\(words); nothing listens there"
        case EADDRINUSE: return "\(words); another process has that port"
        case EADDRNOTAVAIL: return "\(words); this machine does not have that address"
        case EACCES: return "\(words); ports below 1024 are for the superuser"
        default: return words
        }
    }

    /// A name may have several addresses: the last one's failure stands for all.
    private static func words(_ error: NIOConnectionError) -> String {
        if let last = error.connectionErrors.last { return words(last.error) }
        return unknownHost
    }

    private static func words(_ error: NIOSSLError) -> String {
        switch error {
        case .handshakeFailed(let cause): words(cause)
        case .uncleanShutdown: "the server closed the connection"
        case .unableToValidateCertificate, .noCertificateToValidate:
            "the server's certificate cannot be verified"
        default: "TLS failed (\(error))"
        }
    }

    /// BoringSSL names its reasons inside the text of an error only.
    private static func words(_ error: BoringSSLError) -> String {
        let text = String(describing: error)
        if let (_, words) = reasons.first(where: { text.contains($0.name) }) { return words }
        return "the TLS handshake failed; does the server speak TLS 1.2 or newer?"
    }

    private static let reasons: [(name: String, words: String)] = [
        (
            "CERTIFICATE_VERIFY_FAILED",
            "the server's certificate has expired, or no authority trusted here has signed it"
        ),
        ("WRONG_VERSION_NUMBER", "the server does not speak TLS"),
        ("CERTIFICATE_REQUIRED", "the server wants a client certificate"),
        ("HANDSHAKE_FAILURE", "the server refused the TLS handshake"),
        ("UNKNOWN_CA", "the server does not trust the client certificate's authority"),
        ("BAD_CERTIFICATE", "the server refused the client certificate"),
    ]
}
