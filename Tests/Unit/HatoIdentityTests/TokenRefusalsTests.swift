import Testing

@testable import HatoIdentity

@Suite struct TokenRefusalsTests {
    /// Milliseconds since 1970.
    private static let now: Int64 = 1_795_000_000_000
    private static let second = now / 1000

    private func refusals(_ refusals: [TokenRefusal], countMax: Int = 100) -> TokenRefusals {
        var all = TokenRefusals(countMax: countMax)
        for refusal in refusals { refuse(refusal, in: &all) }
        return all
    }

    @discardableResult
    private func refuse(
        _ refusal: TokenRefusal, at second: Int64 = second, until: Int64 = .max, now: Int64 = now,
        in refusals: inout TokenRefusals
    ) -> KeptRefusals {
        refusals.apply(.refuse(refusal, at: second, until: until), now: now)
    }

    private func refuses(
        _ refusals: TokenRefusals, _ uid: String = "u", session: String? = "s", issuedAt: Int64 = second
    ) -> Bool {
        refusals.contains(uid: uid, session: session, issuedAt: issuedAt)
    }

    @Test func userIsRefusedUpToASecondAndOthersAreNot() {
        let refusals = refusals([
            .user(uid: "u", issuedBefore: Self.second), .user(uid: "u", issuedBefore: Self.second - 5),
        ])
        #expect(refuses(refusals, issuedAt: Self.second - 1) && !refuses(refusals))
        #expect(!refuses(refusals, "v", issuedAt: 0))
    }

    @Test func sessionIsRefusedAndOthersOfTheUserAreNot() {
        let refusals = refusals([.session("s", uid: "u")])
        #expect(refuses(refusals) && !refuses(refusals, session: "t") && !refuses(refusals, session: nil))
        #expect(!refuses(refusals, "v"))
    }

    /// One user cannot fill the memory with sessions that end.
    @Test func manySessionsOfAUserAreRefusedTogether() {
        let most = TokenRefusals.sessionsPerUserMax
        var refusals = refusals((0..<most).map { .session("s\($0)", uid: "u") })
        #expect(refuses(refusals, session: "s0") && !refuses(refusals, session: "other"))
        let kept = refuse(.session("one more", uid: "u"), in: &refusals)
        #expect(refuses(refusals, session: "other") && !refuses(refusals, issuedAt: Self.second + 1))
        #expect(kept.users["u"]??.sessions == [] && kept.users["u"]??.issuedBefore == Self.second + 1)
        #expect(!refuses(refusals, "v"))
    }

    @Test func accountIsRefusedUntilItIsAllowedAgain() {
        var refusals = refusals([.account(uid: "u")])
        #expect(refuses(refusals, issuedAt: Self.second + 100))
        #expect(refusals.apply(.allow(uid: "u"), now: Self.now).users["u"]??.isWhole == false)
        #expect(refusals.apply(.allow(uid: "never refused"), now: Self.now).isEmpty)
        #expect(!refuses(refusals) && refusals.count == 1)
    }

    @Test func refusalsEndWithTheLastOfTheirTokens() {
        var refusals = TokenRefusals(countMax: 100)
        refuse(.account(uid: "u"), until: Self.now + 10, in: &refusals)
        refuse(.session("s", uid: "w"), until: Self.now + 10, in: &refusals)
        refuse(.user(uid: "v", issuedBefore: .max), until: Self.now + 20, in: &refusals)
        refuse(.user(uid: "v", issuedBefore: .max), until: Self.now + 10, in: &refusals)
        #expect(refusals.apply(.allow(uid: "x"), now: Self.now + 9).isEmpty && refusals.count == 3)
        let over = refusals.apply(.allow(uid: "x"), now: Self.now + 10).users
        #expect(over.keys.sorted() == ["u", "w"] && over.values.allSatisfy { $0 == nil })
        #expect(refusals.count == 1 && refuses(refusals, "v"))
        _ = refusals.apply(.allow(uid: "x"), now: Self.now + 20)
        #expect(refusals.count == 0)
        // Over before it came.
        #expect(refuse(.account(uid: "u"), until: Self.now, in: &refusals).isEmpty && refusals.count == 0)
    }

    @Test func tooManyAreRefusedTogetherWithAllUsers() {
        var refusals = TokenRefusals(countMax: 4)
        refuse(.key(kid: "k"), until: 0, in: &refusals)
        for number in 0..<4 { refuse(.account(uid: "u\(number)"), at: Self.second - 60, in: &refusals) }
        #expect(!refuses(refusals, "other") && refusals.issuedBefore == 0)
        let kept = refuse(.session("s", uid: "u"), in: &refusals)
        // Newer tokens are not refused: each user that may sign in has one.
        let floor = Self.second - 10
        #expect(refuses(refusals, "other", issuedAt: floor - 1) && !refuses(refusals, "other", issuedAt: floor))
        // What has just come stays single, in the store too.
        #expect(refuses(refusals) && refusals.count == 1)
        #expect(kept.isCollapsed && kept.issuedBefore == floor && Array(kept.users.keys) == ["u"])
        #expect(refusals.contains(key: "k"))
    }

    @Test func tooManyAtOnceLeaveNone() {
        var refusals = TokenRefusals(countMax: 16)
        var kept = KeptRefusals()
        for number in 0..<17 { kept.add(refuse(.account(uid: "u\(number)"), in: &refusals)) }
        #expect(refusals.count == 0 && refuses(refusals, "other") && !refuses(refusals, "x", issuedAt: Self.second + 1))
        #expect(kept.isCollapsed && kept.users.isEmpty)
    }

    @Test func oneUserThatIsRefusedAgainAndAgainTakesBoundedMemory() {
        var refusals = TokenRefusals(countMax: 16)
        for round in 0..<1_000 {
            let second = Self.second + Int64(round)
            refuse(.user(uid: "u", issuedBefore: second), at: second, until: Self.now + Int64(round), in: &refusals)
        }
        #expect(refusals.issuedBefore > 0)
        #expect(refuses(refusals, issuedAt: Self.second + 998))
    }

    @Test func keptRefusalsAreThoseOfBefore() {
        var (refusals, kept) = (TokenRefusals(countMax: 4), KeptRefusals())
        for refusal: TokenRefusal in [
            .account(uid: "a"), .user(uid: "b", issuedBefore: Self.second), .session("s", uid: "c"), .key(kid: "k"),
            .allUsers(issuedBefore: 5),
        ] {
            kept.add(refuse(refusal, until: Self.now + 10, in: &refusals))
        }
        kept.add(refusals.apply(.allow(uid: "a"), now: Self.now))
        var loaded = TokenRefusals(countMax: 4)
        loaded.load(kept)
        #expect(!refuses(loaded, "a") && refuses(loaded, "b", issuedAt: Self.second - 1) && refuses(loaded, "c"))
        #expect(loaded.contains(key: "k") && refuses(loaded, "d", issuedAt: 4))
        _ = loaded.apply(.allow(uid: "x"), now: Self.now + 10)
        #expect(loaded.count == 0)
    }
}
