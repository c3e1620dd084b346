import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// A notifier whose users respond: with auth and messages beside it, and devices that keep what they were sent.
struct RespondingWorld {
    let auth: FakeAuth
    let notifier: TestNotifier
    let channel: ScriptedChannel
    let store: MemoryStore

    static func startAuth() async throws -> FakeAuth {
        let auth = try await FakeAuth.start()
        auth.set("u1", name: "マスオ")
        auth.set("u2", name: "サザエ")
        return auth
    }

    /// The notifier alone.
    static func start(
        _ auth: FakeAuth, messages: FakeMessages? = nil, store: (any Store)? = nil, channels: [any Channel],
        _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> TestNotifier {
        try await TestNotifier.start(messages: messages, store: store, channels: channels) { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
            // A loaded machine is no effect that waits.
            configuration.limits.effectWaitMsMax = 600_000
            change(&configuration)
        }
    }

    /// With two devices of `u1`, one of `u2`, and categories.
    static func start(_ change: (inout NotifierConfiguration) -> Void = { _ in }) async throws -> RespondingWorld {
        let (auth, channel, store) = (try await startAuth(), ScriptedChannel(), try MemoryStore())
        let notifier = try await start(auth, store: StayingOpen(store), channels: [channel], change)
        for (uid, name) in [("u1", "phone"), ("u1", "tablet"), ("u2", "phone")] {
            var device = Notifier.Devices.Register(url: "https://example.com/\(uid)/\(name)", uid: uid)
            device.locale = uid == "u1" ? "ja-JP" : "en"
            _ = try await notifier.client.call(device)
        }
        for category in [plain, chat] { _ = try await notifier.client.call(Notifier.Categories.Set(category)) }
        return RespondingWorld(auth: auth, notifier: notifier, channel: channel, store: store)
    }

    func stop() async {
        await notifier.stop()
        await auth.stop()
    }

    /// The same services and rows, another process.
    func restarted(_ change: (inout NotifierConfiguration) -> Void = { _ in }) async throws -> RespondingWorld {
        await notifier.stop(keepingMessages: true)
        let next = try await Self.start(
            auth, messages: notifier.messages, store: StayingOpen(store), channels: [channel], change)
        return RespondingWorld(auth: auth, notifier: next, channel: channel, store: store)
    }

    /// Without effects.
    static let plain: Notifier.Category = .init(
        id: "MARRY_ME",
        actions: [
            .init(id: "ACCEPT", title: .init("承認")), .init(id: "REFUSE", title: .init("拒否")),
            .reply(id: "LETTER", title: .init("手紙"), effect: nil),
        ])

    /// With effects of each kind.
    static let chat: Notifier.Category = {
        var quick = Notifier.CategoryAction(id: "QUICK0", title: .init("了解です"))
        quick.quickReply = 0
        var like = Notifier.CategoryAction(id: "LIKE", title: .init("いいね"))
        like.effect = .init(set: .init(path: "/likes/{thread}/{uid}", value: ["by": "{name}", "id": "{data.message}"]))
        var read = Notifier.CategoryAction(id: "READ", title: .init("既読"))
        read.effect = .init(
            update: .init(path: "/chats/{thread}", value: ["unread/{uid}": 0, "seen/{data.message}": "{{{uid}}}"]))
        let push = Notifier.EffectWrite(
            path: "/chats/{thread}/messages",
            value: ["date": [".sv": "timestamp"], "senderId": "{uid}", "senderName": "{name}", "text": "{text}"])
        return .init(
            id: "CHAT",
            actions: [quick, like, read, .reply(id: "REPLY", title: .init("返信"), effect: .init(push: push))])
    }()

    /// What the app of a device got.
    struct Push: Sendable {
        var notification: String
        var uid: String
        var device: String
        var token: String
    }

    /// Sends a notification and returns what each device got: those of `u1` first, in the order of their URLs.
    func send(
        _ category: String? = "CHAT", to uids: [String] = ["u1", "u2"], thread: String? = "c1",
        data: [String: String] = ["message": "m1"]
    ) async throws -> [Push] {
        var send = Notifier.Send(to: .init(uids: uids), notification: .init(body: "ただいま"))
        (send.category, send.data) = (category, data)
        send.options = .init()
        send.options?.thread = thread
        let result = try await notifier.client.call(send)
        let id = try #require(result.notification)
        try await eventually("delivered") {
            channel.deliveries.count { $0.content.notification == id } == result.recipients
        }
        return channel.deliveries.filter { $0.content.notification == id }
            .sorted { "\($0.address)" < "\($1.address)" }
            .map { delivery in
                Push(
                    notification: id, uid: delivery.content.uid, device: delivery.content.device,
                    token: delivery.content.hato.reply ?? "")
            }
    }

    /// Responds as an app that only has the push.
    @discardableResult
    func respond(
        to push: Push, _ action: String? = nil, quickReply: Int? = nil, text: String? = nil, token: String? = nil
    ) async throws -> Notifier.Respond.Result {
        var request = Notifier.Respond(
            notification: push.notification, action: action, replyToken: token ?? push.token)
        (request.quickReply, request.text) = (quickReply, text)
        let app = notifier.anonymousClient()
        let result: Result<Notifier.Respond.Result, any Error>
        do { result = .success(try await app.call(request)) } catch { result = .failure(error) }
        await app.close()
        return try result.get()
    }

    /// The reason with which a response is refused; nil when it is taken.
    func refusal(
        of push: Push, _ action: String? = nil, quickReply: Int? = nil, text: String? = nil, token: String? = nil
    ) async -> String? {
        do {
            try await respond(to: push, action, quickReply: quickReply, text: text, token: token)
            return nil
        } catch { return (error as? RPCError)?.reason ?? "\(error)" }
    }

    /// The events of responses, in order.
    func events() throws -> [OutboxEvent] {
        try store.commits(after: (store.keptCommits.oldest ?? 1) - 1, limit: 10_000).flatMap {
            OutboxEvent.events(of: $0)
        }
        .filter { [.action, .displayed, .opened, .dismissed].contains($0.type) }
    }

    /// Rows of the tables of effects.
    func effectRows() throws -> Int {
        try store.snapshot().count(.effect) + store.snapshot().count(.effectDue)
    }
}
