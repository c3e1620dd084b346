import HatoModel
import HatoPush

/// What the outcome of an attempt means for its device.
enum DeviceVerdict: Hashable, Sendable {
    case stays
    /// It is gone, with the reason that `disabledReason` has: a webhook is disabled, any other device removed.
    case ends(String)
    /// Its token is refused that had worked. It may be our mistake: the device stays for now.
    case isSuspect
    /// The other environment of APNs is tried next.
    case hasSwitched

    /// How long a token is refused at least before its device goes, in milliseconds: in that time many refused tokens
    /// stop the queue (`TokenRefusals`), and then no device goes.
    static let suspicion: Int64 = 60_000

    /// Beside what an attempt ended.
    struct Circumstances: Sendable {
        var now: Int64
        /// When the attempt began.
        var began: Int64
        /// Whether the queue of the device is stopped.
        var isStopped: Bool
    }
}

extension DeviceRecord {
    /// Remembers the outcome of an attempt.
    mutating func attemptEnded(
        _ outcome: DeliveryOutcome, _ circumstances: DeviceVerdict.Circumstances, _ policy: DeliveryPolicy
    ) -> DeviceVerdict {
        guard state == .active else { return .ends(disabledReason ?? "gone") }
        let now = circumstances.now
        switch outcome {
        case .delivered:
            (failingSince, refusedSince, hasSucceeded) = (nil, nil, true)
            return .stays
        case .postponed, .rejected, .providerRefused: return .stays
        case .deviceGone(_, let since):
            // Registered again since: it works again, or the next attempt says so.
            if lastSeen > since ?? circumstances.began { return .stays }
            return ends("gone")
        case .tokenRefused:
            if !hasSucceeded {
                guard platform == .apns, !hasSwitched else { return ends("gone") }
                environment = environment == .sandbox ? .production : .sandbox
                hasSwitched = true
                return .hasSwitched
            }
            let since = refusedSince ?? now
            refusedSince = since
            return circumstances.isStopped || now - since < DeviceVerdict.suspicion ? .isSuspect : ends("gone")
        case .failed:
            // A provider that fails says nothing about the device.
            guard queue == nil else { return .stays }
            let since = failingSince ?? now
            failingSince = since
            return now - since < policy.disableAfter.milliseconds ? .stays : ends("failing")
        }
    }

    private mutating func ends(_ reason: String) -> DeviceVerdict {
        state = .disabled
        disabledReason = reason
        return .ends(reason)
    }
}
