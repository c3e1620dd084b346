import NIOHTTP1
import NIOHTTPCompression

/// Which responses are compressed: those whose length is known and is worth it.
enum ResponseCompression {
    private static let bytesMin = 1_024

    /// A handler for one connection.
    static func handler() -> HTTPResponseCompressor {
        HTTPResponseCompressor(initialByteBufferCapacity: 0) { head, isSupported in
            let length = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
            return isSupported && length >= bytesMin ? .compressIfPossible : .doNotCompress
        }
    }
}
