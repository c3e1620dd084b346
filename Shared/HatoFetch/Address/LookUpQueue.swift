typealias LookUpResult = Result<[IPAddress], AddressRefusal>

/// Which names are being looked up, which callers wait, and what is remembered.
///
/// A look-up whose name servers do not respond cannot be ended. So that those of a few users take no look-ups from the
/// others, one that runs for longer than `slowLookUpMs` is slow: it counts as one of its user, and leaves its place to
/// the next one. Slow ones have a bound of their own, half of which is for users that have none.
///
/// At most `lookUpsWaitingMax` callers wait for a look-up to begin, so nothing here walks through more.
struct LookUpQueue {
    /// A caller that requests the addresses of a name, and what is done with the result.
    struct Call: Sendable {
        var host: String
        var caller: LookUpCaller
        var completion: @Sendable (LookUpResult) -> Void
    }

    /// Names a call.
    struct Ticket: Sendable {
        var host: String
        var number: UInt64
    }

    enum Decision {
        case known(LookUpResult)
        /// Until another look-up ends, or one of the same name. `instead` is dropped for it.
        case waits(Ticket, instead: Call?)
        /// Its look-up is to begin now.
        case begins(Ticket)
    }

    private struct LookUp {
        /// The caller that it began for.
        var caller: LookUpCaller
        var domain: String
        var began: ContinuousClock.Instant
        var isSlow = false
        /// By number: those that get its result.
        var calls: [UInt64: Call] = [:]
    }

    private struct Waiting {
        var call: Call
        var domain: String
    }

    private struct DomainOfUser: Hashable {
        var uid: String
        var domain: String
    }

    private let limits: ResolverLimits
    /// By name.
    private var running: [String: LookUp] = [:]
    private var runningOfUser: [String: Int] = [:]
    private var slow = 0
    private var slowOfUser: [String: Int] = [:]
    /// Of those that are not slow.
    private var registrations = 0
    /// Of look-ups to register.
    private var registrationsOfDomain: [String: Int] = [:]
    /// By number: calls whose look-up has not begun.
    private var waiting: [UInt64: Waiting] = [:]
    private var waitingOf: [LookUpCaller: Int] = [:]
    private var lastNumber: UInt64 = 0
    /// When users with names here had their last look-up.
    private var turns: [String: UInt64] = [:]
    private var turn: UInt64 = 0
    private var addresses = RecentValues<String, [IPAddress]>()
    /// Of the user alone: under a shared ending such as `co.uk` other users' names may respond.
    private var silent = RecentValues<DomainOfUser, Bool>()

    init(_ limits: ResolverLimits) { self.limits = limits }

    mutating func requested(_ call: Call, at now: ContinuousClock.Instant) -> Decision {
        let (host, caller, domain) = (call.host, call.caller, domain(call.host))
        if let known = addresses.value(of: host, at: now) { return .known(.success(known)) }
        if silent.value(of: DomainOfUser(uid: caller.uid, domain: domain), at: now) != nil {
            return .known(.failure(.silent(host)))
        }
        lastNumber += 1
        let ticket = Ticket(host: host, number: lastNumber)
        if running[host] != nil {
            running[host]?.calls[ticket.number] = call
            return .waits(ticket, instead: nil)
        }
        // The resolver answers it itself (RFC 6761 section 6.3), and there is one at a time.
        if mayRun(caller, domain) || host == "localhost" {
            began(host, domain, for: caller, at: now)
            running[host]?.calls[ticket.number] = call
            return .begins(ticket)
        }
        guard waitingOf[caller, default: 0] < limits.lookUpsWaitingPerUserMax else {
            return .known(.failure(.noLookUp(host: host)))
        }
        var instead: Call?
        if waiting.count >= limits.lookUpsWaitingMax {
            guard let number = droppedCall(for: caller) else { return .known(.failure(.noLookUp(host: host))) }
            instead = leaveWaiting(number)?.call
            if let user = instead?.caller.uid { forgetTurn(of: user) }
        }
        waiting[ticket.number] = Waiting(call: call, domain: domain)
        waitingOf.add(1, to: caller)
        return .waits(ticket, instead: instead)
    }

    /// The newest call of the caller that has the most, registrations before deliveries; nil when the new call is it.
    private func droppedCall(for caller: LookUpCaller) -> UInt64? {
        func weight(_ caller: LookUpCaller, _ count: Int) -> (Int, Int) { (caller.isDelivery ? 0 : 1, count) }
        let most = waitingOf.max { weight($0.key, $0.value) < weight($1.key, $1.value) }
        guard let most, weight(most.key, most.value) > weight(caller, waitingOf[caller, default: 0] + 1) else {
            return nil
        }
        return waiting.filter { $0.value.call.caller == most.key }.keys.max()
    }

