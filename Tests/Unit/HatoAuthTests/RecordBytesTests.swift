import HatoIdentity
import HatoModel
import Testing

@testable import HatoAuth

/// The bytes of records, as stores hold them: what is written here is read by every later version.
@Suite(.timeLimit(.minutes(10))) struct RecordBytesTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func accountHasTheseBytes() throws {
        let small = #"{"uid":"u1","createdAt":1795000000000,"validSince":1795000000}"#
        #expect(text(AccountRecord(uid: "u1", createdAt: 1_795_000_000_000).bytes) == small)
        let hash = String(repeating: "+/v7", count: 10) + "+/s"
        let whole =
            #"{"uid":"u1","createdAt":1795000000000,"email":"a@example.com","emailVerified":true,"username":"a","#
            + #""displayName":"マスオ","photoUrl":"https://example.com/a.png","#
            + #""passwordHash":"$scrypt$ln=14,r=8,p=5$AAAAAAAAAAAAAAAAAAAAAA$\#(hash)","#
            + #""passwordUpdatedAt":1,"lastLoginAt":2,"lastRefreshAt":3,"validSince":4,"disabled":true,"#
            + #""customAttributes":"{\"a\":1}","initialEmail":"b@example.com"}"#
        let account = try AccountRecord(Array(whole.utf8))
        #expect(account.passwordHash?.hash == [UInt8](repeating: 0xFB, count: 32))
        #expect(account.disabled && account.emailVerified && account.displayName == "マスオ")
        #expect(text(account.bytes) == whole)
    }

    @Test func identitiesAndProvidersHaveTheseBytes() throws {
        let linked =
            #"{"uid":"u1","createdAt":1795000000000,"validSince":1795000000,"identities":["#
            + #"{"provider":"google.com","uid":"1","email":"a@example.com","displayName":"A","photoUrl":"https://a.example"},"#
            + #"{"provider":"apple.com","uid":"2"}]}"#
        let account = try AccountRecord(Array(linked.utf8))
        #expect(account.identities.map(\.uid) == ["1", "2"] && !account.isAnonymous)
        #expect(text(account.bytes) == linked)
        let key =
            #"{"kty":"EC","kid":"k","crv":"P-256","x":"HhhTL9R1TALzBB2cdc6zO4P_2BrHzk_ogsyxyYvFiW4","#
            + #""y":"pGwxHE4v9A3ZajZT5uRURdMt_khuztdcepDGoYiBwKM"}"#
        for rest in [
            #""trustsEmail":true,"isDiscovered":true,"keys":{"keys":[\#(key)]},"keysFetchedAt":5}"#,
            #""allowsSignUp":true,"keys":{"keys":[\#(key)]}}"#,
        ] {
            let written = #"{"issuer":"https://issuer.example","clientIds":["a","b"],\#(rest)"#
            #expect(text(try ProviderRow("oidc.work", Array(written.utf8)).bytes) == written)
        }
    }

    @Test func sessionHasTheseBytes() throws {
        let id = [UInt8](repeating: 1, count: SessionRecord.idBytes)
        let hash = String(repeating: "-_v7", count: 10) + "-_s"
        let fresh =
            #"{"uid":"u1","provider":"anonymous","authTime":1795000000,"current":"\#(hash)","createdAt":5,"rotatedAt":6}"#
        let rotated = fresh.replacing(#","rotatedAt""#, with: #","previous":"\#(hash)","rotatedAt""#)
        for written in [fresh, rotated] {
            let session = try SessionRecord(id, Array(written.utf8))
            #expect(session.id == id && session.rotation.currentHash.count == RefreshToken.hashBytes)
            #expect(text(session.bytes) == written)
        }
    }

    @Test func signingKeyHasTheseBytes() throws {
        let key = try #require(SigningKey(kid: "k1", rawRepresentation: [UInt8](repeating: 7, count: 32)))
        let (x, y) = (key.verificationKey.jwk.x, key.verificationKey.jwk.y)
        let d = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"
        var record = SigningKeyRecord(role: .current, key: key, createdAt: 5)
        #expect(text(record.bytes()) == #"{"role":"current","createdAt":5,"x":"\#(x)","y":"\#(y)","d":"\#(d)"}"#)
        record.retire(at: 6, until: 7)
        let retired = #"{"role":"retired","createdAt":5,"retiredAt":6,"endsAt":7,"x":"\#(x)","y":"\#(y)"}"#
        #expect(text(record.bytes()) == retired)
        // The second as earlier versions wrote it.
        for written in [retired, retired.replacing(#","endsAt":7"#, with: "")] {
            #expect(try text(SigningKeyRecord(kid: "k1", Array(written.utf8)).bytes()) == written)
        }
    }

    @Test func whatIsNotWrittenIsDamage() {
        for text in [
            #"{"uid":"u1","createdAt":1,"validSince":1,"disabled":null}"#,
            #"{"uid":"u1","createdAt":1,"validSince":1,"more":1}"#,
            #"{"uid":"u1","createdAt":1}"#, #"{"uid":1,"createdAt":1,"validSince":1}"#,
            #"{"uid":"u1","createdAt":1,"validSince":1,"passwordHash":"secret"}"#, "[]", "",
        ] {
            let error = #expect(throws: RecordError.self) { try AccountRecord(Array(text.utf8)) }
            #expect(error?.record == "account" && error?.description.contains("secret") == false)
        }
    }
}
