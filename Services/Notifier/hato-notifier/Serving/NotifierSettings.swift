import HatoFetch
import HatoModel
import HatoNotifier
import HatoPush
import HatoRuntime

/// The settings of `hato-notifier serve`.
enum NotifierSettings {
    static let process = ServiceProcess(
        service: NotifierTarget.service,
        declared: ServeSettings.declared(defaultPort: NotifierTarget.port)
            + [
                ServeSettings.peer("auth", defaultPort: 7701), ServeSettings.peer("messages", defaultPort: 7702),
                ServeSettings.outgoingKey,
                Setting(
                    "allow-private-webhooks", .flag, default: "false",
                    help: "let webhooks go to this machine and private networks, plain http and any port"),
                Setting(
                    "apps-file", .file,
                    help: "file with the credentials of apps for APNs, FCM, Web Push and e-mail, in YAML (README)"
                ),
                Setting("webhook-ports", .text, default: "443,8443", help: "the ports webhooks may go to"),
            ] + ServeSettings.peerTLS + ownSettings)

    /// Writes what the settings say of deliveries, webhooks and limits. Throws `SettingsError`.
    static func apply(_ settings: Settings, to configuration: inout NotifierConfiguration) throws {
        configuration.addresses.allowsPrivate = settings.flag("allow-private-webhooks")
        configuration.addresses.ports = try settings["webhook-ports"].split(separator: ",").map { text in
            guard let port = Int(text), (1...65_535).contains(port) else {
                throw SettingsError("setting webhook-ports: \"\(text)\" is no port; give e.g. 443,8443")
            }
            return port
        }
        for member in members { member.set(&configuration, settings.integer(member.setting.name)) }
        configuration.limits = settings.limits(NotifierLimits.self)
        configuration.lookUps = settings.limits(ResolverLimits.self)
        let lookUp = Duration.milliseconds(configuration.lookUps.lookUpMsMax)
        guard configuration.delivery.lease > configuration.webhooks.timeout + lookUp else {
            throw SettingsError(
                "settings lease-seconds, webhook-timeout-seconds and look-up-ms-max: a lease must outlast an "
                    + "attempt and its look-up")
        }
    }

    // MARK: Table

    /// A setting and what it changes.
    private struct Member: Sendable {
        var setting: Setting
        var set: @Sendable (inout NotifierConfiguration, Int) -> Void
    }

    private typealias PolicyPath<Value> = WritableKeyPath<DeliveryPolicy, Value> & Sendable

    private static func delivery(
        _ name: String, _ path: any PolicyPath<Int>, _ range: ClosedRange<Int>, _ help: String
    ) -> Member {
        let preset = DeliveryPolicy()[keyPath: path]
        return Member(
            setting: Setting(name, .integer(range), default: "\(preset)", help: help),
            set: { $0.delivery[keyPath: path] = $1 })
    }

    private static func seconds(_ name: String, _ path: any PolicyPath<Duration>, _ help: String) -> Member {
        let preset = DeliveryPolicy()[keyPath: path].components.seconds
        return Member(
            setting: Setting(name, .integer(1...315_360_000), default: "\(preset)", help: help),
            set: { $0.delivery[keyPath: path] = .seconds($1) })
    }

    private static func milliseconds(_ name: String, _ path: any PolicyPath<Duration>, _ help: String) -> Member {
        let preset = DeliveryPolicy()[keyPath: path] / .milliseconds(1)
        return Member(
            setting: Setting(name, .integer(1...3_600_000), default: "\(Int(preset))", help: help),
            set: { $0.delivery[keyPath: path] = .milliseconds($1) })
    }

    private static let members: [Member] =
        [
            delivery(
                "attempts-in-flight-max", \.attemptsInFlightMax, 1...4_096,
                "attempts at a time at webhooks and subscriptions of Web Push"),
            delivery(
                "attempts-per-provider-max", \.attemptsPerProviderMax, 1...10_000,
                "attempts at a time at APNs or FCM, for each app"),
            delivery(
                "attempts-per-user-max", \.attemptsPerUserMax, 1...4_096, "attempts at a time at devices of one user"),
            delivery(
                "attempts-per-host-max", \.attemptsPerHostMax, 1...4_096, "attempts at a time at webhooks of one host"),
            delivery(
                "attempts-per-push-service-max", \.attemptsPerPushServiceMax, 1...4_096,
                "attempts at a time at one push service of browsers"),
            delivery(
                "slow-attempts-max", \.slowAttemptsMax, 1...4_096,
                "attempts at a time that are slow, half of all at most; beyond, those of users with the most end early"),
            milliseconds(
                "slow-attempt-ms", \.slowAfter, "milliseconds after which an attempt is slow"),
            seconds(
                "silent-host-seconds", \.silentFor,
                "seconds for which a host is silent for a user: attempts there begin only while half of all are free"),
            seconds(
                "backoff-first-seconds", \.backoff.first,
                "longest wait after the first failure, in seconds; doubles with each failure"),
            seconds("backoff-longest-seconds", \.backoff.longest, "longest wait after any failure, in seconds"),
            seconds(
                "ttl-seconds", \.timeToLive,
                "seconds after which a notification expires, unless it has a time of its own"),
            seconds("lease-seconds", \.lease, "seconds after which an attempt without a result is repeated"),
            seconds("idempotency-seconds", \.idempotency, "seconds that an idempotency key is kept"),
            seconds(
                "keep-finished-seconds", \.keepFinished, "seconds that the status of a finished notification is kept"),
            seconds("keep-dead-seconds", \.keepDead, "seconds that dead deliveries are kept"),
            seconds("keep-events-seconds", \.keepEvents, "seconds that events are kept for followers that resume"),
            seconds("secret-overlap-seconds", \.secretOverlap, "seconds for which a former signing secret signs too"),
            seconds(
                "device-silence-seconds", \.deviceSilence,
                "seconds after which a phone or browser that was not registered again is removed"),
            seconds(
                "disable-after-seconds", \.disableAfter,
                "seconds after which a device whose attempts all failed is disabled"),
            seconds(
                "digest-wait-seconds", \.digestWait,
                "seconds from the first notification of a thread to its e-mail, which a phone of the user can end"),
            seconds("digest-pause-seconds", \.digestPause, "seconds from one e-mail of a thread to the next"),
            Member(
                setting: Setting(
                    "webhook-timeout-seconds", .integer(1...300), default: "15",
                    help: "seconds a receiver may take to respond"),
                set: { $0.webhooks.timeout = .seconds($1) }),
        ]

    private static let ownSettings: [Setting] = members.map(\.setting) + limits + ResolverLimits.all.map { Setting($0) }

    /// The notifier's bytes are all that is held beside requests.
    private static let limits: [Setting] = NotifierLimits.all.map { limit in
        let setting = Setting(limit)
        return limit.name == "trigger-bytes-max" ? setting.following(MemoryDerivation(.held)) : setting
    }
}
