public import HatoModel

/// The origin at which clients reach the gateway, for the links that it gives: scheme, host and port.
public struct PublicURL: Sendable, Hashable {
    /// E.g. `https://chat.example.com`, in lower case.
    let origin: String

    /// Reads `https://chat.example.com` or `http://chat.example.com:8080`, also with one slash behind it.
    ///
    /// - Throws: `ArgumentError` for another text.
    public init(_ text: String) throws(ArgumentError) {
        var text = text.lowercased()
        if text.hasSuffix("/") { text.removeLast() }
        guard let range = text.firstRange(of: "://"), URLScheme(rawValue: String(text[..<range.lowerBound])) != nil,
            PlainHost.isPlain(text[range.upperBound...])
        else {
            throw ArgumentError(
                reason: "invalid_public_url",
                "\"\(text)\" is no address of a site; give SCHEME://HOST or SCHEME://HOST:PORT with http or https and "
                    + "without a path, e.g. https://chat.example.com")
        }
        origin = text
    }
}

/// The schemes by which clients reach a gateway.
enum URLScheme: String, Sendable {
    case http
    case https

    /// The scheme that the nearest proxy has seen: the last one of the headers. Nil when it is neither.
    ///
    /// - Parameter headers: the values of `X-Forwarded-Proto`, in their order.
    init?(forwarded headers: [String]) {
        let last = headers.last.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).last }
        guard let last, let scheme = URLScheme(rawValue: last.trimmingBlanks.lowercased()) else { return nil }
        self = scheme
    }
}

/// Hosts that may stand in a URL as they are.
enum PlainHost {
    /// The longest name, and a port.
    private static let bytesMax = 262

    /// Whether a header `Host` may be this: a name or an address, with or without a port (RFC 9112 §3.2). It may be
    /// empty.
    static func mayBeHost(_ host: Substring.UTF8View) -> Bool {
        host.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._~!$&'()*+,;=:[]%".utf8.contains(byte)
            }
        }
    }

    /// Whether the text is a host, or a host and a port, of letters, digits and what separates them.
    static func isPlain(_ host: some StringProtocol) -> Bool {
        let isPlain = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"),
                UInt8(ascii: "["), UInt8(ascii: "]"):
                true
            default: false
            }
        }
        return isPlain && (1...bytesMax).contains(host.utf8.count)
    }
}
