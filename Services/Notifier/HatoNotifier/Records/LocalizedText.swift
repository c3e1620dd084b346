import HatoModel

extension NotificationRecord {
    /// The text for a device with this locale: that of the locale, else of its language, else the common one.
    func text(for locale: String?) -> Notifier.NotificationText {
        guard let locale, let localized, !localized.isEmpty else { return text }
        let texts = localized.sorted { $0.key < $1.key }
        var tag = NotificationRecord.tag(locale)[...]
        // `zh-hant-tw`, then `zh-hant`, then `zh` (RFC 4647, lookup).
        while !tag.isEmpty {
            if let found = texts.first(where: { NotificationRecord.tag($0.key) == tag }) { return found.value }
            tag = tag[..<(tag.lastIndex(of: "-") ?? tag.startIndex)]
        }
        return text
    }

    /// `ja_JP` and `ja-jp` are the same.
    private static func tag(_ locale: String) -> String {
        locale.lowercased().replacing("_", with: "-")
    }
}
