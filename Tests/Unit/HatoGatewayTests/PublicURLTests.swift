import HatoModel
import Testing

@testable import HatoGateway

/// Where clients reach the gateway.
@Suite struct PublicURLTests {
    @Test(arguments: [
        ("https://chat.example.com", "https://chat.example.com"),
        ("HTTP://Chat.Example.com/", "http://chat.example.com"),
        ("https://chat.example.com:8443", "https://chat.example.com:8443"), ("http://[::1]:7700", "http://[::1]:7700"),
    ])
    func aSiteIsRead(text: String, origin: String) throws {
        #expect(try PublicURL(text).origin == origin)
    }

    @Test(arguments: [
        "", "chat.example.com", "https://", "ftp://chat.example.com", "https://chat.example.com/path",
        "https://chat.example.com//", "https://user@chat.example.com", "https://chat.example.com?x", "https://a b",
        "https://chat.example.com\r\nX: 1", "://chat.example.com", "https://" + String(repeating: "a", count: 300),
    ])
    func whatIsNoSiteIsRefused(text: String) {
        let error = #expect(throws: ArgumentError.self) { try PublicURL(text) }
        #expect(error?.message.contains("e.g. https://chat.example.com") == true)
    }

    @Test(arguments: [
        (["https"], URLScheme.https), (["http"], .http), (["HTTPS "], .https), (["http, https"], .https),
        (["https,http"], .http), (["http", "https"], .https), ([], nil), ([""], nil), (["https,"], nil),
        (["wss"], nil), (["https, javascript"], nil), (["https://evil.example"], nil),
    ])
    func theSchemeIsTheLastOne(headers: [String], scheme: URLScheme?) {
        #expect(URLScheme(forwarded: headers) == scheme)
    }
}
