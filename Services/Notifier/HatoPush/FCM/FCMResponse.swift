import HatoModel

/// Decides what a response of FCM means: by the `errorCode` of its own detail, and by the HTTP status where there is
/// none.
struct FCMResponse: Sendable {
    enum Decision: Hashable {
        case outcome(DeliveryOutcome)
        /// The access token is refused, and nothing is said about the message: another token may do.
        case accessTokenRefused(DeliveryResponse)
    }

    private static let nameBytesMax = 256
    private static let errorType = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    private static let fieldsType = "type.googleapis.com/google.rpc.BadRequest"
    /// FCM asks for it where it names no time.
    private static let quotaDelay = Duration.seconds(60)

    private let received: FCMReceived
    private let json: JSONValue?
    private let details: [JSONValue]
    private let said: String
    /// FCM's own, such as `UNREGISTERED`.
    private let errorCode: String?
    /// Seconds since 1970.
    private let now: Int64

    /// `secrets` do not get into errors; `now` in seconds since 1970.
    init(_ received: FCMReceived, secrets: [String], now: Int64) {
        self.received = received
        self.now = now
        json = try? JSONParser.parse(received.body, depth: 16)
        details = json?["error"]?["details"]?.array ?? []
        said = received.excerpt(json?["error"]?["message"]?.string, without: secrets)
        errorCode = details.first { $0["@type"]?.string == Self.errorType }?["errorCode"]?.string
    }

    var decision: Decision {
        // Whatever the body says: FCM has the message.
        if (200..<300).contains(received.status) { return .outcome(.delivered(delivered)) }
        if let errorCode, let outcome = outcome(of: errorCode) { return .outcome(outcome) }
        return decisionByStatus
    }

    private func outcome(of errorCode: String) -> DeliveryOutcome? {
        switch errorCode {
        case "UNREGISTERED": .deviceGone(response("the app is no longer registered"), since: nil)
        case "INVALID_ARGUMENT":
            namesTheToken
                ? .deviceGone(response("the registration is none"), since: nil)
                : .rejected(response("FCM refuses the message"))
        case "SENDER_ID_MISMATCH": .tokenRefused(response("the registration is of another Firebase project"))
        case "QUOTA_EXCEEDED": .failed(response("a quota is used up"), retryAfter: delay ?? Self.quotaDelay)
        case "UNAVAILABLE", "INTERNAL": .failed(response("FCM failed"), retryAfter: delay)
        case "THIRD_PARTY_AUTH_ERROR", "APNS_AUTH_ERROR":
            .failed(refusedBehindFCM, retryAfter: nil)
        default: nil
        }
    }

    private var decisionByStatus: Decision {
        switch received.status {
        case 401: .accessTokenRefused(response("FCM refuses the access token"))
        case 403:
            .outcome(
                .providerRefused(response("the service account may not send to this project"), retryAfter: nil))
        // A registration that is gone has a detail.
        case 404: .outcome(.providerRefused(response("FCM does not know the project"), retryAfter: nil))
        case 429: .outcome(.failed(response("a quota is used up"), retryAfter: delay ?? Self.quotaDelay))
        case 408, 500...: .outcome(.failed(response("FCM failed"), retryAfter: delay))
        case 300..<400: .outcome(.failed(response("redirects are not followed"), retryAfter: nil))
        default: .outcome(.rejected(response("FCM refuses the message")))
        }
    }

    /// FCM has one error for a bad message and a bad registration: only where it names no field and speaks of the
    /// registration, the message is right.
    private var namesTheToken: Bool {
        guard !details.contains(where: { $0["@type"]?.string == Self.fieldsType }) else { return false }
        let message = json?["error"]?["message"]?.string?.lowercased() ?? ""
        return message.contains("registration token") && message.contains("not a valid")
    }

    /// By the service behind FCM that reaches Apple's devices or browsers: those on Android are called on.
    private var refusedBehindFCM: DeliveryResponse {
        var response = response("the APNs or Web Push key of the Firebase project is refused")
        response.isMisconfiguration = true
        return response
    }

    private var delay: Duration? { RetryAfter.delay(received.retryAfter, now: now) }

    private var delivered: DeliveryResponse {
        let name = json?["name"]?.string.flatMap { name in
            name.isEmpty ? nil : String(decoding: name.utf8.prefix(Self.nameBytesMax), as: UTF8.self)
        }
        return DeliveryResponse(status: received.status, providerID: name)
    }

    private func response(_ what: String) -> DeliveryResponse {
        DeliveryResponse(
            status: received.status, error: said.isEmpty ? what : "\(what): \(said)",
            reason: errorCode ?? json?["error"]?["status"]?.string)
    }
}
