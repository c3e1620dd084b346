/// The headers of responses of the account dialect, those for pages of other origins with them (spec auth §1).
extension AccountResponse {
    /// All headers but those of the transport.
    ///
    /// - Parameter origin: the header `Origin` of the request.
    public func headers(forOrigin origin: String?) -> [RESTAnswer.Header] {
        var headers = [
            RESTAnswer.Header("Content-Type", contentType), .init("Cache-Control", cacheControl),
            .init("X-Content-Type-Options", "nosniff"),
        ]
        if let retryAfterSeconds { headers.append(.init("Retry-After", String(retryAfterSeconds))) }
        if let location { headers.append(.init("Location", location)) }
        if let contentSecurityPolicy {
            headers.append(.init("Content-Security-Policy", contentSecurityPolicy))
            // Other sites hear nothing of the code in the address. With `no-referrer` the page's own form would be of
            // the origin `null`, which no list of origins allows.
            headers.append(.init("Referrer-Policy", "same-origin"))
        }
        return headers + Self.origin(origin)
    }

    /// The response to OPTIONS at a path of the account dialect: what browsers may send from other origins, also from
    /// pages of a public network to a private one.
    public static func preflight(_ head: RESTHead) -> RESTAnswer {
        let names = head.header("access-control-request-headers").flatMap { $0.isHeaderNames ? $0 : nil }
        var headers = origin(head.header("origin"))
        headers += [
            .init("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"),
            .init("Access-Control-Allow-Headers", names ?? "authorization, content-type, x-client-version"),
            .init("Access-Control-Max-Age", "3600"),
        ]
        headers += RESTAnswer.privateNetwork(head)
        var answer = RESTAnswer(status: 204, contentType: nil)
        answer.headers = headers
        return answer
    }

    private static let originBytesMax = 512

    private static func origin(_ origin: String?) -> [RESTAnswer.Header] {
        guard let origin, (1...originBytesMax).contains(origin.utf8.count),
            origin.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return [.init("Access-Control-Allow-Origin", "*")] }
        return [.init("Access-Control-Allow-Origin", origin), .init("Vary", "Origin")]
    }
}
