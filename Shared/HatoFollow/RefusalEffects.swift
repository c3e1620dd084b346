public import HatoIdentity
public import HatoModel
public import HatoStorage
import Synchronization

/// What else a service keeps of accounts and sessions, which goes with them.
public protocol AccountDependents: Sendable {
    /// In a transaction that has written nothing yet: reads what the events concern, and returns what writes it; nil:
    /// there is nothing to write.
    ///
    /// - Throws: the errors of the store; then the events come again.
    func changes(
        for events: [Auth.Event], in rows: any StoreTransaction
    ) throws -> (@Sendable (any StoreTransaction) throws -> Void)?

    /// Events were missed: removes what depends on accounts and sessions that are no more, or makes sure that it will
    /// be removed, whatever happens to the process.
    ///
    /// - Throws: what prevented it; it is called again.
    func reconcile() async throws
}

/// Refuses the tokens of users, sessions and keys that ended, from the moment the event comes, also after a restart,
/// until the last of them has expired.
public final class RefusalEffects: AccountEffects {
    private struct State {
        /// Handled; perhaps later than the one in the store.
        var position: AccountPosition?
        /// What the authenticator refuses and the store does not have yet.
        var pending = KeptRefusals()
        /// Events that were handled since the position was written, and when it was, in milliseconds since 1970.
        var unwritten = 0
        var writtenAt: Int64 = 0
    }

    private let store: any Store
    private let rows: RefusalRows
    private let authenticator: ServiceAuthenticator
    private let dependents: (any AccountDependents)?
    /// Milliseconds since 1970.
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    public var beginsAtOldest: Bool { true }

    /// How long after its event a refusal is kept if the event does not say it: longer than a token is valid.
    private static let keptMilliseconds = IdentityConfiguration.tokenLifetimeSecondsMax * 1000
    /// By what clocks may differ.
    private static let leewayMilliseconds: Int64 = 600_000
    /// A position without effects is written after so many events, or so many milliseconds.
    private static let unwrittenMax = 256
    private static let unwrittenMilliseconds: Int64 = 3_600_000

    /// Refuses what `store` says is refused: before the service listens.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: the errors of the store.
    public init(
        _ store: any Store, _ rows: RefusalRows, _ authenticator: ServiceAuthenticator,
        dependents: (any AccountDependents)? = nil, now: @escaping @Sendable () -> Int64
    ) throws {
        self.store = store
        self.rows = rows
        self.authenticator = authenticator
        self.dependents = dependents
        self.now = now
        let time = now()
        let (kept, over) = try rows.kept(
            at: time, until: time + Self.keptMilliseconds, in: try store.snapshot())
        authenticator.load(kept)
        // The rows of the others go with the next write.
        state.withLock { state in
            for uid in over { state.pending.users.updateValue(nil, forKey: uid) }
        }
    }

    public func position() async throws -> AccountPosition? {
        if let position = state.withLock({ $0.position }) { return position }
        return try await store.read { [rows] in try rows.position(in: $0) }
    }

    public func received(_ event: Auth.Event) {
        for change in Self.changes(of: event) { apply(change) }
    }

    private func apply(_ change: TokenRefusalChange) {
        // Under one lock with what is pending, so that the store gets the changes in the order of the authenticator.
        state.withLock { $0.pending.add(authenticator.apply(change)) }
    }

    public func missed(until start: AccountStart) async throws {
        // First of all: from here on nothing is accepted that may have to be refused.
        let second = start.time / 1000
        apply(.refuse(.allUsers(issuedBefore: second), at: second, until: .max))
        try await write([], nil, ifDue: true)
        // A key may have leaked, or the keys be those of another history.
        try await authenticator.refreshKeys()
        try await dependents?.reconcile()
        try await write([], start.position, ifDue: true)
    }

    public func handle(_ events: [Auth.Event]) async throws {
        guard let last = events.last else { return }
        let time = now()
        let isDue = state.withLock { state in
            state.unwritten + events.count >= Self.unwrittenMax
                || time - state.writtenAt >= Self.unwrittenMilliseconds
        }
        try await write(events, AccountPosition(last.position, epoch: last.epoch), ifDue: isDue)
    }

    /// Writes what is pending, what `dependents` change for the events, and the position; the position alone only if
    /// that is due.
    private func write(_ events: [Auth.Event], _ position: AccountPosition?, ifDue isDue: Bool) async throws {
        let pending = state.withLock { state in
            defer { state.pending = KeptRefusals() }
            return state.pending
        }
        let isWritten: Bool
        do {
            isWritten = try await store.write { [rows, dependents] transaction in
                let change = try dependents?.changes(for: events, in: transaction)
                guard !pending.isEmpty || change != nil || isDue else { return false }
                try change?(transaction)
                rows.put(pending, in: transaction)
                if let position { rows.put(position, in: transaction) }
                return true
            }.outcome
        } catch {
            state.withLock { state in
                var all = pending
                all.add(state.pending)
                state.pending = all
            }
            throw error
        }
        let time = now()
        state.withLock { state in
            state.position = position ?? state.position
            state.unwritten = isWritten ? 0 : state.unwritten + events.count
            if isWritten { state.writtenAt = time }
        }
    }

    private static func changes(of event: Auth.Event) -> [TokenRefusalChange] {
        let time = Int64(clamping: event.time)
        let at = time / 1000
        let until = (event.until.map { Int64(clamping: $0) } ?? time + keptMilliseconds) + leewayMilliseconds
        // The last token has expired before the event.
        if let end = event.until, Int64(clamping: end) <= time { return [] }
        func refuse(_ refusal: TokenRefusal) -> TokenRefusalChange { .refuse(refusal, at: at, until: until) }
        if event.type == .keyRevoked { return event.kid.map { [refuse(.key(kid: $0))] } ?? [] }
        guard let uid = event.uid else { return [] }
        let since = event.since.map { Int64(clamping: $0) }
        switch event.type {
        case .created, .enabled: return [.allow(uid: uid)]
        case .updated, .keyRevoked: return []
        case .disabled: return [refuse(.account(uid: uid))]
        // Another account with this uid does not take its tokens.
        case .deleted: return [refuse(.user(uid: uid, issuedBefore: since ?? at + 1)), refuse(.account(uid: uid))]
        case .revoked: return since.map { [refuse(.user(uid: uid, issuedBefore: $0))] } ?? []
        case .signedOut: return event.session.map { [refuse(.session($0, uid: uid))] } ?? []
        }
    }
}
