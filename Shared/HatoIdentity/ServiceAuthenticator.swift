import Crypto
public import HatoModel
import Synchronization

/// Authenticates callers.
///
/// It has the administrator keys and verifies ID tokens with the public keys of auth (protocol §2). The keys come from
/// `fetchKeys` and are kept on disk. They are fetched again when a token names an unknown key, as often as
/// `KeyFetchStateMachine` allows and one fetch at a time. A verified token is cached until it expires.
///
/// `remembered` is called on event loops: it takes a hash and a look-up under a lock that is never held for longer
/// work.
public final class ServiceAuthenticator: Authenticator {
    /// Whether tokens can be verified.
    public enum Health: Sendable, Hashable {
        case ready
        /// No keys were received yet; the text is the last problem.
        case degraded(String)
    }

    private struct State {
        var verifier: TokenVerifier
        /// How often the keys were replaced.
        var replacements = 0
        var tokens: TokenCache
        var refusals: TokenRefusals
        var fetch = KeyFetchStateMachine()
        var flight: Task<Void, any Error>?
        var lastProblem = "the public keys of auth have not come yet"
        /// Called when identities end before their time.
        var endWatches: [@Sendable () -> Void] = []

        func isRefused(_ token: VerifiedToken) -> Bool {
            refusals.contains(uid: token.uid, session: token.session, issuedAt: token.issuedAt)
        }

        /// The keys of auth without those that have leaked.
        func trusted(_ keys: [VerificationKey]) -> [VerificationKey] {
            keys.filter { !refusals.contains(key: $0.kid) }
        }
    }

    private let configuration: IdentityConfiguration
    private let administratorKeys: AdministratorKeys
    private let now: @Sendable () -> Int64
    private let fetchKeys: (@Sendable () async throws -> [Auth.JWK])?
    private let state: Mutex<State>
    private let endingsCount = Atomic(0)

    /// Whether those that watch are being called.
    private enum EndWalk {
        case none
        /// They were called less than a pause ago.
        case under
        /// And more has ended since.
        case again
    }

    private let endWalk = Mutex(EndWalk.none)

    /// Reads the keys from the file at once when there is one. `now` in milliseconds since 1970.
    ///
    /// - Parameter fetchKeys: nil for auth itself: `replaceKeys` gives it every key before the first token of it.
    public init(
        configuration: IdentityConfiguration, administratorKeys: AdministratorKeys,
        now: @escaping @Sendable () -> Int64 = WallClock.milliseconds,
        fetchKeys: (@Sendable () async throws -> [Auth.JWK])?
    ) {
        self.configuration = configuration
        self.administratorKeys = administratorKeys
        self.now = now
        self.fetchKeys = fetchKeys
        let kept = configuration.keysFile.flatMap { PublicKeyFile(path: $0).read() } ?? []
        state = Mutex(
            State(
                verifier: TokenVerifier(configuration: configuration, keys: kept),
                tokens: TokenCache(countMax: configuration.rememberedTokensMax),
                refusals: TokenRefusals(countMax: configuration.refusalsMax)))
    }

    /// Whether tokens can be verified now.
    public var health: Health {
        state.withLock { $0.verifier.keys.isEmpty ? .degraded($0.lastProblem) : .ready }
    }

    /// Fetches the keys until the first success, then every `refreshInterval`, until the task is cancelled.
    public func run() async {
        var pause = Duration.milliseconds(250)
        while !Task.isCancelled {
            do {
                try await fetch()
                pause = configuration.refreshInterval
            } catch {
                pause = min(max(pause * 2, .milliseconds(250)), .seconds(15))
            }
            try? await Task.sleep(for: pause)
        }
    }

    // MARK: Authenticator

    public func remembered(_ credential: String) -> Caller? { remembered(Self.digest(credential)) }

    private func remembered(_ digest: SHA256Digest) -> Caller? {
        if administratorKeys.contains(digest) { return .administrator }
        if let service = configuration.serviceKeys.service(digest) { return .service(service) }
        let now = now()
        return state.withLock { state in
            guard let token = state.tokens.token(digest, now: now), !state.isRefused(token) else { return nil }
            return .user(token.caller)
        }
    }

