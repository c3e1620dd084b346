import HatoModel
import HatoRPC

/// The quick replies of users, which stand in the tree and nowhere else.
struct QuickReplyTexts: Sendable {
    let tree: UserTree

    static let textUnitsMax = 200
    /// Of the node. Six texts have 4 KB.
    private static let nodeBytesMax = 65_536

    private func path(of uid: String) throws(RPCError) -> TreePath {
        do { return try TreePath(keys: [TreeKey("users"), TreeKey(uid), TreeKey("quickReplies")]) } catch {
            throw .invalidArgument("uid", reason: error.reason, error.message)
        }
    }

    /// Six texts, with defaults where none stands, where the user may not read them, and in place of a node that is
    /// larger than six texts are. Throws `RPCError`.
    func texts(of user: Caller.User, locale: String?) async throws -> [String] {
        let defaults = Self.defaults(for: locale)
        let value: JSONValue
        do {
            value = try await tree.value(path(of: user.uid), as: user, bytesMax: Self.nodeBytesMax)
        } catch let error as RPCError where error.reason == "too_big" || error.isByRules {
            return defaults
        }
        return defaults.enumerated().map { index, text in
            let own =
                switch value {
                case .array(let values): values.indices.contains(index) ? values[index].string : nil
                case .object(let object): object[String(index)]?.string
                default: nil as String?
                }
            guard let own, !own.isEmpty, own.utf16.count <= Self.textUnitsMax else { return text }
            return own
        }
    }

    static func defaults(for locale: String?) -> [String] {
        let all = Notifier.QuickReplies.defaults
        return locale.flatMap { LocaleTag.find($0, in: all) } ?? all["en"] ?? []
    }

    /// Throws `RPCError`.
    func set(_ texts: [String], of user: Caller.User) async throws {
        guard texts.count <= Notifier.QuickReplies.count else {
            throw RPCError.invalidArgument(
                "texts", reason: "invalid_quick_reply", "There are six quick replies at most")
        }
        for (index, text) in texts.enumerated() where !(1...Self.textUnitsMax).contains(text.utf16.count) {
            throw RPCError.invalidArgument(
                "texts.\(index)", reason: "invalid_quick_reply",
                "A quick reply has 1 to \(Self.textUnitsMax) characters, e.g. \"了解です\"")
        }
        let value: JSONValue = texts.isEmpty ? .null : .array(texts.map { .string($0) })
        _ = try await tree.call(Messages.Set(path: path(of: user.uid), value: value), as: user)
    }
}

/// `notifier.quickReplies.…`.
struct QuickReplyMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.QuickReplies.Get.self, in: &router) { methods, request, context in
            try methods.checks.key(request.locale, "locale")
            return try await methods.call(context.caller) {
                .init(texts: try await $0.texts(of: $1, locale: request.locale))
            }
        }
        handle(Notifier.QuickReplies.Set.self, in: &router) { methods, request, context in
            try await methods.call(context.caller) { try await $0.set(request.texts, of: $1) }
            return Empty()
        }
    }

    private func call<Outcome: Sendable>(
        _ caller: Caller, _ body: (QuickReplyTexts, Caller.User) async throws -> Outcome
    ) async throws -> Outcome {
        guard case .user(let user) = caller else {
            throw RPCError.invalidParams(
                "as",
                "The administrator key has no quick replies of its own; say whose with as, e.g. {\"uid\": \"masuo\"}")
        }
        guard let effects = service.effects else { throw NotifierError.noKeyForEffects }
        do { return try await body(QuickReplyTexts(tree: effects.tree), user) } catch let error as RPCError
            where error.refusesNotifier
        {
            throw RPCError.messagesRefusesNotifier
        }
    }
}
