import HatoModel
import HatoPush

/// What decides whether a notification shows something on a device; one that does not is a silent push, which no
/// preference and no pace concerns.
struct ShownContent {
    var text: Notifier.NotificationText
    var localized: [String: Notifier.NotificationText]?
    var platforms: Notifier.PlatformMembers?
    var content: Notifier.ContentChoice?

    /// Texts, or members of the platform's own that show something: texts that the app has itself among them.
    func isShown(on platform: Notifier.Platform) -> Bool {
        if !text.isEmpty || localized?.values.contains(where: { !$0.isEmpty }) == true { return true }
        // Phones say that there is something, whatever it is.
        if content == .ids, platform.showsUser { return true }
        return platforms?.isShown(on: platform) == true
    }
}

extension Notifier.Platform {
    /// Whether its devices take pushes that show nothing. Browsers show a text of their own for such a push, or end the
    /// subscription after some of them; and an e-mail without a text is none.
    var takesSilentPushes: Bool {
        switch self {
        case .apns, .fcm, .webhook: true
        case .webpush, .email: false
        }
    }
}

extension NewNotification {
    var shown: ShownContent {
        ShownContent(text: text, localized: localized, platforms: platforms, content: content)
    }
}

extension NotificationRecord {
    var shown: ShownContent {
        ShownContent(text: text, localized: localized, platforms: platforms, content: contentChoice)
    }
}
