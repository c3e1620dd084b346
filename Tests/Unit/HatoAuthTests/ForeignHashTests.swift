import HatoModel
import Testing

@testable import HatoAuth

/// Hashes of other software. The fixed ones are made with Python's `bcrypt`, `argon2-cffi`, `hashlib` and `hmac`.
struct ForeignHashTests {
    static let password = "サザエさん's password"

    /// Each is of `password`.
    static let texts: [String] = [
        "$2a$04$8CBvC2LGZpfQo/1S7JVWEuvXGQlQC6..Z5VfIMqACNMEFCDRse1wW",
        "$2b$04$Uzler3CnipX7cin.MG/Cf.DLrH.9ANWRq227v.OxGAcsKDf1IeLGa",
        "$2y$04$Uzler3CnipX7cin.MG/Cf.DLrH.9ANWRq227v.OxGAcsKDf1IeLGa",
        "$argon2id$v=19$m=256,t=2,p=2$TmFDbC0wMTIzNDU2Nzg5IQ$fgkslaAClOHZ/HoFp35aNDXFavAHLjgOGbUKbPr5cgs",
        "$argon2i$v=19$m=256,t=2,p=2$TmFDbC0wMTIzNDU2Nzg5IQ$FuK4yZGpA8ISvbpvsGXzr95BdPid17CLs591/HjF5qo",
        "$argon2id$v=16$m=256,t=2,p=2$TmFDbC0wMTIzNDU2Nzg5IQ$mEpbKFQryQeIRTM0iWmdelB+iONTLgZSDcO4pDofXwY",
        "$md5$i=3,o=ps$TmFDbC0wMTIzNDU2Nzg5IQ$HZFPVjiLu/J/adjYQc3syg",
        "$md5$i=1,o=sp$TmFDbC0wMTIzNDU2Nzg5IQ$QyiFeCI9wWsxQwvoL/R85Q",
        "$hmac-md5$o=ps,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$lE0JgiURGg7Hm50m59GmgA",
        "$hmac-md5$o=sp,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$CJcDexEhr5oITjDo7SKqaA",
        "$sha1$i=3,o=ps$TmFDbC0wMTIzNDU2Nzg5IQ$IjmZbmSPZxXGW2deOJ/bP9G2s84",
        "$sha1$i=1,o=sp$TmFDbC0wMTIzNDU2Nzg5IQ$v0S7jJhBJF6Q2T4qnDM4lE4t86c",
        "$hmac-sha1$o=ps,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$aFzPz380yGztszAlBpvTV/ZGNSA",
        "$hmac-sha1$o=sp,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$MBxDIMv+BiPGQ2J/uLCMO0rJdTA",
        "$sha256$i=3,o=ps$TmFDbC0wMTIzNDU2Nzg5IQ$jSQNyA9feCGdytnMn3Ent6Q07J9z9bPWHruwdtXJO7U",
        "$sha256$i=1,o=sp$TmFDbC0wMTIzNDU2Nzg5IQ$UQ8dDMl6Y8TcXJ/XKt88O/NB/EZ/eZ883SSgU0mdvfQ",
        "$hmac-sha256$o=ps,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$obxVAilZGVr7T/1nxaximZpDIa9NzPzi9aHF+QMslM4",
        "$hmac-sha256$o=sp,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$pwrISfL9FmBwqngRr2KrI11BG6xbyLJFyHZnZ9liwpc",
        "$sha512$i=3,o=ps$TmFDbC0wMTIzNDU2Nzg5IQ$R+BtyJ9PapMKkkEoQmi/ABTNZqAuF5hAoMGL+6V0"
            + "fCoBBrZqupYOMq7AwDWQXHY227CtvxnvltOUNWi7aIQChQ",
        "$sha512$i=1,o=sp$TmFDbC0wMTIzNDU2Nzg5IQ$B6CHNLm0XZl/QIXBGUlNOmeN4Tt4kv5tTSz/uNS9"
            + "xCit4rxlGrOAkw/Zu/27Iiqt3bQ3dEhrc8bFXMhMEDlb5w",
        "$hmac-sha512$o=ps,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$TbcshX9dq1x0BTbm8m2JZP"
            + "rubgtLgrpYGyANhZSvfrjESJi/bwfjJk6c3bpjwSZ+t06YX0lnzNtPrWJx5uylQw",
        "$hmac-sha512$o=sp,k=c2lnbmVyIGtleQ$TmFDbC0wMTIzNDU2Nzg5IQ$QxYQBr6rvZZiUxoboa8bKV"
            + "JiIVAylu3ueqLwjltyy1UlSWUqwNNyA4AUOa2SMW/d3nF2OI2YhVNC459r9lZtSQ",
        "$pbkdf2-sha1$i=1000$TmFDbC0wMTIzNDU2Nzg5IQ$EpG2xXFG/qEGhocRbJK8QOWvD9k",
        "$pbkdf2-sha256$i=1000$TmFDbC0wMTIzNDU2Nzg5IQ$5PQ2x4VSQJekF3aSlpK9PzL45fu57vQo2fEzdZiovF4",
        "$pbkdf2-sha512$i=1000$TmFDbC0wMTIzNDU2Nzg5IQ$yN/aUsf8TI503mtePh/kyk81g6WGJlvezHn"
            + "9lCbOpJ0D6H8Mj96+oUXvzfDssFhX1KQIFnKQqkvjZ7FSFh5sEA",
        "$pbkdf2-sha256$i=1000$TmFDbC0wMTIzNDU2Nzg5IQ$5PQ2x4VSQJekF3aSlpK9PzL45fu57vQo2fE"
            + "zdZiovF57hvLZFz2b6095gIFRPLo6",
        "$standard-scrypt$ln=10,r=4,p=2$TmFDbC0wMTIzNDU2Nzg5IQ$h6PTkEAcE2RPP0yaOmJ/Kqb+dYeyxDcY",
    ]

