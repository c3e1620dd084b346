import HatoModel
import HatoPush
import HatoStorage

/// A category. Once a notification had it, its actions never change, and it stays here when it is removed: what devices
/// still show can be responded to.
struct CategoryRecord: FieldObject, Hashable {
    var category: Notifier.Category
    /// Whether a notification had it.
    var isUsed = false
    var isRemoved = false

    static let fields = Fields<Self>(
        blank: Self(category: .init(id: "", actions: [])),
        .required("category", \.category),
        .flag("used", \.isUsed),
        .flag("removed", \.isRemoved))

    init(category: Notifier.Category) { self.category = category }

    static func key(_ id: String) -> RecordKey { RecordKey(.category).with(id) }
}

extension StoreReading {
    /// The categories that can be read and are not removed, in the order of their ids.
    func categories() throws -> [Notifier.Category] {
        try rows(RecordKey(.category)).compactMap { row in
            let record = try? RecordCodec.decode(CategoryRecord.self, row.value, key: row.key.bytes)
            return record.flatMap { $0.isRemoved ? nil : $0.category }
        }
    }

    /// Also one that is removed; nil without such a category, or when its row cannot be read.
    func category(_ id: String) throws -> CategoryRecord? { try readable(CategoryRecord.self, CategoryRecord.key(id)) }

    /// In the language of a device. One that cannot be read has no actions that are known here.
    func content(ofCategory id: String?, for locale: String?) throws -> DeliveryContent.Category? {
        guard let id else { return nil }
        return try category(id)?.category.content(for: locale) ?? .init(id: id, actions: [])
    }

    /// Throws the error of a request that names a category that is not there.
    func checkCategory(_ id: String?) throws {
        guard let id else { return }
        guard let record = try category(id), !record.isRemoved else { throw NotifierError.unknownCategory(id) }
    }

    /// A trigger or type that has the category, for people; nil without any.
    func owner(ofCategory id: String) throws -> String? {
        if let trigger = try triggers().triggers.first(where: { $0.trigger.category == id }) {
            return "The trigger \"\(trigger.trigger.id)\""
        }
        return try types().first { $0.category == id }.map { "The type \"\($0.type)\"" }
    }
}

extension CategoryRecord {
    /// The category of a notification that is being accepted: from now on its actions stay as they are. Nil when it is
    /// not there any more: its notifications go without actions.
    static func use(_ id: String?, in draft: inout OutboxDraft) throws -> String? {
        guard let id, var record = try draft.transaction.category(id), !record.isRemoved else { return nil }
        if !record.isUsed {
            record.isUsed = true
            draft.writes.put(key(id), record)
        }
        return id
    }
}

extension Notifier.Category {
    /// Equal for categories that mean the same: what stands for an absent member is left away.
    var normalised: Self {
        var category = self
        category.actions = actions.map { action in
            var action = action
            if action.activation == .background { action.activation = nil }
            if action.destructive == false { action.destructive = nil }
            if action.authenticationRequired == false { action.authenticationRequired = nil }
            if let url = action.effect?.webhook { action.effect?.webhook = WebhookEffect.normalised(url) }
            return action
        }
        return category
    }

    /// The same for apps, which need not know the paths of effects.
    var withoutEffects: Self {
        var category = self
        for index in category.actions.indices { category.actions[index].effect = nil }
        return category
    }

    /// The category in the language of a device.
    func content(for locale: String?) -> DeliveryContent.Category {
        .init(id: id, actions: actions.map { $0.content(for: locale) })
    }
}

extension Notifier.CategoryAction {
    fileprivate func content(for locale: String?) -> DeliveryContent.Action {
        var content = DeliveryContent.Action(
            id: id, title: title.text(for: locale), opensApp: activation == .foreground)
        content.isDestructive = destructive == true
        content.requiresAuthentication = authenticationRequired == true
        content.input = input.map {
            .init(button: $0.button?.text(for: locale), placeholder: $0.placeholder?.text(for: locale))
        }
        content.quickReply = quickReply
        return content
    }
}

extension Notifier.LocalizedText {
    /// The text for a device with this locale: that of the locale, else of its language, else the common one.
    func text(for locale: String?) -> String {
        locale.flatMap { LocaleTag.find($0, in: byLocale) } ?? fallback
    }
}
