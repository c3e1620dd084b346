import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

struct PasswordPolicyTests {
    private func problem(_ text: String, lengthMin: Int = 6, names: [String] = []) -> FieldProblem? {
        var configuration = AuthConfiguration()
        configuration.passwordLengthMin = lengthMin
        return PasswordPolicy(configuration).problem(with: Password(text), names: names)
    }

    @Test func lengthIsCountedInCharactersNotBytes() {
        #expect(problem("鳩が飛んで") != nil)
        #expect(problem("鳩が飛んでい") == nil)
        #expect(problem("sazae-san", lengthMin: 15)?.message.contains("15") == true)
        #expect(problem("sazae-and-friends", lengthMin: 15) == nil)
        #expect(problem("", lengthMin: 0) != nil)
    }

    @Test func longPassphrasesWithSpacesAreFineUpToTheLimit() {
        #expect(problem("the pigeon knows its way home, whatever the wind may be tonight and tomorrow") == nil)
        #expect(problem(String(repeating: "ab c1", count: 800) + "x") == nil)
        #expect(problem(String(repeating: "鳩", count: 1366))?.reason == "WEAK_PASSWORD")
    }

    @Test func mostCommonPasswordsAreRefused() {
        for text in [
            "password", "PassWord123", "Qwertyuiop", "aaaaaaaa", "abcabcabc", "12345678", "87654321", "567890123",
            "abcdefgh",
            "1qaz2wsx3edc4rfv", "correcthorsebatterystaple", "ｐａｓｓｗｏｒｄ", "123456789012345",
            "iloveyouiloveyou", "passwordpassword", "SunshineSunshineSunshine",
        ] {
            #expect(problem(text)?.reason == "WEAK_PASSWORD", "\(text)")
        }
    }

    @Test func ownNamesAreRefused() {
        let names = ["masuo.fuguta@example.com", "masuo77"]
        for text in ["Masuo.Fuguta@example.com", "masuo.fuguta", "MASUO77"] {
            #expect(problem(text, names: names) != nil)
        }
        #expect(problem("masuo.fuguta likes tea", names: names) == nil)
    }

    @Test func blocklistIsASettingForFirebaseCompatibility() {
        var configuration = AuthConfiguration()
        configuration.passwordLengthMin = 6
        configuration.refusesCommonPasswords = false
        #expect(PasswordPolicy(configuration).problem(with: Password("123456"), names: []) == nil)
        #expect(PasswordPolicy(configuration).problem(with: Password("12345"), names: []) != nil)
    }

    @Test func passwordsAreNeverPrinted() {
        #expect("\(Password("sazae-and-friends"))".contains("sazae") == false)
        #expect(String(describing: FieldProblem("password", "WEAK_PASSWORD", "too short")).contains("sazae") == false)
    }
}

struct PasswordHashTests {
    @Test func textIsPHCAndReadsBack() throws {
        let hash = PasswordHash(cost: ScryptCost(), salt: [UInt8](0..<16), hash: [UInt8](repeating: 0xFF, count: 32))
        #expect(hash.text.hasPrefix("$scrypt$ln=14,r=8,p=5$AAECAwQFBgcICQoLDA0ODw$////"))
        let read = try #require(PasswordHash(hash.text))
        #expect(read.text == hash.text)
        #expect(read.matches(hash.hash))
        #expect(!read.matches([UInt8](repeating: 0xFE, count: 32)))
        #expect(!read.matches([]))
    }

    @Test func otherTextsAreRefused() {
        let good = "$scrypt$ln=14,r=8,p=5$AAECAwQFBgcICQoLDA0ODw$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        #expect(PasswordHash(good) != nil)
        for (part, other) in [
            ("$scrypt", "$argon2"), ("ln=14", "ln=40"), ("ln=14", "ln=-1"), ("r=8", "r=0"), ("p=5", "p=500"),
            ("ln=14,", ""),
            ("AAECAwQFBgcICQoLDA0ODw", ""), ("ODw$AAAA", "ODw$AA"), ("AAEC", "-AEC"), ("$A", "$A$"),
        ] {
            #expect(PasswordHash(good.replacing(part, with: other, maxReplacements: 1)) == nil, "\(other)")
        }
    }

