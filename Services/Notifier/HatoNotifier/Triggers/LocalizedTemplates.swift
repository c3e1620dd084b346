import HatoModel

/// A trigger's texts by locale, as templates.
struct LocalizedTemplates: Sendable {
    private struct Text: Sendable {
        var title: Template?
        var body: Template?
    }

    private var texts: [String: Text] = [:]

    /// Throws `RPCError` that names the text.
    init(_ localized: [String: Notifier.NotificationText]?, parameters: [String]) throws(RPCError) {
        for (locale, text) in localized ?? [:] {
            texts[locale] = Text(
                title: try CompiledTrigger.template(text.title, "localized.\(locale).title", parameters),
                body: try CompiledTrigger.template(text.body, "localized.\(locale).body", parameters))
        }
    }

    var templates: [Template] { texts.values.flatMap { [$0.title, $0.body].compactMap(\.self) } }

    /// Nil without any; a text that comes out empty, or is too much beside the others, is left out.
    func filled(with change: FeedChange, _ limits: NotifierLimits) -> [String: Notifier.NotificationText]? {
        if texts.isEmpty { return nil }
        var (localized, room): ([String: Notifier.NotificationText], Int) = ([:], limits.localizedBytesMax)
        for (locale, text) in texts.sorted(by: { $0.key < $1.key }) {
            let filled = Notifier.NotificationText(
                title: text.title?.filled(with: change, toBytes: limits.titleBytesMax),
                body: text.body?.filled(with: change, toBytes: limits.bodyBytesMax))
            room -= (filled.title?.utf8.count ?? 0) + (filled.body?.utf8.count ?? 0)
            // Devices with these locales get the text of the others.
            if !filled.isEmpty, room >= 0 { localized[locale] = filled }
        }
        return localized
    }
}
