import HatoModel
import Testing

@testable import HatoFirebase

/// Tokens of an emulator (spec auth §8).
@Suite struct UnsignedTokenTests {
    private func token(_ header: JSONObject = ["alg": "none"], _ claims: JSONObject = ["sub": "u1"]) -> String {
        CompactToken.text(header: header, claims: claims)
    }

    @Test func aTokenIsReadAndWritten() throws {
        let token = try #require(
            UnsignedToken(claims: ["sub": "u1", "iat": 0, "firebase": ["sign_in_provider": "custom"]]))
        #expect(UnsignedToken(token.text) == token)
        #expect(token.uid == "u1" && token.text.hasSuffix("."))
        // As the JS SDK writes it: `type` in place of `typ`, 1970.
        #expect(
            UnsignedToken(self.token(["alg": "none", "type": "JWT"], ["sub": "u1", "iat": 0, "exp": 3600]))?.uid == "u1"
        )
        #expect(UnsignedToken(self.token(["alg": "none"], ["user_id": "u2"]))?.uid == "u2")
        #expect(UnsignedToken(self.token(["alg": "none"], ["sub": "u1", "user_id": "u2"]))?.uid == "u1")
    }

    @Test func paddingIsTaken() {
        let parts = token(["alg": "none"], ["sub": "u12"]).split(separator: ".", omittingEmptySubsequences: false)
        let padded = parts.map { $0.isEmpty ? "" : $0 + String(repeating: "=", count: (4 - $0.count % 4) % 4) }
        #expect(UnsignedToken(padded.joined(separator: "."))?.uid == "u12")
    }

    @Test func whatIsForgedOrNoTokenIsNone() {
        let texts = [
            "", ".", "..", "...", "owner", "a.b.c", "a.b.", token(["alg": "ES256"]), token(["alg": "None"]),
            token(["alg": "NONE"]),
            token([:]), token(["alg": 0]), token(["alg": "none"], [:]), token(["alg": "none"], ["sub": ""]),
            token(["alg": "none"], ["sub": 5]),
            token(["alg": "none"], ["sub": .string(String(repeating: "u", count: 129))]),
            // A signature: it says that it was verified somewhere.
            token() + "c2ln", String(token().dropLast()), token() + ".", "x" + token(), token() + "!",
            token(["alg": "none"], ["sub": "u", "x": .string(String(repeating: "x", count: 20_000))]),
            "eyJhbGciOiJub25lIn0.bm8gSlNPTg.", "eyJhbGciOiJub25lIn0.WzFd.", "eyJhbGciOiJub25lIn0.e30===.",
            "eyJhbGci+/JiNIn0.eyJzdWIiOiJ1In0.", " " + token(),
        ]
        for text in texts { #expect(UnsignedToken(text) == nil, "\(text.prefix(60))") }
    }

    @Test func deepClaimsAreRefused() {
        let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
        let claims = Base64.url.encode("{\"sub\":\"u\",\"x\":\(deep)}".utf8)
        #expect(UnsignedToken("eyJhbGciOiJub25lIn0.\(claims).") == nil)
    }

    @Test func ownerIsInAnyCase() {
        for text in ["owner", "OWNER", "Owner", "ya29.x"] { #expect(EmulatorCredential(text) == .owner) }
        for text in ["", "owner ", "YA29.x", "owners", "null"] { #expect(EmulatorCredential(text) == nil) }
        #expect(EmulatorCredential(token()) == UnsignedToken(token()).map { .user($0) })
    }

    @Test func anUnsignedTokenCountsInEmulatorModeAlone() {
        let text = token(["alg": "none"], ["sub": "u1", "iat": 0])
        let elsewhere = AccountTrial("lookup", ["idToken": .string(text)])
        #expect(elsewhere.calls[0].identity == .credential(text))
        let emulator = AccountTrial("lookup", ["idToken": .string(text)], in: .emulator)
        #expect(
            emulator.calls[0].params(administratorKey: "k") == [
                "auth": "k", "as": ["uid": "u1", "token": ["sub": "u1"]],
            ])
        let dated = AccountTrial(
            "lookup", ["idToken": .string(token(["alg": "none"], ["sub": "u1", "iat": 5]))], in: .emulator)
        #expect(
            dated.calls[0].params(administratorKey: "k")?["as"] == ["uid": "u1", "token": ["sub": "u1", "iat": 5]])
        #expect(emulator.calls[0].params(administratorKey: nil) == nil)
    }
}
