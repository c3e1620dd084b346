/// The connections of each user that have a slot of their own, and the user with the most of them. Pure.
///
/// Each event costs O(1); `victim` costs the number of that user's connections.
struct UserSlots: Sendable {
    typealias ID = ConnectionAdmission.ID

    private var connections: [String: Set<ID>] = [:]
    /// The users with so many connections.
    private var users: [Int: Set<String>] = [:]
    private var most = 0

    func count(of user: String) -> Int { connections[user]?.count ?? 0 }

    mutating func add(_ id: ID, of user: String) { change(user) { $0.insert(id) } }

    mutating func remove(_ id: ID, of user: String) { change(user) { $0.remove(id) } }

    /// The oldest connection of the user with the most; nil when no user has more than one.
    var victim: (id: ID, user: String)? {
        guard most > 1, let user = users[most]?.first, let id = connections[user]?.min() else { return nil }
        return (id, user)
    }

    private mutating func change<Ignored>(_ user: String, _ body: (inout Set<ID>) -> Ignored) {
        let before = count(of: user)
        _ = body(&connections[user, default: []])
        let after = count(of: user)
        guard after != before else { return }
        if after == 0 { connections[user] = nil }
        users[before]?.remove(user)
        if users[before]?.isEmpty == true { users[before] = nil }
        if after > 0 { users[after, default: []].insert(user) }
        most = max(most, after)
        if users[most] == nil { most -= 1 }
    }
}
