import Foundation
import HatoModel
import Testing

/// Wrong input on the command line: each command names the wrong setting or file and the reason, and ends with the exit
/// code of protocol §8. No name of a library, a type or a source file is shown.
@Suite(.timeLimit(.minutes(10)))
struct WrongInputs {
    /// A command line in which `@` stands for the folder of the test, and its expected outcome.
    struct Case: Sendable, CustomTestStringConvertible {
        var line: String
        var code: Int32
        var words: [String]
        var testDescription: String { line }

        init(_ line: String, _ code: Int32, _ words: String...) {
            (self.line, self.code, self.words) = (line, code, words)
        }
    }

    private static let serving: [Case] = [
        Case("hato-auth serve --data /proc/nope", 78, "setting data", "/proc/nope cannot be made", "no such file"),
        Case("hato-auth serve --data @/file", 78, "setting data", "@/file is a file; give a folder"),
        Case("hato-messages serve --auth 127.0.0.1:1 --data @/file/below", 78, "setting data", "not a directory"),
        Case("hato-notifier serve --data /proc/nope", 78, "setting data", "/proc/nope cannot be made"),
        Case(
            "hato-gateway serve --outgoing-key-file @/key --trusted-proxies 10.0.0.1/8", 78,
            "setting trusted-proxies: \"10.0.0.1/8\" has bits behind its prefix: give 10.0.0.0/8, or 10.0.0.1 alone"),
        Case(
            "hato-gateway serve --outgoing-key-file @/key --trusted-proxies nginx", 78,
            "setting trusted-proxies: \"nginx\" is no IP address; give addresses and networks, e.g. 10.0.0.0/8,"),
        Case(
            "hato-gateway serve --outgoing-key-file @/key --origins chat.example.com", 78,
            "setting origins: \"chat.example.com\" is no origin; give SCHEME://HOST", "e.g. https://chat.example.com"),
        Case(
            "hato-gateway serve --outgoing-key-file @/key --api-keys ,", 78,
            "setting api-keys has no key; give e.g. AIza1,AIza2"),
        Case(
            "hato-gateway serve --outgoing-key-file @/key --namespaces old=archive,OLD=other", 78,
            "setting namespaces: \"OLD\" is there twice; give each one database, e.g. old-name=archive,other=default"),
        Case("hato-dev --data /proc/nope", 78, "setting data", "/proc/nope cannot be made"),
        Case(
            "hato-dev --ephemeral --data @/new", 78, "settings ephemeral and data (flag) contradict"),
        Case("hato-auth serve --data @/new --backup-dir @/file", 78, "setting backup-dir: @/file is a file; give"),
        Case(
            "hato-messages serve --auth 127.0.0.1:1 --data @/new --backup-dir @/file/below", 78,
            "setting backup-dir: @/file/below cannot be used: not a directory"),
        Case(
            "hato-notifier serve --auth 127.0.0.1:1 --messages 127.0.0.1:1 --data @/new --backup-dir @/file", 78,
            "setting backup-dir: @/file is a file; give a folder"),
        Case("hato-dev --ephemeral --backup-dir @/file", 78, "setting backup-dir: @/file is a file; give a folder"),
        Case("hato-auth serve --config @/none.yaml", 78, "setting config", "none.yaml cannot be read: no such file"),
        Case("hato-auth serve --config @", 78, "setting config", "is a directory"),
        Case("hato-auth serve --config @/file", 78, "names and values"),
        Case(
            "hato-auth serve --data @/new --admin-key-file @/none", 78, "setting admin-key-file", "none", "o such file",
            "make secrets"),
        Case("hato-auth serve --data @/new --admin-key-file @/foreign", 78, "is not a file", "`make secrets` makes"),
        Case(
            "hato-auth serve --data @/new --admin-key-file @/open", 78,
            "setting admin-key-file: @/open: every user may read this file (mode 0644); its owner alone should: chmod"),
        Case(
            "hato-auth serve --data @/new --tls-certificate @/open --tls-key @/open", 78,
            "setting tls-key: @/open: every user may read this file (mode 0644)"),
        Case(
            "hato-notifier serve --data @/new --peer-tls --peer-tls-certificate @/open --peer-tls-key @/open", 78,
            "setting peer-tls-key: @/open: every user may read this file (mode 0644)"),
        Case(
            "hato-notifier serve --auth 127.0.0.1:1 --messages 127.0.0.1:1 --data @/new --apps-file @/open", 78,
            "setting apps-file: @/open: every user may read this file (mode 0644); its owner alone should: chmod"),
        // A key that it names.
        Case(
            "hato-notifier serve --auth 127.0.0.1:1 --messages 127.0.0.1:1 --data @/new --apps-file @/apps", 78,
            "setting apps-file: @/open: every user may read this file (mode 0644)"),
        Case("hato-auth serve --data @/shared", 78, "setting data: other users may write in @/shared (mode 0777)"),
        Case("hato-dev --data @/shared", 78, "setting data: other users may write in @/shared (mode 0777)"),
        Case("hato-auth serve --data @/new --admin-key-file @/file", 78, "setting admin-key-file", "bytes"),
        Case(
            "hato-auth serve --data @/new --tls-certificate @/none --tls-key @/file", 78,
            "setting tls-certificate: @/none cannot be read: no such file"),
        Case(
            "hato-auth serve --data @/new --tls-certificate @/file --tls-key @/file", 78,
            "setting tls-certificate: @/file holds no certificate in PEM"),
        Case("hato-dev --ephemeral --tls-certificate @/file", 78, "unknown flag --tls-certificate"),
        Case(
            "hato-messages serve --data @/new --auth 127.0.0.1:1 --change-age-hours-max 9223372036854775807", 78,
            "change-age-hours-max"),
        Case("hato-auth serve --data @/new --idle-seconds-max 1099511627776", 78, "idle-seconds-max", "315360000"),
        Case(
            "hato-auth serve --data @/new --process-bytes-in-flight-max 20000000", 78, "setting response-bytes-max",
            "16777216", "three quarters of process-bytes-in-flight-max, which is 20000000"),
        Case("hato-auth serve --data @/new --tls-certificate @/file", 78, "tls-certificate and tls-key go together"),
        Case(
            "hato-notifier serve --data @/new --peer-tls --peer-tls-ca @/none", 78,
            "setting peer-tls-ca: @/none cannot be read: no such file"),
        Case("hato-auth serve --data @/new --port 0 --host 192.0.2.1", 74, "host", "does not have that address"),
        Case("hato-auth serve --data @/new --port 0 --host no.such.host.invalid", 74, "host is unknown"),
        Case("hato-dev --ephemeral --rules @/none", 78, "setting rules: @/none cannot be read: no such file"),
        Case(
            "hato-dev --ephemeral --rules @/wrong.json", 78, "setting rules: the rules are wrong:\n",
            "\n@/wrong.json:3:15: Unknown variable 'tr'.\n", "\n@/wrong.json:4:16: Expression must"),
        Case("hato-dev --ephemeral --slow-operation-paths all", 78, "slow-operation-paths", "shape, whole"),
        Case("hato-auth serve --data @/new --project a/b", 78, "setting project", "such as my-chat-1"),
        Case("hato-auth serve --port 70000 --data @/new", 78, "setting port", "65535"),
        Case("hato-messages serve --data @/new", 78, "setting auth is missing"),
        Case(
            "hato-auth serve --data @/new --key-encryption-file @/open", 78,
            "setting key-encryption-file: @/open: every user may read this file (mode 0644)"),
        Case(
            "hato-auth serve --data @/new --key-encryption-file @/file", 78, "setting key-encryption-file", "bytes"),
        Case(
            "hato-dev --ephemeral --key-encryption-file @/none", 78, "setting key-encryption-file: @/none",
            "o such file"),
        Case("hato-auth restore @/none --data @/new", 74, "nothing was restored", "@/none", "o such file"),
        Case("hato-auth restore @/foreign --data @/new", 74, "nothing was restored", "@/foreign is no backup"),
        Case("hato-auth restore @/foreign", 64, "--data"),
    ]

