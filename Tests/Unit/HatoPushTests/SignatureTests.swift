import HatoModel
import Testing

@testable import HatoPush

@Suite struct SignatureTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    private static let body = Array(#"{"test": 2432232314}"#.utf8)

    @Test func theVectorOfTheStandardIsReproduced() throws {
        let signature = WebhookSignature.sign(
            id: Self.id, timestamp: 1_614_265_330, body: Self.body, secrets: [try WebhookSecret(Self.secret)])
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test func duringARotationBothSecretsSign() throws {
        let (new, old) = (WebhookSecret { 7 }, try WebhookSecret(Self.secret))
        let signature = WebhookSignature.sign(id: Self.id, timestamp: 1_000, body: Self.body, secrets: [new, old])
        #expect(signature.split(separator: " ").count == 2)
        let headers = WebhookHeaders(id: Self.id, timestamp: "1000", signature: signature)
        for secret in [new, old] {
            try WebhookSignature.verify(headers, body: Self.body, secrets: [secret], now: 1_000)
        }
    }

    @Test func whatWasChangedIsRefused() throws {
        let secret = try WebhookSecret(Self.secret)
        let signature = WebhookSignature.sign(id: Self.id, timestamp: 1_000, body: Self.body, secrets: [secret])
        let headers = WebhookHeaders(id: Self.id, timestamp: "1000", signature: signature)
        #expect(throws: WebhookSignature.Refusal.wrongSignature) {
            try WebhookSignature.verify(headers, body: Self.body + [0x20], secrets: [secret], now: 1_000)
        }
        #expect(throws: WebhookSignature.Refusal.wrongSignature) {
            try WebhookSignature.verify(headers, body: Self.body, secrets: [WebhookSecret { 9 }], now: 1_000)
        }
        var other = headers
        other.id = "msg_2"
        #expect(throws: WebhookSignature.Refusal.wrongSignature) {
            try WebhookSignature.verify(other, body: Self.body, secrets: [secret], now: 1_000)
        }
        other = headers
        other.signature = "v1a,\(signature.dropFirst(3)) v1,%%% v1"
        #expect(throws: WebhookSignature.Refusal.wrongSignature) {
            try WebhookSignature.verify(other, body: Self.body, secrets: [secret], now: 1_000)
        }
    }

    @Test func timesOutsideTheToleranceAndMissingHeadersAreRefused() throws {
        let secret = try WebhookSecret(Self.secret)
        let signature = WebhookSignature.sign(id: Self.id, timestamp: 1_000, body: Self.body, secrets: [secret])
        let headers = WebhookHeaders(id: Self.id, timestamp: "1000", signature: signature)
        for now in [699, 1_301] as [Int64] {
            #expect(throws: WebhookSignature.Refusal.tooOldOrNew) {
                try WebhookSignature.verify(headers, body: Self.body, secrets: [secret], now: now)
            }
        }
        for incomplete in [
            WebhookHeaders(id: nil, timestamp: "1000", signature: signature),
            WebhookHeaders(id: Self.id, timestamp: "soon", signature: signature),
            WebhookHeaders(id: Self.id, timestamp: "1000", signature: nil),
        ] {
            #expect(throws: WebhookSignature.Refusal.missingHeaders) {
                try WebhookSignature.verify(incomplete, body: Self.body, secrets: [secret], now: 1_000)
            }
        }
    }

    @Test(arguments: [
        "", "whsec_", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_" + String(repeating: "AAAA", count: 22),
    ])
    func textsThatAreNoSecretAreRefused(_ text: String) {
        #expect(throws: ArgumentError.self) { try WebhookSecret(text) }
    }

    @Test func aSecretIsReadBackAndNeverPrintsItself() throws {
        let secret = WebhookSecret { 0x0123_4567_89AB_CDEF }
        #expect(try WebhookSecret(secret.text) == secret)
        #expect("\(secret) \(String(reflecting: secret))" == "whsec_… whsec_…")
        let address = DeviceAddress.webhook(url: "https://example.com/", secrets: [secret])
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains(secret.text) && !"\(address)".contains(secret.text))
    }
}