    /// A call has waited long enough: the call and its result, unless it got one. A name that no call
    /// waits for any more needs no look-up.
    mutating func timePassed(for ticket: Ticket, at now: ContinuousClock.Instant) -> (Call, LookUpResult)? {
        if let call = leaveWaiting(ticket.number)?.call {
            forgetTurn(of: call.caller.uid)
            return (call, .failure(.noLookUp(host: call.host)))
        }
        guard let call = running[ticket.host]?.calls.removeValue(forKey: ticket.number),
            let lookUp = running[ticket.host]
        else { return nil }
        // A look-up that has hardly begun shows nothing about the name servers.
        guard now - lookUp.began >= limits.timeout / 2 else { return (call, .failure(.noLookUp(host: call.host))) }
        let domain = DomainOfUser(uid: call.caller.uid, domain: lookUp.domain)
        silent.remember(true, of: domain, until: now + limits.memory)
        return (call, .failure(.silent(call.host)))
    }

    /// The calls that waited for the name, and which names to look up next.
    mutating func lookedUp(
        _ host: String, _ answer: LookUpResult, at now: ContinuousClock.Instant
    ) -> (calls: [Call], next: [String]) {
        if case .success(let found) = answer {
            addresses.remember(found, of: host, until: now + limits.memory)
        }
        guard let ended = running.removeValue(forKey: host) else { return ([], []) }
        if ended.isSlow { countSlow(-1, ended.caller) }
        count(-1, ended)
        let next = beginNext(at: now)
        forgetTurn(of: ended.caller.uid)
        return (Array(ended.calls.values), next)
    }

    /// Look-ups have become slow: which names to look up beside them.
    mutating func timePassed(at now: ContinuousClock.Instant) -> [String] {
        for (host, lookUp) in running where !lookUp.isSlow && now - lookUp.began >= limits.slowAfter {
            running[host]?.isSlow = true
            countSlow(1, lookUp.caller)
        }
        return beginNext(at: now)
    }

    private mutating func beginNext(at now: ContinuousClock.Instant) -> [String] {
        var next: [String] = []
        while let waiting = nextWaiting() {
            began(waiting.call.host, waiting.domain, for: waiting.call.caller, at: now)
            next.append(waiting.call.host)
        }
        return next
    }

    /// The longest waiting one of the user whose last look-up is longest ago.
    private func nextWaiting() -> Waiting? {
        guard running.count - slow < limits.lookUpsMax else { return nil }
        return waiting.lazy.filter { mayRun($0.value.call.caller, $0.value.domain) }
            .min { (turn(of: $0.value), $0.key) < (turn(of: $1.value), $1.key) }?.value
    }

    private func turn(of waiting: Waiting) -> UInt64 { turns[waiting.call.caller.uid, default: 0] }

    private func mayRun(_ caller: LookUpCaller, _ domain: String) -> Bool {
        let hasSlow = slowOfUser[caller.uid] != nil
        guard running.count - slow < limits.lookUpsMax,
            slow < (hasSlow ? limits.slowLookUpsMax / 2 : max(1, limits.slowLookUpsMax))
        else { return false }
        let mayRegister =
            registrations < limits.lookUpsToRegisterMax
            && registrationsOfDomain[domain, default: 0] < limits.lookUpsToRegisterPerDomainMax
        return (caller.isDelivery || mayRegister)
            && runningOfUser[caller.uid, default: 0] < limits.lookUpsPerUserMax
    }

    /// Begins the look-up of a name; the calls that wait for the name get its result.
    private mutating func began(
        _ host: String, _ domain: String, for caller: LookUpCaller, at now: ContinuousClock.Instant
    ) {
        var lookUp = LookUp(caller: caller, domain: domain, began: now)
        for number in waiting.filter({ $0.value.call.host == host }).keys {
            lookUp.calls[number] = leaveWaiting(number)?.call
        }
        running[host] = lookUp
        count(1, lookUp)
        for call in lookUp.calls.values { forgetTurn(of: call.caller.uid) }
        turn += 1
        turns[caller.uid] = turn
    }

    private mutating func count(_ change: Int, _ lookUp: LookUp) {
        runningOfUser.add(change, to: lookUp.caller.uid)
        guard !lookUp.caller.isDelivery else { return }
        registrations += change
        registrationsOfDomain.add(change, to: lookUp.domain)
    }

    private mutating func countSlow(_ change: Int, _ caller: LookUpCaller) {
        slow += change
        slowOfUser.add(change, to: caller.uid)
        if !caller.isDelivery { registrations -= change }
    }

    private mutating func leaveWaiting(_ number: UInt64) -> Waiting? {
        let left = waiting.removeValue(forKey: number)
        if let left { waitingOf.add(-1, to: left.call.caller) }
        return left
    }

    /// A user without names here has no turn.
    private mutating func forgetTurn(of uid: String) {
        let waits = [true, false].contains { waitingOf[LookUpCaller(uid: uid, isDelivery: $0)] != nil }
        if !waits, runningOfUser[uid] == nil { turns[uid] = nil }
    }

    /// The last two labels: what one owner can make any number of names under. Under a shared ending such as `co.uk`
    /// that takes unrelated names together, which may delay their registration, and no delivery.
    private func domain(_ host: String) -> String { host.split(separator: ".").suffix(2).joined(separator: ".") }
}

extension Dictionary where Value == Int {
    /// Counts without zeros.
    fileprivate mutating func add(_ change: Int, to key: Key) {
        let count = self[key, default: 0] + change
        self[key] = count > 0 ? count : nil
    }
}

extension AddressRefusal {
    fileprivate static func silent(_ host: String) -> AddressRefusal {
        .unresolvable(host: host, "the name server does not respond")
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
