import HatoModel

/// A type that was read: checks the data of a notification and gives it its text.
struct TypedContent: Sendable, Hashable {
    let type: Notifier.PayloadType
    private let text: FieldTexts?
    private let localized: [String: FieldTexts]?

    /// Throws `RPCError` that names the parameter of `notifier.types.set`.
    init(_ type: Notifier.PayloadType) throws(RPCError) {
        self.type = type
        text = try type.template.map { text throws(RPCError) in try TypedContent.texts(text, "template", type) }
        guard let texts = type.localized else {
            localized = nil
            return
        }
        var localized: [String: FieldTexts] = [:]
        for (locale, text) in texts {
            localized[locale] = try TypedContent.texts(text, "localized.\(locale)", type)
        }
        self.localized = localized
    }

    private static func texts(
        _ text: Notifier.NotificationText, _ parameter: String, _ type: Notifier.PayloadType
    ) throws(RPCError) -> FieldTexts {
        do { return try FieldTexts(text, of: type) } catch {
            throw .invalidArgument(parameter, reason: error.reason, error.message)
        }
    }

    /// Gives a notification the type's name, and the type's text unless it has its own. Throws when its data do not
    /// fit the type.
    func complete(
        _ new: inout NewNotification, hasText: Bool, _ limits: NotifierLimits
    ) throws(PayloadError) {
        let data = new.data
        try type.check(data)
        new.data[Notifier.PayloadType.typeField] = type.type
        if !hasText {
            new.text = text?.filled(with: data, limits) ?? Notifier.NotificationText()
            new.localized =
                new.localized
                ?? localized?.compactMapValues { texts in
                    let filled = texts.filled(with: data, limits)
                    return filled.isEmpty ? nil : filled
                }
        }
        new.category = new.category ?? type.category
        if type.timeSensitive == true, new.options?.interruptionLevel == nil {
            var options = new.options ?? Notifier.DeliveryOptions()
            options.interruptionLevel = .timeSensitive
            new.options = options
        }
    }

    /// Checks what can be known of a trigger's data before it fires. Throws the error of `notifier.triggers.set`.
    func check(_ trigger: Notifier.Trigger) throws(RPCError) {
        let data = trigger.data ?? [:]
        for name in (type.required ?? [:]).keys.sorted() where data[name] == nil {
            throw PayloadError.invalidData(field: name).rpcError(type)
        }
        for (name, text) in data.sorted(by: { $0.key < $1.key }) {
            guard let kind = type.kind(of: name), !text.contains(where: { $0 == "{" || $0 == "}" }) else { continue }
            let isLeftOut = text.isEmpty && type.required?[name] == nil
            guard isLeftOut || kind.accepts(text) else { throw PayloadError.invalidData(field: name).rpcError(type) }
        }
        guard trigger.notification != nil || text != nil else {
            throw .invalidArgument(
                "notification", reason: "empty_notification",
                "The type \"\(type.type)\" has no template; give a title, a body or both")
        }
    }
}

extension PayloadError {
    static func unknownType(_ name: String) -> RPCError {
        .invalidArgument(
            "type", reason: "invalidType", "There is no type \"\(name)\"; notifier.types.set makes one")
    }

    /// As an error on the wire.
    func rpcError(_ type: Notifier.PayloadType) -> RPCError {
        guard case .invalidData(let field) = self else { return PayloadError.unknownType(type.type) }
        let kind = type.kind(of: field)?.rawValue ?? Notifier.PayloadKind.string.rawValue
        return RPCError(
            .invalidArgument, reason: "invalidData",
            "data.\(field) is missing or wrong; the type \"\(type.type)\" says that it is of the kind \(kind)",
            data: ["parameter": "data", "field": .string(field)])
    }
}

extension CompiledTrigger {
    /// What a firing sends, with what the trigger's type gives it; nil when its text comes out empty. An optional field
    /// that came out empty is left out. Throws when the data do not fit the type: then nothing is to be sent.
    func completed(_ filled: NewNotification?, _ limits: NotifierLimits) throws(PayloadError) -> NewNotification? {
        guard trigger.type != nil, var new = filled else { return filled }
        guard let typed else { throw .invalidType }
        for name in (typed.type.optional ?? [:]).keys where new.data[name]?.isEmpty == true { new.data[name] = nil }
        try typed.complete(&new, hasText: trigger.notification != nil, limits)
        guard trigger.notification != nil || !new.text.isEmpty else { return nil }
        return new
    }
}

extension Notifier.NotificationText {
    var isEmpty: Bool { title?.isEmpty != false && body?.isEmpty != false }
}
