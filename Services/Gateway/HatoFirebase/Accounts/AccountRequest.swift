/// An HTTP request of the account dialect: what the gateway has read of it.
///
/// It holds passwords and tokens, so its description has its method and nothing of its contents.
public struct AccountRequest: Sendable, Hashable, SecretHolder {
    /// The HTTP method in capitals.
    public var method: String
    /// The target up to `?`, as sent: with percent codes.
    public var path: String
    /// The target behind `?`, as sent; empty without one.
    public var query: String
    /// The header `Authorization`.
    public var authorization: String?
    /// The header `X-Goog-Api-Key`.
    public var apiKey: String?
    /// The header `Content-Type`.
    public var contentType: String?
    /// The header `X-Firebase-Locale`: the language of mails.
    public var locale: String?
    /// The body, decompressed.
    public var body: [UInt8]
    /// Whether the body is longer than what is read: the request is refused without a call, whatever it is.
    public var isBodyTooLong = false

    /// - Parameter target: path and query, as sent.
    public init(_ method: String, _ target: String, body: [UInt8] = []) {
        self.method = method
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = String(target[..<(mark ?? target.endIndex)])
        query = mark.map { String(target[target.utf8.index(after: $0)...]) } ?? ""
        self.body = body
    }

    /// The API key of the query or the header; an empty one is none.
    var shownKey: String? {
        [AccountParameters(query)["key"], apiKey].lazy.compactMap { $0 }.first { !$0.isEmpty }
    }

    public var description: String { "AccountRequest(\(method), \(body.count) bytes)" }
}

/// A value with passwords, tokens or codes: its description is what it chooses to show, and reflection shows no more.
public protocol SecretHolder: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension SecretHolder {
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
