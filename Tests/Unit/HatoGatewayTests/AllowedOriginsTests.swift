import HatoModel
import Testing

@testable import HatoGateway

/// The pages whose scripts may call.
@Suite struct AllowedOriginsTests {
    @Test func unlessThereIsAListPagesOfAnyOriginMayCall() throws {
        for origins in [AllowedOrigins.any, try AllowedOrigins("")] {
            #expect(origins.allowsAny && origins.allows("https://evil.example", host: "db.example.com"))
        }
    }

    @Test(arguments: [
        ("https://chat.example.com", true), ("HTTPS://Chat.Example.com", true), ("http://localhost:3000", true),
        ("https://chat.example.com.evil.example", false), ("http://chat.example.com", false),
        ("https://chat.example.com:8443", false), ("http://localhost", false), ("null", false), ("", false),
        // The gateway's own pages.
        ("https://db.example.com:7700", true), ("https://db.example.com", false), (nil, true),
    ])
    func onlyPagesOfTheListMayCall(origin: String?, isAllowed: Bool) throws {
        let origins = try AllowedOrigins("https://chat.example.com, http://LocalHost:3000")
        #expect(origins.allows(origin, host: "DB.example.com:7700") == isAllowed)
    }

    @Test func pagesWithoutAnOriginCanBeListed() throws {
        let origins = try AllowedOrigins("null,capacitor://localhost")
        #expect(origins.allows("null", host: nil) && origins.allows("capacitor://localhost", host: ""))
        #expect(!origins.allows("https://", host: ""))
    }

    @Test(arguments: [
        "chat.example.com", "https://", "https://chat.example.com/", "https://*.example.com", "*", "://x",
        "https://a b",
        "https://user@chat.example.com", "https://chat.example.com?x",
    ])
    func whatIsNoOriginIsRefused(text: String) {
        let error = #expect(throws: ArgumentError.self) { try AllowedOrigins("http://localhost,\(text)") }
        #expect(error?.message.contains("e.g. https://chat.example.com") == true)
    }
}
