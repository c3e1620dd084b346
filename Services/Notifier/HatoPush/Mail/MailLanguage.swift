/// A language in which e-mails say what is not in the notifications.
enum MailLanguage: String, CaseIterable, Sendable {
    case english = "en"
    case japanese = "ja"

    /// Nil for a locale of another language. `ja_JP` and `ja-jp` are the same.
    init?(_ locale: String) {
        self.init(rawValue: locale.lowercased().prefix { $0 != "-" && $0 != "_" }.description)
    }

    /// Above the texts of an e-mail that does not have all.
    ///
    /// - Parameter isAtLeast: there may be more than were counted.
    func more(_ count: Int, isAtLeast: Bool) -> String {
        switch self {
        case .english where isAtLeast: "At least \(count) earlier notifications are not shown."
        case .english where count == 1: "One earlier notification is not shown."
        case .english: "\(count) earlier notifications are not shown."
        case .japanese: "これより前の通知\(count)件\(isAtLeast ? "以上" : "")は省略しました。"
        }
    }

    /// In place of notifications whose words no e-mail may show.
    func new(_ count: Int, isAtLeast: Bool) -> String {
        switch self {
        case .english where isAtLeast: "At least \(count) new messages"
        case .english: count == 1 ? "New message" : "\(count) new messages"
        case .japanese where isAtLeast: "新着メッセージ\(count)件以上"
        case .japanese: count == 1 ? "新着メッセージ" : "新着メッセージ\(count)件"
        }
    }
}
