import HatoMail
import HatoModel

/// The e-mail of one delivery: subject and text of its notification, or of all that a digest gathers.
///
/// Texts of users never become headers other than the subject, which has no line breaks. The `Message-ID` is made of
/// the id of the delivery, so that a repetition is known as one.
struct MailRequest: Sendable {
    let message: MailMessage

    /// Of a subject, without the number behind it.
    private static let subjectBytesMax = 600
    /// Of all texts of a digest but the newest one, which is always there.
    private static let textsBytesMax = 64 << 10

    /// Where no notification has a text in the language of the mailbox, it says that there is something new. Throws
    /// `MailFieldError` when there is none, or a text is too long.
    init(_ delivery: Delivery, to mailbox: Mailbox, from credentials: MailCredentials) throws(MailFieldError) {
        let content = delivery.content
        var digest =
            content.digest
            ?? DeliveryContent.Digest(entries: [.init(text: content.text, link: content.appearance.link)])
        if content.digest == nil, content.neutralText != nil { (digest.entries, digest.withheld) = ([], 1) }
        let (entries, left) = Self.fitted(digest.entries)
        let language = digest.locale.flatMap { MailLanguage($0) } ?? credentials.language
        var others = digest.more + left + digest.withheld
        let (subject, text): (String, String)
        if let newest = entries.first, let title = Self.subject(newest.text) {
            others += entries.count - 1
            let count = others == 0 ? "" : " (+\(others)\(digest.isAtLeast ? "…" : ""))"
            let texts = others == 0 ? Self.text(of: newest) : Self.text(of: entries)
            let left = left + digest.more
            let lines = [
                left > 0 ? language.more(left, isAtLeast: digest.isAtLeast) : nil,
                digest.withheld > 0 ? language.new(digest.withheld, isAtLeast: false) : nil, texts,
            ]
            (subject, text) = (title + count, lines.compactMap(\.self).joined(separator: "\n\n"))
        } else {
            if content.digest != nil { others += digest.entries.count }
            guard others > 0 else { throw MailFieldError("text", "is missing") }
            subject = language.new(others, isAtLeast: digest.isAtLeast)
            text = subject + "\n"
        }
        message = try MailMessage(
            from: credentials.from, to: mailbox.mail, subject: subject, text: text, id: delivery.id,
            time: delivery.createdAt)
    }

    /// The newest entries that have a text, and how many of the others have one.
    private static func fitted(
        _ entries: [DeliveryContent.Digest.Entry]
    ) -> (entries: [DeliveryContent.Digest.Entry], left: Int) {
        let entries = entries.filter { Self.subject($0.text) != nil }
        var bytes = 0
        let fitting = entries.enumerated().prefix { index, entry in
            bytes += text(of: [entry]).utf8.count
            return index == 0 || bytes <= textsBytesMax
        }
        return (fitting.map(\.element), entries.count - fitting.count)
    }

    /// The title, or the first line of the body, on one line. Nil without a text.
    private static func subject(_ text: Notifier.NotificationText) -> String? {
        for text in [text.title, text.body] {
            guard let words = text.map(line), !words.isEmpty else { continue }
            return TextCutting.cut(words) { $0.utf8.count <= subjectBytesMax }
        }
        return nil
    }

    /// Its words with one space between them: no control character is left.
    private static func line(_ text: String) -> String {
        text.unicodeScalars.split { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator: true
            default: false
            }
        }.map { String($0) }.joined(separator: " ")
    }

    /// The title is the subject.
    private static func text(of entry: DeliveryContent.Digest.Entry) -> String {
        let body = entry.text.body.flatMap { $0.isEmpty ? nil : $0 } ?? entry.text.title ?? ""
        return [body, entry.link].compactMap(\.self).joined(separator: "\n\n") + "\n"
    }

    /// The oldest first, as they came; a title that was there already is not repeated.
    private static func text(of entries: [DeliveryContent.Digest.Entry]) -> String {
        var (paragraphs, lastTitle): ([String], String?) = ([], nil)
        for entry in entries.reversed() {
            var lines: [String] = []
            if let title = entry.text.title, !title.isEmpty, title != lastTitle { lines.append(title) }
            if let body = entry.text.body, !body.isEmpty { lines.append(body) }
            // The same once more is something new, too.
            if lines.isEmpty, let title = entry.text.title { lines.append(title) }
            if let link = entry.link { lines.append(link) }
            lastTitle = entry.text.title
            paragraphs.append(lines.joined(separator: "\n"))
        }
        return paragraphs.joined(separator: "\n\n") + "\n"
    }
}