    /// The vector that Google has published with its scheme.
    static let firebase = """
        $firebase-scrypt$ln=14,r=8,ss=Bw,\
        k=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA\
        $42xEC+ixf3L2lw$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ
        """

    /// bcrypt with the cost that most software has.
    static let usualBcrypt = "$2b$10$6BpkqXTlRfFBfhbljum.VurK8TpLtob7xWkjvUNLiS4UjH9JLMB1y"

    private func isRight(_ password: String, _ text: String) throws -> Bool {
        let hash = try PasswordHash.read(text)
        let typed = Password(password).typedBytes
        return hash.matches(try hash.scheme.derive(typed, hash.salt, byteCount: hash.hash.count))
    }

    @Test(arguments: texts + [usualBcrypt])
    func hashMatchesItsPasswordOnly(_ text: String) throws {
        #expect(try isRight(Self.password, text))
        #expect(try !isRight(Self.password + "!", text))
        #expect(try !isRight("", text))
        #expect(PasswordHash(text)?.isOutdated(at: ScryptCost(logN: 1, r: 1, p: 1)) == true)
    }

    @Test(arguments: texts + [firebase])
    func textIsWrittenAsItWasRead(_ text: String) throws {
        #expect(try PasswordHash.read(text).text == text)
    }

    @Test func googlesVectorMatches() throws {
        #expect(try isRight("user1password", Self.firebase))
        #expect(try !isRight("user1Password", Self.firebase))
    }

    @Test func ownHashesAreThoseOfScrypt() throws {
        let text =
            "$scrypt$ln=10,r=8,p=1$TmFDbC0wMTIzNDU2Nzg5IQ$7moJ/AaYzZ1zcSumCRHra83BgWRTg83C3Y1Enc8oCrs"
        #expect(try isRight(Self.password, text))
        #expect(PasswordHash(text)?.isOutdated(at: ScryptCost(logN: 10, r: 8, p: 1)) == false)
    }

