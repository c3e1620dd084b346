import HatoModel
import HatoPush
import HatoRPC

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
        var new = try notification(request)
        guard let app = TokenApp(.fcm, app: request.app) else { throw RPCError.internalError }
        let forms = tokens.map { try? app.device(outbox.newID("dev_"), with: $0, at: new.createdAt) }
        let valid = forms.compactMap(\.self)
        new.recipients = .tokens(valid)
        let isDry = request.options?.dryRun == true
        var accepted = AcceptedNotification(notification: nil, recipients: 0)
        if !valid.isEmpty { accepted = isDry ? try await outbox.trial(new) : try await outbox.accept(new) }
        var deliveries = accepted.deliveries[...]
        let results = forms.map { form -> Notifier.SendToDevice.Outcome in
            guard form != nil else {
                return .init(error: .init(code: "messaging/invalid-registration-token", message: Self.malformed))
            }
            guard let number = deliveries.popFirst().flatMap(\.self) else {
                return .init(error: .init(code: "messaging/registration-token-not-registered", message: Self.gone))
            }
            return .init(messageId: isDry ? "dry_run" : "\(accepted.notification ?? "")-\(number)")
        }
        return .init(results: results, multicastId: Int(configuration.random() >> 11))
    }

    private static let malformed =
        "The token is malformed: a token of FCM has 1 to 4,096 characters of ASCII, none of them a blank"
    private static let gone = "FCM said before that this token is not registered any more"

    private func notification(_ request: Notifier.SendToDevice) throws(RPCError) -> NewNotification {
        let message = try LegacyMessage(request.payload, request.options ?? .init())
        let secondsMax = configuration.limits.timeToLiveSecondsMax
        let seconds = request.options?.timeToLive ?? min(secondsMax, LegacyMessage.defaultSeconds)
        guard (0...secondsMax).contains(seconds) else {
            throw .invalidArgument(
                "options.timeToLive", reason: "invalid_ttl", "timeToLive is from 0 to \(secondsMax), e.g. 3600")
        }
        let now = configuration.time.now()
        var new = NewNotification(
            recipients: .tokens([]), text: message.text, createdAt: now,
            expiresAt: now + Int64(max(1, seconds)) * 1_000)
        try checks.size(message.text.title, "payload.notification.title", configuration.limits.titleBytesMax)
        try checks.size(message.text.body, "payload.notification.body", configuration.limits.bodyBytesMax)
        try checks.key(message.options.sound, "payload.notification.sound")
        try checks.key(message.options.collapseKey, "options.collapseKey")
        try checks.data(request.payload.data)
        try checks.platforms(message.platforms)
        new.data = request.payload.data ?? [:]
        new.collapseKey = message.options.collapseKey
        new.options = message.options
        new.platforms = message.platforms
        return new
    }
}
