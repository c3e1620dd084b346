import HatoFollow
public import HatoIdentity
import HatoModel
public import HatoRPC
public import HatoStorage
import Logging
import Synchronization

/// Turns credentials into tokens.
///
/// All durable state is in the store, and every change is one transaction: conflicts between two callers (one e-mail
/// for two accounts, one refresh token used twice) are resolved by the order of the transactions, never by locks here.
/// The contents of a response are durable before it is sent. Passwords are hashed outside transactions, on a bounded
/// pool.
///
/// State in memory, each with its own lock and none held across an `await`: the signing keys (`CurrentKeys`), attempts
/// (`AttemptLedger`), the hashing pool, verified tokens (`ServiceAuthenticator`), failures that are not recorded yet
/// (`AuditWriter`).
public final class AuthService: Sendable {
    /// As of now: administrators change parts of it.
    var configuration: AuthConfiguration { current.configuration }
    private let current: CurrentConfiguration
    let environment: AuthEnvironment
    let store: any Store
    let passwords: PasswordHasher
    let attempts: AttemptLedger
    let metrics = AuthMetrics()
    let followers: EventFollowers<AccountEvent>
    let auditWriter: AuditWriter
    let refreshKey: [UInt8]
    let secretRows: SecretRows
    let codeSecrets: CodeSecrets
    let codeRequests: CodeRequestLedger
    /// Nil: no mail is sent.
    let mail: MailSender?
    let providers: ProviderDirectory
    /// Authenticates the callers of this service with its own keys.
    public let authenticator: ServiceAuthenticator
    private let keys: CurrentKeys
    /// When the last of the `EventMarks` was written, in milliseconds since 1970; 0: before this start.
    let lastMark = Mutex<Int64>(0)
    /// Why the store takes no more writes; nil while it is open. Written once, by the store's own thread.
    private let storeEnd = Mutex<String?>(nil)

    /// Opens the service on a store, which holds its keys; a new store gets new ones.
    ///
    /// - Throws: the errors of the store; `RecordError` when its keys are missing, incomplete or of another format,
    ///   `KeyEncryptionError` when they cannot be decrypted, `PepperError` when passwords could not be checked.
    public static func open(
        _ configuration: AuthConfiguration, store: any Store, administratorKeys: AdministratorKeys,
        environment: AuthEnvironment
    ) async throws -> AuthService {
        let secrets = try await ServiceSecrets.open(store, environment, configuration.keyEncryption)
        try await PepperUse.open(configuration.pepper, in: store)
        let settings = try await store.read { try StoredSettings.find(in: $0) }
        let lifetime = configuration.tokenLifetimeSeconds * 1000
        try await LongestLifetime.raise(to: lifetime, in: store)
        try await StoreFigures.open(store)
        let keys = CurrentKeys(secrets.ring)
        var identity = IdentityConfiguration(project: configuration.project)
        identity.serviceKeys = configuration.serviceKeys
        let authenticator = ServiceAuthenticator(
            configuration: identity, administratorKeys: administratorKeys, now: environment.now, fetchKeys: nil)
        authenticator.replaceKeys(secrets.ring.published(now: environment.now(), lifetime: lifetime))
        let dependencies = Dependencies(
            store: store, environment: environment, refreshKey: secrets.refreshKey, keys: keys,
            settings: settings,
            providers: try await store.read { try ProviderRows.all(in: $0) }.map { try ProviderRecord($0) },
            mailDestination: try environment.mailDestination ?? configuration.mail?.makeDestination())
        let service = AuthService(configuration, dependencies, authenticator)
        try await FailureKeeper(service).load()
        if service.configuration.signUpAlwaysAccepts, service.mail == nil {
            environment.logger.warning(
                "no address can sign up: signUpAlwaysAccepts (auth.settings) needs mails, and mail-url is not set")
        }
        return service
    }

    /// The parts that the service is built on.
    private struct Dependencies {
        var store: any Store
        var environment: AuthEnvironment
        var refreshKey: [UInt8]
        var keys: CurrentKeys
        var settings: StoredSettings
        var providers: [ProviderRecord]
        var mailDestination: (any MailDestination)?
    }

