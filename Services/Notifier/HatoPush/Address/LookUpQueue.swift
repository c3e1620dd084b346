typealias LookUpAnswer = Result<[IPAddress], AddressRefusal>

/// Which names are being looked up, which wait, the callers that wait for them, and what is remembered.
struct LookUpQueue {
    enum Decision {
        case known(LookUpAnswer)
        /// Until another look-up ends, or one of the same name.
        case waits
        /// Its look-up is to begin now.
        case begins
    }

    private struct Caller {
        var name: LookUpCaller
        var continuation: CheckedContinuation<LookUpAnswer, Never>
        var end: ContinuousClock.Instant
    }

    private struct DomainOfUser: Hashable {
        var uid: String
        var domain: String
    }

    private let limits: ResolverLimits
    /// By name: for whom it is, and since when.
    private var running: [String: (caller: LookUpCaller, began: ContinuousClock.Instant)] = [:]
    /// Names without a look-up yet, the longest waiting first.
    private var waiting: [(host: String, caller: LookUpCaller)] = []
    private var asking: [String: [Caller]] = [:]
    /// When users with names here had their last look-up.
    private var turns: [String: UInt64] = [:]
    private var turn: UInt64 = 0
    private var addresses = RecentValues<String, [IPAddress]>()
    /// Of the user alone: under a shared ending such as `co.uk` other users' names may respond.
    private var silent = RecentValues<DomainOfUser, Bool>()

    init(_ limits: ResolverLimits) { self.limits = limits }

    mutating func asked(
        _ host: String,
        by asker: (name: LookUpCaller, continuation: CheckedContinuation<LookUpAnswer, Never>),
        at now: ContinuousClock.Instant
    ) -> Decision {
        let caller = asker.name
        if let known = addresses.value(of: host, at: now) { return .known(.success(known)) }
        if silent.value(of: DomainOfUser(uid: caller.uid, domain: domain(host)), at: now) != nil {
            return .known(.failure(.silent(host)))
        }
        let begins = running[host] == nil && mayRun(host, caller)
        if begins {
            began(host, caller, at: now)
        } else if running[host] == nil {
            guard waiting.count(where: { $0.caller.uid == caller.uid }) < limits.waitingPerUserMax else {
                return .known(.failure(.noLookUp(host: host)))
            }
            waiting.append((host, caller))
        }
        let end = now + limits.timeout
        asking[host, default: []].append(Caller(name: caller, continuation: asker.continuation, end: end))
        return begins ? .begins : .waits
    }

    /// The callers that have waited long enough, with what they get. A name that no caller waits for any more
    /// needs no look-up.
    mutating func timePassed(
        for host: String, at now: ContinuousClock.Instant
    ) -> [(CheckedContinuation<LookUpAnswer, Never>, LookUpAnswer)] {
        let callers = asking[host] ?? []
        let left = callers.filter { $0.end > now }
        asking[host] = left.isEmpty ? nil : left
        if left.isEmpty { waiting.removeAll { $0.host == host } }
        // One that has hardly begun is no matter of the name servers.
        let isSilent = running[host].map { now - $0.began >= limits.timeout / 2 } ?? false
        return callers.filter { $0.end <= now }.map { caller in
            guard isSilent else { return (caller.continuation, .failure(.noLookUp(host: host))) }
            let domain = DomainOfUser(uid: caller.name.uid, domain: domain(host))
            silent.remember(true, of: domain, until: now + limits.memory)
            return (caller.continuation, .failure(.silent(host)))
        }
    }

    /// The callers that waited for the name, and which names to look up next.
    mutating func answered(
        _ host: String, _ answer: LookUpAnswer, at now: ContinuousClock.Instant
    ) -> (asking: [CheckedContinuation<LookUpAnswer, Never>], next: [String]) {
        if case .success(let found) = answer {
            addresses.remember(found, of: host, until: now + limits.memory)
        }
        let callers = asking.removeValue(forKey: host) ?? []
        let uid = running.removeValue(forKey: host)?.caller.uid
        var next: [String] = []
        while let index = nextWaiting() {
            let (host, caller) = waiting[index]
            began(host, caller, at: now)
            next.append(host)
        }
        if let uid, !running.values.contains(where: { $0.caller.uid == uid }),
            !waiting.contains(where: { $0.caller.uid == uid })
        {
            turns[uid] = nil
        }
        return (callers.map(\.continuation), next)
    }

    /// That of the user whose last look-up is longest ago.
    private func nextWaiting() -> Int? {
        guard running.count < limits.lookUpsMax else { return nil }
        return waiting.indices.filter { mayRun(waiting[$0].host, waiting[$0].caller) }
            .min { turns[waiting[$0].caller.uid, default: 0] < turns[waiting[$1].caller.uid, default: 0] }
    }

    private func mayRun(_ host: String, _ caller: LookUpCaller) -> Bool {
        let isFree = running.count < limits.lookUpsMax
        let mayRegister =
            caller.isDelivery || running.values.count { !$0.caller.isDelivery } < limits.lookUpsToRegisterMax
        return isFree && mayRegister
            && running.values.count { $0.caller.uid == caller.uid } < limits.lookUpsPerUserMax
            && running.keys.count { domain($0) == domain(host) } < limits.lookUpsPerDomainMax
    }

    private mutating func began(_ host: String, _ caller: LookUpCaller, at now: ContinuousClock.Instant) {
        running[host] = (caller, now)
        waiting.removeAll { $0.host == host }
        turn += 1
        turns[caller.uid] = turn
    }

    /// The last two labels: what one owner can make any number of names under. Under a shared ending such as `co.uk`
    /// that takes unrelated names together, which costs them no more than a short wait.
    private func domain(_ host: String) -> String { host.split(separator: ".").suffix(2).joined(separator: ".") }
}

extension AddressRefusal {
    fileprivate static func silent(_ host: String) -> AddressRefusal {
        .unresolvable(host: host, "the name server does not answer")
    }
}

/// Values for a while, of a bounded number of keys: when there are many, the older half goes.
private struct RecentValues<Key: Hashable, Value> {
    private static var countMax: Int { 2_048 }
    private var newer: [Key: (value: Value, until: ContinuousClock.Instant)] = [:]
    private var older: [Key: (value: Value, until: ContinuousClock.Instant)] = [:]

    func value(of key: Key, at now: ContinuousClock.Instant) -> Value? {
        (newer[key] ?? older[key]).flatMap { $0.until > now ? $0.value : nil }
    }

    mutating func remember(_ value: Value, of key: Key, until: ContinuousClock.Instant) {
        if newer.count >= Self.countMax { (newer, older) = ([:], newer) }
        newer[key] = (value, until)
    }
}
