import HatoModel
import HatoPush
import HatoRPC
import HatoStorage

/// `notifier.types.…`: what the data of notifications must hold.
struct TypeMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Types.Set.self, in: &router) { methods, request, _ in
            try await methods.set(request.payloadType)
        }
        handle(Notifier.Types.List.self, in: &router) { methods, _, _ in
            .init(types: try await methods.store.read { try $0.types() })
        }
        handle(Notifier.Types.Remove.self, in: &router) { methods, request, _ in
            try await methods.remove(request.type)
        }
    }

    private func set(_ type: Notifier.PayloadType) async throws -> Notifier.Types.Set.Result {
        try checks.type(type)
        let typed = try TypedContent(type)
        let typesMax = configuration.limits.typesMax
        let (isNew, databases) = try await outbox.change { draft in
            let (rows, key) = (draft.transaction, Notifier.PayloadType.key(type.type))
            let isNew = try !rows.contains(key)
            if isNew, try rows.count(.type, upTo: typesMax) >= typesMax { throw NotifierError.tooManyTypes(typesMax) }
            let triggers = try rows.triggers(of: type.type)
            try rows.checkCategory(type.category)
            for trigger in triggers {
                do throws(RPCError) { try typed.check(trigger) } catch {
                    throw NotifierError.typeInUse(type.type, trigger: trigger.id, why: error.message)
                }
            }
            draft.writes.put(key, type)
            return (isNew, Set(triggers.map(\.database)))
        }
        // Feeds hold the types of their triggers.
        for database in databases.sorted() { await feeds?.triggersChanged(in: database) }
        return .init(created: isNew)
    }

    private func remove(_ type: String) async throws -> Empty {
        try await outbox.change { draft in
            let (rows, key) = (draft.transaction, Notifier.PayloadType.key(type))
            guard try rows.contains(key) else { throw NotifierError.typeNotFound(type) }
            if let trigger = try rows.triggers(of: type).first {
                throw NotifierError.typeInUse(type, trigger: trigger.id, why: nil)
            }
            draft.writes.delete(key)
        }
        return Empty()
    }
}

extension RequestChecks {
    /// What a type says; its templates are read by `TypedContent`.
    func type(_ type: Notifier.PayloadType) throws(RPCError) {
        try key(type.type, "type")
        try key(type.category, "category")
        let (required, optional) = (type.required ?? [:], type.optional ?? [:])
        guard required.count + optional.count <= limits.typeFieldsMax else {
            throw .invalidArgument(
                "required", reason: "invalid_field", "A type has at most \(limits.typeFieldsMax) fields")
        }
        try fields(required, "required")
        try fields(optional, "optional")
        if let name = optional.keys.sorted().first(where: { required[$0] != nil }) {
            throw .invalidArgument(
                "optional", reason: "invalid_field", "\(name) is either required or optional, not both")
        }
        if let template = type.template {
            try text(template, "template")
        } else if type.localized != nil {
            throw .invalidArgument(
                "localized", reason: "invalid_localized", "localized stands beside template, the text of other devices")
        }
        try localized(type.localized)
    }

    private func fields(_ fields: [String: Notifier.PayloadKind], _ parameter: String) throws(RPCError) {
        for name in fields.keys.sorted() {
            let isName = name.utf8.allSatisfy { byte in
                switch byte {
                case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
            guard (1...64).contains(name.utf8.count), isName, name != Notifier.PayloadType.typeField else {
                // A name of any length would stand in the error.
                let place = (1...64).contains(name.utf8.count) ? "\(parameter).\(name)" : parameter
                throw .invalidArgument(
                    place, reason: "invalid_field",
                    "A field has 1 to 64 of the characters A-Z a-z 0-9 _ - . and is not "
                        + "\(Notifier.PayloadType.typeField), e.g. product_id")
            }
        }
        do {
            let names = fields.mapValues(\.rawValue)
            try FCMRequest.check(data: names)
            try APNsRequest.check(data: names)
            try HatoMember.check(data: names)
        } catch {
            throw .invalidArgument(parameter, reason: error.reason, error.message)
        }
    }

    /// Texts by locale; each has a title, a body or both.
    func localized(_ texts: [String: Notifier.NotificationText]?) throws(RPCError) {
        guard let texts else { return }
        guard texts.count <= limits.localesMax else {
            throw .invalidArgument(
                "localized", reason: "invalid_localized", "localized has at most \(limits.localesMax) locales")
        }
        var bytes = 0
        for (locale, text) in texts.sorted(by: { $0.key < $1.key }) {
            try key(locale, "localized")
            try self.text(text, "localized.\(locale)")
            bytes += (text.title?.utf8.count ?? 0) + (text.body?.utf8.count ?? 0)
        }
        guard bytes <= limits.localizedBytesMax else {
            throw .invalidArgument(
                "localized", reason: "too_big",
                "The texts of localized have at most \(limits.localizedBytesMax) bytes together")
        }
    }

    /// Values for the receiving app, beside the name of their type.
    func data(_ data: [String: String]?, type: String?) throws(RPCError) {
        try key(type, "type")
        if data?[Notifier.PayloadType.typeField] != nil {
            throw .invalidArgument(
                "data", reason: "invalid_data",
                "data.\(Notifier.PayloadType.typeField) is the name of the type; give it as type")
        }
        var all = data ?? [:]
        all[Notifier.PayloadType.typeField] = type
        try self.data(all)
    }
}