    private static let calling: [Case] = [
        Case("hato-auth health --server 127.0.0.1:1", 69, "No connection to 127.0.0.1:1", "nothing listens there"),
        Case("hato-messages get / --server localhost:1", 69, "No connection to localhost:1", "nothing listens there"),
        Case("hato-notifier health --server no.such.host.invalid:1", 69, "the host is unknown"),
        Case("hato-auth health --server 127.0.0.1:1 --wait nan", 64, "--wait is in seconds, 0 to 86400"),
        Case("hato-auth health --server 127.0.0.1:1 --wait 1e308", 64, "--wait is in seconds, 0 to 86400"),
        Case("hato-auth health --server 127.0.0.1:1 --timeout nan", 64, "--timeout is in seconds, 0 to 86400"),
        Case("hato-auth health --server nowhere", 64, "'nowhere' is no address", "HOST:PORT"),
        Case("hato-auth users list --admin-key-file @/none", 74, "administrator key file", "no such file"),
        Case("hato-auth users list --admin-key-file @", 74, "administrator key file", "is a directory"),
        Case("hato-auth health --tls-ca @/none", 74, "--tls-ca: @/none cannot be read: no such file"),
        Case("hato-auth health --tls-ca @/file", 74, "--tls-ca: @/file holds no certificate in PEM"),
        Case("hato-messages set /a @@/none", 74, "cannot read '@/none': no such file"),
        Case("hato-messages set /a {", 64, "not valid JSON"),
        Case("hato-messages rules set @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-messages import @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-messages import-chats @/none.gz", 74, "cannot read '@/none.gz': no such file"),
        Case("hato-messages import-chats @", 74, "is a directory"),
        Case("hato-notifier triggers set @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-notifier triggers set @/file", 64, "JSON"),
        Case("hato-notifier receive --host 192.0.2.1 --port 0", 74, "does not have that address"),
        Case("hato-messages backup ../x", 64, "A backup is named with"),
        Case("hato-auth refresh --refresh-token-file @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-auth refresh", 64, "no refresh token: give a file with it, or a line on stdin"),
        Case("hato-auth sign-in --email a@example.com --password secret", 64, "Unknown option '--password'"),
        Case("hato-auth users create --password secret", 64, "Unknown option '--password'"),
        Case("hato-notifier devices register http://a/ --secret-file @/none", 74, "cannot read '@/none'"),
        Case("hato-auth account get --token-file @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-auth account get --token a --token-file @/file", 64, "one of --token, --token-file and"),
        Case("hato-auth custom-token sign-in --custom-token-file @/none", 74, "cannot read '@/none': no such file"),
        Case("hato-auth custom-token sign-in --token-file @/file", 64, "no custom token: give a file with it"),
        Case("hato-auth custom-token create masuo --claims 5", 64, "--claims: give a JSON object"),
        Case("hato-auth signers set --service-account-file @/file", 64, "@/file has no JSON object with the members"),
        Case("hato-auth signers set --email a@example.com", 64, "--email and --public-key-file"),
        Case("hato-auth audit --type x", 64, "--type x: give one of signedUp, signedIn"),
        Case("hato-auth no-such-command", 64, "no-such-command"),
    ]

