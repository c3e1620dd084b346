import HatoModel
import Testing

@testable import HatoPush

@Suite struct APNsProviderTokenTests {
    private static let now: Int64 = 1_795_000_000
    private let key = APNsTestKey()
    private let tokens = APNsProviderTokens()

    @Test func itNamesKeyTeamAndTime() throws {
        let token = try tokens.token(of: key.credentials(), .production, now: Self.now)
        let read = try #require(key.read(token))
        #expect(read.header == ["alg": "ES256", "kid": "ABC123DEFG"])
        #expect(read.claims == ["iss": "DEF123GHIJ", "iat": .number(Double(Self.now))])
        #expect(APNsTestKey().read(token) == nil)
    }

    @Test func itIsUsedAgainForFiftyMinutes() throws {
        let credentials = try key.credentials()
        let first = try tokens.token(of: credentials, .production, now: Self.now)
        #expect(try tokens.token(of: credentials, .production, now: Self.now + 2_999) == first)
        #expect(try tokens.token(of: credentials, .production, now: Self.now - 30) == first)
        // Another topic has the same one.
        #expect(try tokens.token(of: key.credentials(topic: "other"), .production, now: Self.now) == first)
        #expect(try tokens.token(of: credentials, .production, now: Self.now + 3_000) != first)
    }

    /// APNs refuses tokens of a time to come.
    @Test func aClockThatWasSetBackMakesAnother() throws {
        let credentials = try key.credentials()
        let first = try tokens.token(of: credentials, .production, now: Self.now)
        #expect(try tokens.token(of: credentials, .production, now: Self.now - 3_600) != first)
    }

    @Test func eachEnvironmentAndKeyHasItsOwn() throws {
        let first = try tokens.token(of: key.credentials(), .production, now: Self.now)
        #expect(try tokens.token(of: key.credentials(), .sandbox, now: Self.now) != first)
        #expect(try tokens.token(of: APNsTestKey().credentials(), .production, now: Self.now) != first)
        #expect(try tokens.token(of: key.credentials(), .production, now: Self.now) == first)
    }

    @Test func aRefusedOneIsReplacedOnce() throws {
        let credentials = try key.credentials()
        let first = try tokens.token(of: credentials, .production, now: Self.now)
        let second = try #require(
            try tokens.token(insteadOf: first, of: credentials, .production, now: Self.now + 10))
        #expect(second != first)
        // Another request was refused with the first one, too.
        #expect(try tokens.token(insteadOf: first, of: credentials, .production, now: Self.now + 10) == second)
        #expect(try tokens.token(of: credentials, .production, now: Self.now + 10) == second)
        // APNs has had two in 20 minutes.
        #expect(try tokens.token(insteadOf: second, of: credentials, .production, now: Self.now + 1_209) == nil)
        #expect(try tokens.token(insteadOf: second, of: credentials, .production, now: Self.now + 1_210) != nil)
    }

    @Test func noTokensOfOtherKeysAreKept() throws {
        let credentials = try key.credentials()
        let first = try tokens.token(of: credentials, .production, now: Self.now)
        tokens.keep { $0.environment == .production }
        #expect(try tokens.token(of: credentials, .production, now: Self.now) == first)
        tokens.keep { _ in false }
        #expect(try tokens.token(of: credentials, .production, now: Self.now) != first)
    }
}