    /// RFC 7914 §12, the third vector, cut to the length of a hash here.
    @Test func scryptGivesTheVectorOfItsRFC() throws {
        let derived = try PasswordHasher.scrypt(
            Array("pleaseletmein".utf8), Array("SodiumChloride".utf8), ScryptCost(logN: 14, r: 8, p: 1))
        let expected: [UInt8] = [
            0x70, 0x23, 0xBD, 0xCB, 0x3A, 0xFD, 0x73, 0x48, 0x46, 0x1C, 0x06, 0xCD, 0x81, 0xFD, 0x38, 0xEB, 0xFD, 0xA8,
            0xFB,
            0xBA, 0x90, 0x4F, 0x8E, 0x3E, 0xA9, 0xB5, 0x43, 0xF6, 0x54, 0x5D, 0xA1, 0xF2,
        ]
        #expect(derived == expected)
    }

    @Test func defaultCostIsOWASPsInSixteenMebibytes() {
        #expect(ScryptCost() == ScryptCost(logN: 14, r: 8, p: 5))
        #expect(ScryptCost().memoryBytes == 16 << 20)
    }
}

struct EmailAddressTests {
    @Test func addressesAreKeptInOneForm() {
        #expect(EmailAddress.normalised("Masuo@Example.COM", bytesMax: 254) == "masuo@example.com")
        for text in [
            "a@b.co", "first.last+tag@sub.example.co.jp", "o'hara@example.com", "鳩@例え.jp", "a_b-c@x-y.example",
        ] {
            #expect(EmailAddress.normalised(text, bytesMax: 254) != nil, "\(text)")
        }
        #expect(
            EmailAddress.normalised("cafe\u{301}@example.com", bytesMax: 254)?.utf8.elementsEqual(
                "caf\u{E9}@example.com".utf8) == true)
    }

    /// The examples of RFC 3492 §7.1 that a domain can have, and Japanese ones.
    @Test(arguments: [
        ("xn--r8jz45g.jp", "例え.jp"), ("XN--R8JZ45G.JP", "例え.jp"), ("例え．ｊｐ", "例え.jp"),
        ("例え。jp", "例え.jp"), ("例え｡jp", "例え.jp"), ("ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"),
        ("ＥＸＡＭＰＬＥ.com", "example.com"), ("xn--bcher-kva.example", "bücher.example"),
        ("BÜCHER.example", "bücher.example"), ("bu\u{308}cher.example", "bücher.example"),
        ("xn--ihqwcrb4cv8a8dqg056pqjye.cn", "他们为什么不说中文.cn"),
        ("xn--n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa.jp", "なぜみんな日本語を話してくれないのか.jp"),
        ("xn--mgbh0fb.example", "مثال.example"),
        // No internationalised labels.
        ("xn--a-ä.example", "xn--a-ä.example"), ("xn--99999999999.example", "xn--99999999999.example"),
    ])
    func domainsAreKeptInOneForm(typed: String, kept: String) {
        let address = EmailAddress.normalised("masuo@\(typed)", bytesMax: 254)
        #expect(address?.utf8.elementsEqual("masuo@\(kept)".utf8) == true, "\(typed): \(address ?? "refused")")
    }

    @Test func textsThatAreNoAddressAreRefused() {
        for text in [
            "", "@", "a@", "@b.co", "a@b", "a@@b.co", "a b@c.co", "a@b..co", ".a@b.co", "a.@b.co", "a..b@c.co",
            "a@-b.co",
            "a@b-.co", "a@b.co ", "a@b.co\n", "a@b,co", "<a@b.co>", "\"a\"@b.co", "a@b.co\u{0}", "a\u{200B}@b.co",
            String(repeating: "a", count: 65) + "@b.co", "a@" + String(repeating: "b", count: 64) + ".co",
            "a@" + String(repeating: "bcd.", count: 70) + "co",
            // A semicolon once it is composed, and a label of more than 63 bytes in ASCII.
            "a\u{37E}b@b.co", "a@" + String(repeating: "鳩", count: 60) + ".jp",
        ] {
            let address = EmailAddress.normalised(text, bytesMax: 254)
            #expect(!(address.map(EmailAddress.isMailable) ?? false), "\(text)")
        }
    }

    private static let storedWithoutMails: [(typed: String, stored: String)] = {
        let longInASCII = "a@" + String(repeating: "鳩", count: 60) + ".jp"
        let (short, long) = (String(repeating: "\u{23A}", count: 32), String(repeating: "\u{2C65}", count: 32))
        let (one, two) = (String(repeating: "\u{958}", count: 21), String(repeating: "\u{915}\u{93C}", count: 21))
        return [
            ("a\u{37E}b@b.co", "a;b@b.co"), (longInASCII, longInASCII), (short + "@b.co", long + "@b.co"),
            (one + "@b.co", two + "@b.co"),
        ]
    }()

    /// Stored by an earlier version; the normalised form is one as well.
    @Test(arguments: storedWithoutMails) func storedAddressesWithoutMailsAreFound(typed: String, stored: String) {
        #expect(EmailAddress.normalised(typed, bytesMax: 254) == stored)
        #expect(EmailAddress.normalised(stored, bytesMax: 254) == stored)
        #expect(!EmailAddress.isMailable(stored))
        var row = Auth.Users.Row(uid: "masuo")
        row.email = typed
        #expect(row.hasAddressWithoutMails)
    }
}

