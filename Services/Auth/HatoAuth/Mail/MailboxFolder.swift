import Foundation
import HatoIdentity
import HatoMail
import HatoModel

/// A folder that gets mails instead of a server, one file each, which only the user of the service reads.
///
/// The name of a file is the time of the mail in milliseconds and its id: the order of the names is that of the mails.
/// The newest `countMax` are kept. Other files in the folder are left alone.
struct MailboxFolder: MailDestination {
    private static let suffix = ".json"

    let path: String
    let countMax: Int

    /// Makes the folder, readable by its owner alone, if it does not exist. Throws `MailFieldError`.
    init(_ path: String, countMax: Int = 1_000) throws {
        self.path = path
        self.countMax = countMax
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw MailFieldError("mailbox", "names a folder that cannot be made: \(path)")
        }
        guard FileManager.default.isWritableFile(atPath: path) else {
            throw MailFieldError("mailbox", "names a folder that cannot be written: \(path)")
        }
    }

    func send(_ mail: ComposedMail) async -> MailOutcome {
        do {
            try SecretFile.replace("\(path)/\(Self.name(of: mail))\(Self.suffix)", with: mail.entry.json.encoded)
            for name in try names().dropLast(countMax) {
                try FileManager.default.removeItem(atPath: "\(path)/\(name)\(Self.suffix)")
            }
            return .accepted
        } catch {
            return .temporary(
                MailFailure(step: .content, text: "the mailbox folder cannot be written", concernsServer: true))
        }
    }

    func close() async {}

    /// The mails after the one with this name, the oldest first, and their names.
    func mails(to address: String?, after name: String?, limit: Int) throws -> [(name: String, mail: Auth.Mailbox.Mail)]
    {
        var mails: [(name: String, mail: Auth.Mailbox.Mail)] = []
        for each in try names() where name.map({ each > $0 }) ?? true {
            // It may have been deleted for a newer one meanwhile.
            guard let bytes = try? SecretFile.read("\(path)/\(each)\(Self.suffix)").bytes,
                let json = try? JSONParser.parse(bytes),
                let mail = try? Auth.Mailbox.Mail(json: json, unknown: .ignored)
            else { continue }
            if address == nil || address == mail.to { mails.append((each, mail)) }
            if mails.count == limit { break }
        }
        return mails
    }

    private static func name(of mail: ComposedMail) -> String {
        let time = String(max(0, mail.entry.time))
        return String(repeating: "0", count: max(0, 13 - time.utf8.count)) + "\(time)-\(mail.message.id)"
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path)
            .filter { $0.hasSuffix(Self.suffix) }.map { String($0.dropLast(Self.suffix.count)) }
            .filter(Self.isName).sorted()
    }

    /// Whether a file has a name as `name(of:)` makes them.
    private static func isName(_ name: String) -> Bool {
        guard let hyphen = name.firstIndex(of: "-"), MailRecord.id(named: String(name[hyphen...].dropFirst())) != nil
        else { return false }
        let time = name[..<hyphen].utf8
        return time.count >= 13 && time.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
