/// The head of an HTTP request: method, target and headers, as they were sent.
public struct RESTHead: Sendable {
    /// The method, e.g. `GET`.
    public var method: String
    /// The target, with its query: `/chats/c1.json?print=pretty`.
    public var target: String
    /// Names and values, in their order; names in any case.
    public var headers: [(name: String, value: String)]

    public init(method: String, target: String, headers: [(name: String, value: String)] = []) {
        self.method = method
        self.target = target
        self.headers = headers
    }

    /// Whether the response has no body (HEAD).
    public var omitsBody: Bool { method == "HEAD" }

    /// The value of a header without blanks around it; several headers of one name are joined by commas (RFC 9110
    /// §5.3). Nil when there is none.
    func header(_ name: String) -> String? {
        var found: String?
        for header in headers where header.name.hasSameLetters(as: name) {
            let value = header.value.trimmed
            found = found.map { "\($0), \(value)" } ?? value
        }
        return found
    }

    /// The path and the query of the target, both still encoded. The target may be a whole URL (RFC 9112 §3.2.2).
    var parts: (path: Substring, query: Substring?) {
        var rest = target[...]
        for scheme in ["http://", "https://"] where rest.prefix(scheme.utf8.count).hasSameLetters(as: scheme) {
            let authority = rest.dropFirst(scheme.utf8.count)
            rest = authority.drop { $0 != "/" && $0 != "?" }
            break
        }
        guard let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (rest, nil) }
        return (rest[..<mark], rest[rest.utf8.index(after: mark)...])
    }
}

extension StringProtocol {
    /// Whether both texts have the same bytes, the ASCII letters in any case.
    func hasSameLetters(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8) { lowercase($0) == lowercase($1) }
    }

    /// The text with its ASCII letters in lower case.
    var lowercasedASCII: String { String(decoding: utf8.map(lowercase), as: UTF8.self) }

    /// The text without blanks and tabs at both ends.
    var trimmed: String {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let bytes = Substring(self).utf8
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(Substring(bytes[first...last]))
    }
}

private func lowercase(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
