import Foundation
import HatoModel

/// The links of mails: the page of the setting `action-url`, or an allowed `continueUrl`, with the code (spec auth §6).
struct CodeLinks: Sendable {
    static let urlBytesMax = 2048

    /// The page that takes codes; nil: only a `continueUrl` does.
    let actionUrl: String?

    /// Whether a mail has a link: its `continueUrl` may be of a domain that was allowed only when it was requested.
    func hasLink(continueUrl: String?, domains: [String]) -> Bool {
        actionUrl != nil || continueUrl != nil && (try? check(continueUrl, domains: domains)) != nil
    }

    /// Nil when no page is named.
    func link(_ type: Auth.CodeType, code: String, locale: String, continueUrl: String?) -> String? {
        guard let page = actionUrl ?? continueUrl else { return nil }
        var parameters = [("mode", Self.mode(type)), ("oobCode", code), ("lang", locale)]
        if actionUrl != nil, let continueUrl { parameters.append(("continueUrl", continueUrl)) }
        let query = parameters.map { "\($0.0)=\(Self.encoded($0.1))" }.joined(separator: "&")
        return "\(page)\(page.contains("?") ? "&" : "?")\(query)"
    }

    /// Firebase's names.
    private static func mode(_ type: Auth.CodeType) -> String {
        switch type {
        case .verifyEmail: "verifyEmail"
        case .passwordReset, .invite: "resetPassword"
        case .signIn: "signIn"
        case .changeEmail: "verifyAndChangeEmail"
        case .recoverEmail: "recoverEmail"
        // Firebase has none.
        case .signUp: "signUp"
        }
    }

    private static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }

    // MARK: URLs of callers and operators

    /// The host of a URL that may be a page: `https://` with a host, `http://` for this machine; no user, no fragment.
    /// Nil for any other text.
    static func host(ofPage text: String) -> String? {
        guard text.utf8.count <= urlBytesMax, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C }),
            !text.utf8.contains(where: { [UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">")].contains($0) }),
            let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(),
            let host = url.host?.lowercased(), !host.isEmpty, url.user == nil, url.password == nil,
            url.fragment == nil
        else { return nil }
        return scheme == "https" || (scheme == "http" && isLocal(host)) ? host : nil
    }

    /// What `link` adds to the URL of a page.
    private static let names = ["mode", "oobcode", "lang", "continueurl"]

    /// Throws `AuthError.invalidFields` for a URL that is none, of another domain or port, or with a parameter that the
    /// link adds to it: the page must not read that of the caller.
    func check(_ continueUrl: String?, domains: [String]) throws(AuthError) {
        guard let continueUrl else { return }
        func refuse(_ reason: String, _ message: String) -> AuthError {
            .invalidFields([FieldProblem("continueUrl", reason, message)])
        }
        guard let host = Self.host(ofPage: continueUrl), let url = URLComponents(string: continueUrl) else {
            throw refuse(
                "INVALID_CONTINUE_URI",
                "The URL should be like https://chat.example.com/signed-in, at most \(Self.urlBytesMax) bytes")
        }
        guard domains.contains(host), [nil, 443].contains(url.port) || Self.isLocal(host) else {
            throw refuse(
                "UNAUTHORIZED_DOMAIN", "The URL should be of one of continueDomains (auth.settings), without a port")
        }
        let isPage = actionUrl == nil
        if isPage, url.queryItems?.contains(where: { Self.names.contains($0.name.lowercased()) }) == true {
            throw refuse("INVALID_CONTINUE_URI", "The URL should have no parameter mode, oobCode, lang or continueUrl")
        }
    }

    private static func isLocal(_ host: String) -> Bool { ["localhost", "127.0.0.1", "[::1]", "::1"].contains(host) }
}
