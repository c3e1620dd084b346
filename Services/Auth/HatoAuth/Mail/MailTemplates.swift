import Foundation
import HatoMail
import HatoModel
import Mustache

/// The texts of mails: those that come with the service, and those of a folder in place of them.
///
/// A template is in Mustache. Its first line is the subject; the text of the mail follows after an empty line. The
/// folder has a folder for each language with a file for each text: `ja/passwordReset.mustache`. Languages and texts
/// that it lacks are those of the service.
struct MailTemplates: Sendable {
    /// What a template may show.
    struct Values: Sendable {
        /// The name of the app, from the setting `mail-from`.
        var app: String
        var email: String
        var newEmail: String?
        /// The address that `newEmail` replaces.
        var oldEmail: String?
        var digits: String?
        /// For how many minutes the digits are valid.
        var minutes: Int64
        /// The long form; only of types without digits.
        var code: String?
        var link: String?

        fileprivate var context: [String: Any] {
            var context: [String: Any] = ["app": app, "email": email, "minutes": String(minutes)]
            context["newEmail"] = newEmail
            context["oldEmail"] = oldEmail
            context["digits"] = digits
            context["code"] = code
            context["link"] = link
            return context
        }
    }

    struct Text: Sendable, Hashable {
        var subject: String
        var body: String
    }

    static let fallback = "en"
    private static let (fileBytesMax, languagesMax) = (64 << 10, 100)

    private var templates: [String: [MailText: MustacheTemplate]] = [:]
    /// What operators should know about the folder.
    private(set) var warnings: [String] = []

    /// The texts of the service, and in their place those of `folder`. Throws `MailFieldError` for a file that is no
    /// template, or that does not show the code.
    init(folder: String? = nil) throws {
        for (language, texts) in [("en", MailTexts.english), ("ja", MailTexts.japanese)] {
            for (name, text) in texts { try add(text, name, language, from: "the text \(language)/\(name.rawValue)") }
        }
        guard let folder else { return }
        let languages = try? FileManager.default.contentsOfDirectory(atPath: folder)
        guard let languages, languages.count <= Self.languagesMax else {
            throw MailFieldError(
                "mail-templates", "names a folder that cannot be read, or has too many files: \(folder)")
        }
        for language in languages.sorted() {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(language)")) ?? []
            let locale = MailLocale(language)?.languages.first
            let names = locale == nil ? [] : MailText.allCases.filter { files.contains($0.file) }
            let isMisnamed = files.contains { file in
                file.hasSuffix(".mustache") && !names.contains { $0.file == file }
            }
            if isMisnamed || locale != nil && names.isEmpty {
                let words = "has no text, or a file that is none; texts are named as in ja/\(MailText.signIn.file)"
                warnings.append("setting mail-templates: \(folder)/\(language) \(words)")
            }
            guard let locale else { continue }
            for name in names {
                let path = "\(folder)/\(language)/\(name.file)"
                guard let data = FileManager.default.contents(atPath: path), data.count <= Self.fileBytesMax,
                    let text = String(data: data, encoding: .utf8)
                else {
                    throw MailFieldError(
                        "mail-templates", "has a file that is not text of at most \(Self.fileBytesMax) bytes: \(path)")
                }
                try add(text, name, locale, from: path)
            }
        }
    }

    private mutating func add(_ text: String, _ name: MailText, _ language: String, from path: String) throws {
        func problem(_ text: String) -> MailFieldError { MailFieldError("mail-templates", "\(path): \(text)") }
        let template: MustacheTemplate
        // Not HTML: nothing is escaped.
        do { template = try MustacheTemplate(string: "{{% CONTENT_TYPE:TEXT}}" + text) } catch {
            throw problem("the file is no Mustache template")
        }
        let hasDigits = CodeLifetimes.hasDigits(name.type)
        let sample = Values(
            app: "App", email: "a@example.com", newEmail: "b@example.com", digits: hasDigits ? "123456" : nil,
            minutes: 10, code: hasDigits ? nil : "a-long-code", link: nil)
        guard let rendered = Self.render(template, sample) else {
            throw problem("the first line should be the subject, the second one empty")
        }
        guard rendered.body.contains(hasDigits ? "123456" : "a-long-code") else {
            throw problem("it should show {{\(hasDigits ? "digits" : "code")}}")
        }
        templates[language, default: [:]][name] = template
    }

    /// The text of a mail in a language; where there is none in it that in the one of `mailLocale`, then in English.
    func text(
        _ name: MailText, locale: String, mailLocale: String = fallback, _ values: Values
    ) throws -> Text {
        let languages = [locale, mailLocale, Self.fallback].lazy.flatMap { MailLocale($0)?.languages ?? [] }
        let template = languages.compactMap { templates[$0]?[name] }.first
        guard let template, let text = Self.render(template, values) else {
            throw MailFieldError("mail-templates", "has no text for \(name.rawValue)")
        }
        return text
    }

    /// Nil without a subject.
    private static func render(_ template: MustacheTemplate, _ values: Values) -> Text? {
        let lines = template.render(values.context).split(separator: "\n", omittingEmptySubsequences: false)
        let subject = lines.first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
        guard !subject.isEmpty, lines.count > 2, lines[1].allSatisfy(\.isWhitespace) else { return nil }
        return Text(subject: subject, body: lines.dropFirst(2).joined(separator: "\n"))
    }
}

extension MailText {
    fileprivate var file: String { "\(rawValue).mustache" }
}

/// The language of a mail, as requests name it: `ja`, `en-GB`, `zh_Hant`.
struct MailLocale: Sendable, Hashable {
    let text: String

    /// Nil for what is none.
    init?(_ text: String) {
        let isLocale =
            (2...35).contains(text.utf8.count)
            && text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "-" || $0 == "_" }).allSatisfy {
                (1...8).contains($0.utf8.count) && $0.utf8.allSatisfy(Self.isLetterOrDigit)
            }
        guard isLocale else { return nil }
        self.text = text
    }

    /// Throws `AuthError.invalidFields` for a parameter that is none.
    static func check(_ locale: String?) throws(AuthError) {
        guard let locale, MailLocale(locale) == nil else { return }
        throw .invalidFields([
            FieldProblem("locale", "INVALID_LOCALE", "The locale should be a language such as ja or en-GB")
        ])
    }

    /// In the order in which texts are looked for: `zh-hant-tw`, `zh-hant`, `zh`.
    var languages: [String] {
        let subtags = text.lowercased().split { $0 == "-" || $0 == "_" }
        return subtags.indices.reversed().map { subtags[...$0].joined(separator: "-") }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