struct AccountFormPolicyTests {
    private let policy = AccountFormPolicy(AuthConfiguration())

    private func reason(_ form: AccountForm) -> String? {
        do {
            _ = try policy.check(form)
            return nil
        } catch {
            guard case .invalidFields(let problems) = error else { return "?" }
            return problems.map(\.reason).joined(separator: ",")
        }
    }

    @Test func usernamesAreShortAndPlain() {
        for name in ["abc", "masuo.fuguta_77", String(repeating: "a", count: 32)] {
            #expect(reason(AccountForm(username: name)) == nil)
        }
        for name in ["ab", "", String(repeating: "a", count: 33), "マスオ", "a b c", "a-b-c", "İstanbul"] {
            #expect(reason(AccountForm(username: name)) == "INVALID_USERNAME", "\(name)")
        }
        // The Kelvin sign is three bytes and folds to one.
        #expect(reason(AccountForm(username: String(repeating: "\u{212A}", count: 32))) == nil)
        for name in [String(repeating: "\u{212A}", count: 33), String(repeating: "a", count: 1 << 20)] {
            #expect(reason(AccountForm(username: name)) == "INVALID_USERNAME")
        }
    }

    @Test func displayNamesAreVisible() throws {
        #expect(try policy.check(AccountForm(displayName: "　フグ田　マスオ　")).displayName == "フグ田　マスオ")
        #expect(try policy.check(AccountForm(displayName: "👨‍👩‍👧 family")).displayName == "👨‍👩‍👧 family")
        for name in ["", " \t", "a\nb", "a\u{0}", "a\u{202E}b", String(repeating: "x", count: 257)] {
            #expect(reason(AccountForm(displayName: name)) == "INVALID_DISPLAY_NAME")
        }
    }

    @Test func photosAreTextsWithoutControlCharacters() {
        for text in ["https://example.com/a.png?b=c", "avatars/マスオ 1.png", String(repeating: "x", count: 2_048)] {
            #expect(reason(AccountForm(photoUrl: text)) == nil, "\(text)")
        }
        for text in ["", "a\nb", "a\u{0}", "a\u{202E}b", String(repeating: "x", count: 2_049)] {
            #expect(reason(AccountForm(photoUrl: text)) == "INVALID_PHOTO_URL", "\(text)")
        }
    }

