import NIOHTTP1
import NIOHTTPCompression

/// Which responses of a connection are compressed: those whose length is known and is worth it.
final class ResponseCompression {
    private let bytesMin: Int
    /// Whether the response that begins has a body: that of a HEAD has a length only.
    var hasBody = true

    /// - Parameter bytesMin: bytes of a body from which it is compressed.
    init(bytesMin: Int) { self.bytesMin = bytesMin }

    /// The handler that compresses.
    func handler() -> HTTPResponseCompressor {
        HTTPResponseCompressor(initialByteBufferCapacity: 0) { [self] head, isSupported in
            let length = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
            return isSupported && hasBody && length >= bytesMin ? .compressIfPossible : .doNotCompress
        }
    }
}
