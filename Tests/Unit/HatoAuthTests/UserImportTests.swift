import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

extension AuthService {
    fileprivate var moving: MovingMethods { MovingMethods(service: self) }
}

/// `auth.users.import` and `auth.users.export`.
struct UserImportTests {
    typealias Row = Auth.Users.Row
    typealias Import = Auth.Users.Import

    private static let password = ForeignHashTests.password

    private func row(_ uid: String?, _ email: String? = nil, hash: String? = nil) -> Row {
        var row = Row(uid: uid)
        row.email = email
        row.passwordHash = hash
        row.createdAt = 1_600_000_000_000
        return row
    }

    private func imports(
        _ bench: AuthBench, _ rows: [Row], _ change: (inout Import) -> Void = { _ in }
    ) async throws -> Import.Result {
        var request = Import(users: rows)
        change(&request)
        return try await bench.service.moving.importUsers(request)
    }

    private func stored(_ bench: AuthBench) async throws -> [[UInt8]: [UInt8]] {
        try await bench.store.read { rows in
            var all: [[UInt8]: [UInt8]] = [:]
            try rows.rows(KeyRange(lower: [], upper: nil)) { key, value in
                all[key] = value
                return true
            }
            return all
        }
    }

    private func record(_ bench: AuthBench, _ uid: String) async throws -> AccountRecord {
        try #require(try await bench.store.read { try AccountRows.find(uid, in: $0) })
    }

    // MARK: Signing in