    @Test func phoneNumbersAreOfE164() {
        for number in ["+819012345678", "+12", "+123456789012345"] {
            #expect(reason(AccountForm(phoneNumber: number)) == nil, "\(number)")
        }
        for number in ["", "+", "+1", "+012345678", "819012345678", "+81-90-1234-5678", "+1234567890123456", "+٣٤٥"] {
            #expect(reason(AccountForm(phoneNumber: number)) == "INVALID_PHONE_NUMBER", "\(number)")
        }
    }
}

struct AttemptPolicyTests {
    private let policy = AttemptPolicy(failuresFree: 10, waitMax: 900_000, memory: 24 * 3_600_000)

    @Test func waitDoublesUpToItsMaximumAndNeverLocksPermanently() {
        var count = FailureCount()
        var pauses: [Int64] = []
        for _ in 0..<40 {
            count = policy.failed(count, now: 0)
            pauses.append(policy.wait(count, now: 0) ?? 0)
        }
        #expect(pauses.prefix(9).allSatisfy { $0 == 0 })
        #expect(Array(pauses[9..<14]) == [1000, 2000, 4000, 8000, 16_000])
        #expect(pauses.last == 900_000)
        #expect(policy.wait(count, now: 899_999) == 1)
        #expect(policy.wait(count, now: 900_000) == nil)
    }

    @Test func failuresExpireAfterADay() {
        var count = FailureCount()
        for _ in 0..<20 { count = policy.failed(count, now: 0) }
        count = policy.failed(count, now: 24 * 3_600_000)
        #expect(count.failures == 1)
        #expect(policy.wait(count, now: 24 * 3_600_000) == nil)
    }

    @Test func guessesInParallelFindNoMoreThanGuessesInARow() {
        var count = FailureCount()
        for _ in 0..<10 {
            #expect(policy.wait(count, now: 0) == nil)
            count.pending += 1
        }
        #expect(policy.wait(count, now: 0) == 1000)
        for _ in 0..<10 {
            count = policy.failed(count, now: 0)
            count.pending -= 1
            #expect(policy.wait(count, now: 0) == 1000)
        }
        #expect(policy.wait(count, now: 1000) == nil)
        count.pending = 1
        #expect(policy.wait(count, now: 1000) == 1000, "after each wait, one")
    }

    @Test func bucketFillsWithTimeUpToItsBurst() {
        let limit = RateLimit(burst: 2, perMinute: 60)
        var bucket = TokenBucket(full: limit, now: 0)
        #expect(bucket.take(limit, now: 0) == nil)
        #expect(bucket.take(limit, now: 0) == nil)
        #expect(bucket.take(limit, now: 0) == 1000)
        #expect(bucket.take(limit, now: 400) == 600)
        #expect(bucket.take(limit, now: 1000) == nil)
        #expect(bucket.take(limit, now: 100_000) == nil)
        #expect(bucket.take(limit, now: 100_000) == nil)
        #expect(bucket.take(limit, now: 100_000) != nil)
        // A clock that goes back gives nothing.
        #expect(bucket.take(limit, now: 0) != nil)
    }

    private func target(_ account: String, from network: String = "192.0.2.1") -> AttemptLedger.Target {
        AttemptLedger.Target(account: account, network: network, isKnown: true)
    }

    private func ledger(
        entriesMax: Int = 50, _ change: (inout AuthLimits) -> Void = { _ in }
    ) -> AttemptLedger {
        var configuration = AuthConfiguration()
        configuration.limits.attemptEntriesMax = entriesMax
        configuration.limits.failuresFree = 1
        configuration.limits.signInsPerAddress = RateLimit(burst: 1, perMinute: 60)
        configuration.limits.signIns = RateLimit(burst: 0, perMinute: 0)
        change(&configuration.limits)
        return AttemptLedger(configuration, key: [1], now: { 0 })
    }

