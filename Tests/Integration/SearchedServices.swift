import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// The three services, each with its own data folder and keys in files outside of it, and everything that they keep,
/// log and show.
final class SearchedServices {
    static let pepper = "pepper-of-the-search-0123456789abcdef"
    static let encryptionKey = "encryption-key-of-the-search-0123456789"
    static let messagesKey = "messages-key-of-the-search-0123456789"
    static let notifierKey = "notifier-key-of-the-search-0123456789"

    /// A file, a log or a page, with what stands in it.
    typealias Text = (name: String, bytes: Data)

    let auth: ServingProgram
    let messages: ServingProgram
    let notifier: ServingProgram
    private let folder: TemporaryFolder

    init() async throws {
        let folder = try TemporaryFolder()
        func secret(_ name: String, _ text: String) throws -> String {
            let file = try folder.write(name, text)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
            return file
        }
        func data(_ service: String) -> [String] {
            // Without zeros written ahead, the files are short.
            ["--data", "\(folder.path)/\(service)-data", "--log-level", "trace", "--prepared-log-bytes", "0"]
        }
        let callers = """
            - {name: messages, key: \(Self.messagesKey), methods: [auth.follow, auth.unfollow, auth.users.list]}
            - {name: notifier, key: \(Self.notifierKey), methods: [auth.follow, auth.unfollow, auth.sessions.list]}
            """
        let readers = "- {name: notifier, key: \(Self.notifierKey), methods: [messages.follow, messages.unfollow]}"
        auth = try await ServingProgram(
            "hato-auth",
            data("auth") + [
                "--scrypt-log-n", "4", "--pepper-file", try secret("pepper", Self.pepper), "--key-encryption-file",
                try secret("encryption-key", Self.encryptionKey), "--service-keys-file",
                try secret("auth-callers", callers), "--mailbox", "\(folder.path)/mails", "--action-url",
                "https://chat.example.com/account", "--code-pause-ms", "0", "--codes-per-hour-max", "0", "--backup-dir",
                "\(folder.path)/auth-backups",
            ], in: folder)
        messages = try await ServingProgram(
            "hato-messages",
            data("messages") + [
                "--auth", auth.address, "--outgoing-key-file", try secret("messages-key", Self.messagesKey),
                "--service-keys-file", try secret("messages-callers", readers), "--profiles", "default:/users/{uid}",
            ], in: folder)
        notifier = try await ServingProgram(
            "hato-notifier",
            data("notifier") + [
                "--auth", auth.address, "--messages", messages.address, "--outgoing-key-file",
                try secret("notifier-key", Self.notifierKey), "--allow-private-webhooks", "true",
            ], in: folder)
        self.folder = folder
    }

    private var all: [(name: String, program: ServingProgram)] {
        [("auth", auth), ("messages", messages), ("notifier", notifier)]
    }

    func stop() async {
        for (_, program) in all.reversed() { await program.stop() }
    }

    // MARK: What there is to search

    /// The files of each data folder and of the backups, and the logs.
    func files() throws -> [Text] {
        var texts = try all.flatMap { try Self.files(below: "\(folder.path)/\($0.name)-data") }
        texts += try Self.files(below: "\(folder.path)/auth-backups")
        for (name, program) in all { texts.append(("log of \(name)", Data(program.log.utf8))) }
        return texts
    }

    /// The mails, which are outside of the data folders, have the codes.
    func mails() throws -> [Text] { try Self.files(below: "\(folder.path)/mails") }

    /// Metrics, settings, health and the audit, as administrators see them.
    func pages() async throws -> [Text] {
        var texts: [Text] = []
        for (name, program) in all {
            let client = try program.client()
            texts.append(("metrics of \(name)", Data(try await client.call(Service.Metrics()).text.utf8)))
            for method in ["service.config", "service.health"] {
                texts.append(("\(method) of \(name)", Data(try await client.call(method: method).encoded)))
            }
            await client.close()
        }
        let client = try auth.client()
        texts.append(("audit", Data(try await client.call(method: "auth.audit.list", params: ["limit": 1000]).encoded)))
        await client.close()
        return texts
    }

    static func files(below folder: String) throws -> [Text] {
        guard FileManager.default.fileExists(atPath: folder) else { return [] }
        return try FileManager.default.subpathsOfDirectory(atPath: folder).compactMap { name in
            FileManager.default.contents(atPath: "\(folder)/\(name)").map { ("\(folder)/\(name)", $0) }
        }
    }
}

/// Secrets, in each form in which a file may hold them.
struct KnownSecrets {
    private(set) var needles: [(name: String, bytes: [UInt8])] = []
    /// Codes of a few digits, which stand inside of longer numbers by chance.
    private(set) var digits: [(name: String, text: String)] = []

    mutating func add(_ name: String, _ text: String) { needles.append((name, Array(text.utf8))) }

    /// As the text that it is, and as the bytes that it encodes, without what stands in front of the secret part.
    mutating func add(_ name: String, encoded text: String, secretBytes: Int) {
        add(name, text)
        guard let bytes = Base64.url.decode(text.utf8) else { return }
        needles.append(("bytes of \(name)", Array(bytes.suffix(secretBytes))))
    }

    /// A token of three parts: the last one makes it valid.
    mutating func add(_ name: String, token: String) {
        add(name, String(token.split(separator: ".").last ?? ""))
    }

    mutating func add(_ name: String, _ session: Auth.Session) {
        add("ID token of \(name)", token: session.idToken)
        add("refresh token of \(name)", encoded: session.refreshToken, secretBytes: 32)
    }

    mutating func add(_ name: String, digits text: String) { digits.append((name, text)) }

    var names: Set<String> { Set(needles.map(\.name) + digits.map(\.name)) }

    /// The names of those that stand in one of the texts, and where.
    func found(in texts: [SearchedServices.Text]) -> [(name: String, place: String)] {
        texts.flatMap { text in
            let needles = needles.filter { text.bytes.range(of: Data($0.bytes)) != nil }.map(\.name)
            let digits = digits.filter { Self.hasNumber($0.text, text.bytes) }.map(\.name)
            return (needles + digits).map { ($0, text.name) }
        }
    }

    /// Whether the digits stand there, and neither before nor behind them another one.
    private static func hasNumber(_ digits: String, _ bytes: Data) -> Bool {
        var rest = bytes[...]
        while let range = rest.range(of: Data(digits.utf8)) {
            let (before, after) = (bytes[..<range.lowerBound].last, bytes[range.upperBound...].first)
            let isInside = [before, after].contains { byte in
                byte.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
            }
            if !isInside { return true }
            rest = bytes[range.upperBound...]
        }
        return false
    }
}
