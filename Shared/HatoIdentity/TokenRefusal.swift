public import HatoModel

/// ID tokens that are refused before they expire. Times of issue are in seconds since 1970.
public enum TokenRefusal: Sendable, Hashable {
    /// All tokens of the user: the account is disabled or deleted.
    case account(uid: String)
    /// Tokens of the user issued before a second: the password changed, or an administrator ended the sessions.
    case user(uid: String, issuedBefore: Int64)
    /// Tokens of a session of the user that ended: those with this claim `sid`.
    case session(String, uid: String)
    /// Tokens signed with a key that has leaked.
    case key(kid: String)
    /// Tokens of every user issued before a second: it is not known which of them are to be refused.
    case allUsers(issuedBefore: Int64)
}

/// A change of what is refused.
public enum TokenRefusalChange: Sendable, Hashable {
    /// Refuses tokens.
    ///
    /// - Parameters:
    ///   - at: when auth made it, in seconds since 1970.
    ///   - until: when the last of the tokens has expired, in milliseconds since 1970. Refusals of keys and of all
    ///     users have no end.
    case refuse(TokenRefusal, at: Int64, until: Int64)
    /// Undoes `account`: the account is enabled again, or there is a new one with the uid.
    case allow(uid: String)
}

/// What is refused of one user.
public struct UserRefusal: FieldObject, Hashable {
    /// Tokens issued before this second.
    public var issuedBefore: Int64 = 0
    /// All tokens.
    public var isWhole = false
    /// Tokens of these sessions.
    public var sessions: [String] = []
    /// The newest change, in seconds since 1970.
    public var at: Int64 = 0
    /// When the last of the tokens has expired, in milliseconds since 1970.
    public var until: Int64 = 0

    public static let fields = Fields<Self>(
        blank: Self(),
        .required("issuedBefore", \.issuedBefore),
        .flag("whole", \.isWhole),
        .required("sessions", \.sessions),
        .required("at", \.at),
        .required("until", \.until))

    public init() {}

    func contains(session: String?, issuedAt: Int64) -> Bool {
        if isWhole || issuedAt < issuedBefore { return true }
        return session.map(sessions.contains) ?? false
    }
}

/// What changed by refusals and their ends, for a store that keeps them.
public struct KeptRefusals: Sendable {
    /// Users as they are now; nil: nothing of them is refused any more.
    public var users: [String: UserRefusal?] = [:]
    /// Keys that have leaked.
    public var keys: Set<String> = []
    /// The second before which the tokens of all users are refused.
    public var issuedBefore: Int64 = 0
    /// Whether the refusals of all users that are not in `users` were dropped.
    public var isCollapsed = false

    public init() {}

    /// Whether there is nothing to keep.
    public var isEmpty: Bool { users.isEmpty && keys.isEmpty && issuedBefore == 0 && !isCollapsed }

    /// Adds what came after.
    public mutating func add(_ later: KeptRefusals) {
        if later.isCollapsed { (users, isCollapsed) = ([:], true) }
        users.merge(later.users) { $1 }
        keys.formUnion(later.keys)
        issuedBefore = max(issuedBefore, later.issuedBefore)
    }
}

/// Which ID tokens are refused before they expire. A value, and bounded: of each user at most `sessionsPerUserMax`
/// sessions, beyond which the tokens of all its sessions until then are refused; at most `countMax` users, beyond which
/// the tokens of all users until then are. A user that may still sign in refreshes the token once.
struct TokenRefusals: Sendable {
    private var users: [String: UserRefusal] = [:]
    private var keys: Set<String> = []
    private(set) var issuedBefore: Int64 = 0
    /// Users in the order in which their refusals came, which is about that of their ends.
    private var ends: [(uid: String, until: Int64)] = []
    /// Those before are forgotten.
    private var firstEnd = 0
    private let countMax: Int

    static let sessionsPerUserMax = 20
    /// Seconds by which times of auth are ahead of each other at most: what came within is kept single, because the
    /// tokens that replace the refused ones are about as old.
    private static let recentSeconds: Int64 = 10

    init(countMax: Int) { self.countMax = countMax }

    /// The number of users.
    var count: Int { users.count }

