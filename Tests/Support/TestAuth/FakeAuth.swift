public import HatoFollow
import HatoIdentity
public import HatoModel
public import HatoRPC
public import HatoStorage
public import Logging
import Synchronization

/// What follows auth without auth: a server whose events are what a test writes into its store, and whose accounts and
/// sessions are what a test says.
public final class FakeAuth: Sendable {
    /// The credential of its callers.
    public static let key = "test-administrator-key-0123456789-abcdef"

    private static let signingKey = SigningKey(kid: "k")
    private static let newestKey: [UInt8] = [1]

    private struct State {
        var accounts: [String: Auth.Account] = [:]
        var sessions: [String: [String]] = [:]
        /// Users whose sessions cannot be listed.
        var failing: Set<String> = []
        /// How often the sessions of each user were asked for.
        var sessionLists: [String: Int] = [:]
        /// What a list of sessions waits for, once it is made.
        var beforeSessionList: @Sendable (String) async -> Void = { _ in }
        var lists = 0
    }

    private final class Holder: Sendable {
        let state = Mutex(State())

        func list(_ request: Auth.Sessions.List) throws -> Auth.Sessions.List.Result {
            try state.withLock { state in
                if let uid = request.uid {
                    if request.after == nil { state.sessionLists[uid, default: 0] += 1 }
                    if state.failing.contains(uid) { throw RPCError.internalError }
                }
                guard let sessions = request.uid.flatMap({ state.sessions[$0] }) else {
                    throw RPCError.notFound(reason: "USER_NOT_FOUND", "There is no such account")
                }
                let rest = sessions.sorted().filter { session in request.after.map { session > $0 } ?? true }
                // Small pages: tests have few sessions.
                let page = rest.prefix(1)
                return .init(
                    sessions: page.map {
                        Auth.Sessions.Entry(session: $0, provider: "password", createdAt: 0, usedAt: 0)
                    }, after: rest.count > page.count ? page.last : nil)
            }
        }
    }

    /// Its events.
    public let store: MemoryStore
    public let port: Int
    private let server: RPCServer
    private let followers: EventFollowers<FakeEvent>
    private let holder: Holder

    /// - Parameter port: 0: a free one.
    public static func start(
        on store: MemoryStore? = nil, port: Int = 0, time: FakeTime = FakeTime()
    ) async throws -> FakeAuth {
        let store = try store ?? MemoryStore()
        let followers = EventFollowers<FakeEvent>(
            store, followersMax: 16, now: { time.now },
            newestPosition: { rows in try rows.get(newestKey).flatMap { Int(String(decoding: $0, as: UTF8.self)) } })
        let holder = Holder()
        var router = RPCRouter()
        router.handle(Auth.Follow.self) { request, context in
            try await followers.follow(after: request.after, epoch: request.epoch, context)
        }
        router.handle(Auth.Unfollow.self) { request, context in
            try followers.unfollow(request.subscription, on: context.connection)
            return Empty()
        }
        let key = Self.signingKey.verificationKey.jwk
        router.handle(Auth.Keys.self) { _, _ in .init(keys: [key]) }
        router.handle(Auth.Users.List.self) { request, _ in
            holder.state.withLock { state in
                state.lists += 1
                let rest = state.accounts.keys.sorted().filter { uid in request.after.map { uid > $0 } ?? true }
                // Small pages: tests have few accounts.
                let page = rest.prefix(2)
                return .init(
                    users: page.compactMap { state.accounts[$0] }, after: rest.count > page.count ? page.last : nil)
            }
        }
        router.handle(Auth.Users.Get.self) { request, _ in
            guard let account = holder.state.withLock({ $0.accounts[request.uid ?? ""] }) else {
                throw RPCError.notFound(reason: "USER_NOT_FOUND", "There is no such account")
            }
            return account
        }
        router.handle(Auth.Sessions.List.self) { request, _ in
            let list = Result { try holder.list(request) }
            if let uid = request.uid { await holder.state.withLock { $0.beforeSessionList }(uid) }
            return try list.get()
        }
        var configuration = RPCServerConfiguration(service: "auth", version: "0")
        configuration.methods = [
            Auth.Follow.self, Auth.Keys.self, Auth.Unfollow.self, Auth.Users.List.self, Auth.Sessions.List.self,
            Auth.Users.Get.self,
        ]
        configuration.port = port
        let server = RPCServer(
            configuration, router: router,
            authenticator: ServiceAuthenticator(
                configuration: IdentityConfiguration(), administratorKeys: AdministratorKeys(keys: [Self.key]) ?? .none,
                fetchKeys: { [] }),
            logger: .quiet)
        return FakeAuth(Parts(store, followers, server, holder), port: try await server.start().port)
    }

