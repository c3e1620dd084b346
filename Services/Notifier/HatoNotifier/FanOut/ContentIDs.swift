import HatoModel
import HatoPush

extension RequestChecks {
    /// Members of a platform's own may hold words.
    func content(_ content: Notifier.ContentChoice?, _ platforms: Notifier.PlatformMembers?) throws(RPCError) {
        guard content == .ids, platforms != nil else { return }
        throw .invalidArgument(
            "platforms", reason: "invalid_platform_member",
            "platforms may hold words that content: \"ids\" keeps from providers; give one of the two")
    }
}

extension DeliveryContent {
    /// The same without what it says: the app gets the id of the notification and its source, and reads the rest there.
    func idsOnly(in locale: String?) -> DeliveryContent {
        var content = self
        (content.text, content.data, content.platforms) = (.init(), [:], nil)
        (content.appearance.image, content.appearance.link) = (nil, nil)
        // The titles of actions are words, too; Apple's devices know the category by its id.
        content.appearance.category?.actions = []
        content.neutralText = Self.neutralText(in: locale)
        content.hato.id = notification
        content.hato.source = .init(path: path, thread: appearance.thread, category: appearance.category?.id)
        return content
    }

    /// Says that there is something, and nothing of it.
    private static func neutralText(in locale: String?) -> String {
        let language = locale?.lowercased().prefix { $0.isASCII && $0.isLetter }
        return language == "ja" ? "新着メッセージ" : "New message"
    }
}
