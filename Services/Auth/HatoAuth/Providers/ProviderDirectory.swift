import HatoFetch
import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// The providers as of the newest commit that changed them, readable from every thread, and the fetches of their keys.
///
/// The keys are in the store, so users whose key is here sign in while their provider is down. They are fetched again
/// when a token names an unknown key (`ProviderKeyFetch`), and once a day, so that a key that the provider has
/// withdrawn ends.
final class ProviderDirectory: Sendable {
    /// What the directory works with.
    struct Parts: Sendable {
        var store: any Store
        var environment: AuthEnvironment
        var discovery: ProviderDiscovery
        var metrics: AuthMetrics
        var limits: AuthLimits
        var keepsAudit = true
        /// Gets the documents of providers; nil: `discovery` does.
        var documents: DocumentFetcher?
    }

    private struct Fetching: Sendable {
        var machine = ProviderKeyFetch()
        /// The fetch in progress; its outcome is why it failed.
        var flight: Task<ProviderDiscovery.Failure?, Never>?
    }

    private struct State: Sendable {
        var records: [String: ProviderRecord]
        var version: UInt64 = 0
        /// By issuer.
        var fetches: [String: Fetching] = [:]
        /// When a refused token was logged last, in milliseconds since 1970; nil: none.
        var noticedAt: Int64?
    }

    /// Milliseconds after which keys are fetched again without a reason.
    static let keysAreFresh: Int64 = 86_400_000

    private let parts: Parts
    private let state: Mutex<State>

    init(_ records: [ProviderRecord], _ parts: Parts) {
        self.parts = parts
        state = Mutex(State(records: Dictionary(records.map { ($0.id, $0) }) { first, _ in first }))
    }

    /// The ids in their order.
    var ids: [String] { state.withLock { $0.records.keys.sorted() } }

    /// In the order of their ids.
    var all: [ProviderRecord] { state.withLock { $0.records.values.sorted { $0.id < $1.id } } }

    private func record(_ id: String) -> ProviderRecord? { state.withLock { $0.records[id] } }

    /// Takes the providers as the store has them now. Their keys are made here, outside of every transaction.
    private func reload() async throws {
        let (rows, version) = try await parts.store.read { (try ProviderRows.all(in: $0), $0.version) }
        let records = try rows.map { try ProviderRecord($0) }
        state.withLock { state in
            guard version > state.version else { return }
            state.version = version
            state.records = Dictionary(records.map { ($0.id, $0) }) { first, _ in first }
            let issuers = Set(records.map(\.issuer))
            state.fetches = state.fetches.filter { issuers.contains($0.key) || $0.value.flight != nil }
        }
    }

    /// Closes the connections to providers.
    func shutdown() async { await parts.documents?.shutdown() }

    // MARK: Changes by administrators

    /// Sets a provider; without given keys they are fetched, unless they are here. Durable before it is in effect.
    ///
    /// - Parameter keepsIdentities: Whether identities that accounts have of another issuer are those of this one.
    /// - Throws: `AuthError` when its keys cannot be fetched, when there are too many, and when accounts have
    ///   identities of another issuer under its id; the errors of the store.
    func set(_ given: ProviderRecord, keepsIdentities: Bool = false) async throws -> ProviderRecord {
        var record = given
        var isKept = false
        if record.isDiscovered {
            if let before = self.record(record.id), before.row.isDiscovered(at: record.issuer) {
                (record.keys, record.keysFetchedAt, isKept) = (before.keys, before.keysFetchedAt, true)
            } else {
                record.keysFetchedAt = parts.environment.now()
                do { record.keys = try await parts.discovery.keys(of: record.issuer) } catch {
                    throw AuthError.discoveryFailed("\(error)")
                }
            }
        }
        let change = ProviderChange(
            row: record.row, hasKeptKeys: isKept, keepsIdentities: keepsIdentities,
            countMax: parts.limits.providersMax)
        let audited = audited(.providerSet, record.id)
        let committed = try await parts.store.write { [environment = parts.environment] rows in
            let now = environment.now()
            var addition = try audited.map { try AuditAddition($0, in: rows) }
            guard let row = try change.row(now: now, in: rows) else { return nil as ProviderRow? }
            ProviderRows.put(row, in: rows)
            addition?.write(at: now, in: rows)
            return row
        }.outcome
        try await reload()
        // Another change came between: what is kept here was not what the store has.
        guard let committed else { return try await set(given, keepsIdentities: keepsIdentities) }
        return try ProviderRecord(committed)
    }

    /// Throws `AuthError.providerNotFound`, and the errors of the store.
    func remove(_ id: String) async throws {
        let audited = audited(.providerRemoved, id)
        _ = try await parts.store.write { [environment = parts.environment] rows in
            guard let row = try ProviderRows.find(id, in: rows) else { throw AuthError.providerNotFound }
            let hasIdentities = try ProviderRows.hasIdentities(id, in: rows)
            var addition = try audited.map { try AuditAddition($0, in: rows) }
            ProviderRows.remove(row, hasIdentities: hasIdentities, in: rows)
            addition?.write(at: environment.now(), in: rows)
        }
        try await reload()
    }

    private func audited(_ type: Auth.Audit.EntryType, _ id: String) -> AuditRecord? {
        guard parts.keepsAudit else { return nil }
        var record = AuditRecord(type)
        record.provider = id
        return AuditedCall.current?.completed(record) ?? record
    }

    // MARK: Tokens

