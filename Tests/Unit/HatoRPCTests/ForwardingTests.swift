import HatoModel
import HatoTesting
import NIOCore
import Testing

@testable import HatoRPC

/// `session.forward` and `from` (protocol §2): connections that speak for clients of other addresses.
@Suite(.timeLimit(.minutes(10)))
struct ForwardingTests {
    private func client(of peer: RawPeer, _ params: String = "{}") async throws -> JSONValue? {
        try await peer.call("check.client", params)["result"]
    }

    private func counted(for network: String) -> JSONValue {
        ["client": .string("address \(network)"), "network": .string(network), "connection": "address 127.0.0.1"]
    }

    @Test func callsCountForTheAddressTheyName() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        #expect(try await client(of: peer) == counted(for: "127.0.0.1"))
        #expect(try await peer.call("session.forward", #"{"auth":"gateway"}"#)["result"] == [:])
        #expect(try await client(of: peer) == counted(for: "127.0.0.1"))
        for (from, network) in [
            ("203.0.113.7", "203.0.113.7"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"), ("::1", "0:0:0:0::/64"),
            ("::ffff:203.0.113.7", "203.0.113.7"), ("127.0.0.1", "127.0.0.1"),
        ] {
            #expect(try await client(of: peer, "{\"from\":\"\(from)\"}") == counted(for: network))
        }
        #expect(try await client(of: peer, #"{"from":null}"#) == counted(for: "127.0.0.1"))
        let user = try await client(of: peer, #"{"auth":"user-anna","from":"203.0.113.7"}"#)
        #expect(user == ["client": "user anna", "network": "203.0.113.7", "connection": "address 127.0.0.1"])
        await service.stop()
    }

    /// A variable may have a uid, and is no user.
    @Test func callsOfAConnectionThatIsAVariableCountForTheAddressTheyName() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.forward", #"{"auth":"admin"}"#)
        _ = try await peer.call("session.authenticate", #"{"auth":"admin","as":{"variable":{"uid":"anna"}}}"#)
        #expect(try await client(of: peer, #"{"from":"203.0.113.7"}"#) == counted(for: "203.0.113.7"))
        await service.stop()
    }

    @Test func theAddressOfTheConnectionIsThatOfTheLastForward() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for from in ["203.0.113.7", "198.51.100.1"] {
            _ = try await peer.call("session.forward", "{\"auth\":\"admin\",\"from\":\"\(from)\"}")
            let address = JSONValue.string("address \(from)")
            let expected: JSONValue = ["client": address, "network": .string(from), "connection": address]
            #expect(try await client(of: peer) == expected)
            #expect(try await client(of: peer, #"{"from":"192.0.2.1"}"#)?["client"] == "address 192.0.2.1")
        }
        // One that is refused changes nothing.
        let wrong = try await peer.call("session.forward", #"{"auth":"admin","from":"here"}"#)
        #expect(wrong["error"]?["data"]?["reason"] == "invalid_address")
        #expect(try await client(of: peer)?["network"] == "198.51.100.1")
        _ = try await peer.call("session.forward", #"{"auth":"gateway"}"#)
        #expect(try await client(of: peer) == counted(for: "127.0.0.1"))
        await service.stop()
    }

    @Test func onlyKeysThatMayForwardDoAndTheyGetNoOtherRight() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for (credential, code) in [("user-anna", -32002), ("service", -32002), ("wrong", -32001)] {
            let refused = try await peer.call("session.forward", "{\"auth\":\"\(credential)\"}")
            #expect(refused["error"]?["code"] == .number(Double(code)), "\(credential)")
        }
        let missing = try await peer.call("session.forward", #"{"from":"203.0.113.7"}"#)
        #expect(missing["error"]?["data"]?["parameter"] == "auth")
        for (params, parameter) in [
            (#"{"auth":"admin","as":{"uid":"anna"}}"#, "as"), (#"{"auth":"gateway","x":1}"#, "x"),
            (#"{"auth":"gateway","from":5}"#, "from"),
        ] {
            let refused = try await peer.call("session.forward", params)["error"]
            #expect(refused?["code"] == -32602 && refused?["data"]?["parameter"] == .string(parameter), "\(params)")
        }
        let early = try await peer.call("check.client", #"{"from":"203.0.113.7"}"#)
        #expect(early["error"]?["code"] == -32002, "none of these forwards")
        _ = try await peer.call("session.forward", #"{"auth":"gateway"}"#)
        #expect(try await peer.call("check.who")["result"] == ["admin": false])
        #expect(try await peer.call("check.administration")["error"]?["code"] == -32001)
        let asGateway = try await peer.call("check.administration", #"{"auth":"gateway","as":"x"}"#)["error"]
        #expect(asGateway?["code"] == -32002)
        #expect(asGateway?["message"]?.string?.contains("its methods are none") == true)
        _ = try await peer.call("session.forward", #"{"auth":"admin"}"#)
        #expect(try await peer.call("check.administration")["error"]?["code"] == -32001, "not an administrator's")
        await service.stop()
    }

    @Test func identityOfTheConnectionStays() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        _ = try await peer.call("session.forward", #"{"auth":"gateway","from":"203.0.113.7"}"#)
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        #expect(try await client(of: peer)?["client"] == "user anna")
        service.authenticator.end("anna")
        #expect(try await peer.call("check.signedIn", #"{"count":1}"#)["error"]?["code"] == -32001)
        #expect(try await client(of: peer)?["client"] == "address 203.0.113.7")
        #expect(try await peer.call("session.end")["result"] == [:])
        #expect(try await client(of: peer)?["client"] == "address 203.0.113.7", "it still forwards")
        await service.stop()
    }

    @Test(arguments: [
        "", "here", "203.0.113.7:80", "[2001:db8::1]", "2001:db8::1%eth0", "203.0.113", "203.0.113.256", "203.0.113.07",
        " 203.0.113.7", "203.0.113.7 ", #"203.0.113.7\u0000"#, #"203.0.113.7\u0000x"#, "localhost", "203.0.113.7\\n",
        "::ffff:203.0.113.7/96", "0x7f.1", String(repeating: "1", count: 70_000),
    ])
    func whatIsNoAddressIsRefused(_ text: String) async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.forward", #"{"auth":"gateway"}"#)
        for method in ["check.client", "session.authenticate", "service.health"] {
            let refused = try await peer.call(method, "{\"auth\":\"user-anna\",\"from\":\"\(text)\"}")["error"]
            #expect(refused?["code"] == -32008)
            #expect(refused?["data"]?["reason"] == "invalid_address" && refused?["data"]?["parameter"] == "from")
            #expect(refused?["message"]?.string?.contains("e.g. ") == true)
        }
        #expect(try await peer.call("check.who")["result"]?["uid"] == nil)
        await service.stop()
    }

    @Test func forwardOfABatchHoldsForItsLaterEntries() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let call = #"{"jsonrpc":"2.0","id":1,"method":"check.client","params":{"from":"203.0.113.7"}}"#
        let forward = #"{"jsonrpc":"2.0","id":2,"method":"session.forward","params":{"auth":"gateway"}}"#
        let responses = try await peer.ask("[\(call),\(forward),\(call)]").array
        #expect(responses?.count == 3)
        #expect(responses?.first?["error"]?["code"] == -32002)
        #expect(responses?.last?["result"]?["network"] == "203.0.113.7")
        await service.stop()
    }

    // MARK: Limits

    @Test func linesAreLongWithoutAUser() async throws {
        let service = try await TestService()
        let value = String(repeating: "x", count: 1 << 20)
        let forwarding = try await service.peer()
        _ = try await forwarding.call("session.forward", #"{"auth":"gateway"}"#)
        #expect(try await forwarding.call("check.echo", "{\"value\":\"\(value)\"}")["result"]?["value"] != nil)
        let refused = try await service.peer()
        _ = try await refused.call("session.forward", #"{"auth":"wrong"}"#)
        refused.sendLater(value + "\n")
        #expect(try await refused.response()["error"]?["data"]?["reason"] == "line_too_long")
        await service.stop()
    }

    // MARK: Lines of a client

    private static let passedOn = #"{"auth":"gateway","from":"203.0.113.7","clientLines":true}"#

    @Test func linesOfAClientCannotForward() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        #expect(try await peer.call("session.forward", Self.passedOn)["result"] == [:])
        #expect(try await client(of: peer)?["network"] == "203.0.113.7")
        for params in [
            #"{"from":"192.0.2.1"}"#, #"{"fr\u006fm":"192.0.2.1"}"#, #"{"auth":"admin","from":"192.0.2.1"}"#,
        ] {
            #expect(try await peer.call("check.client", params)["error"]?["code"] == -32002, "\(params)")
        }
        for method in ["session.forward", #"session.for\u0077ard"#] {
            for credential in ["gateway", "admin", "user-anna"] {
                let refused = try await peer.call(method, "{\"auth\":\"\(credential)\",\"from\":\"192.0.2.1\"}")
                #expect(refused["error"]?["code"] == -32002, "\(credential)")
            }
        }
        let forward = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.forward\",\"params\":\(Self.passedOn)}"
        let call = #"{"jsonrpc":"2.0","id":2,"method":"check.client","params":{"from":"192.0.2.1"}}"#
        let batch = try await peer.ask("[\(forward),\(call)]").array
        #expect(batch?.compactMap { $0["error"]?["code"] } == [-32002, -32002])
        #expect(try await client(of: peer, #"{"from":null}"#)?["network"] == "203.0.113.7")
        // Others' credentials work as on any connection.
        #expect(try await peer.call("check.administration", #"{"auth":"admin","as":"x"}"#)["result"] == ["as": "x"])
        #expect(try await peer.call("check.administration")["error"]?["code"] == -32001)
        await service.stop()
    }

    @Test func linesOfAClientAreShortUntilItShowsACredential() async throws {
        let service = try await TestService()
        let value = String(repeating: "x", count: 1 << 20)
        for shows in ["session.authenticate", "check.client", "check.administration"] {
            let peer = try await service.peer()
            _ = try await peer.call("session.forward", Self.passedOn)
            _ = try await peer.call(shows, #"{"auth":"user-anna"}"#)
            #expect(try await peer.call("check.echo", "{\"value\":\"\(value)\"}")["result"]?["value"] != nil)
        }
        for credential in ["wrong", nil] as [String?] {
            let peer = try await service.peer()
            _ = try await peer.call("session.forward", Self.passedOn)
            if let credential { _ = try await peer.call("check.echo", "{\"auth\":\"\(credential)\"}") }
            peer.sendLater(value + "\n")
            #expect(try await peer.response()["error"]?["data"]?["reason"] == "line_too_long")
        }
        await service.stop()
    }

    @Test func wrongDeclarationsOfAClientChangeNothing() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for (params, parameter) in [
            (#"{"auth":"gateway","clientLines":true}"#, "from"),
            (#"{"auth":"gateway","from":null,"clientLines":true}"#, "from"),
            (#"{"auth":"gateway","from":"203.0.113.7","clientLines":1}"#, "clientLines"),
        ] {
            let refused = try await peer.call("session.forward", params)["error"]
            #expect(refused?["code"] == -32602 && refused?["data"]?["parameter"] == .string(parameter), "\(params)")
            #expect(refused?["message"]?.string?.contains("e.g. ") == true)
        }
        for clientLines in ["false", "null"] {
            let params = "{\"auth\":\"gateway\",\"from\":\"203.0.113.7\",\"clientLines\":\(clientLines)}"
            #expect(try await peer.call("session.forward", params)["result"] == [:])
            #expect(try await client(of: peer, #"{"from":"192.0.2.1"}"#)?["network"] == "192.0.2.1")
        }
        await service.stop()
    }

    // MARK: Limits of connections

    @Test func idleOneIsNotClosed() async throws {
        let service = try await TestService { $0.limits.idleSecondsMax = 5 }
        var forwarding = try await service.peer()
        // On a busy machine a connection may be closed as idle before its first call.
        for _ in 0..<10 where try await !declaresItself(forwarding) { forwarding = try await service.peer() }
        #expect(try await declaresItself(forwarding), "it may do so twice")
        // Twice as long as it takes until one that does not forward is closed.
        for _ in 0..<2 {
            let idle = try await service.peer()
            #expect(try await idle.response()["error"]?["data"]?["reason"] == "idle")
        }
        #expect(try await client(of: forwarding) == counted(for: "127.0.0.1"))
        await service.stop()
    }

    /// Whether the connection forwards from now on; false when it was closed first.
    private func declaresItself(_ peer: RawPeer) async throws -> Bool {
        guard let response = try? await peer.call("session.forward", #"{"auth":"gateway"}"#) else { return false }
        return response["result"] == [:]
    }

    @Test func connectionsThatForwardDoNotCountForTheirAddress() async throws {
        let service = try await TestService { $0.limits.connectionsPerAddressMax = 2 }
        var forwarding: [RawPeer] = []
        for _ in 0..<5 {
            let peer = try await service.peer()
            _ = try await peer.call("session.forward", #"{"auth":"gateway"}"#)
            forwarding.append(peer)
        }
        let others = [try await service.peer(), try await service.peer()]
        for peer in others { _ = try await peer.call("check.echo") }
        let refused = try await service.peer()
        #expect(try await refused.response()["error"]?["data"]?["reason"] == "too_many_connections_from_address")
        // The end of one that does not count leaves the count as it is.
        try await forwarding[0].channel.close().get()
        let again = try await service.peer()
        #expect(try await again.response()["error"]?["data"]?["reason"] == "too_many_connections_from_address")
        for peer in others + forwarding.dropFirst() { _ = try await peer.call("check.echo") }
        await service.stop()
    }

    @Test func connectionsThatForwardLeaveSlotsToOthers() async throws {
        // Two of twenty are left.
        let service = try await TestService { $0.limits.connectionsMax = 20 }
        var forwarding: [RawPeer] = []
        for _ in 0..<18 {
            let peer = try await service.peer()
            #expect(try await peer.call("session.forward", #"{"auth":"gateway"}"#)["result"] == [:])
            forwarding.append(peer)
        }
        let peer = try await service.peer()
        let refused = try await peer.call("session.forward", #"{"auth":"gateway","from":"203.0.113.7"}"#)["error"]
        #expect(refused?["code"] == -32006 && refused?["data"]?["retryable"] == true)
        #expect(refused?["data"]?["reason"] == "too_many_forwarding_connections")
        #expect(refused?["data"]?["retryAfterMs"] == 1_000)
        #expect(try await client(of: peer) == counted(for: "127.0.0.1"), "it does not forward")
        #expect(try await peer.call("check.client", #"{"from":"203.0.113.7"}"#)["error"]?["code"] == -32002)
        #expect(try await forwarding[0].call("session.forward", #"{"auth":"gateway"}"#)["result"] == [:])
        try await forwarding[1].channel.close().get()
        // The service sees the end a little later.
        let deadline = ContinuousClock.now + .seconds(60)
        var error: JSONValue? = .null
        while error != nil, ContinuousClock.now < deadline {
            error = try await peer.call("session.forward", #"{"auth":"gateway"}"#)["error"]
        }
        #expect(error == nil, "one has closed")
        await service.stop()
    }
}
