import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// A store as the versions before sessions had labels wrote it, byte for byte: every later version opens it and goes
/// on with its accounts, sessions and keys.
struct EarlierStoreTests {
    private static let uid = "q3Vd0lYxkTg7Zb1mNc5RwEaHs2Uf"
    private static let sessionID = [UInt8](repeating: 1, count: 16)
    /// The refresh token of the session, and the one before it.
    private static let current = "AQEBAQEBAQEBAQEBAQEBAYMmvNj1R3OzF5O6eBaqSiSWjAHbcOOKzElEvqPk2JDp"
    private static let previous = "AQEBAQEBAQEBAQEBAQEBAQQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"
    private static let passwordHash =
        "$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$Wrq55NJ01yBjlUwz4KJPeRyTma0wmu3la7NgYlwqfH0"

    private static let rows: [(key: [UInt8], value: [UInt8])] = [
        text("xformat", "1"),
        (Array("xrefresh-secret".utf8), [UInt8](repeating: 3, count: 32)),
        text(
            "kcurrent-1",
            #"{"role":"current","createdAt":1790000000000,"x":"HhhTL9R1TALzBB2cdc6zO4P_2BrHzk_ogsyxyYvFiW4","#
                + #""y":"pGwxHE4v9A3ZajZT5uRURdMt_khuztdcepDGoYiBwKM","#
                + #""d":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}"#),
        text(
            "knext-1",
            #"{"role":"next","createdAt":1790000000000,"x":"OtqxXWYla_Fc1xYDWz8EFETlEv7R3WTUunVZfSDjZvE","#
                + #""y":"VG0skKg-uroBWVCZ5fP_u9M4THSU3mdZ_dXmXvrpzGc","#
                + #""d":"CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"}"#),
        text(
            "kretired-1",
            #"{"role":"retired","createdAt":1780000000000,"retiredAt":1794999000000,"#
                + #""x":"cTX6T9k6Cdzpi79oG0v89Q58DWNU5ir7C_8qNClheGU","#
                + #""y":"7UwfAt25Aj7lalV-UV1qncZsEfIglg3llDNN9Yh3ZyQ"}"#),
        text(
            "a\(uid)",
            #"{"uid":"\#(uid)","createdAt":1790000000000,"email":"masuo@example.com","emailVerified":true,"#
                + #""username":"masuo","displayName":"マスオさん","passwordHash":"\#(passwordHash)","#
                + #""passwordUpdatedAt":1790000000000,"lastLoginAt":1794990000000,"validSince":1790000000,"#
                + #""initialEmail":"masuo@example.com"}"#),
        text("emasuo@example.com", uid),
        text("nmasuo", uid),
        (
            Array("s".utf8) + sessionID,
            Array(
                (#"{"uid":"\#(uid)","provider":"password","authTime":1794990000,"#
                    + #""current":"OTxYKEssqIbAuCVRoEuaBhJV6Fxzy6x4tRHk1hoWm4E","createdAt":1794990000000,"#
                    + #""previous":"4n0m1Eg2tHsjMyKrD4LefJ5USP-N2r2Rds_RcsbSnBQ","rotatedAt":1794999000000}"#).utf8)
        ),
        (Array("u\(uid)\u{0}".utf8) + sessionID, []),
    ]

    private static func text(_ key: String, _ value: String) -> (key: [UInt8], value: [UInt8]) {
        (Array(key.utf8), Array(value.utf8))
    }

    private func open() async throws -> AuthBench {
        let store = try MemoryStore()
        _ = try await store.write { rows in
            for row in Self.rows { rows.putRow(row.key, row.value) }
        }
        return try await AuthBench.open(on: store)
    }

    @Test func passwordsAndNamesOfAnEarlierStoreSignIn() async throws {
        let bench = try await open()
        #expect(try await bench.signIn().uid == Self.uid)
        let session = try await bench.signIn(nil, username: "masuo")
        let account = try await bench.account(session)
        #expect(account.displayName == "マスオさん" && account.emailVerified && account.createdAt == 1_790_000_000_000)
        #expect(await wireError { try await bench.signUp() }?.reason == "EMAIL_EXISTS")
    }

    @Test(arguments: [current, previous]) func refreshTokensOfAnEarlierStoreGoOn(token: String) async throws {
        let bench = try await open()
        let session = try await bench.refresh(token)
        #expect(session.uid == Self.uid)
        let list = try await bench.service.sessionList.sessions(
            Auth.Sessions.List(), try await bench.origin(session))
        #expect(list.sessions.map(\.createdAt) == [1_794_990_000_000] && list.sessions.map(\.current) == [true])
        _ = try await AuthBench.open(since: bench).refresh(session.refreshToken)
    }

    @Test func keysOfAnEarlierStoreSignAndAreRotated() async throws {
        let bench = try await open()
        #expect(bench.service.publishedKeys.map(\.kid) == ["current-1", "next-1", "retired-1"])
        let before = try await bench.signIn()
        #expect(try await bench.service.keys.rotateKeys().kid == "next-1")
        #expect(try await bench.account(before).uid == Self.uid)
    }
}