    /// The user of a provider's ID token.
    ///
    /// - Throws: `AuthError` for a provider that is not set, a token that is refused, and keys that cannot be fetched.
    func identity(_ provider: String, _ token: String, nonce: String?) async throws(AuthError) -> ProviderIdentity {
        guard let record = record(provider) else { throw .unknownProvider }
        do throws(ProviderTokenError) {
            return try verify(record, token, nonce)
        } catch {
            guard error == .unknownKey, record.isDiscovered else {
                throw .invalidProviderToken(error)
            }
        }
        try await fetchMissedKey(of: record)
        guard let record = self.record(provider) else { throw .unknownProvider }
        do throws(ProviderTokenError) { return try verify(record, token, nonce) } catch {
            throw .invalidProviderToken(error)
        }
    }

    /// Logs why a token was refused, at most once a minute.
    func note(_ error: ProviderTokenError, of provider: String) {
        let now = parts.environment.now()
        let isDue = state.withLock { state in
            if let last = state.noticedAt, (0..<60_000).contains(now - last) { return false }
            state.noticedAt = now
            return true
        }
        guard isDue else { return }
        parts.environment.logger.notice(
            "a provider's ID token was refused",
            metadata: ["provider": "\(provider)", "reason": "\(error.explanation)"])
    }

    private func verify(
        _ record: ProviderRecord, _ token: String, _ nonce: String?
    ) throws(ProviderTokenError) -> ProviderIdentity {
        try record.verifier(tokenBytesMax: parts.limits.idTokenBytesMax)
            .verify(token, nonce: nonce, now: parts.environment.now())
    }

    /// Returns at once when no fetch is allowed now. Throws `AuthError.providerUnavailable`.
    private func fetchMissedKey(of record: ProviderRecord) async throws(AuthError) {
        let now = parts.environment.now()
        let (decision, flight) = state.withLock { state in
            var fetching = state.fetches[record.issuer] ?? Fetching()
            let decision = fetching.machine.keyWasMissed(now: now)
            if decision == .fetch { begin(&fetching, record.issuer, now: now) }
            state.fetches[record.issuer] = fetching
            return (decision, fetching.flight)
        }
        switch decision {
        case .refuse: return
        case .unavailable(let wait): throw .providerUnavailable(retryAfterMilliseconds: wait)
        case .fetch, .wait: break
        }
        guard let flight, await flight.value != nil else { return }
        throw .providerUnavailable(retryAfterMilliseconds: ProviderKeyFetch.pause)
    }

    /// The task is unstructured because a caller that waits must not cancel it for the others; it ends with the
    /// documents of the provider, which come within seconds or not at all.
    private func begin(_ fetching: inout Fetching, _ issuer: String, now: Int64) {
        fetching.machine.started(now: now)
        fetching.flight = Task { await self.fetch(issuer, at: now) }
    }

    /// Fetches the keys of an issuer, and keeps them. Returns why it failed.
    private func fetch(_ issuer: String, at now: Int64) async -> ProviderDiscovery.Failure? {
        var failure: ProviderDiscovery.Failure?
        do {
            let keys = try await parts.discovery.keys(of: issuer).json
            _ = try await parts.store.write { [environment = parts.environment] rows in
                let current = environment.now()
                let changed = try ProviderRows.all(in: rows).filter { row in
                    row.isDiscovered(at: issuer) && !row.hasKeys(from: now, until: current)
                }
                for var row in changed {
                    (row.keys, row.keysFetchedAt) = (keys, now)
                    ProviderRows.put(row, in: rows)
                }
            }
            try await reload()
        } catch let error as ProviderDiscovery.Failure {
            failure = error
        } catch {
            failure = ProviderDiscovery.Failure("the store: \(error)")
        }
        if let failure {
            parts.environment.notices.notice(
                .failedVerification, "the keys of a provider could not be fetched", ["error": "\(failure)"],
                level: .warning)
        }
        parts.metrics.count(failure == nil ? .providerKeysFetched : .providerKeysMissed)
        state.withLock { state in
            state.fetches[issuer]?.machine.ended(isSuccess: failure == nil)
            state.fetches[issuer]?.flight = nil
        }
        return failure
    }

    // MARK: Upkeep

    /// Fetches keys that are a day old, of all issuers at once: a slow one holds up no other. A failure leaves them.
    func refreshKeys() async {
        let now = parts.environment.now()
        let old = Set(
            all.filter { $0.isDiscovered && now - ($0.keysFetchedAt ?? 0) >= Self.keysAreFresh }.map(\.issuer))
        let flights = state.withLock { state in
            old.compactMap { issuer in
                var fetching = state.fetches[issuer] ?? Fetching()
                if fetching.machine.keyWasMissed(now: now) == .fetch { begin(&fetching, issuer, now: now) }
                state.fetches[issuer] = fetching
                return fetching.flight
            }
        }
        await withTaskCancellationHandler {
            for flight in flights { _ = await flight.value }
        } onCancel: {
            // The service stops.
            for flight in flights { flight.cancel() }
        }
    }
}

extension ProviderDirectory.Parts {
    /// The parts of a service, whose documents come from the network unless its environment has others.
    init(
        _ configuration: AuthConfiguration, _ store: any Store, _ environment: AuthEnvironment, _ metrics: AuthMetrics
    ) {
        let documents = DocumentFetcher(
            AddressGuard(.init(allowsPrivate: configuration.allowsPrivateProviders)), userAgent: "hato-auth")
        self.init(
            store: store, environment: environment,
            discovery: ProviderDiscovery(
                fetch: environment.fetchDocument ?? { try await documents.document(at: $0) }),
            metrics: metrics, limits: configuration.limits, keepsAudit: configuration.keepAuditDays > 0,
            documents: documents)
    }
}
