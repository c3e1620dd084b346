public import HatoIdentity
import HatoModel
public import HatoRPC
public import HatoStorage
import Logging
import Synchronization

/// Turns credentials into tokens.
///
/// Everything that must last is in the store, and every change is one transaction: what two callers want at once (one e-mail
/// for two accounts, one refresh token used twice) is settled by the order of the transactions, never by locks here. What an
/// answer says is durable before it is given. Passwords are hashed outside transactions, on a bounded pool.
///
/// State in memory, each with its own lock and none held across an `await`: the signing keys (`ring`), attempts
/// (`AttemptLedger`), the hashing pool, verified tokens (`ServiceAuthenticator`).
public final class AuthService: Sendable {
    /// The keys as of a commit; only a later commit replaces them.
    private struct HeldRing {
        var ring: SigningKeyRing
        var version: UInt64
    }

    let configuration: AuthConfiguration
    let environment: AuthEnvironment
    let store: any Store
    let passwords: PasswordHasher
    let attempts: AttemptLedger
    let metrics = AuthMetrics()
    let refreshKey: [UInt8]
    /// Who calls this service; verifies with the keys of this very service.
    public let authenticator: ServiceAuthenticator
    private let held: Mutex<HeldRing>

    /// Opens the service on a store, which keeps its keys; a new store gets new ones.
    public static func open(
        _ configuration: AuthConfiguration, store: any Store, administratorKeys: AdministratorKeys,
        environment: AuthEnvironment
    ) async throws -> AuthService {
        let secrets = try await ServiceSecrets.open(store, environment)
        let keys = secrets.ring.published(
            now: environment.now(), lifetime: configuration.tokenLifetimeSeconds * 1000)
        let authenticator = ServiceAuthenticator(
            configuration: IdentityConfiguration(project: configuration.project),
            administratorKeys: administratorKeys, now: environment.now, fetchKeys: { keys })
        authenticator.replaceKeys(keys)
        return AuthService(
            configuration, Foundations(store: store, environment: environment, secrets: secrets), authenticator)
    }

    /// What the service stands on.
    private struct Foundations {
        var store: any Store
        var environment: AuthEnvironment
        var secrets: ServiceSecrets
    }

    private init(
        _ configuration: AuthConfiguration, _ foundations: Foundations, _ authenticator: ServiceAuthenticator
    ) {
        self.configuration = configuration
        self.authenticator = authenticator
        environment = foundations.environment
        store = foundations.store
        passwords = PasswordHasher(configuration, environment)
        attempts = AttemptLedger(configuration, now: environment.now)
        refreshKey = foundations.secrets.refreshKey
        held = Mutex(HeldRing(ring: foundations.secrets.ring, version: 0))
    }

    /// The methods of the service, all that `Auth.methods` declares.
    public var router: RPCRouter {
        var router = RPCRouter()
        addSessionMethods(to: &router)
        addAccountMethods(to: &router)
        addUsersMethods(to: &router)
        addKeysMethods(to: &router)
        return router
    }

    public var health: RPCHealth {
        RPCHealth(
            .ready,
            checks: [
                "signingKey": .string(ring.current.kid), "passwordsWaiting": .number(Double(passwords.waitingCount)),
            ])
    }

    // MARK: Keys

    var ring: SigningKeyRing { held.withLock { $0.ring } }

    var publishedKeys: [Auth.JWK] {
        ring.published(now: environment.now(), lifetime: configuration.tokenLifetimeSeconds * 1000)
    }

    /// Takes the keys of a commit, unless those of a later one are here: answers of two rotations may come in any order.
    func take(_ ring: SigningKeyRing, version: UInt64) {
        let isNewest = held.withLock { held in
            guard version > held.version else { return false }
            held = HeldRing(ring: ring, version: version)
            return true
        }
        if isNewest { authenticator.replaceKeys(publishedKeys) }
    }

    // MARK: Sessions

    /// A session that is not written yet, and its first token.
    struct Beginning: Sendable {
        var id: [UInt8]
        var token: RefreshToken

        func record(of account: AccountRecord, now: Int64) -> SessionRecord {
            SessionRecord(
                id: id, uid: account.uid, provider: account.isAnonymous ? .anonymous : .password, authTime: now / 1000,
                rotation: RefreshRotationStateMachine(currentHash: token.hash, createdAt: now))
        }
    }

    func newBeginning() -> Beginning {
        let id = environment.randomBytes(SessionRecord.idBytes)
        return Beginning(
            id: id, token: RefreshToken(sessionID: id, secret: environment.randomBytes(RefreshToken.secretBytes)))
    }

    /// The answer for a session that is durable.
    func session(
        _ record: SessionRecord, _ token: RefreshToken, of account: AccountRecord, isNewUser: Bool = false
    ) throws -> Auth.Session {
        let issuedAt = environment.now() / 1000
        let claims = IDTokenClaims(
            account: account, provider: record.provider, authTime: record.authTime, issuedAt: issuedAt,
            expiresAt: issuedAt + configuration.tokenLifetimeSeconds)
        return Auth.Session(
            uid: account.uid, idToken: try sign(claims), refreshToken: token.text,
            expiresIn: Int(configuration.tokenLifetimeSeconds), isNewUser: isNewUser)
    }

    func sign(_ claims: IDTokenClaims) throws -> String {
        guard let key = ring.current.key else { throw SigningKeyRing.Problem.incomplete }
        return try key.sign(claims.object(project: configuration.project))
    }
}
