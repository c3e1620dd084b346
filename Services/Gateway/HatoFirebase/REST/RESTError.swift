import HatoModel

/// An error of the REST interface: the status and the text of its response (spec realtime-database §7.3).
public struct RESTError: Error, Sendable, Hashable {
    /// The HTTP status.
    public var status: Int
    /// The text under `error` of the body.
    public var text: String
    /// The header `Retry-After`: after how many seconds the same request may succeed; nil: no such header.
    public var retryAfterSeconds: Int?
    /// The methods of the header `Allow`; nil: no such header.
    public var allowed: String?
    /// Whether the text is the whole body, instead of a member of a JSON object.
    public var isPlainText: Bool

    public init(
        _ status: Int, _ text: String, retryAfterSeconds: Int? = nil, allowed: String? = nil, isPlainText: Bool = false
    ) {
        self.status = status
        self.text = text
        self.retryAfterSeconds = retryAfterSeconds
        self.allowed = allowed
        self.isPlainText = isPlainText
    }

    /// The response of this error.
    ///
    /// - Parameter omitsBody: the request was a HEAD.
    public func response(omitsBody: Bool = false) -> RESTAnswer {
        var headers: [RESTAnswer.Header] = []
        if let retryAfterSeconds { headers.append(.init("Retry-After", String(retryAfterSeconds))) }
        if let allowed { headers.append(.init("Allow", allowed)) }
        guard !isPlainText else {
            return RESTAnswer(
                status: status, contentType: "text/plain; charset=utf-8", headers: headers, body: Array(text.utf8),
                omitsBody: omitsBody)
        }
        var writer = JSONWriter()
        writer.appendRaw("{\n  \"error\" : ")
        writer.write(text)
        writer.appendRaw("\n}\n")
        return RESTAnswer(status: status, headers: headers, body: writer.bytes, omitsBody: omitsBody)
    }
}
