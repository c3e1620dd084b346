import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestStores
import Testing

@testable import HatoNotifier

/// From a change to a receiver, through the whole service.
@Suite(.timeLimit(.minutes(10))) struct DeliveryTests {
    @Test func aChangeBecomesASignedWebhookForTheOthersAndNeverForItsAuthor() async throws {
        let notifier = try await TestNotifier.start()
        let (author, other) = (try await TestReceiver(), try await TestReceiver())
        try await notifier.addDevice(of: "u1", at: author.url)
        let device = try await notifier.addDevice(of: "u2", at: other.url)
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true, "u3": true])
        #expect(try await notifier.setTrigger())
        notifier.messages.push("ただいま", by: "u1")
        try await eventually("the other's webhook") { other.received.count == 1 }
        let received = try #require(other.received.first)
        #expect(received.title == "マスオさんからのメッセージ" && received.text == "ただいま" && received.uid == "u2")
        let secret = try WebhookSecret(try #require(device.secret))
        try WebhookSignature.verify(
            received.headers, body: received.body, secrets: [secret], now: WallClock.milliseconds() / 1_000)
        notifier.messages.push("おかえり", by: "u2")
        try await eventually("the answer") { author.received.count == 1 }
        #expect(author.received.first?.text == "おかえり")
        try await eventually("all recorded") { try await notifier.stats.pending == 0 }
        #expect(other.received.count == 1)
        await notifier.stop()
        await author.stop()
        await other.stop()
    }

    @Test func failuresAreRetriedWithTheSameIdentifierUntilDelivered() async throws {
        let notifier = try await TestNotifier.start()
        let receiver = try await TestReceiver()
        receiver.failNext(2)
        try await notifier.addDevice(of: "u2", at: receiver.url)
        let sent = try await notifier.client.call(
            Notifier.Send(to: .init(uids: ["u2"]), notification: .init(title: "a")))
        #expect(sent.recipients == 1)
        try await eventually("three attempts") { receiver.received.count == 3 }
        #expect(Set(receiver.received.map(\.headers.id)) == ["\(sent.notification ?? "")-0"])
        #expect(Set(receiver.received.map(\.body)).count == 1)
        let status = Notifier.Status(notification: try #require(sent.notification))
        try await eventually("delivered") {
            try await notifier.client.call(status).deliveries.first?.state == .delivered
        }
        #expect(try await notifier.client.call(status).deliveries.first?.attempts == 3)
        await notifier.stop()
        await receiver.stop()
    }

    @Test func aReceiverThatWasStoppedGetsEverythingOnceWhenItIsBack() async throws {
        let notifier = try await TestNotifier.start()
        let receiver = try await TestReceiver()
        try await notifier.addDevice(of: "u2", at: receiver.url)
        notifier.messages.setNode("/chats/c1/members", ["u1": true, "u2": true])
        try await notifier.setTrigger()
        await receiver.stop()
        for index in 1...3 { notifier.messages.push("\(index)") }
        try await eventually("an attempt failed") { try await notifier.stats.pending == 3 }
        try await receiver.start()
        try await eventually("all recorded") { try await notifier.stats.pending == 0 }
        #expect(receiver.received.compactMap(\.text) == ["1", "2", "3"])
        await notifier.stop()
        await receiver.stop()
    }

    @Test func afterARestartNothingIsLostAndNothingDeliveredTwice() async throws {
        let messages = try await FakeMessages.start()
        messages.setNode("/chats/c1/members", ["u1": true, "u2": true])
        let channel = ScriptedChannel()
        let first = try MemoryStore()
        var notifier = try await TestNotifier.start(messages: messages, store: StayingOpen(first), channels: [channel])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/")
        try await notifier.setTrigger()
        for index in 1...5 { messages.push("\(index)") }
        try await eventually("delivered") { channel.deliveries.count == 5 }
        try await eventually("recorded") { try await notifier.stats.pending == 0 }
        await notifier.stop(keepingMessages: true)
        // Written while the notifier is down.
        for index in 6...8 { messages.push("\(index)") }
        notifier = try await TestNotifier.start(messages: messages, store: StayingOpen(first), channels: [channel])
        messages.push("9")
        try await eventually("the rest") { channel.deliveries.count >= 9 }
        try await eventually("recorded") { try await notifier.stats.pending == 0 }
        #expect(channel.deliveries.compactMap(\.content.text.body) == (1...9).map(String.init))
        await notifier.stop()
    }

    @Test func anAddressInsideIsRefusedUnlessItIsAllowed() async throws {
        let notifier = try await TestNotifier.start { $0.addresses.allowsPrivate = false }
        for (url, reason) in [
            ("http://127.0.0.1:8080/", "plain_http"), ("https://127.0.0.1/", "private_address"),
            ("https://[::1]/", "private_address"), ("https://localhost/", "private_address"),
            ("https://8.8.8.8:22/", "port_not_allowed"), ("nonsense", "invalid_url"),
        ] {
            let error = await #expect(throws: RPCError.self) { try await notifier.addDevice(of: "u1", at: url) }
            #expect(error?.code == .invalidArgument && error?.reason == reason)
            #expect(error?.data["parameter"] == "url")
        }
        await notifier.stop()
    }
}

/// A memory store that outlives the service that closes it, as a folder outlives its process.
final class StayingOpen: WrappedStore {
    let store: any Store

    init(_ store: MemoryStore) { self.store = store }

    func close() {}
}
