import HatoModel
import HatoPush
import Metrics
import Synchronization

/// What is counted of providers: why they refuse, and whether they are called. Apps are those of the apps file; all
/// other labels have few values, whatever a provider or a receiver responds.
final class ProviderMetrics: Sendable {
    private static let refusals = "hato_notifier_attempts_refused_total"
    private let queuesWaiting = Gauge(label: "hato_notifier_provider_queues_waiting")
    /// Those that were shown before, which may be no more.
    private let shown = Mutex<[String: ProviderStatuses.Entry]>([:])

    /// Other words and statuses are `other`.
    private static let words: Set = [
        // APNs
        "BadCertificate", "BadCertificateEnvironment", "BadCollapseId", "BadDeviceToken", "BadEnvironmentKeyIdInToken",
        "BadExpirationDate", "BadMessageId", "BadPath", "BadPriority", "BadTopic", "DeviceTokenNotForTopic",
        "DuplicateHeaders", "ExpiredProviderToken", "ExpiredToken", "Forbidden", "IdleTimeout", "InternalServerError",
        "InvalidProviderToken", "InvalidPushType", "MethodNotAllowed", "MissingDeviceToken", "MissingProviderToken",
        "MissingTopic", "PayloadEmpty", "PayloadTooLarge", "ServiceUnavailable", "Shutdown",
        "TooManyProviderTokenUpdates", "TooManyRequests", "TopicDisallowed", "Unregistered",
        // FCM
        "APNS_AUTH_ERROR", "INTERNAL", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "QUOTA_EXCEEDED",
        "RESOURCE_EXHAUSTED", "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED", "UNAVAILABLE",
        "UNREGISTERED",
    ]
    private static let statuses: Set = [
        // HTTP
        301, 302, 307, 308, 400, 401, 403, 404, 405, 408, 410, 413, 415, 429, 500, 502, 503, 504,
        // SMTP
        421, 450, 451, 452, 501, 530, 535, 550, 551, 552, 553, 554,
    ]

    init() {
        // From the start, with 0.
        for platform in Notifier.Platform.allCases { Self.refusal(platform, Self.other).increment(by: 0) }
    }

    private static let other = "other"

    /// The label of an outcome; nil: it was delivered, or the receiver was not called.
    static func reason(_ outcome: DeliveryOutcome) -> String? {
        switch outcome {
        case .delivered, .postponed: return nil
        case .failed, .deviceGone, .tokenRefused, .rejected, .providerRefused: break
        }
        let response = outcome.response
        if let word = response.reason, words.contains(word) { return word }
        guard let status = response.status else { return "no_response" }
        return statuses.contains(status) ? String(status) : other
    }

    func attemptEnded(_ outcome: DeliveryOutcome, at platform: Notifier.Platform) {
        if let reason = Self.reason(outcome) { Self.refusal(platform, reason).increment() }
    }

    private static func refusal(_ platform: Notifier.Platform, _ reason: String) -> Counter {
        Counter(label: refusals, dimensions: [("platform", platform.rawValue), ("reason", reason)])
    }

    /// Shows in which state each of these is now.
    func show(_ entries: [ProviderStatuses.Entry]) {
        queuesWaiting.record(entries.count(where: \.isWaiting))
        let former = shown.withLock { shown in
            defer { shown = Dictionary(entries.map { ($0.name, $0) }) { $1 } }
            return shown
        }
        let names = Set(entries.map(\.name))
        for entry in former.values where !names.contains(entry.name) { show(entry, in: nil) }
        for entry in entries { show(entry, in: entry.provider.status) }
    }

    private func show(_ entry: ProviderStatuses.Entry, in status: Notifier.ProviderStatus?) {
        for state in Notifier.ProviderStatus.allCases {
            Gauge(
                label: "hato_notifier_provider_state",
                dimensions: [
                    ("app", entry.app), ("platform", entry.provider.platform.rawValue), ("state", state.rawValue),
                ]
            ).record(state == status ? 1 : 0)
        }
    }
}
