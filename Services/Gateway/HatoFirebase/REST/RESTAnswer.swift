/// A response of the REST interface.
public struct RESTAnswer: Sendable, Hashable {
    /// A header.
    public struct Header: Sendable, Hashable {
        /// The name, as it is usually written.
        public var name: String
        /// The value, without line ends.
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The HTTP status.
    public var status: Int
    /// The headers but those of the transport (length, encoding, connection).
    public var headers: [Header]
    /// The body, also where it is not sent.
    public var body: [UInt8]
    /// Whether the body is not sent: the request was a HEAD.
    public var omitsBody: Bool

    static let json = "application/json; charset=utf-8"

    /// A response with the headers that each has.
    init(
        status: Int, contentType: String? = RESTAnswer.json, headers: [Header] = [], body: [UInt8] = [],
        omitsBody: Bool = false
    ) {
        self.status = status
        self.headers = [
            Header("Access-Control-Allow-Origin", "*"), Header("Cache-Control", "no-cache"),
        ]
        if let contentType { self.headers.insert(Header("Content-Type", contentType), at: 0) }
        self.headers += headers
        self.body = body
        self.omitsBody = omitsBody
    }

    /// The value of a header; nil when there is none.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.hasSameLetters(as: name) }?.value
    }

    /// The response to OPTIONS: what browsers may send from other origins.
    ///
    /// - Parameter head: with the header `Access-Control-Request-Headers`.
    public static func preflight(_ head: RESTHead) -> RESTAnswer {
        let usual = "authorization, content-type, if-match, if-none-match, x-firebase-etag, x-http-method-override"
        let wanted = head.header("access-control-request-headers").flatMap { $0.isHeaderNames ? $0 : nil }
        return RESTAnswer(
            status: 204, contentType: nil,
            headers: [
                Header("Access-Control-Allow-Methods", "GET, PUT, POST, PATCH, DELETE, HEAD, OPTIONS"),
                Header("Access-Control-Allow-Headers", wanted ?? usual), Header("Access-Control-Max-Age", "3600"),
            ] + privateNetwork(head))
    }

    /// A page of a public network may call a gateway in a private one.
    static func privateNetwork(_ head: RESTHead) -> [Header] {
        guard head.header("access-control-request-private-network") == "true" else { return [] }
        return [Header("Access-Control-Allow-Private-Network", "true")]
    }

    /// The head of an event stream; its body never ends.
    static let stream = RESTAnswer(status: 200, contentType: "text/event-stream; charset=utf-8")
}

extension String {
    /// Whether it is a list of header names, which may stand in a header.
    var isHeaderNames: Bool {
        utf8.count <= 4_096
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ","),
                    UInt8(ascii: " "):
                    true
                default: false
                }
            }
    }

    /// The value of `Content-Disposition` for a download of this name (RFC 6266): other characters than plain ones are
    /// percent-encoded, and stand for `_` in the name for old clients.
    var contentDisposition: String {
        var plain = ""
        var encoded = ""
        var isPlain = true
        for byte in utf8 {
            let scalar = Unicode.Scalar(byte)
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                plain.unicodeScalars.append(scalar)
                encoded.unicodeScalars.append(scalar)
            case 0x20..<0x7F
            where byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "%"):
                plain.unicodeScalars.append(scalar)
                encoded += byte.percentCode
            default:
                isPlain = false
                if byte & 0xC0 != 0x80 { plain += "_" }
                encoded += byte.percentCode
            }
        }
        return "attachment; filename=\"\(plain)\"" + (isPlain ? "" : "; filename*=UTF-8''\(encoded)")
    }
}

extension UInt8 {
    fileprivate var percentCode: String {
        let digits = Array("0123456789ABCDEF")
        return "%\(digits[Int(self >> 4)])\(digits[Int(self & 15)])"
    }
}
