public import HatoModel

/// The web pages whose scripts may call the gateway, by their origins (RFC 6454).
public struct AllowedOrigins: Sendable, Hashable {
    /// In lower case; nil: any.
    private var origins: Set<String>?

    /// Pages of any origin.
    public static let any = AllowedOrigins()

    private init() {}

    /// Reads origins with commas between them; any when there are none.
    ///
    /// - Throws: `ArgumentError` for what is no origin.
    public init(_ list: String) throws(ArgumentError) {
        let texts = list.split(separator: ",").map { $0.trimmingBlanks.lowercased() }
        for text in texts where !Self.isOrigin(text) {
            throw ArgumentError(
                reason: "invalid_origin",
                "\"\(text)\" is no origin; give SCHEME://HOST or SCHEME://HOST:PORT without a path, "
                    + "e.g. https://chat.example.com,http://localhost:3000")
        }
        origins = texts.isEmpty ? nil : Set(texts)
    }

    private static func isOrigin(_ text: String) -> Bool {
        // Pages without an origin of their own, such as files.
        if text == "null" { return true }
        guard let range = text.firstRange(of: "://"), range.lowerBound != text.startIndex else { return false }
        let host = text[range.upperBound...]
        return !host.isEmpty
            && host.utf8.allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && !"/?#*@\"\\".utf8.contains(byte)
            }
    }

    var allowsAny: Bool { origins == nil }

    /// Whether a page of this origin may call.
    ///
    /// - Parameters:
    ///   - origin: the header `Origin`; nil: the request comes from no script of another page.
    ///   - host: the header `Host`: the gateway's own pages may call it.
    func allows(_ origin: String?, host: String?) -> Bool {
        guard let origins, let origin = origin?.lowercased() else { return true }
        if origins.contains(origin) { return true }
        guard let host, !host.isEmpty, let range = origin.firstRange(of: "://") else { return false }
        return origin[range.upperBound...] == host.lowercased()
    }
}
