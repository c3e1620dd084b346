import HatoModel
import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Writes the line of a request.
enum RequestLine {
    /// - Parameter params: the whole object as JSON text. A line end in it, which can only be white space there,
    ///   becomes a blank: whatever the text is, it makes one line.
    static func write(_ id: UInt64, _ method: String, _ params: Span<UInt8>, into output: inout ByteBuffer) {
        output.reserveCapacity(minimumWritableBytes: envelopeBytes + method.utf8.count + params.count)
        output.writeStaticString("{\"jsonrpc\":\"2.0\",\"id\":")
        output.writeString(String(id))
        output.writeStaticString(",\"method\":")
        write(method, into: &output)
        output.writeStaticString(",\"params\":")
        write(params, into: &output)
        output.writeStaticString("}\n")
    }

    private static func write(_ method: String, into output: inout ByteBuffer) {
        // Names of methods need no escapes.
        guard method.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else {
            var writer = JSONWriter()
            writer.write(method)
            output.writeBytes(writer.bytes)
            return
        }
        output.writeStaticString("\"")
        output.writeString(method)
        output.writeStaticString("\"")
    }

    /// Writes what may be a JSON text, without its line ends. One inside of a string, where JSON has none, becomes
    /// another byte that JSON has not, so that it is refused there, too.
    static func writeUnread(_ text: Span<UInt8>, into output: inout ByteBuffer) {
        let first = output.writerIndex
        write(text, into: &output)
        guard hasLineEnd(text) else { return }
        var (isInString, isEscaped) = (false, false)
        for index in text.indices {
            let byte = text[index]
            if isInString, byte == lineFeed || byte == carriageReturn {
                output.setInteger(0x01 as UInt8, at: first + index)
            }
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if isInString, byte == UInt8(ascii: "\\") {
                isEscaped = true
            }
        }
    }

    private static let (lineFeed, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))

    private static func hasLineEnd(_ text: Span<UInt8>) -> Bool {
        text.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return [lineFeed, carriageReturn].contains { memchr(start, Int32($0), bytes.count) != nil }
        }
    }

    /// Writes a JSON text without its line ends.
    static func write(_ text: Span<UInt8>, into output: inout ByteBuffer) {
        text.withUnsafeBytes { _ = output.writeBytes($0) }
        let first = output.readableBytes - text.count
        output.withUnsafeMutableReadableBytes { bytes in
            for end in [UInt8(ascii: "\n"), UInt8(ascii: "\r")] {
                var rest = UnsafeMutableRawBufferPointer(rebasing: bytes[first...])
                while let start = rest.baseAddress, let found = memchr(start, Int32(end), rest.count) {
                    found.storeBytes(of: UInt8(ascii: " "), as: UInt8.self)
                    rest = UnsafeMutableRawBufferPointer(rebasing: rest[(found + 1 - start)...])
                }
            }
        }
    }

    /// What stands around method and params, with the longest id.
    private static let envelopeBytes = 80
}
