import NIOCore
import NIOHTTP1

/// What the head of a request says about the request itself (RFC 9110 §7.2, §10.1.1, RFC 9112 §3.2, §6): found in
/// one pass over its headers.
struct RequestFraming {
    /// Whether the client waits for `100 Continue` before it sends its body.
    private(set) var waitsForContinue = false
    /// Bytes of the body; nil: they are not known, or there is none.
    private(set) var bodyBytes: Int?
    /// Why the request is refused; nil: it is not.
    private(set) var problem: Problem?

    enum Problem: Hashable {
        case noHost, manyHosts, wrongHost, otherEncoding, otherExpectation
    }

    /// Probes of load balancers have no Host, and the response depends on none.
    private static let health = "/healthz"

    init(_ head: HTTPRequestHead) {
        var (hosts, encodings) = (0, 0)
        var isHostWrong = false
        for (name, value) in head.headers {
            switch name.utf8.count {
            case 4 where name.hasLetters(of: "host"):
                hosts += 1
                if !PlainHost.mayBeHost(value.withoutBlanksBehind) { isHostWrong = true }
            case 6 where name.hasLetters(of: "expect"):
                if value.hasLetters(of: "100-continue") {
                    waitsForContinue = head.version != .http1_0
                } else {
                    problem = .otherExpectation
                }
            case 14 where name.hasLetters(of: "content-length"): bodyBytes = Int(value)
            case 17 where name.hasLetters(of: "transfer-encoding"):
                encodings += 1
                if encodings > 1 || !value.hasLetters(of: "chunked") { problem = .otherEncoding }
            default: break
            }
        }
        if hosts > 1 {
            problem = .manyHosts
        } else if isHostWrong {
            problem = .wrongHost
        } else if hosts == 0, head.version == .http1_1, head.path != Self.health {
            problem = .noHost
        }
    }
}

extension RequestFraming.Problem {
    var response: HTTPResponse {
        switch self {
        case .noHost: .text(.badRequest, "The request has no Host; give one, e.g. Host: chat.example.com\n")
        case .manyHosts: .text(.badRequest, "The request has several Hosts; give one.\n")
        case .wrongHost:
            .text(.badRequest, "The Host is no name and no address; give NAME or NAME:PORT, e.g. chat.example.com\n")
        case .otherEncoding:
            .text(.notImplemented, "The only transfer encoding is chunked; give it once, or a Content-Length.\n")
        case .otherExpectation: .text(.expectationFailed, "The only expectation is 100-continue.\n")
        }
    }
}

extension HTTPResponse {
    /// The response to what is no HTTP.
    init(refusing error: HTTPParserError) {
        switch error {
        case .headerOverflow:
            self = .text(
                .requestHeaderFieldsTooLarge, "The head of the request is too large (setting head-bytes-max).\n")
        case .invalidMethod:
            self = .text(.methodNotAllowed, "There is no such method.\n")
            headers.add(name: "Allow", value: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
        case .invalidURL:
            self = .text(
                .badRequest, "The target of the request is not ASCII; encode it by percent codes, e.g. %E3%81%82.\n")
        default: self = .text(.badRequest, "The request is not HTTP/1.1 (RFC 9112).\n")
        }
    }
}

extension String {
    fileprivate var withoutBlanksBehind: Substring.UTF8View {
        var text = utf8[...]
        while text.last == 0x20 || text.last == 0x09 { text.removeLast() }
        return text
    }

    /// Whether these are the letters of `name`, which is in lower case. Capitals count as small letters, blanks behind
    /// count as nothing.
    fileprivate func hasLetters(of name: StaticString) -> Bool {
        name.withUTF8Buffer { letters in
            withoutBlanksBehind.elementsEqual(letters) { own, letter in
                own == letter || (0x41...0x5A).contains(own) && own | 0x20 == letter
            }
        }
    }
}
