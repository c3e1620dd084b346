import HatoIdentity
import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.code.…`: what codes do, once, for one purpose, address and account.
@Suite(.timeLimit(.minutes(10)))
struct CodeTests {
    private static let masuo = "masuo@example.com"
    private static let newPassword = "isono-and-namihei"

    @Test func aPasswordIsSetByTheDigitsOfTheMail() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp(Self.masuo)
        let answer = try await bench.request(.passwordReset, "Masuo@Example.com") { $0.locale = "ja-JP" }
        #expect(answer == Auth.Code.Request.Result(email: Self.masuo))
        #expect(mails.mails.isEmpty, "it is sent after the response")
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.subject == "パスワードの再設定" && mail.to == Self.masuo && mail.link == nil)
        let digits = try #require(mail.digits)
        #expect(digits.utf8.count == 6 && mail.text.contains(digits) && !mail.text.contains(mail.code))
        #expect(try await bench.check(digits, Self.masuo) == Auth.Code.Found(type: .passwordReset, email: Self.masuo))
        bench.pass(seconds: 60)
        _ = try await bench.apply(digits, Self.masuo, newPassword: Self.newPassword)
        _ = try await bench.signIn(Self.masuo, Self.newPassword)
        #expect(await wireError { try await bench.signIn(Self.masuo) }?.reason == "INVALID_LOGIN_CREDENTIALS")
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
        let account = try await bench.service.users.user(Auth.Users.Get(email: Self.masuo))
        #expect(account.emailVerified && account.validSince == bench.now / 1000 + 1)
    }

    @Test func eitherFormUsesUpBoth() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        for usesDigits in [true, false] {
            let code = try await bench.code(.verifyEmail)
            let (digits, long) = (try #require(code.digits), try #require(code.code))
            _ = try await bench.apply(usesDigits ? digits : long, usesDigits ? Self.masuo : nil)
            #expect(await wireError { try await bench.apply(long) }?.reason == "INVALID_OOB_CODE")
            #expect(await wireError { try await bench.apply(digits, Self.masuo) }?.reason == "INVALID_OOB_CODE")
        }
    }

    @Test func aNewerCodeEndsTheOlder() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let older = try await bench.code(.verifyEmail)
        let other = try await bench.code(.passwordReset)
        let newer = try await bench.code(.verifyEmail)
        let error = await wireError { try await bench.check(try #require(older.code)) }
        #expect(error?.reason == "INVALID_OOB_CODE" && error?.code == .invalidArgument)
        _ = try await bench.check(try #require(newer.code))
        #expect(try await bench.check(try #require(other.code)).type == .passwordReset)
    }

    @Test func digitsHaveFiveTriesAndTenMinutes() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let code = try await bench.code(.verifyEmail)
        let digits = try #require(code.digits)
        let wrong = digits == "000000" ? "000001" : "000000"
        for _ in 0..<4 {
            #expect(await wireError { try await bench.check(wrong, Self.masuo) }?.reason == "INVALID_OOB_CODE")
        }
        _ = try await bench.check(digits, Self.masuo)
        #expect(await wireError { try await bench.apply(wrong, Self.masuo) }?.reason == "INVALID_OOB_CODE")
        #expect(await wireError { try await bench.apply(digits, Self.masuo) }?.reason == "INVALID_OOB_CODE")
        _ = try await bench.check(try #require(code.code))
        let next = try await bench.code(.verifyEmail)
        bench.pass(seconds: 600)
        let expired = await wireError { try await bench.apply(try #require(next.digits), Self.masuo) }
        #expect(expired?.reason == "EXPIRED_OOB_CODE")
        _ = try await bench.check(try #require(next.code))
        bench.pass(seconds: 3 * 86_400)
        #expect(await wireError { try await bench.apply(try #require(next.code)) }?.reason == "EXPIRED_OOB_CODE")
    }

    @Test func wrongDigitsInParallelHaveFiveTriesTogether() async throws {
        let bench = try await AuthBench.open { $0.limits.failuresFree = 100 }
        _ = try await bench.signUp(Self.masuo)
        let code = try await bench.code(.verifyEmail)
        let digits = try #require(code.digits)
        await withTaskGroup { group in
            for guess in 0..<20 {
                let text = String(repeating: "0", count: 4) + "\(10 + guess)"
                if text != digits { group.addTask { _ = try? await bench.check(text, Self.masuo) } }
            }
        }
        let record = try await bench.store.read { try CodeRows.find(.verifyEmail, to: Self.masuo, in: $0) }
        #expect(record?.tries == CodeRecord.triesMax)
        #expect(await wireError { try await bench.check(digits, Self.masuo) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func guessesOfAnAddressAreSlowedDown() async throws {
        let bench = try await AuthBench.open()
        for _ in 0..<10 {
            #expect(await wireError { try await bench.check("123456", "a@example.com") }?.reason == "INVALID_OOB_CODE")
        }
        let limited = await wireError { try await bench.check("123456", "a@example.com") }
        #expect(limited?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" && limited?.retryAfter != nil)
        #expect(await wireError { try await bench.check("123456", "b@example.com") }?.reason == "INVALID_OOB_CODE")
    }

    @Test func digitsAreTakenAsPeopleTypeThem() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let digits = try #require(try await bench.code(.verifyEmail).digits)
        let wide = String(
            String.UnicodeScalarView(digits.unicodeScalars.compactMap { Unicode.Scalar($0.value + 0xFEE0) }))
        for typed in [
            " \(digits)\n", "\(digits.prefix(3)) \(digits.suffix(3))", "\(digits.prefix(3))-\(digits.suffix(3))", wide,
        ] {
            #expect(try await bench.check(typed, "MASUO@example.com").type == .verifyEmail, "\(typed)")
        }
        let missing = await wireError { try await bench.check(digits) }
        #expect(missing?.reason == "MISSING_EMAIL" && missing?.data["parameter"] == "email")
    }

    @Test func aCodeIsForOneTypeAndOneAddress() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.signUp("sazae@example.com")
        let code = try await bench.code(.signIn)
        #expect(await wireError { try await bench.apply(try #require(code.code)) }?.reason == "INVALID_OOB_CODE")
        #expect(
            await wireError { try await bench.apply(try #require(code.digits), Self.masuo) }?.reason
                == "INVALID_OOB_CODE")
        #expect(try await bench.check(try #require(code.code)) == Auth.Code.Found(type: .signIn))
        let other = await wireError { try await bench.check(try #require(code.code), "sazae@example.com") }
        #expect(other?.reason == "INVALID_EMAIL")
        #expect(
            await wireError { try await bench.check(try #require(code.digits), "sazae@example.com") }?.reason
                == "INVALID_OOB_CODE")
        let verify = try await bench.code(.verifyEmail)
        #expect(
            await wireError { try await bench.signIn(code: try #require(verify.code)) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func aRefusedPasswordDoesNotUseUpTheCode() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo, username: "masuo")
        let digits = try #require(try await bench.code(.passwordReset).digits)
        let weak = await wireError { try await bench.apply(digits, Self.masuo, newPassword: "short") }
        #expect(weak?.reason == "WEAK_PASSWORD" && weak?.data["parameter"] == "newPassword")
        let missing = await wireError { try await bench.apply(digits, Self.masuo) }
        #expect(missing?.reason == "MISSING_PASSWORD" && missing?.data["parameter"] == "newPassword")
        let hashes = bench.counts.hashes
        let wrong = digits == "000000" ? "000001" : "000000"
        _ = await wireError { try await bench.apply(wrong, Self.masuo, newPassword: Self.newPassword) }
        #expect(bench.counts.hashes == hashes, "wrong digits cost no hash")
        _ = try await bench.apply(digits, Self.masuo, newPassword: Self.newPassword)
        let verify = try await bench.code(.verifyEmail)
        let superfluous = await wireError {
            try await bench.apply(try #require(verify.code), newPassword: Self.newPassword)
        }
        #expect(superfluous?.reason == "INVALID_REQ_TYPE")
    }

    @Test func anAccountThatChangedMeanwhileEndsItsCodes() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp(Self.masuo)
        let (reset, verify) = (try await bench.code(.passwordReset), try await bench.code(.verifyEmail))
        bench.pass(seconds: 1)
        var update = Auth.Users.Update(uid: session.uid)
        update.password = Self.newPassword
        _ = try await bench.service.users.updateUser(update)
        let error = await wireError { try await bench.apply(try #require(reset.code), newPassword: "another-long-one") }
        #expect(error?.reason == "INVALID_OOB_CODE", "the password was set since")
        update = Auth.Users.Update(uid: session.uid)
        update.email = "other@example.com"
        _ = try await bench.service.users.updateUser(update)
        #expect(await wireError { try await bench.apply(try #require(verify.code)) }?.reason == "INVALID_OOB_CODE")
        let deleted = try await bench.code(.verifyEmail, "other@example.com")
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        bench.pass(seconds: 1)
        var create = Auth.Users.Create()
        (create.uid, create.email) = (session.uid, "other@example.com")
        _ = try await bench.service.users.createUser(create)
        #expect(await wireError { try await bench.apply(try #require(deleted.code)) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func anAddressIsChangedAfterItsOwnerGotMailThere() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp(Self.masuo)
        let origin = try await bench.origin(session)
        let answer = try await bench.request(.changeEmail, by: origin) { $0.newEmail = "fuguta@example.com" }
        #expect(answer.email == "fuguta@example.com")
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.to == "fuguta@example.com" && mail.text.contains("fuguta@example.com"))
        let found = try await bench.apply(try #require(mail.digits), "fuguta@example.com")
        #expect(found == Auth.Code.Found(type: .changeEmail, email: Self.masuo, newEmail: "fuguta@example.com"))
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == "fuguta@example.com" && account.emailVerified && account.initialEmail == Self.masuo)
        _ = try await bench.signIn("fuguta@example.com")
    }

    @Test func codesSurviveARestartAndNotTheirKey() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let code = try #require(try await bench.code(.verifyEmail).code)
        _ = try await AuthBench.open(since: bench).check(code)
        let rows = SecretRows(encryption: nil)
        _ = try await bench.store.write { try rows.put(refreshKey: [UInt8](repeating: 7, count: 32), in: $0) }
        let other = try await AuthBench.open(since: bench)
        #expect(await wireError { try await other.check(code) }?.reason == "INVALID_OOB_CODE")
    }

    @Test func theStoreHasNoCode() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) {
            $0.links = CodeLinks(actionUrl: "https://example.com/a")
            // Six digits may be part of a time by chance.
            $0.codeDigits = 10
        }
        _ = try await bench.signUp(Self.masuo)
        try await bench.request(.passwordReset, Self.masuo)
        try await bench.request(.signIn, "sazae@example.com")
        let texts = try await bench.rows().map { String(decoding: $0.key + $0.value, as: UTF8.self) }
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
        for mail in mails.mails {
            let secret = try #require(Base64.url.decode(mail.code.utf8)).suffix(CodeSecrets.secretBytes)
            for text in [try #require(mail.digits), mail.code, Base64.url.encode(Array(secret))] {
                #expect(!texts.contains { $0.contains(text) })
            }
            #expect(mail.link?.contains(mail.code) == true)
        }
    }

    @Test(arguments: Auth.CodeType.allCases)
    func aLongCodeIsValidForItsTimeAndThenSaysThatItHasExpired(type: Auth.CodeType) async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        let code: String
        switch type {
        case .invite:
            var invite = Auth.Users.Invite(email: Self.masuo)
            invite.returnCode = true
            code = try #require(try await InviteMethod(service: bench.service).invite(invite).code)
        case .recoverEmail, .signUp: return  // RecoveryTests: an administrator gets none without a mail.
        case .verifyEmail, .passwordReset, .signIn, .changeEmail:
            _ = try await bench.signUp(Self.masuo)
            code = try #require(
                try await bench.code(type) { if type == .changeEmail { $0.newEmail = "fuguta@example.com" } }.code)
        }
        let seconds: Int64 =
            switch type {
            case .passwordReset: 3600
            case .signIn: 6 * 3600
            case .changeEmail, .signUp: 86_400
            case .verifyEmail: 3 * 86_400
            case .invite, .recoverEmail: 7 * 86_400
            }
        bench.pass(seconds: seconds - 1)
        #expect(try await bench.check(code).type == type)
        bench.pass(seconds: 1)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(await wireError { try await bench.check(code) }?.reason == "EXPIRED_OOB_CODE")
    }

    @Test func codesThatCannotBeReadAreDeleted() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        let kept = try await bench.code(.verifyEmail)
        _ = try await bench.code(.passwordReset)
        let other = [UInt8](repeating: 1, count: CodeRecord.idBytes)
        _ = try await bench.store.write { rows in
            let damaged = try CodeRows.find(.passwordReset, to: Self.masuo, in: rows)
            rows.putRow(AuthKey.code(damaged?.id ?? []), Array(#"{"type":"passwordReset","signUp":1}"#.utf8))
            rows.putRow(AuthKey.code(other), [])
            rows.putRow(AuthKey.code(.recoverEmail, to: Self.masuo, of: "a"), other)
        }
        for _ in 0..<2 {
            try await CodeUpkeep(service: bench.service).forgetExpired()
            #expect(try await codeRows(bench) == [1, 1, 0])
        }
        _ = try await bench.apply(try #require(kept.code))
    }

    /// An earlier version that runs between two starts of a newer one takes them for damage.
    @Test func codesOfANewerVersionStayUntilTheyHaveExpired() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.code(.passwordReset)
        _ = try await bench.store.write { rows in
            let code = try #require(try CodeRows.find(.passwordReset, to: Self.masuo, in: rows))
            var json = try #require(try JSONParser.parse(code.bytes).object)
            json["later"] = true
            rows.putRow(AuthKey.code(code.id), JSONValue.object(json).encoded)
            rows.putRow(AuthKey.code([UInt8](repeating: 1, count: CodeRecord.idBytes)), [])
        }
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(try await codeRows(bench) == [1, 1, 0], "the damaged one is deleted")
        bench.pass(seconds: 3600 + 86_399)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(try await codeRows(bench) == [1, 1, 0])
        bench.pass(seconds: 1)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(try await codeRows(bench) == [0, 0, 0])
    }

    /// The numbers of codes, and of the rows by which they are found.
    private func codeRows(_ bench: AuthBench) async throws -> [Int] {
        try await bench.store.read { rows in
            try [AuthKey.codes, AuthKey.codesOfAddresses, AuthKey.recoveries].map { range in
                var count = 0
                try rows.rows(range) { _, _ in
                    count += 1
                    return true
                }
                return count
            }
        }
    }

    @Test func expiredCodesAreDeleted() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp(Self.masuo)
        _ = try await bench.code(.passwordReset)
        _ = try await bench.code(.verifyEmail)
        bench.pass(seconds: 3600 + 86_399)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(try await bench.store.read { try CodeRows.find(.passwordReset, to: Self.masuo, in: $0) } != nil)
        bench.pass(seconds: 1)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        let left = try await bench.store.read { rows in
            (
                try CodeRows.find(.passwordReset, to: Self.masuo, in: rows) == nil,
                try CodeRows.find(.verifyEmail, to: Self.masuo, in: rows) != nil
            )
        }
        #expect(left.0 && left.1)
    }

    @Test func codesAndMailsHaveTheseBytes() throws {
        let id = [UInt8](repeating: 1, count: 16)
        let code =
            #"{"type":"changeEmail","to":"b@example.com","uid":"u1","email":"a@example.com","validSince":4,"#
            + #""session":"s1","createdAt":5,"expiresAt":6,"digitsUntil":7,"tries":2}"#
        #expect(String(decoding: try CodeRecord(id, Array(code.utf8)).bytes, as: UTF8.self) == code)
        let mail =
            #"{"code":"AQEBAQEBAQEBAQEBAQEBAQ","to":"b@example.com","type":"signIn","hasAccount":true,"#
            + #""locale":"ja","continueUrl":"https://example.com/","createdAt":5,"until":6,"attempts":1,"nextAt":7,"error":"x"}"#
        #expect(String(decoding: try MailRecord(id, Array(mail.utf8)).bytes, as: UTF8.self) == mail)
    }

    @Test func theFormsOfACodeStayTheSame() throws {
        let secrets = CodeSecrets(serviceKey: [UInt8](repeating: 3, count: 32), digitCount: 6)
        var code = CodeRecord(
            id: [UInt8](repeating: 1, count: 16), type: .passwordReset, to: "a@example.com", createdAt: 5, expiresAt: 6)
        code.digitsUntil = 7
        let (text, digits) = (secrets.text(code), secrets.digits(code))
        code.tries = 4
        #expect(secrets.text(code) == text && secrets.digits(code) == digits)
        let changes: [(inout CodeRecord) -> Void] = [
            { $0.to = "b@example.com" }, { $0.type = .verifyEmail }, { $0.uid = "u" }, { $0.expiresAt = 8 },
            { $0.email = "a@example.com" }, { $0.validSince = 1 }, { $0.session = "s" },
        ]
        for change in changes {
            var other = code
            change(&other)
            #expect(secrets.text(other) != text)
        }
    }
}
