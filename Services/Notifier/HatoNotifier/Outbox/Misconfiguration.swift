/// That a provider does not reach some devices of an app, by a mistake in the app's configuration. Pure.
///
/// One device can be the mistake itself, such as that of a development build: how many users have it is shown.
struct Misconfiguration: Sendable {
    /// Milliseconds for which it is shown: attempts that meet it are made again every ten minutes.
    private static let shownFor: Int64 = 3_600_000
    /// Users that are counted.
    private static let usersMax = 5

    private var words = ""
    private var users: Set<String> = []
    private var since: Int64 = 0
    private var last: Int64?

    /// A user met it; `now` in milliseconds since 1970.
    mutating func met(_ words: String?, by user: String, at now: Int64) {
        if last.map({ now - $0 >= Self.shownFor }) ?? true { (users, since) = ([], now) }
        if users.count < Self.usersMax { users.insert(user) }
        self.words = words ?? "the provider refuses the configuration"
        last = now
    }

    /// What is shown, and since when; nil when it was not met lately.
    func shown(at now: Int64) -> (problem: String, since: Int64)? {
        guard let last, now - last < Self.shownFor else { return nil }
        let count = users.count < Self.usersMax ? "\(users.count)" : "\(Self.usersMax) or more"
        return ("devices of \(count) \(users.count == 1 ? "user" : "users") are not reached: \(words)", since)
    }
}