    private struct Parts {
        var store: MemoryStore
        var followers: EventFollowers<FakeEvent>
        var server: RPCServer
        var holder: Holder

        init(_ store: MemoryStore, _ followers: EventFollowers<FakeEvent>, _ server: RPCServer, _ holder: Holder) {
            (self.store, self.followers, self.server, self.holder) = (store, followers, server, holder)
        }
    }

    private init(_ parts: Parts, port: Int) {
        (store, followers, server, holder) = (parts.store, parts.followers, parts.server, parts.holder)
        self.port = port
    }

    /// How to reach it, with the credential.
    public var configuration: RPCClientConfiguration {
        RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: Self.key)
    }

    public var client: RPCClient { RPCClient(configuration) }

    /// How often a page of accounts was read.
    public var listCount: Int { holder.state.withLock { $0.lists } }

    /// One commit with these events; without one, a commit that concerns no follower.
    public func write(_ events: FakeEvent...) async throws {
        _ = try await store.write { rows in
            FakeEvent.record(events, in: rows)
            let newest = FakeEvent.position(ofLast: events, in: rows).map { Array(String($0).utf8) }
            let key: [UInt8] = newest == nil ? [2] : Self.newestKey
            let value: [UInt8] = newest ?? []
            rows.put(key.span, value.span)
        }
    }

    /// An ID token of the project `hato`, issued now.
    public func token(_ uid: String, session: String) throws -> String {
        let now = WallClock.milliseconds() / 1000
        return try Self.signingKey.sign([
            "iss": .string(IdentityConfiguration.issuer(of: "hato")), "aud": "hato", "sub": .string(uid),
            "sid": .string(session), "iat": .number(Double(now)), "exp": .number(Double(now + 3_600)),
        ])
    }

    /// Makes or changes an account, without an event; nil removes it.
    public func set(_ uid: String, name: String?, photo: String? = nil, disabled: Bool = false) {
        holder.state.withLock { state in
            var account = Auth.Account(uid: uid, createdAt: 0)
            account.displayName = name
            account.photoUrl = photo
            account.disabled = disabled
            state.accounts[uid] = account
        }
    }

    /// Removes an account, without an event.
    public func remove(_ uid: String) { holder.state.withLock { $0.accounts[uid] = nil } }

    /// The sessions of an account; nil: there is no such account.
    public func setSessions(_ uid: String, _ sessions: [String]?) {
        holder.state.withLock { $0.sessions[uid] = sessions }
    }

    /// What the responses to requests for sessions wait for, which say how it was before; called with the user.
    public func holdSessions(_ wait: @escaping @Sendable (_ uid: String) async -> Void) {
        holder.state.withLock { $0.beforeSessionList = wait }
    }

    /// Users whose sessions cannot be listed.
    public func failSessions(of uids: Set<String>) { holder.state.withLock { $0.failing = uids } }

    /// How often the sessions of each user were asked for.
    public var sessionLists: [String: Int] { holder.state.withLock { $0.sessionLists } }

    /// Ends its connections; the store stays.
    public func stop() async {
        await followers.stop()
        await server.shutdown(grace: .seconds(5))
    }
}

/// An event of auth as a test says it.
public struct FakeEvent: RecordedEvent {
    public static let method = Auth.Event.method
    public static let endMethod = Auth.Cancelled.method

    public var type: Auth.EventType
    /// Milliseconds since 1970.
    public var time: Int64
    public var uid: String?
    public var since: Int64?
    public var until: Int64?
    public var session: String?
    public var kid: String?
    public var profile: Auth.PublicProfile?

    public static let fields = Fields<Self>(
        blank: Self(.created),
        .required("type", \.type), .required("time", \.time), .optional("uid", \.uid), .optional("since", \.since),
        .optional("until", \.until), .optional("session", \.session), .optional("kid", \.kid),
        .optional("profile", \.profile))

    public init(
        _ type: Auth.EventType, _ uid: String? = nil, since: Int64? = nil, session: String? = nil, kid: String? = nil
    ) {
        self.type = type
        time = FakeTime.start
        self.uid = uid
        self.since = since
        self.session = session
        self.kid = kid
    }

    /// With the public profile of the account.
    public init(_ type: Auth.EventType, _ uid: String, name: String?, photo: String? = nil) {
        self.init(type, uid)
        profile = Auth.PublicProfile(displayName: name, photoUrl: photo)
    }
}

/// A clock that a test moves.
public final class FakeTime: Sendable {
    /// Milliseconds since 1970.
    public static let start: Int64 = 1_795_000_000_000
    private let time = Mutex(start)

    public init() {}

    public var now: Int64 { time.withLock { $0 } }
    public func pass(seconds: Int64) { time.withLock { $0 += seconds * 1000 } }
}

extension Logger {
    /// Logs nothing.
    public static var quiet: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