    /// `now` in milliseconds since 1970. Returns what is to be kept of it.
    mutating func apply(_ change: TokenRefusalChange, now: Int64) -> KeptRefusals {
        var kept = forget(now: now)
        switch change {
        case .allow(let uid):
            guard users[uid]?.isWhole == true else { break }
            users[uid]?.isWhole = false
            kept.users[uid] = users[uid]
        case .refuse(.key(let kid), _, _):
            keys.insert(kid)
            kept.keys.insert(kid)
        case .refuse(.allUsers(let second), _, _):
            issuedBefore = max(issuedBefore, second)
            kept.issuedBefore = issuedBefore
        // The last token has expired already.
        case .refuse(_, _, let until) where until <= now: break
        case .refuse(.account(let uid), let at, let until): kept.add(refuse(uid, at, until) { $0.isWhole = true })
        case .refuse(.user(let uid, let second), let at, let until):
            kept.add(refuse(uid, at, until) { $0.issuedBefore = max($0.issuedBefore, second) })
        case .refuse(.session(let session, let uid), let at, let until):
            kept.add(
                refuse(uid, at, until) { user in
                    if !user.sessions.contains(session) { user.sessions.append(session) }
                    guard user.sessions.count > Self.sessionsPerUserMax else { return }
                    user.sessions = []
                    user.issuedBefore = max(user.issuedBefore, at + 1)
                })
        }
        return kept
    }

    /// Adds what a store has kept.
    mutating func load(_ kept: KeptRefusals) {
        for (uid, user) in kept.users.sorted(by: { ($0.value?.until ?? 0) < ($1.value?.until ?? 0) }) {
            guard let user else { continue }
            users[uid] = user
            ends.append((uid, user.until))
        }
        keys.formUnion(kept.keys)
        issuedBefore = max(issuedBefore, kept.issuedBefore)
    }

    /// Whether tokens of this user, of this session, issued at this second, are refused.
    func contains(uid: String, session: String?, issuedAt: Int64) -> Bool {
        if issuedAt < issuedBefore { return true }
        guard !users.isEmpty, let user = users[uid] else { return false }
        return user.contains(session: session, issuedAt: issuedAt)
    }

    func contains(key kid: String) -> Bool { keys.contains(kid) }

    private mutating func refuse(
        _ uid: String, _ at: Int64, _ until: Int64, _ change: (inout UserRefusal) -> Void
    ) -> KeptRefusals {
        var kept = KeptRefusals()
        var user = users[uid] ?? UserRefusal()
        change(&user)
        user.at = max(user.at, at)
        if until > user.until {
            user.until = until
            ends.append((uid, until))
        }
        users[uid] = user
        kept.users[uid] = user
        if users.count > countMax || ends.count > 4 * max(countMax, 16) { kept.add(collapse(at: user.at)) }
        return kept
    }

    /// Refuses all tokens issued until shortly before `second` in the place of what is older.
    private mutating func collapse(at second: Int64) -> KeptRefusals {
        var kept = KeptRefusals()
        kept.isCollapsed = true
        let floor = second - Self.recentSeconds
        // Times of issue may be ahead of the change that refuses them.
        users = users.filter { $0.value.at > floor - Self.recentSeconds / 2 }
        issuedBefore = max(issuedBefore, floor)
        if users.count > countMax / 2 {
            users = [:]
            issuedBefore = max(issuedBefore, second + 1)
        }
        ends = users.map { ($0.key, $0.value.until) }.sorted { $0.1 < $1.1 }
        firstEnd = 0
        kept.users = users.mapValues { Optional($0) }
        kept.issuedBefore = issuedBefore
        return kept
    }

    /// Forgets those whose last token has expired.
    private mutating func forget(now: Int64) -> KeptRefusals {
        var kept = KeptRefusals()
        while firstEnd < ends.count, ends[firstEnd].until <= now {
            let uid = ends[firstEnd].uid
            firstEnd += 1
            // A later refusal of the same user has an end of its own.
            guard let user = users[uid], user.until <= now else { continue }
            users[uid] = nil
            kept.users.updateValue(nil, forKey: uid)
        }
        guard firstEnd > 1_024, firstEnd > ends.count / 2 else { return kept }
        ends.removeFirst(firstEnd)
        firstEnd = 0
        return kept
    }
}