    @Test func bcryptHashesTheFirst72Bytes() throws {
        let text = "$2b$04$mKJRB.uCtRenX/DKchKpD.LHkEb6Uy16f0Vn7eWHFxDoUId7ZRLC6"
        for count in [72, 73, 80, 4096] { #expect(try isRight(String(repeating: "x", count: count), text)) }
        #expect(try !isRight(String(repeating: "x", count: 71), text))
    }

    @Test func passwordWithNULIsNotTheOneBeforeIt() throws {
        // The key of an HMAC, and so the password of PBKDF2 and scrypt, is the same with a NUL more.
        for text in Self.texts where !text.contains("pbkdf2") && !text.contains("scrypt") {
            #expect(try !isRight(Self.password + "\0", text), "\(text)")
        }
    }

    @Test func passwordIsHashedAsTyped() throws {
        let fullWidth = Password("ｐａｓｓ")
        #expect(fullWidth.bytes == Array("pass".utf8) && fullWidth.typedBytes == Array("ｐａｓｓ".utf8))
    }

    // MARK: Wrong texts

    private static let salt = "TmFDbC0wMTIzNDU2Nzg5IQ"
    private static let hash = "7moJ/AaYzZ1zcSumCRHra83BgWRTg83C3Y1Enc8oCrs"
    private static let characters = String(repeating: "a", count: 53)

    @Test(arguments: [
        ("$2b$16$\(characters)", "from 4 to 15, not 16"), ("$2b$31$\(characters)", "from 4 to 15, not 31"),
        ("$2b$03$\(characters)", "from 4 to 15, not 3"),
        ("$argon2id$v=19$m=4194304,t=3,p=1$\(salt)$\(hash)", "from 8 to 262144, not 4194304"),
        ("$argon2id$v=19$m=9223372036854775807,t=3,p=1$\(salt)$\(hash)", "from 8 to 262144"),
        ("$argon2id$v=19$m=8,t=3,p=2$\(salt)$\(hash)", "from 16 to 262144, not 8"),
        ("$argon2id$v=19$m=64,t=11,p=1$\(salt)$\(hash)", "from 1 to 10, not 11"),
        ("$argon2i$v=19$m=64,t=1,p=17$\(salt)$\(hash)", "from 1 to 16, not 17"),
        ("$argon2id$v=19$m=64,t=1,p=1$AAAA$\(hash)", "salt should have 8 to 128 bytes, not 3"),
        ("$pbkdf2-sha256$i=10000001$\(salt)$\(hash)", "from 1 to 10000000, not 10000001"),
        ("$pbkdf2-sha256$i=0$\(salt)$\(hash)", "from 1 to 10000000, not 0"),
        ("$sha256$i=8193,o=ps$\(salt)$\(hash)", "from 1 to 8192, not 8193"),
        ("$sha512$i=1,o=ps$\(salt)$\(hash)", "passwordHash should have 64 bytes, not 32"),
        ("$standard-scrypt$ln=20,r=8,p=1$\(salt)$\(hash)", "at most 256 MiB, not 1024 MiB"),
        ("$standard-scrypt$ln=10,r=17,p=1$\(salt)$\(hash)", "blockSize should be from 1 to 16, not 17"),
        ("$standard-scrypt$ln=16,r=1,p=1$\(salt)$\(hash)", "a power of 2"),
        ("$standard-scrypt$ln=63,r=8,p=1$\(salt)$\(hash)", "a power of 2"),
        ("$firebase-scrypt$ln=15,r=8,ss=Bw,k=\(hash)$\(salt)$\(hash)", "memoryCost should be from 1 to 14, not 15"),
        ("$firebase-scrypt$ln=14,r=9,ss=Bw,k=\(hash)$\(salt)$\(hash)", "rounds should be from 1 to 8, not 9"),
        ("$firebase-scrypt$ln=14,r=8,ss=Bw,k=AAAA$\(salt)$AAAA", "signerKey should have 16 to 128 bytes, not 3"),
        ("$scrypt$ln=21,r=8,p=1$\(salt)$\(hash)", "ln ≤ 20"),
    ])
    func costsAreBounded(_ text: String, _ maximum: String) {
        let problem = #expect(throws: HashProblem.self) { try PasswordHash.read(text, memoryBytesMax: 256 << 20) }
        #expect(problem?.message.contains(maximum) == true, "\(text): \(problem?.message ?? "")")
        #expect(PasswordHash(text) == nil)
    }

    @Test func memoryOfAnImportMayBeLessThanThatOfWhatIsStored() throws {
        let text = "$argon2id$v=19$m=65536,t=3,p=4$\(Self.salt)$\(Self.hash)"
        #expect(PasswordHash(text) != nil)
        let problem = #expect(throws: HashProblem.self) { try PasswordHash.read(text, memoryBytesMax: 32 << 20) }
        #expect(problem?.message.contains("not 65536") == true)
        let own = "$scrypt$ln=16,r=8,p=1$\(Self.salt)$\(Self.hash)"
        #expect(PasswordHash(own) != nil)
        #expect(throws: HashProblem.self) { try PasswordHash.read(own, memoryBytesMax: 32 << 20) }
    }

    @Test func otherTextsAreNoHashes() {
        let wrong =
            [
                "", "$", "$$$$", "secret", "$2b$10$short", "$2x$10$\(Self.characters)", "$2b$1$\(Self.characters)",
                "$2b$10$\(String(repeating: "!", count: 53))", "$argon2d$v=19$m=64,t=1,p=1$\(Self.salt)$\(Self.hash)",
                "$argon2id$v=18$m=64,t=1,p=1$\(Self.salt)$\(Self.hash)",
                "$argon2id$v=19$t=1,m=64,p=1$\(Self.salt)$\(Self.hash)",
                "$argon2id$v=19$m=-64,t=1,p=1$\(Self.salt)$\(Self.hash)",
                "$scrypt$ln=10,r=8,p=1$\(Self.salt)$\(Self.hash)=", "$md4$i=1,o=ps$\(Self.salt)$\(Self.hash)",
                "$sha256$i=1,o=xx$\(Self.salt)$\(Self.hash)", "$sha256$i=x,o=ps$\(Self.salt)$\(Self.hash)",
                "$hmac-sha256$o=ps,k=!$\(Self.salt)$\(Self.hash)", "$6$salt$\(Self.hash)",
                "$sha256$i=1,o=ps$\(String(repeating: "A", count: 8000))$\(Self.hash)",
            ]
        for text in wrong {
            let problem = #expect(throws: HashProblem.self) { try PasswordHash.read(text) }
            #expect(text.count < 8 || problem?.message.contains(text) == false)
        }
        #expect(throws: HashProblem.self) { try PasswordHash.read("$sha256$i=1,o=ps$\(Self.salt)$AAAA") }
        for text in Self.texts {
            for index in text.indices {
                var flipped = text
                flipped.replaceSubrange(index...index, with: "~")
                #expect(PasswordHash(flipped) == nil)
            }
        }
    }
}
