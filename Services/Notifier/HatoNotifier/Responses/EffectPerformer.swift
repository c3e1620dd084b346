import HatoModel
import HatoRPC
import Logging

/// What came of trying an effect.
enum EffectOutcome: Sendable, Hashable {
    case done
    case refused(String)
    /// Not now: something that others will mend.
    case again(String)
}

/// Performs effects, each as the user that chose the action. An effect that was performed before is done again without
/// a further trace: a push has its key, and what is set is the same.
struct EffectPerformer: Sendable {
    let tree: UserTree
    let accounts: CurrentAccounts
    let key: ReplyKey
    let limits: NotifierLimits
    let notices: ThrottledNotices

    func perform(_ effect: EffectRecord) async -> EffectOutcome {
        do {
            let user = try await accounts.user(effect.uid)
            var fills = effect.fills
            fills["name"] = user.claims["name"]?.string
            if let index = effect.quickReply {
                let texts = try await QuickReplyTexts(tree: tree).texts(of: user, locale: effect.locale)
                fills["text"] = texts.indices.contains(index) ? texts[index] : ""
            }
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
                guard try await isPushed(error, key, effect, in: database) else { throw error }
            }
        case .set:
            _ = try await tree.call(Messages.Set(database: database, path: effect.path, value: try value()), as: user)
        case .update:
            let values = try EffectTemplate.filledValues(effect.value, with: fills, bytesMax: bytesMax)
            _ = try await tree.call(
                Messages.Update(database: database, path: effect.path, values: values), as: user)
        }
    }

    /// Whether a push is refused because it was done before: no other caller can know its key. Rules may deny what
    /// stands there already.
    private func isPushed(
        _ error: RPCError, _ key: PushKey, _ effect: EffectRecord, in database: DatabaseName?
    ) async throws -> Bool {
        if error.reason == "key_exists" { return true }
        guard error.code == .permissionDenied, !error.refusesNotifier else { return false }
        return try await tree.exists(effect.path.child(TreeKey(key)), in: database)
    }

    private func outcome(of error: RPCError) -> EffectOutcome {
        let reason = error.reason ?? "refused"
        if error.refusesNotifier {
            notices.notice(
                .trigger("effect"),
                "auth or messages refuses the notifier's key: effects of actions wait until it is listed (README)",
                ["error": "\(error.message)"], level: .error)
            return .again(reason)
        }
        if error.isRetryable { return .again(reason) }
        switch error.code {
        case .unavailable, .internalError: return .again(reason)
        default: return .refused(reason)
        }
    }
}
