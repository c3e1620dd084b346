public import HatoFetch
public import HatoIdentity
public import HatoPush
public import HatoRPC
public import HatoStorage

/// What the service needs to start.
public struct NotifierConfiguration: Sendable {
    /// Address, limits and TLS of its own server.
    public var server: RPCServerConfiguration
    /// How it reaches auth, without a credential.
    public var auth: RPCClientConfiguration
    /// How it reaches messages, without a credential.
    public var messages: RPCClientConfiguration
    /// Whose tokens it accepts.
    public var identity: IdentityConfiguration
    /// Keys that make a caller an administrator.
    public var administratorKeys: AdministratorKeys
    /// The service key for `NotifierServer.methodsOfMessages`, to follow the feed and read recipients; nil: there are
    /// no triggers.
    public var messagesKey: String?
    /// The service key for `NotifierServer.methodsOfAuth`, to follow the changes of accounts; nil: ID tokens are good
    /// until they expire, and devices stay, whatever becomes of their users.
    public var authKey: String?
    /// The addresses that webhooks may have.
    public var addresses = AddressGuard.Policy()
    /// Bounds of the look-ups of their names.
    public var lookUps = ResolverLimits()
    /// The apps and their credentials; `default` has those of Web Push in any case.
    public var apps = PushApps()
    /// Reads the apps again; nil: they cannot change. Throws an error that says what is wrong, without secrets.
    public var readApps: (@Sendable () throws -> PushApps)?
    /// Bounds of webhook requests.
    public var webhooks = WebhookChannel.Limits()
    /// When deliveries are tried again and given up.
    public var delivery = DeliveryPolicy()
    /// Bounds of what is accepted and held.
    public var limits = NotifierLimits()
    /// The only folder backups are written under; nil refuses them.
    public var backupFolder: BackupFolder?
    /// The clock, and how to wait for a time.
    public var time = TimeSource()
    /// A source of random bits for identifiers.
    public var random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    /// Makes reply tokens: the one of the store.
    var replyKey: ReplyKey?

    public init(
        server: RPCServerConfiguration, auth: RPCClientConfiguration, messages: RPCClientConfiguration,
        administratorKeys: AdministratorKeys
    ) {
        self.server = server
        self.auth = auth
        self.messages = messages
        self.administratorKeys = administratorKeys
        identity = IdentityConfiguration()
    }
}

/// When deliveries are tried, and how long what became of them is kept.
public struct DeliveryPolicy: Sendable, Hashable {
    /// How long to wait before the feed of messages is tried again.
    public var backoff = BackoffPolicy()
    /// How long a notification is worth delivering unless the request says otherwise.
    public var timeToLive: Duration = .seconds(24 * 3_600)
    /// How long an attempt may take before it is made again: above the time limit of every channel.
    public var lease: Duration = .seconds(60)
    /// Attempts at the same time, over all webhooks and subscriptions of Web Push.
    public var attemptsInFlightMax = 256
    /// Attempts at the same time at one provider (APNs, FCM), for each app.
    public var attemptsPerProviderMax = 500
    /// Attempts at the same time at devices of one user.
    public var attemptsPerUserMax = 8
    /// Attempts at the same time at webhooks of one host.
    public var attemptsPerHostMax = 32
    /// Attempts at the same time at one push service of browsers: all users of a browser have theirs there.
    public var attemptsPerPushServiceMax = 128
    /// Slow attempts at the same time, never more than half of `attemptsInFlightMax`; beyond, slow attempts of the
    /// users with the most are ended as failed ones.
    public var slowAttemptsMax = 128
    /// How long an attempt may run before it counts as slow.
    public var slowAfter: Duration = .seconds(1)
    /// How long a host is silent for a user after it did not respond in time: until then an attempt of the user there
    /// begins only while as many attempts may begin as cannot be slow, half of all at least. Where it had responded in
    /// time before, this holds for `slowAfter` only, and for twice as long each time that it is slow again.
    public var silentFor: Duration = .seconds(30)
    /// How long `sendToDevice` waits for the first attempts.
    public var firstAttempt: Duration = .seconds(10)
    /// How long a silent push waits for others that it is sent together with.
    public var silentPushDelay: Duration = .seconds(1)
    /// How long an idempotency key is remembered.
    public var idempotency: Duration = .seconds(24 * 3_600)
    /// Delivered and dropped ones are remembered this long after they could have expired.
    public var keepFinished: Duration = .seconds(7 * 24 * 3_600)
    /// How long dead deliveries are kept.
    public var keepDead: Duration = .seconds(30 * 24 * 3_600)
    /// What followers of `notifier.follow` can resume from.
    public var keepEvents: Duration = .seconds(7 * 24 * 3_600)
    /// How long the former secret of a device signs beside the new one.
    public var secretOverlap: Duration = .seconds(24 * 3_600)
    /// A phone or browser whose app did not register it again for so long is removed: it is not used any more.
    public var deviceSilence: Duration = .seconds(60 * 24 * 3_600)
    /// A device whose receiver has done nothing but fail for so long is disabled.
    public var disableAfter: Duration = .seconds(5 * 24 * 3_600)
    /// From the first notification of a thread to its e-mail, unless the user is seen until then.
    public var digestWait: Duration = .seconds(60)
    /// From one e-mail of a thread to the next, which has all that came meanwhile.
    public var digestPause: Duration = .seconds(600)

    public init() {}
}

extension Duration {
    /// Whole milliseconds.
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
