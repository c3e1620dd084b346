import HatoModel
import HatoPush

/// What the outcome of an attempt means for its device.
enum DeviceVerdict: Hashable, Sendable {
    case stays
    /// It is gone: a webhook is disabled, any other device removed.
    case ends(NotifierMetrics.Removal)
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
        /// The environment of APNs in which it was made.
        var environment: Notifier.APNsEnvironment?
        /// Whether the queue of the device is stopped.
        var isStopped: Bool
        /// When an e-mail of its app was taken last, since the start; nil: none was.
        var mailedAt: Int64?
    }
}
