import HatoModel

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
        switch platform {
        case .apns: return Self.isShown(aps: platforms?.apns?["aps"])
        case .fcm:
            let message = platforms?.fcm
            return message?["notification"]?.object != nil || message?["android"]?["notification"]?.object != nil
                || message?["webpush"]?["notification"]?.object != nil
                || Self.isShown(aps: message?["apns"]?["payload"]?["aps"])
        case .webpush:
            let notification = platforms?.webpush?["notification"]
            return notification?["title"] != nil || notification?["body"] != nil
        case .webhook, .email: return false
        }
    }

    private static func isShown(aps: JSONValue?) -> Bool { aps?["alert"] != nil || aps?["sound"] != nil }
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
