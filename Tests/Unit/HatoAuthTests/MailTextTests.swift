import Foundation
import HatoMail
import HatoModel
import Testing

@testable import HatoAuth

/// What mails say, where they come from, and the folder that gets them in place of a server.
@Suite(.timeLimit(.minutes(10)))
struct MailTextTests {
    /// A folder of its own, deleted after `body`.
    private func inFolder<Outcome>(_ body: (String) async throws -> Outcome) async throws -> Outcome {
        let path = URL.temporaryDirectory.appending(path: "hato-mail-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }

    private func values(_ change: (inout MailTemplates.Values) -> Void = { _ in }) -> MailTemplates.Values {
        var values = MailTemplates.Values(app: "Chat & Co", email: "masuo@example.com", digits: "012345", minutes: 10)
        change(&values)
        return values
    }

    @Test(arguments: MailText.allCases)
    func everyTypeHasATextInBothLanguages(name: MailText) throws {
        let type = name.type
        #expect(MailText(type) == name || name == .accountExists)
        let templates = try MailTemplates()
        let values = values {
            $0.newEmail = "fuguta@example.com"
            if !CodeLifetimes.hasDigits(type) { ($0.digits, $0.code) = (nil, "the-long-code") }
        }
        let (english, japanese) = (
            try templates.text(name, locale: "en", values), try templates.text(name, locale: "ja", values)
        )
        #expect(english != japanese)
        for text in [english, japanese] {
            #expect(text.body.contains(CodeLifetimes.hasDigits(type) ? "\n012345\n" : "\nthe-long-code\n"))
            #expect(text.body.contains("Chat & Co") && !text.body.contains("{{") && !text.body.contains("http"))
            #expect(!text.body.contains("\n\n\n"), "\(text.body)")
        }
    }

    /// The digits are over when the mail is sent late.
    @Test(arguments: MailText.allCases.filter { CodeLifetimes.hasDigits($0.type) })
    func withoutDigitsTheTextNamesTheLinkAlone(name: MailText) throws {
        let templates = try MailTemplates()
        let values = values {
            ($0.digits, $0.link) = (nil, "https://chat.example.com/a")
            $0.newEmail = "fuguta@example.com"
        }
        for (locale, number, or) in [("en", "number", "Or "), ("ja", "番号を入力", "または、")] {
            let body = try templates.text(name, locale: locale, values).body
            #expect(!body.contains(number) && !body.contains(or) && body.contains("\nhttps://chat.example.com/a\n"))
            #expect(!body.contains("\n\n\n") && !body.contains("10"), "\(body)")
        }
    }

    @Test func theLocaleChoosesTheLanguage() throws {
        let templates = try MailTemplates()
        func subject(_ locale: String) throws -> String {
            try templates.text(.passwordReset, locale: locale, values()).subject
        }
        for locale in ["ja", "JA", "ja-JP", "ja_JP"] { #expect(try subject(locale) == "パスワードの再設定", "\(locale)") }
        for locale in ["en", "en-GB", "fr", "jav", ""] {
            #expect(try subject(locale) == "Set a new password", "\(locale)")
        }
        for wrong in ["", "j", "ja-", "ja JP", "../ja", "日本", String(repeating: "a", count: 9)] {
            #expect(MailLocale(wrong) == nil, "\(wrong)")
        }
    }

    @Test func aFolderReplacesTexts() async throws {
        try await inFolder { folder in
            for language in ["ja", "fr"] {
                try FileManager.default.createDirectory(
                    atPath: "\(folder)/\(language)", withIntermediateDirectories: true)
            }
            try "サザエさんから\n\n{{digits}} <{{email}}>{{#link}} {{link}}{{/link}}"
                .write(toFile: "\(folder)/ja/signIn.mustache", atomically: true, encoding: .utf8)
            try "Code : {{digits}}\n\n{{digits}}"
                .write(toFile: "\(folder)/fr/signIn.mustache", atomically: true, encoding: .utf8)
            let templates = try MailTemplates(folder: folder)
            let text = try templates.text(.signIn, locale: "ja", values { $0.link = "https://example.com/?a=1&b=2" })
            #expect(text.subject == "サザエさんから")
            #expect(text.body == "012345 <masuo@example.com> https://example.com/?a=1&b=2", "nothing is escaped")
            #expect(try templates.text(.signIn, locale: "fr-CA", values()).subject == "Code : 012345")
            #expect(try templates.text(.passwordReset, locale: "fr", values()).subject == "Set a new password")
        }
    }

    @Test func languagesAreLookedForFromTheNarrowestToTheServersOwn() async throws {
        try await inFolder { folder in
            for language in ["zh-Hant", "fr", "de", "notes.d"] {
                try FileManager.default.createDirectory(
                    atPath: "\(folder)/\(language)", withIntermediateDirectories: true)
            }
            for file in ["zh-Hant/signIn", "fr/signin", "notes.d/signIn"] {
                try "\(file)\n\n{{digits}}".write(
                    toFile: "\(folder)/\(file).mustache", atomically: true, encoding: .utf8)
            }
            let templates = try MailTemplates(folder: folder)
            func subject(_ name: MailText, _ locale: String, _ mailLocale: String) throws -> String {
                try templates.text(name, locale: locale, mailLocale: mailLocale, values()).subject
            }
            #expect(try subject(.signIn, "zh_Hant_TW", "ja") == "zh-Hant/signIn")
            #expect(try subject(.passwordReset, "zh-Hant-TW", "ja-JP") == "パスワードの再設定")
            #expect(try subject(.signIn, "zh", "zh-Hant") == "zh-Hant/signIn")
            #expect(try subject(.passwordReset, "fr", "fr") == "Set a new password")
            let configuration = try MailConfiguration {
                ["mailbox": "\(folder)/mails", "mail-templates": folder][$0]
            }
            // Each names its folder.
            let warnings = try #require(configuration).warnings
            #expect(warnings.count == 3, "\(warnings)")
            for (warning, language) in zip(warnings, ["de", "fr", "notes.d"]) {
                #expect(warning.contains("\(folder)/\(language) "), "\(warning)")
            }
        }
    }

    @Test(arguments: [
        "Subject\nno empty line {{digits}}", "\n\n{{digits}}", "Subject\n\nwithout the code", "Subject\n\n{{#digits}}",
        "Subject\n\n{{digits", "Subject",
    ])
    func aWrongTemplateStopsTheStartAndIsNamed(text: String) async throws {
        try await inFolder { folder in
            try FileManager.default.createDirectory(atPath: "\(folder)/ja", withIntermediateDirectories: true)
            let path = "\(folder)/ja/signIn.mustache"
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            let error = #expect(throws: MailFieldError.self) { try MailTemplates(folder: folder) }
            #expect(error?.description.hasPrefix("mail-templates \(path)") == true, "\(text)")
        }
    }

    // MARK: Settings

    private static let wrongSettings: [([String: String], String)] = [
        (["mail-from": "a@example.com"], "mail-from"), (["mail-password-file": "/x"], "mail-password-file"),
        (["mail-authority-file": "/x"], "mail-authority-file"),
        (["mail-url": "smtp://mail.example.com"], "mail-from"),
        (["mail-url": "smtp://mail.example.com", "mail-from": "x"], "mail-from"),
        (["mail-url": "http://mail.example.com", "mail-from": "a@example.com"], "mail-url"),
        (["mail-url": "smtp://mail.example.com", "mail-from": "a@example.com", "mail-tls": "none"], "mail-tls"),
        (["mail-url": "smtp://u@mail.example.com", "mail-from": "a@example.com"], "mail-password-file"),
        (["mail-url": "smtp://mail.example.com", "mailbox": "/tmp", "mail-from": "a@example.com"], "mailbox"),
        (["mailbox": "/dev/null/x"], "mailbox"), (["mailbox": "/tmp", "mail-templates": "/no/such"], "mail-templates"),
        (["action-url": "http://example.com/"], "action-url"),
    ]

    @Test(arguments: wrongSettings.indices)
    func wrongSettingsAreNamed(index: Int) throws {
        let (settings, name) = Self.wrongSettings[index]
        var configuration = AuthConfiguration()
        let error = #expect(throws: MailFieldError.self) { _ = try configuration.setMail { settings[$0] } }
        #expect(error?.field == name, "\(settings)")
    }

    @Test func thePasswordComesFromAFileOfItsOwner() async throws {
        try await inFolder { folder in
            let path = "\(folder)/password"
            try "opensesame\n".write(toFile: path, atomically: true, encoding: .utf8)
            let settings = [
                "mail-url": "smtps://hato@mail.example.com", "mail-from": "Chat <chat@example.com>",
                "mail-password-file": path,
            ]
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            let open = #expect(throws: MailFieldError.self) { _ = try MailConfiguration { settings[$0] } }
            #expect(open?.field == "mail-password-file")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            let configuration = try #require(try MailConfiguration { settings[$0] })
            #expect(configuration.from.displayName == "Chat" && configuration.from.text == "chat@example.com")
            #expect(!"\(configuration)".contains("opensesame"))
        }
    }

    // MARK: The folder

    @Test func aFolderGetsTheMailsInPlaceOfAServer() async throws {
        try await inFolder { folder in
            let bench = try await AuthBench.open { configuration in
                do { _ = try configuration.setMail { $0 == "mailbox" ? "\(folder)/mails" : nil } } catch {
                    Issue.record(error)
                }
                configuration.limits.codePauseMs = 0
            }
            _ = try await bench.signUp("masuo@example.com")
            for type in [Auth.CodeType.passwordReset, .signIn] {
                try await bench.request(type, "masuo@example.com")
                try await bench.request(.signIn, "\(type.rawValue)@example.com")
                bench.pass(seconds: 1)
                try await bench.sendMails()
            }
            let list = Auth.Mailbox.List(to: "Masuo@example.com")
            let mails = try await bench.service.mails.mailbox(list).mails
            #expect(mails.map(\.type) == [.passwordReset, .signIn])
            _ = try await bench.apply(
                try #require(mails[0].digits), "masuo@example.com", newPassword: "isono-namihei-san")
            let names = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/mails")
            #expect(names.count == 4)
            for name in names {
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/mails/\(name)")
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            }
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/mails")[.posixPermissions] as? Int
            #expect(mode == 0o700)
            var page = Auth.Mailbox.List()
            page.limit = 3
            let first = try await bench.service.mails.mailbox(page)
            page.after = first.after
            let second = try await bench.service.mails.mailbox(page)
            #expect(first.mails.count == 3 && second.mails.count == 1 && second.after == nil)
        }
    }

    @Test func theFolderKeepsTheNewestMails() async throws {
        try await inFolder { path in
            let folder = try MailboxFolder(path, countMax: 3)
            let foreign = ["package.json", "0-0.json", "0000000000000-notes.json"]
            for name in foreign {
                try "not a mail".write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
            }
            let from = try MailAddress("chat@example.com", field: "from")
            for index in 0..<5 {
                var entry = Auth.Mailbox.Mail(to: "a@example.com", type: .signIn, code: "\(index)")
                entry.time = Int64(index)
                let id = Base64.url.encode([UInt8](repeating: UInt8(index), count: MailRecord.idBytes))
                let message = try MailMessage(from: from, to: from, subject: "", text: "", id: id, time: 0)
                #expect(await folder.send(ComposedMail(message: message, entry: entry)) == .accepted)
            }
            #expect(try folder.mails(to: nil, after: nil, limit: 10).map(\.mail.code) == ["2", "3", "4"])
            let left = try FileManager.default.contentsOfDirectory(atPath: path)
            #expect(left.count == 6 && foreign.allSatisfy(left.contains))
        }
    }

    @Test func withoutAFolderThereIsNoMailbox() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher())
        let error = await wireError { try await bench.service.mails.mailbox(Auth.Mailbox.List()) }
        #expect(error?.reason == "mailbox_not_configured" && error?.code == .failedPrecondition)
    }
}