    @Test(arguments: ForeignHashTests.texts)
    func hashBecomesOneOfThisServiceAtTheFirstRightPassword(_ text: String) async throws {
        let bench = try await AuthBench.open()
        #expect(try await imports(bench, [row("masuo", "masuo@example.com", hash: text)]).imported == 1)
        #expect(
            await wireError { try await bench.signIn("masuo@example.com", "wrong") }?.reason
                == "INVALID_LOGIN_CREDENTIALS")
        #expect(try await record(bench, "masuo").passwordHash?.text == text)
        #expect(try await bench.signIn("masuo@example.com", Self.password).uid == "masuo")
        let first = try #require(try await record(bench, "masuo").passwordHash?.text)
        #expect(first.hasPrefix("$scrypt$ln=4,r=1,p=1$"))
        let hashes = bench.counts.hashes
        #expect(try await bench.signIn("masuo@example.com", Self.password).uid == "masuo")
        #expect(bench.counts.hashes == hashes + 1)
        #expect(try await record(bench, "masuo").passwordHash?.text == first)
        #expect(await wireError { try await bench.signIn("masuo@example.com", "wrong") } != nil)
    }

    @Test func firebasesExportSignsInWithTheParametersOfTheRequest() async throws {
        let bench = try await AuthBench.open()
        var exported = row(
            "masuo", "masuo@example.com",
            hash: "lSrfV15cpx95_sZS2W9c9Kp6i_LVgQNDNC_qzrCnh1SAyZvqmZqAjTdn3aoItz-VHjoZilo78198JAdRuid5lQ==")
        exported.salt = "42xEC+ixf3L2lw=="
        let result = try await imports(bench, [exported]) { request in
            request.hashAlgorithm = .scrypt
            request.signerKey =
                "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="
            request.saltSeparator = "Bw=="
            (request.rounds, request.memoryCost) = (8, 14)
        }
        #expect(result == Import.Result(imported: 1, errors: []))
        #expect(try await record(bench, "masuo").passwordHash?.text == ForeignHashTests.firebase)
        #expect(try await bench.signIn("masuo@example.com", "user1password").uid == "masuo")
    }

    /// For each algorithm: the parameters, and the same hash as a text with all parameters.
    @Test func parametersOfTheRequestMeanWhatTheTextsSay() async throws {
        let bench = try await AuthBench.open()
        func check(_ prefix: String, _ algorithm: Auth.HashAlgorithm, _ change: (inout Import) -> Void) async throws {
            let text = try #require(ForeignHashTests.texts.first { $0.hasPrefix(prefix) }, "\(prefix)")
            let fields = text.split(separator: "$")
            var imported = row("u-\(algorithm.rawValue)", "\(algorithm.rawValue)@example.com".lowercased())
            imported.passwordHash = String(fields[3])
            imported.salt = String(fields[2])
            let result = try await imports(bench, [imported]) { request in
                request.hashAlgorithm = algorithm
                change(&request)
            }
            #expect(result.errors.isEmpty, "\(result.errors)")
            #expect(try await record(bench, "u-\(algorithm.rawValue)").passwordHash?.text == text)
        }
        let key = "c2lnbmVyIGtleQ=="
        for (name, algorithm) in [
            ("md5", Auth.HashAlgorithm.hmacMD5), ("sha1", .hmacSHA1), ("sha256", .hmacSHA256), ("sha512", .hmacSHA512),
        ] {
            try await check("$hmac-\(name)$o=ps", algorithm) { $0.signerKey = key }
        }
        for (name, algorithm) in [("md5", Auth.HashAlgorithm.md5), ("sha1", .sha1), ("sha512", .sha512)] {
            try await check("$\(name)$i=3", algorithm) { $0.rounds = 3 }
        }
        try await check("$sha256$i=1,o=sp", .sha256) { $0.passwordHashOrder = .saltFirst }
        for (name, algorithm) in [
            ("sha1", Auth.HashAlgorithm.pbkdfSHA1), ("sha256", .pbkdf2SHA256), ("sha512", .pbkdf2SHA512),
        ] {
            try await check("$pbkdf2-\(name)$", algorithm) { $0.rounds = 1000 }
        }
        try await check("$standard-scrypt$", .standardScrypt) { request in
            (request.cpuMemCost, request.blockSize, request.parallelization, request.dkLen) = (1024, 4, 2, 24)
        }
    }

    @Test(arguments: [("$2b$", Auth.HashAlgorithm.bcrypt), ("$argon2id$v=19", .argon2)])
    func textsMayBeInBase64(_ prefix: String, _ algorithm: Auth.HashAlgorithm) async throws {
        let bench = try await AuthBench.open()
        let text = try #require(ForeignHashTests.texts.first { $0.hasPrefix(prefix) })
        let encoded = row("masuo", "masuo@example.com", hash: Base64.url.encode(text.utf8))
        #expect(try await imports(bench, [encoded]) { $0.hashAlgorithm = algorithm }.errors.isEmpty)
        #expect(try await bench.signIn("masuo@example.com", Self.password).uid == "masuo")
    }

    /// `$scrypt$` texts of other installations, and of earlier settings.
    @Test(arguments: [ScryptCost(logN: 6, r: 1, p: 1), ScryptCost(logN: 3, r: 1, p: 1)])
    func hashOfThisServiceWithAnotherMemoryIsReplaced(_ cost: ScryptCost) async throws {
        let bench = try await AuthBench.open()
        let salt = [UInt8](repeating: 7, count: PasswordHash.saltBytes)
        let hash = try PasswordHasher.scrypt(Password(Self.password).bytes, salt, cost)
        let text = PasswordHash(cost: cost, salt: salt, hash: hash).text
        #expect(try await imports(bench, [row("masuo", "masuo@example.com", hash: text)]).errors.isEmpty)
        _ = try await bench.signIn("masuo@example.com", Self.password)
        #expect(try await record(bench, "masuo").passwordHash?.text.hasPrefix("$scrypt$ln=4,r=1,p=1$") == true)
    }

    /// A check takes a few seconds at most, and every hash that is taken can be checked.
    @Test func hashesThatTakeTooLongOrCannotBeComputedAreRefused() async throws {
        let bench = try await AuthBench.open()
        let salt = Base64.url.encode([UInt8](repeating: 1, count: 16))
        func hash(_ count: Int) -> String { Base64.url.encode([UInt8](repeating: 2, count: count)) }
        for (text, isTaken) in [
            ("$pbkdf2-sha256$i=10000000$\(salt)$\(hash(32))", true),
            ("$pbkdf2-sha256$i=10000000$\(salt)$\(hash(33))", false),
            ("$pbkdf2-sha256$i=5000000$\(salt)$\(hash(64))", true),
            ("$pbkdf2-sha1$i=1500000$\(salt)$\(hash(128))", false),
            ("$standard-scrypt$ln=17,r=8,p=16$\(salt)$\(hash(32))", true),
            ("$standard-scrypt$ln=18,r=8,p=9$\(salt)$\(hash(32))", false),
            ("$scrypt$ln=18,r=8,p=9$\(salt)$\(hash(32))", false),
            ("$scrypt$ln=15,r=1,p=1$\(salt)$\(hash(32))", true),
            ("$scrypt$ln=16,r=1,p=1$\(salt)$\(hash(32))", false),
        ] {
            let errors = try await imports(bench, [row("masuo", "masuo@example.com", hash: text)]) {
                ($0.dryRun, $0.allowOverwrite) = (true, true)
            }.errors
            #expect(errors.map(\.reason) == (isTaken ? [] : ["INVALID_PASSWORD_HASH"]), "\(text)")
        }
    }

    // MARK: Rows

    @Test func wrongRowsAreRefusedByTheirIndexAndTheOthersAreWritten() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp("sazae@example.com", username: "sazae")
        var photo = row("photo")
        photo.photoUrl = "a\nb"
        var nul = row("nul")
        nul.displayName = "a\0b"
        var newline = row("newline")
        newline.displayName = "a\nb"
        var claims = row("claims")
        claims.customAttributes = #"{"iss":1}"#
        var time = row("time")
        time.lastLoginAt = -1
        var taken = row("taken")
        taken.username = "Sazae"
        var salt = row("salt", "salt@example.com", hash: Base64.standard.encode([UInt8](repeating: 1, count: 32)))
        salt.salt = "!"
        let characters = String(repeating: "a", count: 53)
        let rows: [(Row, String, String)] = [
            (row(nil), "uid", "MISSING_LOCAL_ID"), (row(String(repeating: "a", count: 129)), "uid", "INVALID_LOCAL_ID"),
            (row("a\0b"), "uid", "INVALID_LOCAL_ID"), (row("email", "x"), "email", "INVALID_EMAIL"),
            (row("email2", "a\n@example.com"), "email", "INVALID_EMAIL"),
            (row("email3", "Sazae@Example.com"), "email", "EMAIL_EXISTS"),
            (taken, "username", "USERNAME_EXISTS"), (photo, "photoUrl", "INVALID_PHOTO_URL"),
            (nul, "displayName", "INVALID_DISPLAY_NAME"), (newline, "displayName", "INVALID_DISPLAY_NAME"),
            (claims, "customAttributes", "FORBIDDEN_CLAIM"), (time, "lastLoginAt", "INVALID_TIME"),
            (salt, "salt", "INVALID_PASSWORD_HASH"),
            (row("dear", "dear@example.com", hash: "$2b$31$\(characters)"), "passwordHash", "INVALID_PASSWORD_HASH"),
            (row("short", "short@example.com", hash: "AAAA"), "passwordHash", "INVALID_PASSWORD_HASH"),
            (row("redacted", "r@example.com", hash: "UkVEQUNURUQ="), "passwordHash", "INVALID_PASSWORD_HASH"),
        ]
        let good = row("masuo", "Masuo@Example.com")
        let result = try await imports(bench, rows.map(\.0) + [good]) { $0.hashAlgorithm = .sha256 }
        #expect(result.imported == 1)
        #expect(result.errors.map(\.index) == Array(rows.indices))
        for (error, expected) in zip(result.errors, rows) {
            #expect(error.parameter == expected.1 && error.reason == expected.2, "\(error)")
            #expect(error.uid == expected.0.uid)
        }
        #expect(result.errors[13].message.contains("from 4 to 15, not 31"))
        #expect(try await record(bench, "masuo").email == "masuo@example.com")
    }

    @Test func namesThatTwoRowsHaveRefuseTheWholeCall() async throws {
        let bench = try await AuthBench.open()
        let before = try await stored(bench)
        var (left, right) = (row("a"), row("b"))
        (left.username, right.username) = ("masuo", "Masuo")
        for (rows, reason) in [
            ([row("a"), row("b"), row("a")], "DUPLICATE_LOCAL_ID"),
            ([row("a", "a@example.com"), row("b", "A@example.com")], "DUPLICATE_EMAIL"),
            ([left, right], "DUPLICATE_USERNAME"), ([], "MISSING_USER_ACCOUNT"),
            ((0...1000).map { row("u\($0)") }, "MAXIMUM_USER_COUNT_EXCEEDED"),
        ] {
            let error = await wireError { try await imports(bench, rows) }
            #expect(error?.code == .invalidArgument && error?.reason == reason)
            #expect(error?.data["parameter"] == "users")
        }
        #expect(try await stored(bench) == before)
    }

    @Test func wrongParametersAreNamed() async throws {
        let bench = try await AuthBench.open { $0.importedHashMemoryBytesMax = 16 << 20 }
        let hashed = [row("a", "a@example.com", hash: "AAAA")]
        let key = Base64.standard.encode([UInt8](repeating: 1, count: 64))
        func expect(_ parameter: String, _ change: (inout Import) -> Void) async throws {
            let error = await wireError { try await imports(bench, hashed, change) }
            #expect(error?.reason == "INVALID_HASH_PARAMETERS", "\(parameter)")
            #expect(error?.data["parameter"]?.string == parameter)
        }
        #expect(await wireError { try await imports(bench, hashed) }?.reason == "MISSING_HASH_ALGORITHM")
        func firebase(_ request: inout Import) {
            (request.hashAlgorithm, request.signerKey, request.rounds, request.memoryCost) = (.scrypt, key, 8, 14)
        }
        try await expect("memoryCost") { $0.hashAlgorithm = .scrypt }
        try await expect("memoryCost") {
            firebase(&$0); $0.memoryCost = 15
        }
        try await expect("rounds") {
            firebase(&$0); $0.rounds = 0
        }
        try await expect("signerKey") {
            firebase(&$0); $0.signerKey = "!"
        }
        try await expect("signerKey") {
            firebase(&$0); $0.signerKey = nil
        }
        try await expect("saltSeparator") {
            firebase(&$0); $0.saltSeparator = "!"
        }
        try await expect("rounds") { ($0.hashAlgorithm, $0.rounds) = (.pbkdf2SHA256, 10_000_001) }
        try await expect("rounds") { $0.hashAlgorithm = .pbkdfSHA1 }
        try await expect("rounds") { ($0.hashAlgorithm, $0.rounds) = (.sha1, 8193) }
        try await expect("signerKey") { $0.hashAlgorithm = .hmacSHA1 }
        func scrypt(_ request: inout Import) {
            request.hashAlgorithm = .standardScrypt
            (request.cpuMemCost, request.blockSize, request.parallelization) = (1024, 8, 1)
        }
        try await expect("cpuMemCost") {
            scrypt(&$0); $0.cpuMemCost = 1000
        }
        try await expect("cpuMemCost") {
            scrypt(&$0); $0.cpuMemCost = 1 << 40
        }
        try await expect("cpuMemCost") {
            scrypt(&$0); $0.cpuMemCost = 32_768
        }
        try await expect("blockSize") {
            scrypt(&$0); $0.blockSize = 17
        }
        try await expect("parallelization") {
            scrypt(&$0); $0.parallelization = 17
        }
    }

    // MARK: Overwriting

    @Test func existingAccountIsReplacedOnlyWhenAllowedAndItsSessionsEnd() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var replacing = row(session.uid, "new@example.com", hash: ForeignHashTests.texts[0])
        replacing.displayName = "マスオさん"
        let refused = try await imports(bench, [replacing])
        #expect(refused.imported == 0 && refused.errors.map(\.reason) == ["DUPLICATE_LOCAL_ID"])
        #expect(try await bench.account(session).email == "masuo@example.com")
        bench.pass(seconds: 2)
        #expect(try await imports(bench, [replacing]) { $0.allowOverwrite = true }.imported == 1)
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.refresh(session.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.signIn() } != nil, "the old name is free")
        #expect(try await bench.signIn("new@example.com", Self.password).uid == session.uid)
        _ = try await bench.signUp("masuo@example.com")
    }

    @Test func replacingTheNameOnlyKeepsTheSessions() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var replacing = try await bench.service.moving.exportUsers(Auth.Users.Export()).users[0]
        replacing.displayName = "マスオさん"
        #expect(try await imports(bench, [replacing]) { $0.allowOverwrite = true }.imported == 1)
        #expect(try await bench.account(session).displayName == "マスオさん")
        #expect(try await bench.refresh(session.refreshToken).uid == session.uid)
    }

    @Test func overwritingEnablesADisabledAccountOnlyWhenTheRowSaysSo() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        var exported = try await bench.service.moving.exportUsers(Auth.Users.Export()).users
        #expect(exported[0].disabled == false, "an export says which accounts are enabled")
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        exported[0].disabled = nil
        exported[0].displayName = "マスオ"
        #expect(try await imports(bench, exported) { $0.allowOverwrite = true }.imported == 1)
        #expect(await wireError { try await bench.signIn() }?.reason == "USER_DISABLED")
        exported[0].disabled = false
        #expect(try await imports(bench, exported) { $0.allowOverwrite = true }.imported == 1)
        #expect(try await bench.signIn().uid == session.uid)
    }

    @Test func timesOfTheFutureAreRefused() async throws {
        let bench = try await AuthBench.open()
        let day: Int64 = 86_400_000
        for (time, isTaken) in [(bench.now + day, true), (bench.now + day + 1, false)] {
            for member in [\Row.createdAt, \.lastLoginAt, \.passwordUpdatedAt] {
                var late = row("masuo", "masuo@example.com")
                late[keyPath: member] = time
                let errors = try await imports(bench, [late]) { $0.dryRun = true }.errors
                #expect(errors.map(\.reason) == (isTaken ? [] : ["INVALID_TIME"]))
            }
        }
    }

    @Test func rowThatItsAccountEqualsIsNeitherWrittenNorRefused() async throws {
        let bench = try await AuthBench.open()
        let rows = [row("a", "a@example.com", hash: ForeignHashTests.texts[0]), row("b"), Row(uid: "c")]
        #expect(try await imports(bench, rows).imported == 3)
        let before = try await stored(bench)
        bench.pass(seconds: 10)
        #expect(try await imports(bench, rows) == Import.Result(imported: 3, errors: []))
        #expect(try await stored(bench) == before)
    }

    @Test func dryRunSaysTheSameAndWritesNothing() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let before = try await stored(bench)
        let rows = [row("a", "masuo@example.com"), row("b", "b@example.com"), row(session.uid), row(nil)]
        for allowsOverwrite in [false, true] {
            let dry = try await imports(bench, rows) { ($0.dryRun, $0.allowOverwrite) = (true, allowsOverwrite) }
            #expect(dry.imported == (allowsOverwrite ? 2 : 1))
            #expect(dry.errors.map(\.index) == (allowsOverwrite ? [0, 3] : [0, 2, 3]))
            #expect(try await stored(bench) == before)
        }
        #expect(try await imports(bench, rows).errors.map(\.index) == [0, 2, 3])
    }

    @Test func tokenOfAFormerOwnerOfTheUidStaysInvalid() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        bench.pass(seconds: 2)
        #expect(try await imports(bench, [row(session.uid, "other@example.com")]).imported == 1)
        #expect(await wireError { try await bench.account(session) }?.reason == "TOKEN_EXPIRED")
    }

    // MARK: Exporting

    @Test func exportIsWhatAnImportReads() async throws {
        let bench = try await AuthBench.open()
        var rows = ForeignHashTests.texts.enumerated().map {
            row("u\($0.offset + 10)", "u\($0.offset)@example.com", hash: $0.element)
        }
        rows[0].emailVerified = true
        rows[1].disabled = true
        rows[2].customAttributes = #"{"staff":true}"#
        rows[3].lastLoginAt = 1_700_000_000_000
        rows[4].username = "masuo"
        #expect(try await imports(bench, rows).imported == rows.count)
        _ = try await bench.signUp()
        var exported: [Row] = []
        var request = Auth.Users.Export(limit: 7)
        while true {
            let page = try await bench.service.moving.exportUsers(request)
            exported += page.users
            request.after = page.after
            if page.after == nil { break }
        }
        #expect(exported.count == rows.count + 1)
        let other = try await AuthBench.open()
        #expect(try await imports(other, exported) == Import.Result(imported: exported.count, errors: []))
        let again = try await other.service.moving.exportUsers(Auth.Users.Export())
        #expect(again.users == exported && again.after == nil)
        #expect(try await other.signIn().uid.isEmpty == false)
        #expect(try await other.signIn("u0@example.com", Self.password).uid == "u10")
        #expect(await wireError { try await other.signIn("u1@example.com", Self.password) }?.reason == "USER_DISABLED")
    }

    @Test func pagesOfAnExportAreBounded() async throws {
        let bench = try await AuthBench.open()
        for (limit, after) in [(0, nil), (1001, nil), (1, "\n")] as [(Int, String?)] {
            let error = await wireError {
                try await bench.service.moving.exportUsers(Auth.Users.Export(after: after, limit: limit))
            }
            #expect(error?.reason == "INVALID_PAGE_SELECTION")
        }
    }
}