    private init(
        _ configuration: AuthConfiguration, _ dependencies: Dependencies, _ authenticator: ServiceAuthenticator
    ) {
        current = CurrentConfiguration(configuration, dependencies.settings)
        self.authenticator = authenticator
        environment = dependencies.environment
        store = dependencies.store
        keys = dependencies.keys
        refreshKey = dependencies.refreshKey
        secretRows = SecretRows(encryption: configuration.keyEncryption)
        passwords = PasswordHasher(configuration, environment, metrics)
        attempts = AttemptLedger(configuration, key: dependencies.refreshKey, now: environment.now)
        codeSecrets = CodeSecrets(serviceKey: refreshKey, digitCount: configuration.codeDigits)
        codeRequests = CodeRequestLedger(configuration.limits, now: environment.now)
        mail = MailSender(
            configuration, codeSecrets, to: dependencies.mailDestination,
            MailSender.Parts(current: current, store: store, environment: environment, metrics: metrics))
        auditWriter = AuditWriter(
            configuration, dependencies.store, dependencies.environment, key: dependencies.refreshKey)
        followers = EventFollowers(
            store, followersMax: configuration.limits.followersMax, now: environment.now,
            newestPosition: { try EventMarks.newestPosition(in: $0) })
        providers = ProviderDirectory(
            dependencies.providers, ProviderDirectory.Parts(configuration, store, environment, metrics))
        configuration.backupFolder?.removeLeftovers()
        store.observeCommits({ _ in }, ended: { [weak self] in self?.storeEnded($0) })
    }

    /// The handlers of all methods that `Auth.methods` declares.
    public var router: RPCRouter {
        var router = RPCRouter()
        let methods: [any AuthMethods] = [
            SignUpMethod(service: self), SignInMethod(service: self), SessionMethods(service: self),
            SessionListMethods(service: self),
            AccountMethods(service: self), UsersMethods(service: self), MovingMethods(service: self),
            KeyMethods(service: self), SettingsMethods(service: self),
            BackupMethod(service: self), FollowMethods(service: self), AuditMethods(service: self),
            CodeMethods(service: self), SignInWithCodeMethod(service: self), InviteMethod(service: self),
            SignInWithProviderMethod(service: self), ProviderMethods(service: self),
            MailMethods(service: self), CustomTokenMethods(service: self), SessionCookieMethods(service: self),
        ]
        for group in methods { group.add(to: &router) }
        return router
    }

    /// The health of the service; `stopping` once the store has ended: the supervisor must restart the service.
    /// `degraded` while the mail server takes no mail.
    public var health: RPCHealth {
        let end = storeEnd.withLock { $0 }
        let problem = mail?.problem
        return RPCHealth(
            end != nil ? .stopping : problem == nil ? .ready : .degraded,
            checks: [
                "store": .string(end ?? "open"), "signingKey": .string(ring.current.kid),
                "passwordsWaiting": .number(Double(passwords.waitingCount)),
                "mail": .string(problem ?? (mail == nil ? "off" : "on")),
            ])
    }

    /// Updates the gauges that are not updated as events happen; called before a scrape.
    public func refreshFigures() {
        metrics.passwords(waiting: passwords.waitingCount, hashing: passwords.hashingCount)
    }

    private func storeEnded(_ error: StoreError) {
        storeEnd.withLock { $0 = "\(error)" }
        environment.logger.notice("the store has closed", metadata: ["reason": "\(error)"])
    }

    /// The rows of all sessions and keys: without them the next start makes new keys, and no token is valid.
    public static let rowsOfSessionsAndKeys: [KeyRange] = [
        AuthKey.sessions, AuthKey.sessionsOfUsers, AuthKey.signingKeys, KeyRange(prefix: AuthKey.refreshSecret),
    ]

    /// The rows of all codes and of the mails with them, which a backup does not know to be used.
    public static let rowsOfCodes: [KeyRange] =
        [
            AuthKey.codes, AuthKey.codesOfAddresses, AuthKey.recoveries, AuthKey.mails, AuthKey.deadMails,
            KeyRange(prefix: AuthKey.mailFigures),
        ] + AuthKey.mailsBySendTime

