import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-auth users import` and `export`: accounts of other services, files that are cut off.
@Suite(.timeLimit(.minutes(5)))
struct MovingUsers {
    /// As the Firebase console shows it.
    private static let hashConfig = """
        hash_config {
          algorithm: SCRYPT,
          base64_signer_key: jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==,
          base64_salt_separator: Bw==,
          rounds: 8,
          mem_cost: 14,
        }
        """

    /// Of "user1password".
    private static let firebaseHash =
        #""passwordHash":"lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==","#
        + #""salt":"42xEC+ixf3L2lw==""#

    /// Of "サザエさん's password".
    private static let bcrypt = "$2b$10$8Vd/5//7f/tIRGxcCG37luP5reI70Tpmi91dPsk7urFyJ2Lh6AAXC"

    @Test func exportOfFirebaseGoesInAndItsUsersSignIn() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "users.json",
                """
                {"users": [
                {"localId": "masuo-1", "email": "masuo@example.com", "emailVerified": true, \(Self.firebaseHash),
                 "displayName": "マスオさん {\\"}", "lastSignedInAt": "1700000000000", "createdAt": "1600000000000",
                 "phoneNumber": "+81312345678", "providerUserInfo": [{"providerId": "password"}, {"providerId": "apple.com"},
                  {"providerId": "google.com", "rawId": "110169", "email": "masuo@gmail.com"}]},
                {"localId": "wrong", "email": "x"},
                {"localId": "sazae-1", "email": "sazae@\(String(repeating: "鳩", count: 60)).jp", "createdAt": "1600000000000", "disabled": true, "providerUserInfo": []}]}
                """)
            let config = try folder.write("hash-config", Self.hashConfig)
            let dry = try await command(["import", file, "--hash-config", config, "--dry-run"], on: stack)
            #expect(dry.output["imported"] == 2, "\(dry.error)")
            let imported = try await command(["import", file, "--hash-config", config], on: stack)
            #expect(imported.code == 1)
            #expect(imported.output["accounts"] == 3 && imported.output["imported"] == 2, "\(imported.error)")
            #expect(imported.output["refused"] == 1)
            #expect(imported.error.contains("account 2 (wrong): The e-mail address is not one"), "\(imported.error)")
            #expect(imported.error.contains("1 accounts have apple.com, which is not kept"))
            #expect(imported.error.contains("1 accounts have an e-mail address that gets no mail"))
            #expect(!FileManager.default.fileExists(atPath: file + ".progress"))

            let administrator = stack.client(.auth, as: .administrator)
            let account = try await administrator.call(Auth.Users.Get(uid: "masuo-1"))
            #expect(account.displayName == "マスオさん {\"}" && account.emailVerified)
            #expect(account.createdAt == 1_600_000_000_000 && account.lastLoginAt == 1_700_000_000_000)
            #expect(account.providerUserInfo.map(\.rawId) == ["masuo@example.com", "+81312345678", "110169"])
            #expect(account.phoneNumber == "+81312345678")
            #expect(try await administrator.call(Auth.Users.Get(uid: "sazae-1")).disabled)
            let session = try await Self.patientClient(of: stack).call(
                Auth.SignIn(email: "masuo@example.com", password: "user1password"))
            #expect(session.uid == "masuo-1")
        }
    }

    @Test func rowsOfGoTrueAndPocketBaseGoIn() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "users.jsonl",
                """
                {"id":"7d0c1f0a-0000-4000-8000-000000000001","email":"a@example.com","encrypted_password":"\(Self.bcrypt)",\
                "email_confirmed_at":"2023-05-06 07:08:09.123456+00","created_at":"2023-05-06 07:08:09.123456+00",\
                "last_sign_in_at":null,"phone":"819012345678","raw_user_meta_data":{"full_name":"A","avatar_url":"https://a.example/p.png"},\
                "banned_until":"2999-01-01T00:00:00+09:00"}
                {"id":"pocketbase00001","email":"b@example.com","username":"users12345","name":"B","verified":true,\
                "password":"\(Self.bcrypt)","created":"2022-02-28 23:59:59.500Z","tokenKey":"secret"}

                {"id":"c","created_at":"yesterday"}
                """)
            let imported = try await command(["import", file], on: stack)
            #expect(imported.code == 1 && imported.output["imported"] == 2, "\(imported.error)")
            #expect(imported.error.contains("account 3"))
            let administrator = stack.client(.auth, as: .administrator)
            let gotrue = try await administrator.call(Auth.Users.Get(email: "a@example.com"))
            #expect(gotrue.uid == "7d0c1f0a-0000-4000-8000-000000000001" && gotrue.disabled && gotrue.emailVerified)
            #expect(gotrue.createdAt == 1_683_356_889_123 && gotrue.displayName == "A")
            #expect(gotrue.phoneNumber == "+819012345678")
            #expect(gotrue.photoUrl == "https://a.example/p.png" && gotrue.lastLoginAt == nil)
            let pocketBase = try await administrator.call(Auth.Users.Get(username: "users12345"))
            #expect(pocketBase.displayName == "B" && pocketBase.createdAt == 1_646_092_799_500)
            let session = try await Self.patientClient(of: stack).call(
                Auth.SignIn(username: "users12345", password: "サザエさん's password"))
            #expect(session.uid == "pocketbase00001")
        }
    }

    @Test func importGoesOnWhereItWasCutOff() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            func line(_ index: Int) -> String { #"{"uid":"user\#(index + 10_000)","createdAt":1600000000000}"# }
            let lines = (0..<2_500).map(line)
            // Of the same size as the right one.
            var damaged = lines
            damaged[2_200] = lines[2_200].replacing("0}", with: ":}")
            let file = try folder.write("users.jsonl", damaged.joined(separator: "\n"))
            let cutOff = try await command(["import", file], on: stack)
            #expect(cutOff.code == 74)
            #expect(cutOff.error.contains("account 2201 of"), "\(cutOff.error)")
            #expect(try folder.text("users.jsonl.progress").contains(#""accounts":2000"#))
            let other = try await command(
                ["import", try folder.write("other.jsonl", line(1)), "--continue"], on: stack)
            #expect(other.code == 74, "\(other.error)")

            _ = try folder.write("users.jsonl", lines.joined(separator: "\n"))
            let rest = try await command(["import", file, "--continue"], on: stack)
            #expect(rest.code == 0, "\(rest.error)")
            #expect(rest.output["imported"] == 2_500 && rest.output["accounts"] == 2_500)
            let again = try await command(["import", file], on: stack)
            #expect(again.code == 0 && again.output["imported"] == 2_500, "\(again.error)")
            let nothing = try await command(["import", file, "--continue"], on: stack)
            #expect(nothing.code == 74 && nothing.error.contains("there is nothing to continue"), "\(nothing.error)")
        }
    }

    @Test func equalRowsCountOnce() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let (first, other) = (#"{"uid":"a","displayName":"A"}"#, #"{"uid":"b","displayName":"A"}"#)
            let file = try folder.write("users.jsonl", [first, other, first].joined(separator: "\n"))
            let imported = try await command(["import", file], on: stack)
            #expect(imported.code == 0 && imported.output["imported"] == 2, "\(imported.error)")
            #expect(imported.output["accounts"] == 3 && imported.error.contains("account 3 (a): it is the same as"))
        }
    }

    @Test func anExportWithoutServiceLeavesNoFile() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let exported = folder.path + "/exported.jsonl"
            let failed = try await command(["export", exported], on: stack, server: "127.0.0.1:1")
            #expect(failed.code != 0 && !FileManager.default.fileExists(atPath: exported), "\(failed.error)")
            #expect(try await command(["export", exported], on: stack).code == 0)
            #expect(FileManager.default.fileExists(atPath: exported))
        }
    }

    @Test func exportGoesIntoAnEmptyServiceAgain() async throws {
        let folder = try TemporaryFolder()
        let lines = (0..<40).map {
            #"{"uid":"user\#($0 + 10)","email":"u\#($0)@example.com","passwordHash":"\#(Self.bcrypt)"}"#
        }
        let file = try folder.write("users.jsonl", lines.joined(separator: "\n"))
        let exported = folder.path + "/exported.jsonl"
        let whole = try await TestStack.run { stack in
            #expect(try await command(["import", file], on: stack).code == 0)
            let whole = try await command(["export"], on: stack).text
            #expect(whole.split(separator: "\n").count == 40)
            let first = try await command(["export", exported, "--page-size", "7"], on: stack)
            #expect(first.code == 0, "\(first.error)")
            #expect(try folder.text("exported.jsonl") == whole)
            let mode = try FileManager.default.attributesOfItem(atPath: exported)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try await command(["export", exported], on: stack).code == 74, "it is never written over")
            for length in [0, 1, whole.utf8.count / 2, whole.utf8.count] {
                _ = try folder.write("exported.jsonl", String(decoding: whole.utf8.prefix(length), as: UTF8.self))
                let rest = try await command(["export", exported, "--continue"], on: stack)
                #expect(rest.code == 0, "\(rest.error)")
                #expect(try folder.text("exported.jsonl") == whole)
                let mode = try FileManager.default.attributesOfItem(atPath: exported)[.posixPermissions] as? Int
                #expect(mode == 0o600, "also of a file that others could read")
            }
            for text in ["hello\n", "hello", "hello\nworld", #"{"uid":"a"}"# + "\nhello\nworld"] {
                let foreign = try folder.write("foreign.txt", text)
                #expect(try await command(["export", foreign, "--continue"], on: stack).code == 74)
                #expect(try folder.text("foreign.txt") == text)
            }
            return whole
        }
        try await TestStack.run { stack in
            let imported = try await command(["import", exported], on: stack)
            #expect(imported.output["imported"] == 40, "\(imported.error)")
            let again = try await command(["export"], on: stack)
            #expect(again.text == whole)
        }
    }

    @Test func filesOfAnotherFormAreRefused() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            for (text, problem) in [
                ("hello", "has no accounts at byte 1"), (#"{"users":[{"uid":"a"}"#, "ends too early"),
                (#"[{"uid":"a"}"#, "ends too early"), (#"{"uid":"a""#, "ends too early"),
                (#"{"uid":"a",}"#, "account 1 of"), (#"[{"uid":"a"}]x"#, "has no accounts at byte 14"),
                (#"{"uid":""# + String(repeating: "a", count: 1 << 20) + #""}"#, "more than 1048576 bytes"),
            ] {
                let file = try folder.write("wrong", text)
                let ended = try await command(["import", file], on: stack)
                #expect(ended.code == 74 && ended.error.contains(problem), "\(text.prefix(20)): \(ended.error)")
            }
            let file = try folder.write("right", #"[{"uid":"a"}, {"uid":"b"}]"#)
            for (config, problem) in [
                ("rounds: 8", "algorithm"), ("hash_config {\n algorithm: SCRYPT\n rounds: x }", "rounds"),
                ("signer: secret", "'signer'"), ("algorithm: SCRYPT", "memoryCost"),
                ("algorithm: ROT13", "hashAlgorithm"),
            ] {
                let ended = try await command(
                    ["import", file, "--hash-config", try folder.write("config", config)], on: stack)
                #expect(ended.code != 0 && ended.error.contains(problem), "\(config): \(ended.error)")
                #expect(!ended.error.contains("secret"))
            }
            #expect(try await command(["import", file], on: stack).output["imported"] == 2)
        }
    }

    /// Hashing a password in a debug build takes many seconds while other tests hash, too.
    private static func patientClient(of stack: TestStack) -> RPCClient {
        var configuration = stack.configuration(.auth)
        configuration.timeout = .seconds(240)
        return RPCClient(configuration)
    }

    private func command(
        _ arguments: [String], on stack: TestStack, server: String? = nil
    ) async throws -> Executable.Ended {
        let environment = [
            "HATO_AUTH_SERVER": server ?? stack.announcement["auth"]?.string ?? "",
            "HATO_ADMIN_KEY_FILE": stack.announcement["adminKeyFile"]?.string ?? "",
        ]
        return try await Executable.run("hato-auth", ["users"] + arguments, environment)
    }
}
