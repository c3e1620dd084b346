import HatoModel
import HatoPush
import HatoStorage

/// The user, and as far as it is known the device, that a report comes from.
struct Responder: Sendable, Hashable {
    var uid: String
    var device: String?
    /// Whether a reply token names the device, which must still be the user's.
    var isByToken = false
    /// Whether the user is one of auth.
    var isOfAccount = false
}

/// What a request reports.
enum ReportedChoice: Sendable, Hashable {
    case action(String)
    case quickReply(Int)
    case report(Notifier.Respond.Report)

    /// Throws `RPCError` that names the parameter.
    init(_ request: Notifier.Respond, _ limits: NotifierLimits) throws(RPCError) {
        switch (request.action, request.quickReply) {
        case (let action?, nil):
            self = Notifier.Respond.Report(rawValue: action).map { .report($0) } ?? .action(action)
        case (nil, let index?):
            guard (0..<Notifier.QuickReplies.count).contains(index) else {
                throw .invalidArgument("quickReply", reason: "invalid_quick_reply", "quickReply is from 0 to 5")
            }
            self = .quickReply(index)
        default:
            throw .invalidArgument("action", reason: "invalid_choice", "Give exactly one of action and quickReply")
        }
        try RequestChecks(limits: limits).size(request.text, "text", limits.replyTextBytesMax)
    }
}

/// One transaction that takes a report.
struct Responding: Sendable {
    let notification: String
    let choice: ReportedChoice
    let text: String?
    let responder: Responder
    let limits: NotifierLimits

    struct Outcome: Sendable, Hashable {
        var effect: Notifier.EffectState
        var reason: String?
        /// Whether it was reported before.
        var isRepetition = false
    }

    /// Throws `RPCError` and `ResponseRefusal`.
    func apply(to draft: inout OutboxDraft) throws -> Outcome {
        let key = NotificationRecord.key(notification)
        guard let record = try draft.transaction.readable(NotificationRecord.self, key) else {
            throw NotifierError.notificationNotFound(notification)
        }
        // What it did may have come before what auth said.
        if try GoneUsers.isGone(responder.uid, in: draft.transaction) {
            throw ResponseRefusal.refusedUser("user_not_found", isByToken: responder.isByToken)
        }
        let device = try device(draft.transaction)
        if case .report(let report) = choice {
            guard text == nil else { throw ResponseRefusal.textNotAllowed }
            return try add(report, to: &draft)
        }
        return try respond(try chosen(in: record, draft.transaction), of: record, device, to: &draft)
    }

    /// The device of a reply token. Throws when it is not the user's any more.
    private func device(_ rows: some StoreReading) throws -> DeviceRecord? {
        let device = try responder.device.flatMap { try rows.readable(DeviceRecord.self, DeviceRecord.key($0)) }
        guard responder.isByToken else { return device }
        guard let device, device.state == .active, device.uid == responder.uid else {
            throw ResponseRefusal.tokenRevoked
        }
        return device
    }

    private func add(
        _ report: Notifier.Respond.Report, to draft: inout OutboxDraft
    ) throws -> Outcome {
        // Only a reply token is of one device: a session can be that of one new device after the other.
        let device = responder.isByToken ? responder.device : nil
        let key = ReportRecord.key(notification, responder.uid, device: device)
        var record = try draft.transaction.readable(ReportRecord.self, key) ?? ReportRecord()
        guard record.add(report, at: draft.now) else { return Outcome(effect: .none, isRepetition: true) }
        draft.writes.put(key, record)
        draft.writes.record(OutboxEvent(report.event, of: notification, responder, at: draft.now))
        return Outcome(effect: .none)
    }

    // MARK: Actions

    /// An action of the category, as it was chosen.
    private struct Chosen {
        var action: Notifier.CategoryAction
        /// That of the action that takes the text, when a quick reply was chosen.
        var effect: Notifier.ActionEffect?
        var quickReply: Int?
    }

