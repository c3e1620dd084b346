import HatoModel
import HatoPush
import HatoRPC
import HatoTesting
import Testing

@testable import HatoNotifier

/// With `content: "ids"` no provider learns what a notification says.
@Suite(.timeLimit(.minutes(5))) struct ContentIDTests {
    @Test func pushesCarryTheIDAlone() async throws {
        let channel = ScriptedChannel()
        let notifier = try await TestNotifier.start(channels: [channel])
        for (uid, locale) in [("u1", "ja_JP"), ("u2", "en"), ("u3", nil), ("u4", "jam")] {
            var device = Notifier.Devices.Register(url: "https://example.com/\(uid)", uid: uid)
            device.locale = locale
            _ = try await notifier.client.call(device)
        }
        var send = Notifier.Send(
            to: .init(uids: ["u1", "u2", "u3", "u4"]), notification: .init(title: "title", body: "body"))
        send.localized = ["ja": .init(title: "題")]
        send.data = ["secret": "s"]
        var options = Notifier.DeliveryOptions()
        (options.image, options.link, options.thread, options.sound) =
            ("https://e.com/i", "https://e.com/l", "c1", "default")
        send.options = options
        send.content = .ids
        _ = try await notifier.client.call(
            Notifier.Categories.Set(.init(id: "C", actions: [.init(id: "A", title: .init("words"))])))
        send.category = "C"
        let id = try await notifier.client.call(send).notification
        try await eventually("all have it") { channel.deliveries.count == 4 }
        let contents = Dictionary(channel.deliveries.map { ($0.content.uid, $0.content) }) { first, _ in first }
        for content in contents.values {
            #expect(content.text == .init() && content.data.isEmpty && content.hato.id == id)
            // The app responds, and the number on its icon is that of its threads.
            #expect(content.hato.reply != nil && content.appearance.badge == 1)
            #expect(content.appearance.category?.id == "C" && content.appearance.category?.actions.isEmpty == true)
            #expect(content.appearance.image == nil && content.appearance.link == nil)
            #expect(content.appearance.thread == "c1" && content.appearance.sound == "default")
        }
        #expect(contents["u1"]?.hato.source == .init(path: nil, thread: "c1", category: "C"))
        #expect(contents["u1"]?.neutralText == "新着メッセージ")
        for uid in ["u2", "u3", "u4"] { #expect(contents[uid]?.neutralText == "New message") }
        await notifier.stop()
    }

    @Test func triggersToo() async throws {
        let channel = ScriptedChannel()
        let notifier = try await TestNotifier.start(channels: [channel])
        try await notifier.addDevice(of: "u1", at: "https://example.com/u1")
        var set = Notifier.Triggers.Set(
            id: "t", pattern: "/chats/{chat}/messages/{id}", recipients: .init(uids: ["u1"]),
            notification: .init(title: "{after.text}"))
        set.content = .ids
        _ = try await notifier.client.call(set)
        #expect(try await notifier.client.call(Notifier.Triggers.List()).triggers.first?.content == .ids)
        try await eventually("it follows") { try await notifier.isFollowing() }
        notifier.messages.push("words", by: "u2")
        try await eventually("it has it") { !channel.deliveries.isEmpty }
        let content = try #require(channel.deliveries.first?.content)
        #expect(content.text == .init() && content.hato.id == content.notification && content.neutralText != nil)
        // The app reads one node.
        let path = try #require(content.path)
        #expect(path.hasPrefix("/chats/") && content.hato.source?.path == path)
        await notifier.stop()
    }

    @Test func membersOfAPlatformAreRefusedBesideIt() async throws {
        let notifier = try await TestNotifier.start(channels: [ScriptedChannel()])
        var members = Notifier.PlatformMembers()
        members.apns = ["aps": ["alert": "words"]]
        var send = Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "x"))
        (send.platforms, send.content) = (members, .ids)
        var set = Notifier.Triggers.Set(
            id: "t", pattern: "/m/{id}", recipients: .init(uids: ["u1"]), notification: .init(title: "x"))
        (set.platforms, set.content) = (members, .ids)
        for call in [{ _ = try await notifier.client.call(send) }, { _ = try await notifier.client.call(set) }] {
            do {
                try await call()
                Issue.record("it was accepted")
            } catch let error as RPCError { #expect(error.reason == "invalid_platform_member") }
        }
        send.content = .full
        #expect(try await notifier.client.call(send).recipients == 0)
        await notifier.stop()
    }
}
