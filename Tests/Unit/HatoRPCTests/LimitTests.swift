import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import NIOCore
import Testing

/// Protocol §1: each limit, and what happens at it.
@Suite(.timeLimit(.minutes(10)))
struct LimitTests {
    @Test func defaultsAreThoseOfTheProtocol() {
        let limits = RPCLimits()
        #expect(limits.lineBytesMax == 16 * 1024 * 1024)
        #expect(limits.unauthenticatedLineBytesMax == 64 * 1024)
        #expect(limits.nestingMax == 64)
        #expect(limits.batchEntriesMax == 1_000)
        #expect(limits.requestsInFlightMax == 1_024)
        #expect(limits.connectionBytesInFlightMax == 32 * 1024 * 1024)
        #expect(limits.processBytesInFlightMax == 512 * 1024 * 1024)
        #expect(limits.processEventBytesMax == 256 * 1024 * 1024)
        #expect(limits.unreservedReadBytesMax == 64 * 1024)
        #expect(limits.responseBytesMax == 16 * 1024 * 1024)
        #expect(limits.idleSecondsMax == 600)
        #expect((limits.keepAliveIdleSeconds, limits.keepAliveIntervalSeconds, limits.keepAliveProbes) == (20, 10, 4))
    }

    @Test func systemKeepsLittleOfEachConnection() async throws {
        let service = try await TestService {
            $0.limits.socketUnsentBytesMax = 96 << 10
            $0.limits.socketReceivedBytesMax = 96 << 10
        }
        let peer = try await service.peer()
        _ = try await peer.call("check.echo")
        let port = try #require(peer.channel.localAddress?.port)
        let own = try #require(peer.channel.remoteAddress?.port)
        let accepted = try #require(socket(on: own, connectedTo: port))
        #expect(option(accepted, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT) == 96 << 10)
        // Linux says twice the value that was set (socket(7)).
        let received = try #require(option(accepted, SOL_SOCKET, SO_RCVBUF))
        #expect([32 << 10, 64 << 10].contains(received))
        // It keeps more for a peer that has shown a credential.
        _ = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        #expect(option(accepted, SOL_SOCKET, SO_RCVBUF) == 3 * received)
        await service.stop()
    }

    /// The credential of a gateway is not that of its client.
    @Test func systemKeepsLittleOfClientsOfAGateway() async throws {
        let service = try await TestService { $0.limits.socketReceivedBytesMax = 96 << 10 }
        let peer = try await service.peer()
        _ = try await peer.call("check.echo")
        let port = try #require(peer.channel.localAddress?.port)
        let own = try #require(peer.channel.remoteAddress?.port)
        let accepted = try #require(socket(on: own, connectedTo: port))
        let received = try #require(option(accepted, SOL_SOCKET, SO_RCVBUF))
        let forward = #"{"auth":"gateway","from":"203.0.113.7","clientLines":true}"#
        #expect(try await peer.call("session.forward", forward)["result"] == [:])
        #expect(option(accepted, SOL_SOCKET, SO_RCVBUF) == received)
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        #expect(option(accepted, SOL_SOCKET, SO_RCVBUF) == 3 * received)
        await service.stop()
    }

    /// The socket of this process at a port whose peer has this port: clients of several servers may have the same.
    private func socket(on own: Int, connectedTo port: Int) -> CInt? {
        (0..<4_096).first { descriptor in
            self.port { getpeername(descriptor, $0, $1) } == port
                && self.port { getsockname(descriptor, $0, $1) } == own
        }
    }

    /// Of an IPv4 address, nil for others.
    private func port(of read: (UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>) -> CInt) -> Int? {
        // Family and port, as the system lays them out: its members are declared by several modules.
        var address = [UInt8](repeating: 0, count: MemoryLayout<sockaddr_in>.size)
        var count = socklen_t(address.count)
        let result = address.withUnsafeMutableBytes {
            read($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &count)
        }
        guard result == 0, UInt16(address[0]) | UInt16(address[1]) << 8 == UInt16(AF_INET) else { return nil }
        return Int(address[2]) << 8 | Int(address[3])
    }

