import HatoModel
import HatoPush
import HatoRPC
import HatoStorage

/// `notifier.sendToDevice`: the old call of Firebase.
struct SendToDeviceMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.SendToDevice.self, in: &router) { methods, request, _ in try await methods.send(request) }
    }

    private func send(_ request: Notifier.SendToDevice) async throws -> Notifier.SendToDevice.Result {
        let tokens = request.token.tokens
        guard !tokens.isEmpty, tokens.count <= configuration.limits.recipientsMax else {
            throw RPCError.invalidArgument(
                "token", reason: "invalid_recipients",
                "token is one token, or 1 to \(configuration.limits.recipientsMax)")
        }
        try checks.key(request.app, "app")
        try service.apps.requireCredentials(of: request.app ?? Delivery.defaultApp, for: .fcm)
        var new = try notification(request)
        try await complete(&new)
        guard let app = TokenApp(.fcm, app: request.app) else { throw RPCError.internalError }
        let forms = tokens.map { try? app.device(outbox.newID("dev_"), with: $0, at: new.createdAt) }
        let valid = forms.compactMap(\.self)
        new.recipients = .tokens(valid)
        let isDry = request.options?.dryRun == true
        var accepted = AcceptedNotification(notification: nil, recipients: 0)
        if !valid.isEmpty {
            accepted = isDry ? try await OutboxTrial(outbox).acceptance(of: new) : try await outbox.accept(new)
        }
        let outcomes = isDry ? [:] : try await firstOutcomes(of: accepted)
        var deliveries = accepted.deliveries[...]
        let results = forms.map { form -> Notifier.SendToDevice.Outcome in
            guard form != nil else { return .init(error: .init(.invalidToken, Self.malformed)) }
            guard let number = deliveries.popFirst().flatMap(\.self) else {
                return .init(error: .init(.tokenGone, Self.gone))
            }
            if let problem = UInt32(exactly: number).flatMap({ outcomes[$0]?.problem }) { return .init(error: problem) }
            return .init(messageId: isDry ? "dry_run" : "\(accepted.notification ?? "")-\(number)")
        }
        return .init(results: results, multicastId: Int(configuration.random() >> 11))
    }

    /// The old call's payloads name their type in the data.
    private func complete(_ new: inout NewNotification) async throws {
        guard let name = new.data.removeValue(forKey: Notifier.PayloadType.typeField) else { return }
        guard let typed = try await store.read({ try $0.typedContent(name) }) else {
            throw PayloadError.unknownType(name)
        }
        do { try typed.complete(&new, hasText: true, checks.limits) } catch { throw error.rpcError(typed.type) }
    }

    /// The old call returned what FCM said: its callers forget the tokens that are gone.
    private func firstOutcomes(of accepted: AcceptedNotification) async throws -> [UInt32: DeliveryRecord] {
        guard let notification = accepted.notification else { return [:] }
        let numbers = accepted.deliveries.compactMap { $0.flatMap { UInt32(exactly: $0) } }
        return try await outbox.firstAttempts.deliveries(
            numbers, of: notification, in: store, within: configuration.delivery.firstAttempt)
    }

    private static let malformed =
        "The token is malformed: a token of FCM has 1 to 4,096 characters of ASCII, none of them a blank"
    private static let gone = "FCM said before that this token is not registered any more"

    private func notification(_ request: Notifier.SendToDevice) throws(RPCError) -> NewNotification {
        let message = try LegacyMessage(request.payload, request.options ?? .init())
        let secondsMax = checks.givenSecondsMax
        let seconds = request.options?.timeToLive ?? LegacyMessage.defaultSeconds
        guard (0...secondsMax).contains(seconds) else {
            throw .invalidArgument(
                "options.timeToLive", reason: "invalid_ttl", "timeToLive is from 0 to \(secondsMax), e.g. 3600")
        }
        let now = configuration.time.now()
        var new = NewNotification(
            recipients: .tokens([]), text: message.text, createdAt: now,
            expiresAt: now + checks.timeToLive(max(1, seconds), otherwise: .zero))
        try checks.size(message.text.title, "payload.notification.title", configuration.limits.titleBytesMax)
        try checks.size(message.text.body, "payload.notification.body", configuration.limits.bodyBytesMax)
        try checks.key(message.options.sound, "payload.notification.sound")
        try checks.key(message.options.collapseKey, "options.collapseKey")
        try checks.data(request.payload.data, "payload.data")
        do { try checks.platforms(message.platforms) } catch {
            throw .invalidArgument(
                "payload.notification", reason: "invalid_payload",
                "What payload.notification becomes is wrong: \(error.message), e.g. a color is \"#3366ff\"")
        }
        new.data = request.payload.data ?? [:]
        new.collapseKey = message.options.collapseKey
        new.options = message.options
        new.platforms = message.platforms
        return new
    }
}

extension DeliveryRecord {
    /// Why it ended undelivered, in the old call's words; nil when it was delivered, goes on or is not wanted.
    var problem: Notifier.SendToDevice.Problem? {
        let said = machine.lastAttempt?.error ?? machine.reason ?? ""
        switch (machine.state, machine.reason, machine.lastAttempt?.status) {
        case (.pending, _, _), (.leased, _, _), (.delivered, _, _): return nil
        case (_, "device_gone", 400): return .init(.invalidToken, said)
        case (_, "device_gone", 403): return .init(.otherProject, said)
        case (_, "device_gone", _): return .init(.tokenGone, said)
        // FCM, too, returned an id for what a phone did not show; callers send again what is `unavailable`.
        case (.dropped, "off", _), (.dropped, "muted", _), (.dropped, "quiet", _), (.dropped, "coalesced", _),
            (.dropped, "collapsed", _):
            return nil
        case (_, "rejected", nil): return .init(.tooLarge, said)
        case (_, "rejected", _): return .init(.invalidMessage, said)
        default: return .init(.unavailable, said)
        }
    }
}