    @Test func fullLedgerEvictsTheOldestEntries() throws {
        let ledger = ledger()
        func address(_ index: Int) -> ClientAddress { ClientAddress("192.0.\(index / 250).\(index % 250)") }
        for index in 0..<1000 {
            try ledger.admit(.signIn, from: address(index))
            try ledger.begin(target("\(index)"))
            ledger.end(target("\(index)"), isRight: false)
        }
        for index in 950..<1000 {
            #expect(throws: AuthError.self) { try ledger.admit(.signIn, from: address(index)) }
            #expect(throws: AuthError.self) { try ledger.begin(target("\(index)")) }
        }
        try ledger.admit(.signIn, from: address(949))
        try ledger.begin(target("949"))
    }

    @Test func fullLedgerEvictsNoCheckInProgress() throws {
        let ledger = ledger { $0.failuresFree = 2 }
        for _ in 0..<2 { try ledger.begin(target("masuo")) }
        for index in 0..<1000 {
            try ledger.begin(target("\(index)"))
            ledger.end(target("\(index)"), isRight: false)
        }
        for _ in 0..<2 { ledger.end(target("masuo"), isRight: false) }
        #expect(throws: AuthError.self, "its failures count") { try ledger.begin(target("masuo")) }
    }

    @Test func ledgerFullOfChecksInProgressAdmitsNoOther() throws {
        let ledger = ledger { $0.failuresFree = 2 }
        for index in 0..<50 { try ledger.begin(target("\(index)")) }
        #expect(throws: AuthError.self) { try ledger.begin(target("masuo")) }
        try ledger.begin(target("7"))
        for index in [7, 7, 8] { ledger.end(target("\(index)"), isRight: true) }
        try ledger.begin(target("masuo"))
    }

    @Test func aCheckWithoutMemoryForBothOfItsCountsLeavesNone() throws {
        let ledger = ledger(entriesMax: 3) { $0.failuresFreePerAccount = 1 }
        try ledger.begin(target("sazae"))
        try ledger.begin(target("tara"))
        var unknown = target("masuo")
        unknown.isKnown = false
        #expect(throws: AuthError.self) { try ledger.begin(unknown) }
        ledger.end(target("tara"), isRight: true)
        try ledger.begin(unknown)
        #expect(throws: AuthError.self, "it is in progress") { try ledger.begin(unknown) }
    }

    @Test func signUpsOfAllAddressesHaveALimitToo() throws {
        let ledger = ledger { $0.signUps = RateLimit(burst: 3, perMinute: 60) }
        for index in 0..<3 {
            try ledger.admit(index == 1 ? .signUp : .anonymousSignUp, from: ClientAddress("192.0.2.\(index)"))
        }
        #expect(throws: AuthError.self) { try ledger.admit(.signUp, from: ClientAddress("192.0.2.9")) }
        #expect(throws: AuthError.self) { try ledger.admit(.anonymousSignUp, from: nil) }
        try ledger.admit(.refresh, from: ClientAddress("192.0.2.9"))
    }

    @Test func addressesOfOneCustomerAreOne() {
        #expect(ClientAddress("192.0.2.1").network == ClientAddress("192.0.2.1:5000").network)
        #expect(ClientAddress("192.0.2.1").network != ClientAddress("192.0.2.2").network)
        #expect(ClientAddress("2001:db8::1").network == ClientAddress("[2001:db8::ffff:2]:80").network)
        #expect(ClientAddress("2001:db8::1").network != ClientAddress("2001:db8:0:1::1").network)
        #expect(ClientAddress("::ffff:192.0.2.1").network == ClientAddress("192.0.2.1").network)
        #expect(ClientAddress("2001:db8:7:1::1").site == "2001:db8:7::/48")
        #expect(ClientAddress("[2001:db8:7:ffff::1]:80").site == "2001:db8:7::/48")
        #expect(ClientAddress("2001:db8:8::1").site == "2001:db8:8::/48")
        for text in ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1:80"] {
            #expect(ClientAddress(text).site == "192.0.2.1", "\(text)")
        }
        for text in ["127.0.0.1", "127.1.2.3:80", "::1", "[::1]:80", "::ffff:127.0.0.1"] {
            #expect(ClientAddress(text).isLoopback, "\(text)")
        }
        #expect(!ClientAddress("10.0.0.1").isLoopback)
    }
}
