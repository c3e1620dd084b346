import HatoModel
import HatoRPC
import HatoTesting

/// The cost of 20 followers for posting clients: windows with none, with followers of another path, and with followers
/// of every post, in turn.
///
/// The notifications of every post are made and read on the same processors: if posts alone use all of them, each
/// delivery takes time from the posts.
struct FollowerBench: Sendable {
    private static let followers = 20

    private enum Followed: CaseIterable {
        case nothing, elsewhere, posts

        var pattern: String? {
            switch self {
            case .nothing: nil
            case .elsewhere: "/status/{uid}"
            case .posts: "/chats/{chat}/messages/{id}"
            }
        }
    }

    var settings: BenchSettings
    var stack: TestStack

    func rows() async throws -> Table {
        var table = Table()
        let token = try await stack.newUser().idToken
        for shape in [LoadShape(64, 1), LoadShape(4, 64)] {
            let bench = self
            let windows = try await Blocking.run { try bench.inTurn(shape, token) }
            add(windows, of: shape, to: &table)
        }
        try await addPaced(token, to: &table)
        return table
    }

    private var port: Int { stack.configuration(.messages).port }

    private func newFollowers(_ followed: Followed) throws -> Followers? {
        try followed.pattern.map {
            try Followers(Self.followers, of: $0, port: port, administratorKey: stack.administratorKey)
        }
    }

    private func inTurn(_ shape: LoadShape, _ token: String) throws -> [Followed: [Window]] {
        let requests = ChatRequests.pushes.map { ChatRequests.line(Messages.Push.method, $0.bytes) }
        var load = try RawLoad(at: port, as: token, shape, requests: requests)
        defer { load.close() }
        try load.warmUp()
        var windows: [Followed: [Window]] = [:]
        for _ in 0..<settings.windows {
            for followed in Followed.allCases {
                let followers = try newFollowers(followed)
                windows[followed, default: []].append(try load.window(seconds: settings.seconds))
                try followers?.close()
            }
        }
        return windows
    }

    private func add(_ windows: [Followed: [Window]], of shape: LoadShape, to table: inout Table) {
        let alone = windows[.nothing] ?? []
        for followed in Followed.allCases {
            let these = windows[followed] ?? []
            var row = Table.Row("\(name(followed)), posts: \(shape)", Window(mediansOf: these), "posts/s")
            if followed != .nothing {
                row.ratio = (these.map(\.perSecond).ratio(to: alone.map(\.perSecond)), "without followers")
                row.goals = [Goal(.ratio, .atLeast(0.95))]
            }
            table.add(row)
        }
    }

    private func name(_ followed: Followed) -> String {
        switch followed {
        case .nothing: "beside: no followers"
        case .elsewhere: "beside: \(Self.followers) followers of something else"
        case .posts: "beside: \(Self.followers) followers of every post"
        }
    }

    /// If the processors are not all in use, deliveries must not delay posts.
    private func addPaced(_ token: String, to table: inout Table) async throws {
        let posts = PacedPosts(port: port, token: token, params: ChatRequests.pushes)
        var windows: [Followed: [Window]] = [:]
        for _ in 0..<settings.windows {
            for followed in [Followed.nothing, .posts] {
                let followers = try newFollowers(followed)
                let outcome = try await posts.beside { try await Task.sleep(for: .seconds(settings.seconds)) }
                try followers?.close()
                windows[followed, default: []].append(outcome.window)
            }
        }
        for followed in [Followed.nothing, .posts] {
            table.add("\(name(followed)), a steady pace", Window(mediansOf: windows[followed] ?? []), "posts/s")
        }
    }
}
