import HatoModel
import HatoRPC
import Logging
import Synchronization

/// Logs that a service takes no calls, and why, and that it takes them again. Any thread calls.
final class ServiceReports: Sendable {
    private let service: String
    private let address: String
    private let logger: Logger
    private let state = Mutex(ServiceOutage())
    private let start = ContinuousClock.now

    init(_ service: String, at address: String, _ logger: Logger) {
        (self.service, self.address, self.logger) = (service, address, logger)
    }

    /// A connection takes calls.
    func opened() {
        guard state.withLock({ $0.opened() }) else { return }
        logger.notice("a service takes calls again", metadata: ["service": "\(service)"])
    }

    /// A connection has ended before it took calls.
    ///
    /// - Parameter refusal: of the key by which the gateway speaks for its clients.
    func failed(_ end: RPCWireEnd, refusal: RPCError?) {
        guard let reason = refusal.map(Self.words(refusing:)) ?? end.words else { return }
        let now = ContinuousClock.now - start
        guard state.withLock({ $0.failed(reason, at: now) }) else { return }
        logger.warning(
            "a service takes no calls",
            metadata: ["service": "\(service)", "address": "\(address)", "reason": "\(reason)"])
    }

    /// By the reason alone: no text of a service that could name a key.
    private static func words(refusing error: RPCError) -> String {
        "it refuses the gateway's key (\(error.reason ?? "without a reason")): its service-keys-file must list the key "
            + "of outgoing-key-file with forward: true"
    }
}

extension RPCWireEnd {
    /// Why there was no connection; nil when it was closed here.
    fileprivate var words: String? {
        switch self {
        case .connectFailed(let words): words
        case .connectTimedOut(let limit): "no connection within \(limit.components.seconds) seconds"
        case .closed: nil
        case .lost(let words): words ?? "it has closed the connection"
        case .refused(let error): "it refuses the connection (\(error.reason ?? "without a reason"))"
        case .protocolError, .lineTooLong: "what listens there speaks another protocol"
        }
    }
}

/// What of a service's outages is logged: a value, which gets the time.
///
/// A warning comes at once, then at most once a minute; another reason at most once a second. A service that came back
/// is logged once, behind a warning.
struct ServiceOutage: Sendable {
    private static let pause = Duration.seconds(60)
    private static let pauseOfAnotherReason = Duration.seconds(1)

    private var last: (reason: String, time: Duration)?
    /// Whether a warning was logged since it was last seen to take calls.
    private var isAway = false

    /// Takes no calls. Returns whether to log it.
    ///
    /// - Parameter now: of a clock that never goes back.
    mutating func failed(_ reason: String, at now: Duration) -> Bool {
        if let last, now - last.time < (last.reason == reason ? Self.pause : Self.pauseOfAnotherReason) {
            return false
        }
        (last, isAway) = ((reason, now), true)
        return true
    }

    /// Takes calls. Returns whether to log it.
    mutating func opened() -> Bool {
        defer { isAway = false }
        return isAway
    }
}