    public func authenticate(_ credential: String) async throws -> Caller {
        let digest = Self.digest(credential)
        if let caller = remembered(digest) { return caller }
        do {
            return .user(try verify(credential, digest).caller)
        } catch TokenError.unknownKey(let kid) where !kid.isEmpty && fetchKeys != nil {
            try await fetchKey(kid, of: credential)
        } catch {
            throw error.rpcError
        }
        do {
            return .user(try verify(credential, digest).caller)
        } catch {
            throw error.rpcError
        }
    }

    /// Verifies an ID token with the current keys, and caches it.
    /// Throws `TokenError` for a token that is not valid now.
    public func verify(_ idToken: String) throws(TokenError) -> VerifiedToken {
        try verify(idToken, Self.digest(idToken))
    }

    private func verify(_ idToken: String, _ digest: SHA256Digest) throws(TokenError) -> VerifiedToken {
        let now = now()
        while true {
            let (verifier, replacements) = state.withLock { ($0.verifier, $0.replacements) }
            let token = try verifier.verify(idToken, now: now)
            let isRefused: Bool? = state.withLock { state in
                // Its key may be gone: it is verified again.
                guard state.replacements == replacements else { return nil }
                if state.isRefused(token) { return true }
                state.tokens.insert(token, digest, now: now)
                return false
            }
            switch isRefused {
            case true?: throw .revoked
            case false?: return token
            case nil: continue
            }
        }
    }

    public var endings: Int { endingsCount.load(ordering: .acquiring) }

    public func hasEnded(_ user: Caller.User) -> Bool {
        guard let kid = user.kid else { return false }
        return state.withLock { state in
            state.verifier.keys[kid] == nil
                || state.refusals.contains(
                    uid: user.uid, session: user.session,
                    issuedAt: user.claims["iat"].flatMap(TokenVerifier.seconds) ?? 0)
        }
    }

    public func onEndings(_ ended: @escaping @Sendable () -> Void) {
        state.withLock { $0.endWatches.append(ended) }
    }

    /// After the change of the state that ended identities. A call of the watches looks at all connections: at
    /// most ten a second.
    private func identitiesEnded() {
        endingsCount.wrappingAdd(1, ordering: .acquiringAndReleasing)
        let isDue = endWalk.withLock { walk in
            defer { walk = walk == .none ? .under : .again }
            return walk == .none
        }
        if isDue { walk() }
    }

    private func walk() {
        for ended in state.withLock({ $0.endWatches }) { ended() }
        // Unstructured: ends after the pause.
        Task {
            try? await Task.sleep(for: .milliseconds(100))
            let isAgain = self.endWalk.withLock { walk in
                defer { walk = walk == .again ? .under : .none }
                return walk == .again
            }
            if isAgain { self.walk() }
        }
    }

    // MARK: Updates from auth

    /// Replaces the keys with keys that were not fetched: auth rotated them, or this is auth.
    public func replaceKeys(_ keys: [Auth.JWK]) {
        let usable = keys.compactMap { VerificationKey($0) }
        guard !usable.isEmpty else { return }
        let isOneRemoved = state.withLock { state in
            let trusted = state.trusted(usable)
            guard !state.verifier.has(exactly: trusted) else { return false }
            return replaceKeys(trusted, in: &state)
        }
        if isOneRemoved { identitiesEnded() }
    }

    /// Whether a key was removed.
    private func replaceKeys(_ keys: [VerificationKey], in state: inout State) -> Bool {
        let before = state.verifier.keys
        state.verifier.replaceKeys(keys)
        state.replacements += 1
        // A token of a removed key must be verified again, and fail.
        state.tokens = TokenCache(countMax: configuration.rememberedTokensMax)
        return before.keys.contains { state.verifier.keys[$0] == nil }
    }

    /// Refuses tokens before they expire, and accepts some again. Connections whose identity has ended by it lose it,
    /// within a tenth of a second.
    ///
    /// - Returns: what is to be kept, so that `load` refuses the same after a restart.
    @discardableResult
    public func apply(_ change: TokenRefusalChange) -> KeptRefusals {
        let now = now()
        let kept = state.withLock { state in
            let kept = state.refusals.apply(change, now: now)
            if !kept.keys.isEmpty { distrustLeakedKeys(in: &state) }
            return kept
        }
        if case .refuse = change { identitiesEnded() }
        return kept
    }

