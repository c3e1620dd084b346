import HatoModel
import HatoRPC
import HatoStorage
import Synchronization

/// `notifier.respond`: what users do with notifications.
struct ResponseMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Respond.self, in: &router) { methods, request, context in
            do { return try await methods.respond(request, context.caller) } catch {
                if error is RPCErrorConvertible { methods.service.responses.responded(.refused) }
                throw error
            }
        }
    }

    private func respond(
        _ request: Notifier.Respond, _ caller: Caller
    ) async throws -> Notifier.Respond.Result {
        let limits = configuration.limits
        try checks.key(request.notification, "notification")
        let choice = try ReportedChoice(request, limits)
        let responder = try await responder(request, caller)
        if responder.isByToken, choice.isAction { try await requireAccount(responder.uid) }
        let responding = Responding(
            notification: request.notification, choice: choice, text: request.text, responder: responder,
            limits: limits)
        let outcome = try await outbox.change { try responding.apply(to: &$0) }
        service.responses.responded(outcome.isRepetition ? .repeated : choice.result)
        await WaitingMails(outbox: outbox).userWasSeenIfPossible(responder.uid, notices)
        guard outcome.effect == .pending, let effects = service.effects else {
            return .init(effect: outcome.effect, reason: outcome.reason)
        }
        if !outcome.isRepetition { effects.wake() }
        return try await effects.result(
            of: request.notification, responding.responder.uid, within: .milliseconds(limits.effectWaitMsMax))
    }

    private func responder(_ request: Notifier.Respond, _ caller: Caller) async throws -> Responder {
        if let token = request.replyToken {
            guard let capability = service.configuration.replyKey?.capability(token) else {
                throw ResponseRefusal.wrongToken
            }
            guard capability.notification == request.notification else { throw ResponseRefusal.tokenOfOther }
            guard capability.expiresAt > configuration.time.now() else { throw ResponseRefusal.tokenExpired }
            // Of others, no action is taken while auth is there.
            return Responder(
                uid: capability.uid, device: capability.device, isByToken: true, isOfAccount: service.accounts != nil)
        }
        guard case .user(let user) = caller else {
            guard case .administrator = caller else { throw RPCError.missingCredential }
            throw RPCError.invalidParams(
                "as", "The administrator key is no user; say which user responds with as (--as)")
        }
        let notification = request.notification
        if let known = try await store.read({ try $0.knownResponder(user, to: notification) }) { return known }
        guard await service.recipientScans.begin(user.uid) else {
            throw RPCError.resourceExhausted(
                reason: "busy", "Many responses of this user to notifications are being looked at; try again",
                retryAfterMs: 1_000)
        }
        defer { service.recipientScans.end(user.uid) }
        let rowsMax = configuration.limits.deliveriesPerNotificationMax
        return try await store.read { try $0.foundResponder(user, to: notification, rowsMax: rowsMax) }
    }

    /// A reply token outlives what auth says of its user. While auth is away the response is taken: its effect asks
    /// again.
    private func requireAccount(_ uid: String) async throws {
        do { _ = try await service.accounts?.current.user(uid) } catch let refusal as EffectRefusal {
            throw ResponseRefusal.refusedUser(refusal.reason, isByToken: true)
        } catch is RPCError {}
    }
}

/// The users for whom the deliveries of a notification are being looked through, which can be many: one at a time each.
final class RecipientScans: Sendable {
    /// Those that wait for their turn, of each user that has one.
    private let users = Mutex<[String: [CheckedContinuation<Bool, Never>]]>([:])
    private static let waitingMax = 32

    /// Waits for a turn of the user, which `end` ends. False: too many wait.
    func begin(_ uid: String) async -> Bool {
        await withCheckedContinuation { continuation in
            let hasTurn: Bool? = users.withLock { users in
                guard let waiting = users[uid] else {
                    users[uid] = []
                    return true
                }
                guard waiting.count < Self.waitingMax else { return false }
                users[uid] = waiting + [continuation]
                return nil
            }
            if let hasTurn { continuation.resume(returning: hasTurn) }
        }
    }

    func end(_ uid: String) {
        let next = users.withLock { users -> CheckedContinuation<Bool, Never>? in
            guard let waiting = users[uid], let first = waiting.first else {
                users[uid] = nil
                return nil
            }
            users[uid] = Array(waiting.dropFirst())
            return first
        }
        next?.resume(returning: true)
    }
}

extension ReportedChoice {
    fileprivate var isAction: Bool {
        switch self {
        case .action, .quickReply: true
        case .report: false
        }
    }

    fileprivate var result: ResponseMetrics.Result {
        switch self {
        case .action, .quickReply: .action
        case .report(.displayed): .displayed
        case .report(.opened): .opened
        case .report(.dismissed): .dismissed
        }
    }
}

extension StoreReading {
    /// A user that shows an ID token, of whom it is known that the notification was for them; nil: it must be looked
    /// for.
    fileprivate func knownResponder(_ user: Caller.User, to notification: String) throws -> Responder? {
        guard let record = try readable(NotificationRecord.self, NotificationRecord.key(notification)) else {
            throw NotifierError.notificationNotFound(notification)
        }
        // A former report, or the row of what they have not read of a thread.
        var isRecipient = try !keys(ResponseRecord.prefix(notification).with(user.uid), limit: 1).isEmpty
        if !isRecipient, let thread = record.options?.thread {
            isRecipient = try contains(ShownRecord.key(UserThread(uid: user.uid, thread: thread), notification))
        }
        return isRecipient ? try responder(user) : nil
    }

    /// The same, looked for among the deliveries. Throws when none of them is the user's.
    fileprivate func foundResponder(
        _ user: Caller.User, to notification: String, rowsMax: Int
    ) throws -> Responder {
        // As it stands in a row: most are not read further.
        let needle = JSONValue.string(user.uid).encoded
        var (isRecipient, rowsLeft) = (false, rowsMax)
        try scan(KeyRange(prefix: DeliveryRecord.prefix(notification).bytes), reverse: false) { key, value in
            let bytes = value.copied
            if bytes.contains(needle) {
                let delivery = try? RecordCodec.decode(DeliveryRecord.self, bytes, key: key.copied)
                isRecipient = delivery?.uid == user.uid
            }
            rowsLeft -= 1
            return isRecipient || rowsLeft <= 0 ? .stop : .next
        }
        guard isRecipient else { throw ResponseRefusal.notRecipient }
        return try responder(user)
    }

    /// With the device of the session.
    private func responder(_ user: Caller.User) throws -> Responder {
        let device = try user.session.flatMap { session in
            try devices(of: user.uid).first { $0.session == session }?.device
        }
        return Responder(uid: user.uid, device: device, isOfAccount: user.session != nil)
    }
}
