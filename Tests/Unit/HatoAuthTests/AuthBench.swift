import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Synchronization
import Testing

@testable import HatoAuth

/// An auth service on a memory store, with a clock that moves only when a test moves it, and a count of every hash.
///
/// The hash is cheap: it must differ by password and salt, and tests check the count. `AuthBench.scrypt` uses the real
/// one.
final class AuthBench: Sendable {
    static let password = "sazae-and-friends"

    struct Counts {
        var hashes = 0
        var running = 0
        var runningMax = 0
        var isHolding = false
    }

    private struct State {
        var now: Int64 = 1_795_000_000_000
        var counts = Counts()
    }

    let store: any Store
    let service: AuthService
    private let state: Shared

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    static func open(
        on store: (any Store)? = nil, since earlier: AuthBench? = nil, mails: MailCatcher? = nil,
        _ change: (inout AuthConfiguration) -> Void = { _ in }
    ) async throws -> AuthBench {
        var configuration = AuthConfiguration()
        configuration.scrypt = ScryptCost(logN: 4, r: 1, p: 1)
        change(&configuration)
        let shared = earlier?.state ?? Shared()
        let store = try store ?? earlier?.store ?? MemoryStore()
        var environment = AuthEnvironment(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, now: { shared.state.withLock { $0.now } })
        environment.derive = { password, salt, cost in try Self.derive(shared, password, salt, cost) }
        environment.mailDestination = mails
        let service = try await AuthService.open(
            configuration, store: store, administratorKeys: .none, environment: environment)
        return AuthBench(store, service, shared)
    }

    private init(_ store: any Store, _ service: AuthService, _ state: Shared) {
        self.store = store
        self.service = service
        self.state = state
    }

    // MARK: Time and counts

    var now: Int64 { state.state.withLock { $0.now } }
    var counts: Counts { state.state.withLock { $0.counts } }

    func pass(seconds: Int64) { state.state.withLock { $0.now += seconds * 1000 } }
    /// While held, a hash does not finish.
    func hold(_ isHolding: Bool) { state.state.withLock { $0.counts.isHolding = isHolding } }

    private static func derive(
        _ shared: Shared, _ password: [UInt8], _ salt: [UInt8], _ cost: ScryptCost
    ) throws -> [UInt8] {
        shared.state.withLock { state in
            state.counts.hashes += 1
            state.counts.running += 1
            state.counts.runningMax = max(state.counts.runningMax, state.counts.running)
        }
        while shared.state.withLock({ $0.counts.isHolding }) { pause() }
        defer { shared.state.withLock { $0.counts.running -= 1 } }
        return try PasswordHasher.scrypt(password, salt, cost)
    }

    // MARK: Calls

    func signUp(
        _ email: String? = "masuo@example.com", _ password: String? = AuthBench.password, username: String? = nil,
        name: String? = nil
    ) async throws -> Auth.Session {
        try await service.signUps.signUp(
            Auth.SignUp(email: email, password: password, username: username, displayName: name), CallOrigin())
    }

    func anonymous() async throws -> Auth.Session { try await service.signUps.signUp(Auth.SignUp(), CallOrigin()) }

    func upgrade(_ session: Auth.Session, _ email: String, _ password: String = AuthBench.password) async throws
        -> Auth.Session
    {
        var request = Auth.SignUp(email: email, password: password)
        request.idToken = session.idToken
        return try await service.signUps.signUp(request, CallOrigin())
    }

    func signIn(
        _ email: String? = "masuo@example.com", _ password: String = AuthBench.password, username: String? = nil,
        from address: String? = nil
    ) async throws -> Auth.Session {
        try await service.signIns.signIn(
            Auth.SignIn(email: email, username: username, password: password),
            CallOrigin(address: address.map { ClientAddress($0) }))
    }

    func refresh(_ token: String) async throws -> Auth.Session {
        try await service.sessions.refresh(Auth.Refresh(refreshToken: token), CallOrigin())
    }

    /// The caller of a session, as the RPC server authenticates it.
    func origin(_ session: Auth.Session) async throws -> CallOrigin {
        CallOrigin(caller: try await service.authenticator.authenticate(session.idToken))
    }

    func account(_ session: Auth.Session) async throws -> Auth.Account {
        try await service.accounts.account(try await origin(session))
    }

    func claims(_ idToken: String) async throws -> JSONObject {
        guard case .user(let user) = try await service.authenticator.authenticate(idToken) else { return [:] }
        return user.claims
    }
}

/// Lets other threads run; on a thread of the hashing pool, which may block.
private func pause() {
    let end = ContinuousClock.now + .milliseconds(1)
    while ContinuousClock.now < end {}
}

/// The wire error that `body` throws.
func wireError<Outcome>(_ body: () async throws -> Outcome) async -> RPCError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? any RPCErrorConvertible)?.rpcError ?? error as? RPCError
    }
}

extension AuthService {
    var signUps: SignUpMethod { SignUpMethod(service: self) }
    var signIns: SignInMethod { SignInMethod(service: self) }
    var sessions: SessionMethods { SessionMethods(service: self) }
    var accounts: AccountMethods { AccountMethods(service: self) }
    var users: UsersMethods { UsersMethods(service: self) }
    var keys: KeyMethods { KeyMethods(service: self) }
    var settings: SettingsMethods { SettingsMethods(service: self) }
}