    func take(_ settings: StoredSettings, version: UInt64) { current.take(settings, version: version) }

    // MARK: Keys

    var ring: SigningKeyRing { keys.ring }

    var publishedKeys: [Auth.JWK] {
        ring.published(now: environment.now(), lifetime: configuration.tokenLifetimeSeconds * 1000)
    }

    func take(_ ring: SigningKeyRing, version: UInt64) {
        let (now, lifetime) = (environment.now(), configuration.tokenLifetimeSeconds * 1000)
        keys.take(ring, version: version) { [authenticator] newest in
            authenticator.replaceKeys(newest.published(now: now, lifetime: lifetime))
        }
    }

    // MARK: Sessions

    /// The client that begins a session.
    struct Device: Sendable {
        /// As its user reads it in the list of sessions.
        var label: String?
        /// Nil for a call without a socket.
        var network: String?
        var mark: NetworkMark
    }

    /// A session that is not written yet, and its first token.
    struct NewSession: Sendable {
        var id: [UInt8]
        var token: RefreshToken
        var device: Device

        /// - Parameter provider: with which the user signed in; nil: with the password, or without a credential.
        func record(of account: AccountRecord, now: Int64, by provider: SignInProvider? = nil) -> SessionRecord {
            // `validSince` is later for a second after a change that ended tokens, such as a new password.
            let now = max(now, account.validSince * 1000)
            var record = SessionRecord(
                id: id, uid: account.uid, provider: provider ?? (account.isAnonymous ? .anonymous : .password),
                authTime: now / 1000,
                rotation: RefreshRotationStateMachine(currentHash: token.hash, createdAt: now))
            (record.label, record.address) = (device.label, device.network)
            return record
        }
    }

    /// Throws `AuthError.invalidFields` for a label that is none.
    func newSession(_ label: String?, _ origin: CallOrigin) throws(AuthError) -> NewSession {
        let label = try AccountFormPolicy(configuration).label(label)
        let id = environment.randomBytes(SessionRecord.idBytes)
        return NewSession(
            id: id, token: RefreshToken(sessionID: id, secret: environment.randomBytes(RefreshToken.secretBytes)),
            device: Device(
                label: label, network: origin.address?.network, mark: NetworkMark(origin.address, key: refreshKey)))
    }

    /// The session of a caller among those of the account; nil for a user that an administrator impersonates without
    /// naming one. Throws `AuthError.sessionOver` when it has ended, and for a token that names none: it must not end
    /// the others.
    func ownSession(of user: Caller.User, among ids: [[UInt8]]) throws(AuthError) -> [UInt8]? {
        guard let name = user.session else {
            guard !user.hasToken else { throw .sessionOver }
            return nil
        }
        guard let own = ids.first(where: { SessionName.text($0, key: refreshKey) == name }) else {
            throw .sessionOver
        }
        return own
    }

    func name(of session: SessionRecord) -> String { SessionName.text(session.id, key: refreshKey) }

    /// A session that a transaction has written or found, with the account and the time of that transaction, so that no
    /// token is issued after the end of its session.
    struct Granted: Sendable {
        var account: AccountRecord
        var record: SessionRecord
        /// Milliseconds since 1970.
        var at: Int64
    }

    /// The response for a durable session.
    func session(_ granted: Granted, _ token: RefreshToken, isNewUser: Bool = false) throws -> Auth.Session {
        let (account, record) = (granted.account, granted.record)
        let issuedAt = max(granted.at / 1000, account.validSince)
        let claims = IDTokenClaims(
            account: account, provider: record.provider, sessionClaims: record.claims, session: name(of: record),
            authTime: record.authTime, issuedAt: issuedAt,
            expiresAt: issuedAt + configuration.tokenLifetimeSeconds)
        return Auth.Session(
            uid: account.uid, idToken: try sign(claims), refreshToken: token.text,
            expiresIn: Int(configuration.tokenLifetimeSeconds), isNewUser: isNewUser)
    }

    func sign(_ claims: IDTokenClaims) throws -> String {
        guard let key = ring.current.key else { throw SigningKeyRing.Problem.incomplete }
        metrics.count(.issuedToken)
        return try key.sign(claims.object(project: configuration.project))
    }
}
