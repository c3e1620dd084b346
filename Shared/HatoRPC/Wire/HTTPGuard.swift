/// Detects a line that a web browser or an HTTP client would send, so that no web page reaches a service by posting to
/// its port.
///
/// It decides from the first bytes of a line, whether its end has come or not: bytes may arrive one by one.
package enum HTTPGuard {
    /// The methods of HTTP's registry that a client could begin a request with, and the preface of HTTP/2.
    private static let openings: [[UInt8]] = [
        "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI", "PROPFIND", "PROPPATCH",
        "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "QUERY", "ACL", "BIND", "CHECKIN", "CHECKOUT",
        "LABEL", "LINK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKREDIRECTREF", "MKWORKSPACE", "ORDERPATCH", "REBIND",
        "UNBIND", "UNCHECKOUT", "UNLINK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL", "BASELINE-CONTROL",
    ].map { Array("\($0) ".utf8) }

    private static let host = Array("host:".utf8)

    /// Whether `line`, which may be only the beginning of a line, opens an HTTP request.
    package static func isHTTP(_ line: Span<UInt8>) -> Bool {
        guard line.count > 3 else { return false }
        // Nearly every line begins with a brace or a bracket; letters are rare.
        switch line[0] {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"):
            return startsWithHost(line) || openings.contains { starts(line, with: $0) }
        case UInt8(ascii: "h"): return startsWithHost(line)
        default: return false
        }
    }

    private static func startsWithHost(_ line: Span<UInt8>) -> Bool {
        guard line.count >= host.count else { return false }
        for index in host.indices where line[index] | 0x20 != host[index] | 0x20 { return false }
        return true
    }

    private static func starts(_ line: Span<UInt8>, with opening: [UInt8]) -> Bool {
        guard line.count >= opening.count else { return false }
        for index in opening.indices where line[index] != opening[index] { return false }
        return true
    }
}
