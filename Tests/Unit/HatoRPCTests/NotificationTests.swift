import HatoModel
import HatoRPC
import HatoTesting
import NIOCore
import Testing

/// What the server sends unasked: order, bounds, fan-out.
@Suite(.timeLimit(.minutes(10)))
struct NotificationTests {
    private func listener(_ service: TestService, at index: Int = 0) throws -> TestService.Listener {
        let listeners = service.listeners.current
        try #require(listeners.count > index)
        return listeners[index]
    }

    @Test func notificationCarriesItsSubscriptionAndSharedMembers() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.call("check.listen")
        let listener = try listener(service)
        #expect(response["result"]?["subscription"] == .string(listener.subscription))
        #expect(
            listener.connection.notify(
                "check.event", subscription: listener.subscription, members: EncodedJSON("\"n\":1")))
        #expect(
            listener.connection.notify("check.event", subscription: listener.subscription, members: EncodedJSON("")))
        let first = try await peer.response()
        #expect(
            first == [
                "jsonrpc": "2.0", "method": "check.event",
                "params": ["subscription": .string(listener.subscription), "n": 1],
            ])
        #expect(try await peer.response()["params"] == ["subscription": .string(listener.subscription)])
        await service.stop()
    }

    @Test func subscriptionsAreUniqueOnAConnection() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        var seen: Set<String> = []
        for _ in 0..<20 {
            let response = try await peer.call("check.listen")
            seen.insert(try #require(response["result"]?["subscription"]?.string))
        }
        #expect(seen.count == 20)
        await service.stop()
    }

    @Test func firstEventComesAfterTheResponseThatNamesTheSubscription() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            #"{"jsonrpc":"2.0","id":1,"method":"check.later","params":{"gate":"a"}}"# + "\n"
                + #"{"jsonrpc":"2.0","id":2,"method":"check.listen","params":{"gate":"b"}}"# + "\n"
                + #"[{"jsonrpc":"2.0","id":3,"method":"check.listen","params":{"gate":"b"}},{"jsonrpc":"2.0","id":4,"method":"check.later","params":{"gate":"c"}}]"#
                + "\n")
        await service.gates.arrivals(4)
        service.gates.open("b")
        service.gates.open("a")
        service.gates.open("c")
        #expect(try await peer.response()["id"] == 1)
        let response = try await peer.response()
        #expect(response["id"] == 2)
        let event = try await peer.response()
        #expect(event["params"]?["subscription"] == response["result"]?["subscription"])
        let batch = try await peer.response()
        #expect(batch.array?.first?["id"] == 3)
        #expect(try await peer.response()["params"]?["subscription"] == batch.array?.first?["result"]?["subscription"])
        await service.stop()
    }

    @Test func notificationsOfOneThreadKeepTheirOrder() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("check.listen")
        let listener = try listener(service)
        for number in 0..<2_000 {
            #expect(
                listener.connection.notify(
                    "check.event", subscription: listener.subscription, members: EncodedJSON("\"n\":\(number)")))
        }
        for number in 0..<2_000 {
            #expect(try await peer.response()["params"]?["n"] == .number(Double(number)))
        }
        await service.stop()
    }

    @Test func peerThatNeverReadsFallsBehindAndDrainsLater() async throws {
        let service = try await TestService { $0.limits.unsentNotificationBytesMax = 1 << 20 }
        let peer = try await service.peer()
        _ = try await peer.call("check.listen")
        let listener = try listener(service)
        try await peer.channel.setOption(.autoRead, value: false).get()
        let members = EncodedJSON("\"text\":\"" + String(repeating: "x", count: 10_000) + "\"")
        // What the kernel takes is not ours; after that at most the limit may be taken.
        let taken = Shared(0)
        try await eventually("the peer is behind") {
            var refused = 0
            while refused == 0, taken.current < 100_000 {
                if listener.connection.notify("check.event", subscription: listener.subscription, members: members) {
                    taken.change { $0 += 1 }
                } else {
                    refused += 1
                }
            }
            let before = peer.receivedBytes
            return before == peer.receivedBytes && refused > 0 && taken.current > 100
        }
        let drained = Shared(0)
        listener.connection.onDrain { drained.change { $0 += 1 } }
        try await peer.startReading()
        try await eventually("the peer drained") { drained.current == 1 }
        #expect(
            listener.connection.notify(
                "check.event", subscription: listener.subscription, members: EncodedJSON("\"last\":true")))
        for _ in 0..<taken.current { _ = try await peer.line() }
        #expect(try await peer.response()["params"]?["last"] == true)
        await service.stop()
    }

    @Test func drainIsCalledOnlyWhenWhatWasRefusedFits() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("check.listen")
        let listener = try listener(service)
        try await peer.channel.setOption(.autoRead, value: false).get()
        // Two fit into the limit, the third does not, even when less than half of the limit is on its way.
        let members = EncodedJSON("\"text\":\"" + String(repeating: "x", count: 450_000) + "\"")
        let sent = Shared(0)
        @Sendable func send() {
            while listener.connection.notify("check.event", subscription: listener.subscription, members: members) {}
            listener.connection.onDrain {
                sent.change { $0 += 1 }
                send()
            }
        }
        send()
        let other = try await service.peer()
        for _ in 0..<500 { _ = try await other.call("check.echo") }
        #expect(sent.current < 100)
        await peer.close()
        await service.stop()
    }

    @Test func oneNotificationLargerThanTheLimitIsSentAlone() async throws {
        let service = try await TestService { $0.limits.unsentNotificationBytesMax = 1_000 }
        let peer = try await service.peer()
        _ = try await peer.call("check.listen")
        let listener = try listener(service)
        let members = EncodedJSON("\"text\":\"" + String(repeating: "x", count: 500_000) + "\"")
        try await eventually("nothing else is on its way") {
            listener.connection.notify("check.event", subscription: listener.subscription, members: members)
        }
        #expect(try await peer.response()["params"]?["text"]?.string?.utf8.count == 500_000)
        await service.stop()
    }

    @Test func closingEndsListenersOnce() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("check.listen")
        let listener = try listener(service)
        await peer.close()
        try await eventually("the close was noticed") { service.closed.current == 1 }
        #expect(listener.connection.isClosed)
        #expect(!listener.connection.notify("check.event", subscription: "1", members: EncodedJSON("")))
        let late = Shared(0)
        listener.connection.onClose { late.change { $0 += 1 } }
        try await eventually("a late watcher was called") { late.current == 1 }
        #expect(service.closed.current == 1)
        await service.stop()
    }

    @Test func manyPeersGetWhatOneThreadSends() async throws {
        let service = try await TestService()
        var peers: [RawPeer] = []
        for _ in 0..<50 {
            let peer = try await service.peer()
            _ = try await peer.call("check.listen")
            peers.append(peer)
        }
        let listeners = service.listeners.current
        let members = EncodedJSON("\"n\":1")
        for _ in 0..<20 {
            for listener in listeners {
                #expect(
                    listener.connection.notify("check.event", subscription: listener.subscription, members: members))
            }
        }
        for peer in peers {
            for _ in 0..<20 { #expect(try await peer.response()["params"]?["n"] == 1) }
        }
        await service.stop()
    }
}