    /// Refuses what was kept, before there is any connection.
    public func load(_ kept: KeptRefusals) {
        state.withLock { state in
            state.refusals.load(kept)
            distrustLeakedKeys(in: &state)
        }
    }

    private func distrustLeakedKeys(in state: inout State) {
        let keys = Array(state.verifier.keys.values)
        let trusted = state.trusted(keys)
        if trusted.count < keys.count { _ = replaceKeys(trusted, in: &state) }
    }

    /// Fetches the keys of auth now. Throws when they did not come.
    public func refreshKeys() async throws { try await fetch() }

    // MARK: Keys

    /// Fetches the keys because a token named an unknown one; returns when the key is here.
    private func fetchKey(_ kid: String, of credential: String) async throws {
        let unknown = TokenError.unknownKey(kid).rpcError
        guard let issuedAt = SignedParts.unprovenIssueTime(of: credential, bytesMax: configuration.tokenBytesMax) else {
            throw unknown
        }
        let claim = KeyFetchStateMachine.Claim(kid: kid, issuedAt: issuedAt)
        let now = now()
        switch state.withLock({ $0.fetch.keyWasMissed(claim, now: now, configuration) }) {
        case .refuse: throw unknown
        case .later: throw keyMayCome
        case .unavailable: throw unavailable
        case .fetch: break
        }
        let isOwn: Bool
        do { isOwn = try await fetch() } catch { throw unavailable }
        let isHere = state.withLock { state in
            if state.verifier.keys[kid] != nil { return true }
            if isOwn { state.fetch.keyWasAbsent(kid, now: now, configuration) }
            return false
        }
        // The response of a fetch that was in progress before may be older than the key.
        guard isHere else { throw isOwn ? unknown : keyMayCome }
    }

    private var unavailable: RPCError {
        .unavailable(
            reason: "auth_unavailable", "The keys to verify this ID token cannot be fetched from auth now; try again")
    }

    private var keyMayCome: RPCError {
        .unavailable(
            reason: "key_not_fetched",
            "The key of this ID token is not here yet, and auth was asked for its keys a moment ago; try again")
    }

    /// One fetch for all callers that need one now. The task is unstructured because a waiting caller must not cancel
    /// it for the others; it ends with the response of `fetchKeys`. Returns false when the fetch was in progress
    /// already.
    @discardableResult
    private func fetch() async throws -> Bool {
        let (flight, isOwn) = state.withLock { state in
            if let flight = state.flight { return (flight, false) }
            state.fetch.fetchStarted(now: now())
            let flight = Task { try await self.fetchOnce() }
            state.flight = flight
            return (flight, true)
        }
        try await flight.value
        return isOwn
    }

    private func fetchOnce() async throws {
        do {
            guard let fetchKeys else { throw NoUsableKey() }
            let keys = try await fetchKeys()
            guard keys.contains(where: { VerificationKey($0) != nil }) else { throw NoUsableKey() }
            replaceKeys(keys)
            keep(keys)
            state.withLock { state in
                state.flight = nil
                state.fetch.fetchEnded(isSuccess: true)
            }
        } catch {
            state.withLock { state in
                state.flight = nil
                state.fetch.fetchEnded(isSuccess: false)
                state.lastProblem = "the public keys of auth could not be fetched: \(Self.text(of: error))"
            }
            throw error
        }
    }

    private func keep(_ keys: [Auth.JWK]) {
        guard let path = configuration.keysFile else { return }
        do {
            try PublicKeyFile(path: path).write(keys)
        } catch {
            // The service continues; it only could not start while auth is down.
            state.withLock { $0.lastProblem = "the public keys of auth could not be kept: \(error)" }
        }
    }

    /// The error as a sentence that health shows.
    private static func text(of error: any Error) -> String {
        switch error {
        case let error as RPCError: error.message
        case let error as any RPCErrorConvertible: error.rpcError.message
        default: "\(error)"
        }
    }

    private static func digest(_ credential: String) -> SHA256Digest {
        var hasher = SHA256()
        var credential = credential
        credential.withUTF8 { hasher.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        return hasher.finalize()
    }

    private struct NoUsableKey: Error, CustomStringConvertible {
        var description: String { "the response of auth has no ES256 key" }
    }
}