    private func chosen(in record: NotificationRecord, _ rows: some StoreReading) throws -> Chosen {
        let actions = try record.category.flatMap { try rows.category($0) }?.category.actions ?? []
        let action: Notifier.CategoryAction
        switch choice {
        case .action(let id):
            guard let found = actions.first(where: { $0.id == id }) else {
                throw ResponseRefusal.unknownAction(id, known: actions.map(\.id))
            }
            action = found
        case .quickReply(let index):
            guard let input = actions.first(where: { $0.input != nil }) else { throw ResponseRefusal.noTextInput }
            action = actions.first { $0.quickReply == index } ?? input
            guard text == nil else { throw ResponseRefusal.textNotAllowed }
            return Chosen(action: action, effect: input.effect, quickReply: index)
        case .report: throw RPCError.internalError
        }
        if let index = action.quickReply {
            guard text == nil else { throw ResponseRefusal.textNotAllowed }
            let input = actions.first { $0.input != nil }
            return Chosen(action: action, effect: input?.effect, quickReply: index)
        }
        guard action.input != nil || text == nil else { throw ResponseRefusal.textNotAllowed }
        guard action.input == nil || text?.isEmpty == false else { throw ResponseRefusal.textRequired }
        return Chosen(action: action, effect: action.effect, quickReply: nil)
    }

    private func respond(
        _ chosen: Chosen, of record: NotificationRecord, _ device: DeviceRecord?, to draft: inout OutboxDraft
    ) throws -> Outcome {
        let key = ResponseRecord.key(notification, responder.uid)
        if let former = try draft.transaction.readable(ResponseRecord.self, key) {
            guard former.action == chosen.action.id, former.text == text, former.quickReply == chosen.quickReply else {
                throw ResponseRefusal.alreadyResponded(action: former.action)
            }
            return Outcome(effect: former.effect, reason: former.reason, isRepetition: true)
        }
        var response = ResponseRecord(action: chosen.action.id, at: draft.now, effect: .none)
        response.text = text
        response.quickReply = chosen.quickReply
        response.device = responder.device
        var event = OutboxEvent(.action, of: notification, responder, at: draft.now)
        event.action = response.action
        event.text = text
        event.quickReply = chosen.quickReply
        draft.writes.record(event)
        if let effect = chosen.effect {
            do {
                if let effect = try ThreadEffect(effect, at: "effect") {
                    try effect.apply(to: record, by: responder, mutesMax: limits.mutesMax, in: &draft)
                    response.effect = .done
                } else {
                    try begin(effect, chosen, of: (record, device), in: &draft)
                    response.effect = .pending
                }
            } catch let error as ArgumentError {
                (response.effect, response.reason) = (.refused, error.reason)
                event.reason = error.reason
                draft.writes.record(event)
            }
        }
        draft.writes.put(key, response)
        return Outcome(effect: response.effect, reason: response.reason)
    }

    /// Throws `ArgumentError` when what fills the path is no key.
    private func begin(
        _ effect: Notifier.ActionEffect, _ chosen: Chosen,
        of target: (notification: NotificationRecord, device: DeviceRecord?), in draft: inout OutboxDraft
    ) throws {
        let record = target.notification
        func fill(_ place: PlaceText.Place) -> String? {
            switch place {
            case .uid: responder.uid
            case .name: nil
            case .text: text
            // A part of one can be another one.
            case .thread: record.isWhole(place) ? record.options?.thread : nil
            case .data(let field): record.isWhole(place) ? record.data[field] : nil
            }
        }
        var pending = EffectRecord(
            notification: notification, uid: responder.uid, action: chosen.action.id, kind: .webhook, path: .root,
            value: .null, fills: [:], respondedAt: draft.now, dueAt: draft.now)
        if let webhook = try WebhookEffect(effect, at: "effect") {
            (pending.value, pending.category) = (.string(webhook.url), record.category)
            let max = limits.reportsPerUserMax
            let reports = try ActionReport.waiting(
                of: responder.uid, at: webhook.url, upTo: max, in: draft.transaction)
            guard reports < max else { throw ResponseRefusal.tooManyReports(max) }
            for place in WebhookEffect.places(of: record) { pending.fills[place.name] = fill(place) }
        } else {
            let template = try EffectTemplate(effect, at: "effect", hasText: true)
            pending.fills = template.fills(fill)
            pending.kind = template.kind
            pending.path = try template.filledPath(with: pending.fills)
            (pending.value, pending.database) = (template.write.value, template.write.database)
        }
        pending.device = responder.device
        pending.locale = target.device?.locale
        pending.quickReply = chosen.quickReply
        let waiting = try draft.transaction.keys(
            EffectRecord.prefix(ofUser: responder.uid), limit: 2 * limits.effectsPerUserMax)
        // Those that cannot be read stay, and are not waited for.
        let count = try waiting.count { try !draft.isSetAside($0) }
        guard count < limits.effectsPerUserMax else {
            throw ResponseRefusal.tooManyEffects(limits.effectsPerUserMax)
        }
        draft.writes.put(pending.key, pending)
        draft.writes.put(pending.dueKey)
    }
}

