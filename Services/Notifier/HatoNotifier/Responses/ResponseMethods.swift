import HatoModel
import HatoRPC
import HatoStorage

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
        let choice = try ReportedChoice(request, limits)
        let responding = Responding(
            notification: request.notification, choice: choice, text: request.text,
            responder: try await responder(request, caller), limits: limits)
        let outcome = try await outbox.change { try responding.apply(to: &$0) }
        service.responses.responded(outcome.isRepetition ? .repeated : choice.result)
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
            return Responder(uid: capability.uid, device: capability.device, isByToken: true)
        }
        guard case .user(let user) = caller else { throw RPCError.missingCredential }
        let (notification, rowsMax) = (request.notification, configuration.limits.deliveriesPerNotificationMax)
        return try await store.read { snapshot in
            try snapshot.responder(user, to: notification, rowsMax: rowsMax)
        }
    }
}

extension ReportedChoice {
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
    /// A user that shows an ID token, with the device of its session. Throws when none of the deliveries is the
    /// user's.
    fileprivate func responder(_ user: Caller.User, to notification: String, rowsMax: Int) throws -> Responder {
        guard try contains(NotificationRecord.key(notification)) else {
            throw NotifierError.notificationNotFound(notification)
        }
        var (isRecipient, rowsLeft) = (false, rowsMax)
        try scan(KeyRange(prefix: DeliveryRecord.prefix(notification).bytes), reverse: false) { key, value in
            let delivery = try? RecordCodec.decode(DeliveryRecord.self, value.copied, key: key.copied)
            isRecipient = delivery?.uid == user.uid
            rowsLeft -= 1
            return isRecipient || rowsLeft <= 0 ? .stop : .next
        }
        guard isRecipient else { throw ResponseRefusal.notRecipient }
        let device = try user.session.flatMap { session in
            try devices(of: user.uid).first { $0.session == session }?.device
        }
        return Responder(uid: user.uid, device: device)
    }
}