    @Test(arguments: serving + calling)
    func wrongInputIsNamed(wrong: Case) async throws {
        let folder = try TemporaryFolder()
        let apps = "default:\n  apns: {key-file: open, key-id: ABC1234567, team-id: DEF1234567, topic: a.b}\n"
        let none = "no key, no certificate"
        let key = String(repeating: "k", count: 40)
        let files = [("file", 0o600, none), ("open", 0o644, none), ("apps", 0o600, apps), ("key", 0o600, key)]
        for (name, mode, text) in files {
            let path = try folder.write(name, text)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        let shared = folder.path + "/shared"
        try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: shared)
        let rules = "{\n  \"rules\": {\n    \".read\": \"tr\",\n    \".write\": \"auth.uid\"\n  }\n}"
        _ = try folder.write("wrong.json", rules)
        try FileManager.default.createDirectory(atPath: folder.path + "/foreign", withIntermediateDirectories: true)
        _ = try folder.write("foreign/letter.txt", "dear diary")
        func filled(_ text: String) -> String {
            // `@@/x` is an argument that begins with an at sign of its own.
            text.replacing("@@", with: "\u{0}").replacing("@", with: folder.path).replacing(
                "\u{0}", with: "@" + folder.path)
        }
        var words = wrong.line.split(separator: " ").map { filled(String($0)) }
        let name = words.removeFirst()
        // If the input were right after all, the command would still end.
        if words.first == "serve" || name == "hato-dev" { words.append("--exit-with-stdin") }
        let ended = try await Executable.run(name, words)
        #expect(ended.code == wrong.code, "\(ended.error)")
        for words in wrong.words { #expect(ended.error.contains(filled(words)), "\(ended.error)") }
        for foreign in ["NIO", "errno", "Error Domain", "NSCocoa", "POSIX", ".swift", "Optional(", "BoringSSL"] {
            #expect(!ended.error.contains(foreign), "\(ended.error)")
        }
        #expect(ended.text.isEmpty)
    }

    @Test func aPortThatIsTakenIsNamedWithItsSetting() async throws {
        let folder = try TemporaryFolder()
        let program = try await ServingProgram("hato-auth", ["--data", "\(folder.path)/one"], in: folder)
        let port = String(program.address.split(separator: ":").last ?? "")
        let second = try await Executable.run(
            "hato-auth", ["serve", "--data", "\(folder.path)/two", "--port", port, "--exit-with-stdin"])
        #expect(second.code == 74)
        #expect(
            second.error.contains("setting port or host: cannot listen on 127.0.0.1:\(port): address already in use"))
        let metrics = try await Executable.run(
            "hato-auth",
            ["serve", "--data", "\(folder.path)/two", "--port", "0", "--metrics-port", port, "--exit-with-stdin"])
        #expect(metrics.code == 74)
        #expect(metrics.error.contains("setting metrics-port or metrics-host: cannot listen"), "\(metrics.error)")
        let others = ["--auth-port", "0", "--notifier-port", "0", "--gateway-port", "0"]
        let stack = try await Executable.run(
            "hato-dev", ["--ephemeral", "--messages-port", port, "--exit-with-stdin"] + others)
        #expect(stack.code == 74)
        #expect(stack.error.contains("setting messages-port or host: cannot listen"), "\(stack.error)")
        let folderInUse = try await Executable.run(
            "hato-auth", ["serve", "--data", "\(folder.path)/one", "--port", "0", "--exit-with-stdin"])
        #expect(folderInUse.code == 74)
        #expect(folderInUse.error.contains("is open in another process"), "\(folderInUse.error)")
        let plain = try await Executable.run("hato-auth", ["health", "--server", program.address, "--tls"])
        #expect(plain.code == 69)
        #expect(plain.error.contains("the server does not speak TLS"), "\(plain.error)")
        await program.stop()
    }

