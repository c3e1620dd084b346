import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import HatoRuntime
import HatoStorage
import Logging
import Synchronization
import Testing

@testable import HatoNotifier

/// The whole service on a store of its own, with messages beside it, and a client with the administrator key.
final class TestNotifier: Sendable {
    let messages: FakeMessages
    let store: any Store
    let client: RPCClient
    private let server: NotifierServer

    static func start(
        messages: FakeMessages? = nil, store: (any Store)? = nil, channels: [any Channel]? = nil,
        _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> TestNotifier {
        let fake = if let messages { messages } else { try await FakeMessages.start() }
        var configuration = try NotifierConfiguration.test()
        configuration.messages = RPCClientConfiguration(host: "127.0.0.1", port: fake.port)
        configuration.messagesKey = TestKeys.administrator
        configuration.addresses.allowsPrivate = true
        configuration.delivery.backoff.first = .milliseconds(20)
        configuration.delivery.backoff.longest = .milliseconds(200)
        // A loaded machine is no slow receiver.
        configuration.webhooks.timeout = .seconds(100)
        configuration.webhooks.connectTimeout = .seconds(100)
        configuration.delivery.lease = .seconds(200)
        if channels?.contains(where: { $0.platform == .fcm }) == true { configuration.apps = try TestApps.fcm() }
        change(&configuration)
        let kept: any Store = if let store { store } else { try MemoryStore() }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let server =
            if let channels {
                try await NotifierServer.start(configuration, store: kept, channels: channels, logger: logger)
            } else {
                try await NotifierServer.start(configuration, store: kept, logger: logger)
            }
        return TestNotifier(fake, kept, server)
    }

    private init(_ messages: FakeMessages, _ store: any Store, _ server: NotifierServer) {
        self.messages = messages
        self.store = store
        self.server = server
        var configuration = RPCClientConfiguration(host: "127.0.0.1", port: server.port)
        // No test is about this: a loaded machine may take long.
        configuration.timeout = .seconds(120)
        client = RPCClient(configuration.with(credential: TestKeys.administrator))
    }

    /// What triggers hold in memory.
    var budget: TriggerBudget { server.budget }

    func stop(keepingMessages: Bool = false) async {
        await client.close()
        await server.shutdown(grace: .seconds(5))
        if !keepingMessages { await messages.stop() }
    }

    /// A client that has shown nothing.
    func anonymousClient() -> RPCClient { RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: server.port)) }

    /// Calls as a user.
    func call<Request: RPCRequest>(_ request: Request, as uid: String) async throws -> Request.Result {
        var params = request.members
        params["auth"] = .string(TestKeys.administrator)
        params["as"] = ["uid": .string(uid)]
        return try Request.decodeResult(try await client.call(method: Request.method, params: params))
    }

    @discardableResult
    func addDevice(of uid: String, at url: String) async throws -> Notifier.Devices.Register.Result {
        try await client.call(Notifier.Devices.Register(url: url, uid: uid))
    }

    @discardableResult
    func setTrigger(
        _ id: String = "chat-message", recipients: Notifier.Recipients = .init(uidsAt: "/chats/{chat}/members"),
        title: String = "{after.senderName}さんからのメッセージ"
    ) async throws -> Bool {
        try await client.call(
            Notifier.Triggers.Set(
                id: id, pattern: "/chats/{chat}/messages/{id}", recipients: recipients,
                notification: .init(title: title, body: "{after.text}"))
        ).created
    }

    var stats: Notifier.Stats.Result { get async throws { try await client.call(Notifier.Stats()) } }

    func isFollowing(_ version: UInt64? = nil) async throws -> Bool {
        let cursors = try await stats.cursors
        return cursors.contains { $0.following && (version.map { Int($0) } ?? $0.version) <= $0.version }
    }
}

/// A receiver of webhooks that can be stopped and started again on its port.
final class TestReceiver: Sendable {
    struct Received: Sendable {
        var headers: WebhookHeaders
        var body: [UInt8]
        var title: String? { (try? JSONParser.parse(body))?["data"]?["title"]?.string }
        var text: String? { (try? JSONParser.parse(body))?["data"]?["body"]?.string }
        var uid: String? { (try? JSONParser.parse(body))?["data"]?["uid"]?.string }
    }

    private struct State {
        var received: [Received] = []
        var failing = 0
        var listener: HTTPListener?
        var port = 0
    }

    private let state = Mutex(State())

    init() async throws { try await start() }

    var url: String { "http://127.0.0.1:\(state.withLock { $0.port })/hook" }
    var received: [Received] { state.withLock { $0.received } }
    func failNext(_ count: Int) { state.withLock { $0.failing = count } }

    func start() async throws {
        let port = state.withLock { $0.port }
        let listener = try await HTTPListener(host: "127.0.0.1", port: port) { request in
            let headers = WebhookHeaders(
                id: request.header("webhook-id"), timestamp: request.header("webhook-timestamp"),
                signature: request.header("webhook-signature"))
            let isFailing = self.state.withLock { state in
                state.received.append(Received(headers: headers, body: request.body))
                state.failing -= 1
                return state.failing >= 0
            }
            return HTTPResponse(status: isFailing ? 500 : 204)
        }
        state.withLock { state in
            state.listener = listener
            state.port = listener.port
        }
    }

    func stop() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        await listener?.stop()
    }
}
