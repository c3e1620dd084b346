import HatoModel
import HatoPush

/// What a category may hold.
struct CategoryCheck {
    let limits: NotifierLimits

    private static let actionIDBytesMax = 64
    private static let titleBytesMax = 256
    private var checks: RequestChecks { RequestChecks(limits: limits) }

    /// Throws `RPCError` that names the parameter of `notifier.categories.set`.
    func check(_ category: Notifier.Category) throws(RPCError) {
        try checks.key(category.id, "id")
        guard (1...limits.categoryActionsMax).contains(category.actions.count) else {
            throw .invalidArgument(
                "actions", reason: "invalid_action", "A category has 1 to \(limits.categoryActionsMax) actions")
        }
        let bytes = category.json.encoded.count
        guard bytes <= limits.categoryBytesMax else {
            throw .invalidArgument(
                "actions", reason: "too_big",
                "The category has \(bytes) bytes as JSON, at most \(limits.categoryBytesMax) are allowed")
        }
        var ids: Set<String> = []
        for (index, action) in category.actions.enumerated() {
            let parameter = "actions.\(index)"
            try check(action, parameter)
            guard ids.insert(action.id).inserted else {
                throw .invalidArgument(
                    "\(parameter).id", reason: "invalid_action", "Two actions have the id \"\(action.id)\"")
            }
        }
        try quickReplies(of: category)
        try size(of: category)
    }

    /// A push with it must fit: once it was used, its texts cannot be made shorter.
    private func size(of category: Notifier.Category) throws(RPCError) {
        let texts = category.actions.flatMap { [$0.title, $0.input?.button, $0.input?.placeholder] }
        let locales = Set(texts.flatMap { $0.map { Array($0.byLocale.keys) } ?? [] }).sorted()
        for locale in [nil] + locales.map(Optional.some) where !CategorySize.fits(category.content(for: locale)) {
            throw .invalidArgument(
                "actions", reason: "too_big",
                "A push with these actions\(locale.map { " in \"\($0)\"" } ?? "") is larger than FCM takes, also with "
                    + "a short text; take fewer actions, or shorter titles and placeholders")
        }
    }

    private func check(_ action: Notifier.CategoryAction, _ parameter: String) throws(RPCError) {
        try checks.key(action.id, "\(parameter).id", bytesMax: Self.actionIDBytesMax)
        guard Notifier.Respond.Report(rawValue: action.id) == nil else {
            throw .invalidArgument(
                "\(parameter).id", reason: "invalid_action",
                "displayed, opened and dismissed are reports; give the action another id, e.g. REPLY")
        }
        try check(action.title, "\(parameter).title")
        try check(action.input?.button, "\(parameter).input.button")
        try check(action.input?.placeholder, "\(parameter).input.placeholder")
        guard let effect = action.effect, try ThreadEffect(effect, at: "\(parameter).effect") == nil,
            try WebhookEffect(effect, at: "\(parameter).effect") == nil
        else { return }
        try EffectTemplate(effect, at: "\(parameter).effect", hasText: action.input != nil)
            .requireSense(at: "\(parameter).effect")
    }

    private func check(_ text: Notifier.LocalizedText?, _ parameter: String) throws(RPCError) {
        guard let text else { return }
        guard !text.byLocale.isEmpty else {
            return try checks.key(text.fallback, parameter, bytesMax: Self.titleBytesMax)
        }
        guard text.byLocale.count <= limits.localesMax else {
            throw .invalidArgument(
                parameter, reason: "invalid_localized", "\(parameter) has at most \(limits.localesMax) locales")
        }
        for (locale, text) in text.byLocale.sorted(by: { $0.key < $1.key }) {
            try checks.key(locale, parameter)
            try checks.key(text, "\(parameter).\(locale)", bytesMax: Self.titleBytesMax)
        }
    }

    /// They are the text of the action that takes one.
    private func quickReplies(of category: Notifier.Category) throws(RPCError) {
        var used: Set<Int> = []
        for (index, action) in category.actions.enumerated() {
            guard let reply = action.quickReply else { continue }
            let parameter = "actions.\(index).quickReply"
            guard (0..<Notifier.QuickReplies.count).contains(reply) else {
                throw .invalidArgument(parameter, reason: "invalid_quick_reply", "quickReply is from 0 to 5")
            }
            guard action.input == nil, action.effect == nil else {
                throw .invalidArgument(
                    parameter, reason: "invalid_quick_reply",
                    "An action with quickReply has neither input nor effect: those of the action with input count")
            }
            guard category.actions.contains(where: { $0.input != nil }) else {
                throw .invalidArgument(
                    parameter, reason: "invalid_quick_reply",
                    "A quick reply is the text of an action with input, and the category has none")
            }
            guard used.insert(reply).inserted else {
                throw .invalidArgument(
                    parameter, reason: "invalid_quick_reply", "Two actions stand for the quick reply \(reply)")
            }
        }
    }
}
