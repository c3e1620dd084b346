import HatoModel

extension NotificationRecord {
    /// The text for a device with this locale: that of the locale, else of its language, else the common one.
    func text(for locale: String?) -> Notifier.NotificationText {
        guard let locale, let localized else { return text }
        return LocaleTag.find(locale, in: localized) ?? text
    }
}