    private func option(_ descriptor: CInt, _ level: CInt, _ name: CInt) -> Int? {
        var value: CInt = 0
        var count = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, level, name, &value, &count) == 0 ? Int(value) : nil
    }

    @Test func lineOverTheLimitIsRefusedThenTheConnectionCloses() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        let limit = 16 * 1024 * 1024
        // No JSON: it is looked at when it is short enough, and that is quick.
        peer.sendLater(String(repeating: "x", count: limit) + "\n")
        #expect(try await peer.response()["error"]?["code"] == -32700)
        peer.sendLater(String(repeating: "x", count: limit + 1) + "\n")
        let over = try await peer.response()
        #expect(over["error"]?["code"] == -32600)
        #expect(over["error"]?["data"]?["reason"] == "line_too_long")
        #expect(over["id"] == .null)
        try await peer.expectClosed()
        await service.stop()
    }

    @Test func lineWithoutEndIsRefusedAsSoonAsItIsTooLong() async throws {
        let service = try await TestService { $0.limits.lineBytesMax = 1_000 }
        let peer = try await service.peer()
        try await peer.send(String(repeating: "[", count: 1_001))
        let response = try await peer.response()
        #expect(response["error"]?["data"]?["reason"] == "line_too_long")
        try await peer.expectClosed()
        await service.stop()
    }

    @Test func responsesBeforeAnOverlongLineStillCome() async throws {
        let service = try await TestService { $0.limits.lineBytesMax = 1_000 }
        let peer = try await service.peer()
        try await peer.send(
            #"{"jsonrpc":"2.0","id":1,"method":"check.later","params":{"gate":"a"}}"# + "\n"
                + String(repeating: "[", count: 2_000) + "\n" + #"{"jsonrpc":"2.0","id":2,"method":"check.echo"}"#
                + "\n")
        await service.gates.arrivals(1)
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        #expect(try await peer.response()["error"]?["data"]?["reason"] == "line_too_long")
        try await peer.expectClosed()
        await service.stop()
    }

    @Test func carriageReturnDoesNotCountAgainstTheLimit() async throws {
        let request = #"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"#
        let service = try await TestService { $0.limits.lineBytesMax = request.utf8.count }
        let peer = try await service.peer()
        try await peer.send(request + "\r")
        try await peer.send("\n")
        #expect(try await peer.response()["id"] == 1)
        await service.stop()
    }

    @Test func linesAreShortUntilACredentialWasShown() async throws {
        let service = try await TestService()
        let long =
            #"{"jsonrpc":"2.0","id":1,"method":"check.echo","params":{"value":""#
            + String(repeating: "x", count: 70_000) + #""}}"#
        let unknown = try await service.peer()
        unknown.sendLater(long + "\n")
        #expect(try await unknown.response()["error"]?["data"]?["reason"] == "line_too_long")
        try await unknown.expectClosed()
        let refused = try await service.peer()
        _ = try await refused.call("check.echo", #"{"auth":"wrong"}"#)
        refused.sendLater(long + "\n")
        #expect(try await refused.response()["error"]?["data"]?["reason"] == "line_too_long")
        let user = try await service.peer()
        _ = try await user.call("check.echo", #"{"auth":"user-anna"}"#)
        #expect(try await user.ask(long)["result"] != nil)
        await service.stop()
    }

    @Test func nestingIsCountedWithTheEnvelope() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        func nested(_ depth: Int) -> String {
            #"{"value":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
        }
        #expect(try await peer.call("check.echo", nested(62))["result"] != nil)
        #expect(try await peer.call("check.echo", nested(63))["error"]?["code"] == -32700)
        await service.stop()
    }

    @Test func responseOverTheLimitBecomesAnError() async throws {
        let service = try await TestService { $0.limits.responseBytesMax = 1_000 }
        let peer = try await service.peer()
        let value = String(repeating: "x", count: 1_000)
        let response = try await peer.call("check.echo", "{\"value\":\"\(value)\"}")
        #expect(response["error"]?["code"] == -32006)
        #expect(response["error"]?["data"]?["reason"] == "too_big")
        let refused = try await peer.call("check.refuse", "{\"value\":\"\(value)\"}")
        #expect(refused["error"]?["data"] == ["reason": "refused", "retryable": false])
        let unknown = try await peer.call("check.echo", "{\"\(value)\":1}")
        #expect(unknown["error"]?["code"] == -32602)
        #expect(unknown["error"]?["data"]?["reason"] == "unknown_parameter")
        let half = String(repeating: "x", count: 600)
        let entry = "{\"jsonrpc\":\"2.0\",\"id\":\"é\",\"method\":\"check.echo\",\"params\":{\"value\":\"\(half)\"}}"
        let batch = try #require(try await peer.ask("[\(entry),\(entry)]").array)
        #expect(batch[0]["result"] != nil)
        #expect(batch[1]["error"]?["data"]?["reason"] == "too_big")
        #expect(batch[1]["id"] == "é")
        await service.stop()
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\n", "POST /rpc HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n",
        "Host: localhost\r\n", "host:x\r\n", "PUT ", "DELETE /",
    ])
    func httpIsClosedUnanswered(opening: String) async throws {
        let service = try await TestService()
        let request = #"{"jsonrpc":"2.0","id":1,"method":"check.later","params":{"gate":"never"}}"# + "\n"
        let whole = try await service.peer()
        whole.sendLater(opening + request)
        try await whole.expectClosed()
        let slow = try await service.peer()
        for byte in opening.utf8 {
            slow.channel.writeAndFlush(ByteBuffer(bytes: [byte]), promise: nil)
            await Task.yield()
        }
        try await slow.expectClosed()
        let later = try await service.peer()
        _ = try await later.call("check.echo")
        later.sendLater("\r\n" + opening + request)
        try await later.expectClosed()
        #expect(service.gates.arrived == [])
        await service.stop()
    }

    @Test func httpBehindARequestInFlightClosesTheConnectionAndHoldsNoOtherUp() async throws {
        let service = try await TestService { $0.loops = 1 }
        let peer = try await service.peer()
        peer.sendLater(
            #"{"jsonrpc":"2.0","id":1,"method":"check.afterEarlier","params":{"gate":"a"}}"#
                + "\nGET / HTTP/1.1\r\n\r\n")
        await service.gates.arrivals(1)
        service.gates.open("a")
        // Whether its response still leaves is not promised; that the connection ends and its loop goes on is.
        if try await peer.line() != nil { try await peer.expectClosed() }
        let other = try await service.peer()
        #expect(try await other.call("check.echo")["result"] != nil)
        await service.stop()
    }

    @Test func requestsInFlightAreBoundedByNotReading() async throws {
        let service = try await TestService { $0.limits.requestsInFlightMax = 10 }
        let peer = try await service.peer()
        let lines = (0..<5_000).map {
            "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"check.later\",\"params\":{\"gate\":\"a\"}}\n"
        }
        peer.sendLater(lines.joined())
        await service.gates.arrivals(10)
        let other = try await service.peer()
        _ = try await other.call("check.echo")
        #expect(service.gates.arrived.count == 10)
        service.gates.open("a")
        for id in 0..<5_000 { #expect(try await peer.response()["id"] == .number(Double(id))) }
        await service.stop()
    }

    @Test func readsInFlightAreBoundedAlsoInABatch() async throws {
        let service = try await TestService {
            $0.limits.readsInFlightMax = 3
            $0.loops = 1
        }
        let read = #""jsonrpc":"2.0","method":"check.read","params":{"gate":"a"}"#
        let single = (0..<8).map { "{\"id\":\($0),\(read)}\n" }.joined()
        let batch = "[" + (8..<16).map { "{\"id\":\($0),\(read)}" }.joined(separator: ",") + "]\n"
        for lines in [single + batch, batch + single] {
            let before = service.gates.arrived.count
            let peer = try await service.peer()
            let other = try await service.peer()
            service.gates.close("a")
            peer.sendLater(lines)
            await service.gates.arrivals(before + 3)
            for _ in 0..<20 { _ = try await other.call("check.echo") }
            #expect(service.gates.arrived.count == before + 3)
            service.gates.open("a")
            var ids: [JSONValue] = []
            while ids.count < 16 {
                let response = try await peer.response()
                for entry in response.array ?? [response] { ids.append(entry["id"] ?? .null) }
            }
            #expect(Set(ids) == Set((0..<16).map { .number(Double($0)) }))
        }
        await service.stop()
    }

    @Test func responsesThatWaitForAnEarlierOneAreBounded() async throws {
        let service = try await TestService {
            $0.limits.unsentResponseBytesMax = 10_000
            $0.loops = 1
        }
        let peer = try await service.peer()
        let fill = String(repeating: "x", count: 1_000)
        let echoes = (1...30).map {
            "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"check.echo\",\"params\":{\"value\":\"\(fill)\"}}\n"
        }
        let first = #"{"jsonrpc":"2.0","id":0,"method":"check.later","params":{"gate":"a"}}"# + "\n"
        let last = #"{"jsonrpc":"2.0","id":31,"method":"check.later","params":{"gate":"b"}}"# + "\n"
        peer.sendLater(first + echoes.joined() + last)
        await service.gates.arrivals(1)
        let other = try await service.peer()
        for _ in 0..<20 { _ = try await other.call("check.echo") }
        #expect(service.gates.arrived == ["a"])
        service.gates.open("a")
        service.gates.open("b")
        for id in 0...31 { #expect(try await peer.response()["id"] == .number(Double(id))) }
        await service.stop()
    }

    @Test func bytesInFlightAreBoundedByNotReading() async throws {
        let service = try await TestService { $0.limits.connectionBytesInFlightMax = 100_000 }
        let peer = try await service.peer()
        let fill = String(repeating: "x", count: 10_000)
        let lines = (0..<200).map {
            "{\"jsonrpc\":\"2.0\",\"id\":\($0),\"method\":\"check.later\",\"params\":{\"gate\":\"a\"},\"x\":\"\(fill)\"}\n"
        }
        peer.sendLater(lines.joined())
        await service.gates.arrivals(10)
        let other = try await service.peer()
        _ = try await other.call("check.echo")
        #expect(service.gates.arrived.count < 12)
        service.gates.open("a")
        for id in 0..<200 { #expect(try await peer.response()["id"] == .number(Double(id))) }
        await service.stop()
    }

    @Test func peerThatReadsNoResponsesIsNotReadFrom() async throws {
        let service = try await TestService { $0.limits.unsentResponseBytesMax = 100_000 }
        let peer = try await service.peer(reads: false)
        let fill = String(repeating: "x", count: 30_000)
        let count = 2_000
        let sent = Shared(0)
        for id in 0..<count {
            let line =
                "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"check.echo\",\"params\":{\"value\":\"\(fill)\"}}\n"
            let length = line.utf8.count
            peer.channel.writeAndFlush(ByteBuffer(string: line)).whenSuccess { sent.change { $0 += length } }
        }
        // Sockets buffer some megabytes each way; 60 MB would all be taken by a server that does not stop.
        let other = try await service.peer()
        var last = -1
        while last != sent.current {
            last = sent.current
            for _ in 0..<50 { _ = try await other.call("check.echo") }
        }
        #expect(last < count * 30_000 / 2)
        try await peer.startReading()
        for id in 0..<count { #expect(try await peer.response()["id"] == .number(Double(id))) }
        await service.stop()
    }

    @Test func processLimitStopsReadingAndLetsGoAgain() async throws {
        let service = try await TestService { $0.limits.processBytesInFlightMax = 200_000 }
        let fill = String(repeating: "x", count: 50_000)
        var peers: [RawPeer] = []
        for _ in 0..<8 {
            let peer = try await service.peer()
            peers.append(peer)
            for id in 0..<20 {
                peer.sendLater(
                    "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"check.later\",\"params\":{\"gate\":\"a\"},\"x\":\"\(fill)\"}\n"
                )
            }
        }
        // Lines start while three quarters of it are free: two at least.
        await service.gates.arrivals(2)
        service.gates.open("a")
        for peer in peers {
            for id in 0..<20 {
                let response = try await peer.response()
                #expect(response["id"] == .number(Double(id)), "\(response)")
            }
        }
        await service.stop()
    }

    @Test func unfinishedLinesThatHoldAllMemoryAreLetGo() async throws {
        let service = try await TestService {
            $0.limits.processBytesInFlightMax = 100_000
            $0.limits.stalledLineSecondsMax = 1
        }
        var peers: [RawPeer] = []
        for _ in 0..<3 {
            let peer = try await service.peer()
            peer.sendLater(String(repeating: "[", count: 50_000))
            peers.append(peer)
        }
        let other = try await service.peer()
        #expect(try await other.call("check.echo")["result"] != nil)
        await service.stop()
    }

    @Test func connectionsAreCountedInAllAndByAddress() async throws {
        for (change, reason) in [
            ({ @Sendable (limits: inout RPCLimits) in limits.connectionsMax = 2 }, "too_many_connections"),
            (
                { @Sendable (limits: inout RPCLimits) in limits.connectionsPerAddressMax = 2 },
                "too_many_connections_from_address"
            ),
        ] {
            let service = try await TestService { change(&$0.limits) }
            let one = try await service.peer()
            let two = try await service.peer()
            for (peer, user) in [(one, "anna"), (two, "bea")] {
                #expect(try await peer.call("check.echo", "{\"auth\":\"user-\(user)\"}")["result"] != nil)
            }
            let three = try await service.peer()
            let refusal = try await three.response()
            #expect(refusal["id"] == .null)
            #expect(refusal["error"]?["code"] == -32006)
            #expect(refusal["error"]?["data"]?["reason"] == .string(reason))
            try await three.expectClosed()
            await one.close()
            try await eventually("a slot became free") {
                guard let next = try? await service.peer() else { return false }
                try? await next.sendLine(#"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"#)
                let line = (try? await next.line()) ?? nil
                await next.close()
                return line != nil
            }
            await service.stop()
        }
    }

    @Test func idleConnectionIsClosedButNotOneThatListens() async throws {
        let service = try await TestService { $0.limits.idleSecondsMax = 2 }
        let listener = try await peerWithResponses(of: service, "check.listen")
        let idle = try await peerWithResponses(of: service, "check.echo")
        #expect(try await idle.response()["error"]?["data"]?["reason"] == "idle")
        try await idle.expectClosed()
        #expect(try await listener.call("check.echo")["result"] != nil)
        await service.stop()
    }

    /// A peer whose first call got its response. A loaded machine may be so slow that the peer was idle for too long
    /// before: then it is another one.
    private func peerWithResponses(of service: TestService, _ method: String) async throws -> RawPeer {
        let deadline = ContinuousClock.now + .seconds(240)
        while true {
            let peer = try await service.peer()
            do {
                try await peer.sendLine("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\"}")
                // Else it gets the reason for its end.
                if let line = try await peer.line(), try JSONParser.parse(line)["result"] != nil { return peer }
            } catch is IOError {
            } catch is ChannelError {}
            try #require(ContinuousClock.now < deadline, "no peer was ever answered")
        }
    }
}
