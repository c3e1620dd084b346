import HatoModel
import HatoPush
import Synchronization

/// Whether the push services of browsers refuse what one app sends: a wrong key or subject. Pure.
///
/// An endpoint is what a user gave, so a refusal stops nothing. Many users in a row, with no delivery in between, are
/// a sign that the mistake is ours: at one service, or at all of them.
struct SignatureRefusals: Sendable {
    /// Users in a row whose subscriptions were refused.
    private static let usersMax = 5
    /// Services that are remembered; anyone can name one.
    private static let hostsMax = 64

    private struct Row {
        var users: Set<String> = []
        var since: Int64
        var words: String

        var isLong: Bool { users.count >= SignatureRefusals.usersMax }
    }

    /// Since the last delivery at any service.
    private var everywhere: Row?
    /// Since the last delivery at each service.
    private var hosts: [String: Row] = [:]
    private var hasDelivered = false

    /// `now` in milliseconds since 1970.
    mutating func attemptEnded(_ outcome: DeliveryOutcome, of lease: Lease, at now: Int64) {
        let host = lease.delivery.address.host
        switch outcome {
        case .delivered:
            (hasDelivered, everywhere, hosts[host]) = (true, nil, nil)
        case .failed(let response, _) where [400, 401, 403].contains(response.status):
            let content = lease.delivery.content
            let user = content.uid.isEmpty ? content.device : content.uid
            // Without the words of a receiver that a user named.
            let words = "responds with \(response.status ?? 0): check the key and the subject"
            if hosts[host] == nil, hosts.count >= Self.hostsMax {
                hosts = hosts.filter { $0.value.isLong }
                if hosts.count >= Self.hostsMax { hosts = [:] }
            }
            Self.add(user, "the push service \(host) \(words)", to: &hosts[host], at: now)
            Self.add(user, "one of several push services \(words)", to: &everywhere, at: now)
        case .failed, .postponed, .deviceGone, .tokenRefused, .rejected, .providerRefused: break
        }
    }

    private static func add(_ user: String, _ words: String, to row: inout Row?, at now: Int64) {
        var changed = row ?? Row(since: now, words: words)
        guard !changed.isLong else { return }
        changed.users.insert(user)
        changed.words = words
        row = changed
    }

    /// Services that take nothing are a problem of an app that is ready: deliveries go on, and five users with a server
    /// of their own must not set off an alarm.
    var status: Notifier.AppProvider {
        var shown = Notifier.AppProvider(platform: .webpush, status: hasDelivered ? .ready : .unchecked)
        let refusing = hosts.values.filter(\.isLong).min { $0.since < $1.since }
        if let row = refusing ?? everywhere, row.isLong { (shown.problem, shown.since) = (row.words, Int(row.since)) }
        return shown
    }
}

/// The refusals of each app, as its attempts end.
final class AppSignatures: Sendable {
    /// Devices name apps that have credentials: there are as many as these.
    private let apps = Mutex<[String: SignatureRefusals]>([:])

    func attemptEnded(_ outcome: DeliveryOutcome, of lease: Lease, at now: Int64) {
        guard lease.platform == .webpush else { return }
        apps.withLock { $0[lease.delivery.app, default: SignatureRefusals()].attemptEnded(outcome, of: lease, at: now) }
    }

    /// The credentials of apps may have changed: what was refused before says nothing.
    func reset() { apps.withLock { $0 = [:] } }

    /// What is known of each app that had attempts.
    var statuses: [String: Notifier.AppProvider] { apps.withLock { $0.mapValues(\.status) } }
}
