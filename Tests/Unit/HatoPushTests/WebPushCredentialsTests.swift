import Crypto
import HatoFetch
import HatoModel
import Testing

@testable import HatoPush

@Suite struct WebPushCredentialsTests {
    private static let now: Int64 = 1_795_000_000

    private func signer() throws -> WebPushSigner {
        WebPushSigner(try WebPushCredentials(key: WebPushCredentials.newKey(), subject: "mailto:a@example.com"))
    }

    private func token(_ authorization: String) -> String {
        String(authorization.dropFirst("vapid t=".count).prefix { $0 != "," })
    }

    @Test func aKeyIsReadInBothSpellings() throws {
        let key = P256.Signing.PrivateKey()
        let raw = Base64.url.encode(key.rawRepresentation)
        let subject = "https://example.com"
        let expected = Base64.url.encode(key.publicKey.x963Representation)
        for text in [raw, raw + "\n", key.pemRepresentation] {
            #expect(try WebPushCredentials(key: text, subject: subject).publicKey == expected)
        }
        #expect(Base64.url.decode(expected.utf8)?.count == 65)
    }

    @Test func whatIsNoKeyOfP256IsRefusedAndNotShown() throws {
        let other = P384.Signing.PrivateKey().pemRepresentation
        let zero = Base64.url.encode([UInt8](repeating: 0, count: 32))
        for text in ["", "secret-text", zero, other, String(repeating: "A", count: 44), "-----BEGIN PRIVATE KEY-----"] {
            let error = #expect(throws: ArgumentError.self) {
                try WebPushCredentials(key: text, subject: "mailto:a@example.com")
            }
            #expect(error?.reason == "invalid_key")
            #expect(text.isEmpty || error?.message.contains(text) == false)
        }
    }

    @Test(arguments: ["", "mailto:", "https://", "a@example.com", "http://example.com", "mailto:a b@example.com"])
    func whatIsNoSubjectIsRefused(_ subject: String) {
        let error = #expect(throws: ArgumentError.self) {
            try WebPushCredentials(key: WebPushCredentials.newKey(), subject: subject)
        }
        #expect(error?.reason == "invalid_subject")
    }

    @Test func credentialsNeverPrintTheirKey() throws {
        let key = WebPushCredentials.newKey()
        let credentials = try WebPushCredentials(key: key, subject: "mailto:a@example.com")
        var dumped = "\(credentials) \(String(reflecting: credentials))"
        dump(credentials, to: &dumped)
        #expect(!dumped.contains(key) && dumped.contains("mailto:a@example.com"))
    }

    @Test func aTokenIsForTheOriginAndHalfADay() throws {
        let signer = try signer()
        let url = try StrictURL("https://push.example.com:8443/a/b?c=d")
        let authorization = try signer.authorization(for: url, now: Self.now)
        let publicKey = signer.credentials.publicKey
        #expect(authorization.hasSuffix(", k=\(publicKey)"))
        let token = try #require(try es256Claims(token(authorization), publicKey))
        #expect(token.header == ["typ": "JWT", "alg": "ES256"])
        #expect(
            token.claims == [
                "aud": "https://push.example.com:8443", "exp": .number(Double(Self.now + 12 * 3_600)),
                "sub": "mailto:a@example.com",
            ])
    }

    @Test func aTokenIsUsedAgainForElevenHours() throws {
        let signer = try signer()
        let url = try StrictURL("https://push.example.com/a")
        let first = try signer.authorization(for: url, now: Self.now)
        let other = try StrictURL("https://push.example.com/b")
        #expect(try signer.authorization(for: other, now: Self.now + 11 * 3_600 - 1) == first)
        #expect(try signer.authorization(for: url, now: Self.now + 11 * 3_600) != first)
        let elsewhere = try StrictURL("https://other.example.com/a")
        #expect(try signer.authorization(for: elsewhere, now: Self.now) != first)
    }

    /// A token that ends more than 24 hours from now is refused by push services.
    @Test func aClockThatIsSetBackGetsANewToken() throws {
        let signer = try signer()
        let url = try StrictURL("https://push.example.com/a")
        let first = try signer.authorization(for: url, now: Self.now)
        #expect(try signer.authorization(for: url, now: Self.now - 86_400) != first)
    }

    @Test func theTokensOfTheOriginsUsedLastAreKept() throws {
        let signer = try signer()
        let often = try StrictURL("https://often.example.com/")
        let first = try signer.authorization(for: often, now: Self.now)
        for index in 0..<WebPushSigner.originsMax + 50 {
            _ = try signer.authorization(for: try StrictURL("https://p\(index).example.com/"), now: Self.now)
            #expect(try signer.authorization(for: often, now: Self.now) == first)
        }
        #expect(signer.originCount == WebPushSigner.originsMax)
    }
}
