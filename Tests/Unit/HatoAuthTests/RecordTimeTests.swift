import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Rows of a damaged or foreign store: times are subtracted from each other, so a number that is no time is damage.
struct RecordTimeTests {
    private static let years = 253_402_300_800.0
    private static let wrongMilliseconds = [-9_223_372_036_854_775_808, -1, 0.5, years * 1000, 1e300]
    private static let wrongSeconds = [-9_223_372_036_854_775_808, -1, 0.5, years, 1e300]

    @Test func timesOfAccountsAreTimes() throws {
        var account = AccountRecord(uid: "masuo", createdAt: 1)
        (account.passwordUpdatedAt, account.lastLoginAt, account.lastRefreshAt) = (2, 3, 4)
        for name in ["createdAt", "passwordUpdatedAt", "lastLoginAt", "lastRefreshAt"] {
            try check(account.bytes, name, Self.wrongMilliseconds, last: Self.years * 1000 - 1) {
                _ = try AccountRecord($0)
            }
        }
        try check(account.bytes, "validSince", Self.wrongSeconds, last: Self.years - 1) { _ = try AccountRecord($0) }
    }

    @Test func timesOfSessionsAreTimes() throws {
        let session = SessionRecord(
            id: [1], uid: "masuo", provider: .password, authTime: 1,
            rotation: RefreshRotationStateMachine(currentHash: [UInt8](repeating: 7, count: 32), createdAt: 1))
        for name in ["createdAt", "rotatedAt"] {
            try check(session.bytes, name, Self.wrongMilliseconds, last: Self.years * 1000 - 1) { bytes in
                let read = try SessionRecord([1], bytes)
                _ = read.rotation.isExpired(now: 1_795_000_000_000, policy: RefreshPolicy())
            }
        }
        try check(session.bytes, "authTime", Self.wrongSeconds, last: Self.years - 1) {
            _ = try SessionRecord([1], $0)
        }
    }

    @Test func timesOfSigningKeysAreTimes() throws {
        var record = SigningKeyRecord(role: .current, key: SigningKey(kid: "k1"), createdAt: 1)
        record.retire(at: 2, until: 3)
        for name in ["createdAt", "retiredAt", "endsAt"] {
            try check(record.bytes(), name, Self.wrongMilliseconds, last: Self.years * 1000 - 1) {
                _ = try SigningKeyRecord(kid: "k1", $0)
            }
        }
    }

    /// Upkeep and refreshing meet such a row and go on.
    @Test func rowWithATimeThatIsNoneEndsNothing() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.store.write { rows in
            var damaged: [(key: [UInt8], value: [UInt8])] = []
            try rows.rows(AuthKey.sessions) { key, value in
                damaged.append((key, try Self.setting("rotatedAt", to: -9_223_372_036_854_775_808, in: value)))
                return true
            }
            for row in damaged { rows.putRow(row.key, row.value) }
        }
        #expect(try await bench.service.forgetExpiredSessions() == 0)
        await #expect(throws: (any Error).self) { try await bench.refresh(session.refreshToken) }
        _ = try await bench.signIn()
    }

    private static func setting(_ name: String, to number: Double, in record: [UInt8]) throws -> [UInt8] {
        var members = try #require(try JSONParser.parse(record).object)
        #expect(members[name] != nil)
        members[name] = .number(number)
        return JSONValue.object(members).encoded
    }

    private func check(
        _ record: [UInt8], _ name: String, _ wrong: [Double], last: Double, read: ([UInt8]) throws -> Void
    ) throws {
        for number in wrong {
            let bytes = try Self.setting(name, to: number, in: record)
            let error = #expect(throws: RecordError.self, "\(name) \(number)") { try read(bytes) }
            #expect(error?.problem == "member \(name)")
        }
        for number in [0, last] {
            let bytes = try Self.setting(name, to: number, in: record)
            #expect(throws: Never.self, "\(name) \(number)") { try read(bytes) }
        }
    }
}
