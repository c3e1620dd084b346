import HatoModel

/// The identity watches of one connection (`RPCContext.watchIdentity`), ordered by when their tokens end. Pure.
///
/// Adding, removing and expiring one costs the logarithm of their number: a connection may have 10,000 listeners.
struct IdentityWatches: Sendable {
    typealias Change = @Sendable (RPCIdentityChange, RPCIdentityWork) -> Void

    /// What the identity of a request is, and where it came from.
    struct Identity: Sendable {
        var caller: Caller
        /// Whether it came with the call.
        var isCallCredential = false
        /// The name of the method that was called.
        var method: String

        /// What is kept of it. Each call with `as` has a caller of its own, of up to 16 KiB of JSON, and a connection
        /// may have thousands of watches: what an administrator says of a caller is not compared with anything.
        var kept: Identity {
            var kept = self
            switch caller {
            case .variable: kept.caller = .variable([:])
            case .user(var user) where user.kid == nil && user.expiresAt == nil:
                user.claims = [:]
                kept.caller = .user(user)
            case .user, .nobody, .administrator, .service: break
            }
            return kept
        }
    }

    private struct Watch {
        var identity: Identity
        var change: Change
    }

    private var watches: [UInt64: Watch] = [:]
    /// Keys of those whose caller has a token that ends.
    private var ends = IndexedHeap<UInt64, Int64>()
    private var lastKey: UInt64 = 0

    var count: Int { watches.count }

    /// When the next token ends, in milliseconds since 1970; nil when none does.
    var nextEnd: Int64? { ends.first?.priority }

    /// Returns the key to remove it with.
    mutating func add(_ identity: Identity, _ change: @escaping Change) -> UInt64 {
        lastKey += 1
        watches[lastKey] = Watch(identity: identity.kept, change: change)
        if let end = identity.caller.expiresAt { ends.insert(lastKey, end) }
        return lastKey
    }

    /// False when it has been removed already, or its token has ended.
    mutating func remove(_ key: UInt64) -> Bool {
        ends.remove(key)
        return watches.removeValue(forKey: key) != nil
    }

    mutating func removeAll() {
        watches = [:]
        ends.removeAll()
    }

    /// Removes those whose tokens have ended at `now`; returns their callbacks, the earliest end first.
    mutating func takeExpired(now: Int64) -> [Change] {
        var expired: [Change] = []
        while let (key, end) = ends.first, end <= now {
            ends.remove(key)
            if let watch = watches.removeValue(forKey: key) { expired.append(watch.change) }
        }
        return expired
    }

    /// Removes those whose identities have ended before their tokens; returns their callbacks in the order they were
    /// added.
    mutating func takeEnded(_ hasEnded: (Caller.User) -> Bool) -> [Change] {
        var ended: [Change] = []
        guard !watches.isEmpty else { return ended }
        for (key, watch) in watches.sorted(by: { $0.key < $1.key }) {
            guard case .user(let user) = watch.identity.caller, hasEnded(user) else { continue }
            watches[key] = nil
            ends.remove(key)
            ended.append(watch.change)
        }
        return ended
    }

    /// The connection speaks for `caller` from now on. Returns the callbacks in the order the watches were added, each
    /// with its change.
    ///
    /// - Parameter isEnd: of `session.end`, which watches of a call's own credential outlive.
    mutating func callerChanged(to caller: Caller, isEnd: Bool) -> [(Change, RPCIdentityChange)] {
        var changes: [(Change, RPCIdentityChange)] = []
        for (key, var watch) in watches.sorted(by: { $0.key < $1.key }) {
            let before = watch.identity
            if isEnd && before.isCallCredential || before.caller == .nobody && caller == .nobody { continue }
            // As the method would see it now; a service that spoke as a user has no rights of its own here.
            let caller = before.caller.isAdministrator ? caller.seen(by: before.method) : caller
            let isSame = caller.isSamePerson(as: before.caller)
            changes.append((watch.change, isSame ? .extended(caller) : .replaced(caller)))
            watch.identity.caller = caller
            watches[key] = watch
            if let end = caller.expiresAt { ends.insert(key, end) } else { ends.remove(key) }
        }
        return changes
    }
}
