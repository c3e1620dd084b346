import HatoIdentity
import HatoModel
import HatoRPC
import Logging
import Synchronization
import Testing

/// As much of messages as the notifier uses: a history that is followed, and nodes that are read.
final class FakeMessages: Sendable {
    private struct Follower: Sendable {
        var connection: RPCConnection
        var subscription: String
        var patterns: [String]
    }

    private struct State {
        var epoch = "epoch-1"
        var version: UInt64 = 0
        var oldest: UInt64 = 1
        var commits: [Messages.Change] = []
        var followers: [Follower] = []
        var nodes: [String: JSONValue] = [:]
        var followCount = 0
        var begunReads: [String] = []
        var reads: [String] = []
        var shallowReads: [String] = []
        var failure: RPCError?
        var gates: [String: Gate] = [:]
        var writing = FakeWriting()
    }

    private final class Holder: Sendable {
        let state = Mutex(State())

        /// Applies a write, and responds when the gate is open.
        func write(_ write: FakeWrite) async throws -> UInt64 {
            let (version, gate) = try state.withLock { state in
                try state.writing.apply(write, to: &state.nodes)
                state.version += 1
                return (state.version, state.writing.gate)
            }
            await gate?.pass()
            return version
        }
    }

    private let holder: Holder
    private let server: RPCServer
    let port: Int

    private init(_ holder: Holder, _ server: RPCServer, port: Int) {
        self.holder = holder
        self.server = server
        self.port = port
    }

    static func start(port: Int = 0) async throws -> FakeMessages {
        let holder = Holder()
        let methods: [any RPCRequest.Type] = [
            Messages.Follow.self, Messages.Unfollow.self, Messages.Get.self, Messages.Push.self, Messages.Set.self,
            Messages.Update.self,
        ]
        var router = RPCRouter()
        router.handle(Messages.Follow.self) { request, context in try follow(request, context, holder) }
        router.handle(Messages.Unfollow.self) { request, context in
            holder.state.withLock { state in
                state.followers.removeAll {
                    $0.subscription == request.subscription && $0.connection.id == context.connection.id
                }
            }
            return Empty()
        }
        router.handle(Messages.Get.self) { request, _ in
            let gate = holder.state.withLock { state in
                state.begunReads.append(request.path.text)
                return state.gates[request.path.text]
            }
            await gate?.pass()
            return try holder.state.withLock { state in
                state.reads.append(request.path.text)
                if request.shallow == true { state.shallowReads.append(request.path.text) }
                if let failure = state.failure { throw failure }
                return try read(state.nodes[request.path.text] ?? .null, request, version: state.version)
            }
        }
        router.handle(Messages.Push.self) { request, context in
            let key = request.key ?? PushKey(milliseconds: 0, random: (0, 0))
            let write = FakeWrite(Messages.Push.method, request.path, request.value, context.caller, key: key.text)
            return .init(key: key, version: try await holder.write(write))
        }
        router.handle(Messages.Set.self) { request, context in
            let write = FakeWrite(Messages.Set.method, request.path, request.value, context.caller)
            return .init(version: try await holder.write(write))
        }
        router.handle(Messages.Update.self) { request, context in
            let write = FakeWrite(Messages.Update.method, request.path, .object(request.values), context.caller)
            return .init(version: try await holder.write(write))
        }
        var configuration = RPCServerConfiguration(service: "messages", version: "0")
        configuration.methods = methods
        configuration.port = port
        let keys = try #require(AdministratorKeys(keys: [TestKeys.administrator]))
        let authenticator = ServiceAuthenticator(
            configuration: IdentityConfiguration(), administratorKeys: keys, fetchKeys: { [] })
        let server = RPCServer(
            configuration, router: router, authenticator: authenticator,
            logger: Logger(label: "fake") { _ in SwiftLogNoOpLogHandler() })
        let bound = try await server.start().port
        return FakeMessages(holder, server, port: bound)
    }

    private static func read(
        _ value: JSONValue, _ request: Messages.Get, version: UInt64
    ) throws -> Messages.Get.Result {
        if let query = request.query {
            let children = query.select(from: try TreeNode(json: value))
            let isShallow = request.shallow == true
            let members = children.map { JSONObject.Member($0.key.text, isShallow ? true : $0.node.export) }
            return .init(
                value: .object(JSONObject(uniqueMembers: members)), keys: children.map(\.key.text), version: version)
        }
        return .init(value: value, version: version)
    }

    private static func follow(
        _ request: Messages.Follow, _ context: RPCContext, _ holder: Holder
    ) throws -> Messages.Follow.Result {
        try holder.state.withLock { state in
            state.followCount += 1
            let after = request.after ?? state.version
            if let epoch = request.epoch, epoch != state.epoch || after > state.version {
                throw RPCError.failedPrecondition(reason: "unknown_version", "unknown")
            }
            if request.after != 0, after + 1 < state.oldest {
                throw RPCError.failedPrecondition(
                    reason: "compacted", "compacted", data: ["oldest": .number(Double(state.oldest))])
            }
            let connection = context.connection.id
            context.connection.onClose {
                holder.state.withLock { $0.followers.removeAll { $0.connection.id == connection } }
            }
            let follower = Follower(
                connection: context.connection, subscription: context.openSubscription(),
                patterns: (request.patterns ?? []).map(\.description))
            state.followers.append(follower)
            for commit in state.commits where commit.version > after && commit.version >= state.oldest {
                send(commit, to: follower)
            }
            return .init(subscription: follower.subscription, version: state.version, epoch: state.epoch)
        }
    }

