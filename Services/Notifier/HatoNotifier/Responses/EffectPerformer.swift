import HatoModel
import HatoRPC
import Logging

/// What came of trying an effect.
enum EffectOutcome: Sendable, Hashable {
    case done
    /// Done when this is accepted.
    case reported(ActionReport)
    case refused(String)
    /// Not now: something that others will mend.
    case again(String)
    /// Not now: auth or messages refuses the notifier's key.
    case keyRefused(String)

    var isEnd: Bool {
        switch self {
        case .done, .reported, .refused: true
        case .again, .keyRefused: false
        }
    }
}

/// Performs effects, each as the user that chose the action. One that may have been performed before is looked for
/// first: a push by its key, what is set by its value.
struct EffectPerformer: Sendable {
    let tree: UserTree
    let accounts: CurrentAccounts
    let key: ReplyKey
    let limits: NotifierLimits
    let notices: ThrottledNotices

    /// - Parameter isFirst: whether no attempt was made before.
    func perform(_ effect: EffectRecord, isFirst: Bool) async -> EffectOutcome {
        do {
            // Whatever became of the user since.
            if !isFirst, effect.kind == .push, try await isPushed(effect) { return .done }
            let user = try await accounts.user(effect.uid)
            var fills = effect.fills
            fills["name"] = user.claims["name"]?.string
            if let index = effect.quickReply {
                let texts = try await QuickReplyTexts(tree: tree).texts(of: user, locale: effect.locale)
                fills["text"] = texts.indices.contains(index) ? texts[index] : ""
            }
            if effect.kind == .webhook { return .reported(ActionReport(effect, with: fills, key)) }
            if !isFirst, try await stands(effect, with: fills) { return .done }
            try await write(effect, with: fills, as: user)
            return .done
        } catch let refusal as EffectRefusal {
            return .refused(refusal.reason)
        } catch let error as ArgumentError {
            return .refused(error.reason)
        } catch let error as RPCError {
            return outcome(of: error)
        } catch {
            return .again("\(error)")
        }
    }

    private func write(_ effect: EffectRecord, with fills: [String: String], as user: Caller.User) async throws {
        let database = try effect.database.map { try DatabaseName($0) }
        let bytesMax = limits.effectBytesMax
        func value() throws -> JSONValue { try EffectTemplate.filled(effect.value, with: fills, bytesMax: bytesMax) }
        switch effect.kind {
        case .push:
            let key = key.pushKey(of: effect)
            let push = Messages.Push(database: database, path: effect.path, value: try value(), key: key)
            do { _ = try await tree.call(push, as: user) } catch let error as RPCError {
                guard try await isPushed(error, effect) else { throw error }
            }
        case .set:
            _ = try await tree.call(Messages.Set(database: database, path: effect.path, value: try value()), as: user)
        case .update:
            let values = try EffectTemplate.filledValues(effect.value, with: fills, bytesMax: bytesMax)
            _ = try await tree.call(
                Messages.Update(database: database, path: effect.path, values: values), as: user)
        case .webhook: break
        }
    }

    /// Whether a push is refused because it was done before: no other caller can know its key. Rules may deny what
    /// stands there already.
    private func isPushed(_ error: RPCError, _ effect: EffectRecord) async throws -> Bool {
        if error.reason == "key_exists" { return true }
        guard error.code == .permissionDenied, !error.refusesNotifier else { return false }
        return try await isPushed(effect)
    }

    private func isPushed(_ effect: EffectRecord) async throws -> Bool {
        let path = try effect.path.child(TreeKey(key.pushKey(of: effect)))
        return try await tree.exists(path, in: effect.database.map { try DatabaseName($0) })
    }

    /// Whether what an effect sets stands there already.
    private func stands(_ effect: EffectRecord, with fills: [String: String]) async throws -> Bool {
        let database = try effect.database.map { try DatabaseName($0) }
        let bytesMax = limits.effectBytesMax
        func stands(_ value: JSONValue, at path: TreePath) async throws -> Bool {
            let found = try await tree.value(path, in: database, bytesMax: Self.foundBytesMax)
            return found.map { WrittenValue.isWritten(value, in: $0, since: effect.respondedAt) } ?? false
        }
        switch effect.kind {
        case .push, .webhook: return false
        case .set:
            let value = try EffectTemplate.filled(effect.value, with: fills, bytesMax: bytesMax)
            return try await stands(value, at: effect.path)
        case .update:
            let values = try EffectTemplate.filledValues(effect.value, with: fills, bytesMax: bytesMax)
            for member in values.members {
                let path = try effect.path.appending(TreePath("/" + member.name))
                guard try await stands(member.value, at: path) else { return false }
            }
            return true
        }
    }

    /// A node that is larger is not what was set.
    private static let foundBytesMax = 1 << 18

    private func outcome(of error: RPCError) -> EffectOutcome {
        let reason = error.reason ?? "refused"
        if error.refusesNotifier {
            notices.notice(
                .trigger("effect"),
                "auth or messages refuses the notifier's key: effects of actions wait until it is listed (README)",
                ["error": "\(error.message)"], level: .error)
            return .keyRefused(reason)
        }
        if error.isRetryable { return .again(reason) }
        switch error.code {
        case .unavailable, .internalError: return .again(reason)
        default: return .refused(reason)
        }
    }
}