    /// The end of the file is missing, not a quotation mark.
    @Test(arguments: [["import-chats"], ["import"], ["import-chats", "--skip-bad-lines"]])
    func aTruncatedGzipFileIsNamed(command: [String]) async throws {
        let folder = try TemporaryFolder()
        let row = command == ["import"] ? #"["/a/%",1]"# : #"{"room":"r","at":1700000%,"sender":"a","text":"鳩"}"#
        let lines = (100_000..<101_000).map { row.replacing("%", with: String($0)) }
        let file = try folder.write("lines.jsonl", lines.joined(separator: "\n") + "\n")
        try folder.run("/bin/gzip", [file])
        let whole = try Data(contentsOf: URL(filePath: file + ".gz"))
        try whole.prefix(whole.count * 2 / 3).write(to: URL(filePath: file + ".gz"))
        let program = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/data", "--auth", "127.0.0.1:1"], in: folder)
        let ended = try await Executable.run(
            "hato-messages", command + [file + ".gz"],
            ["HATO_MESSAGES_SERVER": program.address, "HATO_ADMIN_KEY_FILE": "\(folder.path)/admin-key"])
        await program.stop()
        #expect(ended.code == 74)
        #expect(ended.error.contains("lines.jsonl.gz' ends too early: the gzip file was cut off"), "\(ended.error)")
        #expect(!ended.error.contains("JSON"), "\(ended.error)")
    }
}