    private static func send(_ commit: Messages.Change, to follower: Follower) {
        var mine = commit
        mine.changes = commit.changes.filter { follower.patterns.contains($0.pattern ?? "") }
        if !mine.changes.isEmpty { notify(mine, of: follower) }
    }

    private static func notify(_ note: Messages.Change, of follower: Follower) {
        var params = note.members
        params["subscription"] = nil
        let members = EncodedJSON { writer in
            for member in params.members {
                writer.member(member.name)
                writer.write(member.value)
            }
        }
        _ = follower.connection.notify(Messages.Change.method, subscription: follower.subscription, members: members)
    }

    // MARK: What tests do

    /// Commits one message of a chat; returns its version.
    @discardableResult
    func push(_ text: String, in chat: String = "c1", by uid: String? = "u1", at time: Int64? = nil) -> UInt64 {
        commit(at: time) { version in
            var entry = Messages.Change.Entry(path: "/chats/\(chat)/messages/m\(version)", type: .created)
            entry.pattern = "/chats/{chat}/messages/{id}"
            entry.params = ["chat": chat, "id": "m\(version)"]
            entry.before = .null
            entry.after = ["senderName": "マスオ", "text": .string(text)]
            entry.uid = uid
            return [entry]
        }
    }

    @discardableResult
    func commit(at time: Int64? = nil, _ entries: (UInt64) -> [Messages.Change.Entry]) -> UInt64 {
        holder.state.withLock { state in
            state.version += 1
            let commit = Messages.Change(
                subscription: "", version: state.version, epoch: state.epoch, time: time ?? WallClock.milliseconds(),
                changes: entries(state.version))
            state.commits.append(commit)
            for follower in state.followers { Self.send(commit, to: follower) }
            return state.version
        }
    }

    /// Commits what no pattern matches, and sends followers their position.
    @discardableResult
    func commitElsewhere() -> UInt64 {
        holder.state.withLock { state in
            state.version += 1
            let note = Messages.Change(
                subscription: "", version: state.version, epoch: state.epoch, time: WallClock.milliseconds(),
                changes: [])
            for follower in state.followers { Self.notify(note, of: follower) }
            return state.version
        }
    }

    func setNode(_ path: String, _ value: JSONValue) { holder.state.withLock { $0.nodes[path] = value } }
    /// Reads of a node have no response until the gate is open.
    func holdReads(of path: String, until gate: Gate) { holder.state.withLock { $0.gates[path] = gate } }
    /// Refuses reads; nil: answers them.
    func fail(with error: RPCError?) { holder.state.withLock { $0.failure = error } }
    /// The paths whose reads have begun, also those that a gate holds.
    var begunReads: [String] { holder.state.withLock { $0.begunReads } }
    /// The paths that were read, in order.
    var reads: [String] { holder.state.withLock { $0.reads } }
    /// Those of them that want no more than the keys of children.
    var shallowReads: [String] { holder.state.withLock { $0.shallowReads } }
    var followCount: Int { holder.state.withLock { $0.followCount } }
    var followerCount: Int { holder.state.withLock { $0.followers.count } }
    var version: UInt64 { holder.state.withLock { $0.version } }

    /// Forgets the records of commits before `version`.
    func compact(before version: UInt64) { holder.state.withLock { $0.oldest = version } }

    /// Another history, as after a restored backup that holds everything up to `version`.
    func restore(through version: UInt64) {
        holder.state.withLock { state in
            state.epoch = "epoch-2"
            state.commits.removeAll { $0.version > version }
            state.commits = state.commits.map { commit in
                var commit = commit
                commit.epoch = "epoch-2"
                return commit
            }
            state.version = version
        }
    }

    /// Cuts every connection.
    func disconnect() {
        let followers = holder.state.withLock { state in
            defer { state.followers = [] }
            return state.followers
        }
        for follower in followers { follower.connection.close() }
    }

    /// The writes that were applied, in order.
    var writes: [FakeWrite] { holder.state.withLock { $0.writing.writes } }
    /// Refuses writes; nil: takes them.
    func failWrites(with error: RPCError?) { holder.state.withLock { $0.writing.failure = error } }
    /// Writes are applied, and have no response until the gate is open.
    func holdWrites(until gate: Gate) { holder.state.withLock { $0.writing.gate = gate } }
    /// Refuses a push under a key that is taken by the rules, or by its key.
    func refuseSecondPushes(byRules: Bool) { holder.state.withLock { $0.writing.rulesDenySecond = byRules } }
    func nodeCount(below path: String) -> Int {
        holder.state.withLock { $0.nodes.keys.count { $0.hasPrefix(path + "/") } }
    }

    func stop() async { await server.shutdown(grace: .seconds(5)) }
}