extension Notifier.Respond.Report {
    fileprivate var event: Notifier.EventType {
        switch self {
        case .displayed: .displayed
        case .opened: .opened
        case .dismissed: .dismissed
        }
    }
}

/// Why a report is not taken.
enum ResponseRefusal: Error, Sendable, Hashable {
    case wrongToken
    case tokenExpired
    case tokenRevoked
    case tokenOfOther
    case notRecipient
    case unknownAction(String, known: [String])
    case noTextInput
    case textNotAllowed
    case textRequired
    case alreadyResponded(action: String)
    case tooManyEffects(Int)
    case tooManyReports(Int)
    /// With the reason of an `EffectRefusal`; `isByToken`: of a reply token.
    case refusedUser(String, isByToken: Bool)
}

extension ResponseRefusal: RPCErrorConvertible {
    var rpcError: RPCError {
        switch self {
        case .wrongToken:
            .unauthenticated(
                reason: "invalid_reply_token", "This is no replyToken of this service; hato.reply of a push is one",
                at: "replyToken")
        case .tokenExpired:
            .unauthenticated(
                reason: "reply_token_expired", "The replyToken has expired; use an ID token", at: "replyToken")
        case .tokenRevoked:
            .unauthenticated(
                reason: "reply_token_revoked", "The device of the replyToken is not the user's any more",
                at: "replyToken")
        case .refusedUser(let reason, isByToken: false):
            .unauthenticated(reason: reason, "The account of the user is deleted; sign in with one that is there")
        case .refusedUser(let reason, isByToken: true):
            .unauthenticated(reason: reason, "The user of the replyToken is disabled or deleted", at: "replyToken")
        case .tokenOfOther:
            .invalidArgument(
                "replyToken", reason: "other_notification", "The replyToken is that of another notification")
        case .notRecipient:
            RPCError(
                .permissionDenied, reason: "not_recipient", "The notification was not for this user",
                data: ["parameter": "notification"])
        case .unknownAction(let id, let known):
            .invalidArgument(
                "action", reason: "unknown_action",
                "The notification has no action \"\(id.prefix(80))\""
                    + (known.isEmpty ? "; it has no actions" : "; it has \(known.joined(separator: ", "))"))
        case .noTextInput:
            .invalidArgument(
                "quickReply", reason: "no_text_input", "The notification has no action with input")
        case .textNotAllowed:
            .invalidArgument("text", reason: "text_not_allowed", "This action takes no text; leave text away")
        case .textRequired:
            .invalidArgument("text", reason: "text_required", "This action needs a text, e.g. \"今行きます\"")
        case .alreadyResponded(let action):
            .failedPrecondition(
                reason: "already_responded", "The user has responded to this notification already",
                data: ["action": .string(action)])
        case .tooManyEffects(let max):
            .resourceExhausted(
                reason: "too_many_effects", "\(max) effects of this user are not done yet; try again later",
                retryAfterMs: 5_000)
        case .tooManyReports(let max):
            .resourceExhausted(
                reason: "too_many_reports",
                "\(max) reports of this user wait for the receiver of this action; try again later",
                retryAfterMs: 60_000)
        }
    }
}
