import HatoModel
import HatoRPC
import HatoTesting
import NIOCore
import NIOPosix
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ClientTests {
    private func client(
        _ port: Int, _ change: (inout RPCClientConfiguration) -> Void = { _ in }
    ) -> RPCClient {
        var configuration = RPCClientConfiguration(host: "127.0.0.1", port: port)
        configuration.reconnectDelayMin = .milliseconds(5)
        change(&configuration)
        return RPCClient(configuration)
    }

    @Test func typedCallReturnsTheResult() async throws {
        let service = try await TestService()
        let client = client(service.port)
        let result = try await client.call(Check.Echo(value: ["a": [1, 2.5, "鳩"]]))
        #expect(result.value == ["a": [1, 2.5, "鳩"]])
        #expect(try await client.call(method: "check.echo", params: ["value": 1]) == ["value": 1])
        await client.close()
        await service.stop()
    }

    @Test func errorOfTheServerIsThrown() async throws {
        let service = try await TestService()
        let client = client(service.port)
        do {
            _ = try await client.call(method: "check.echo", params: ["valeu": 1])
            Issue.record("nothing was thrown")
        } catch let error as RPCError {
            #expect(error.code == .invalidParams)
            #expect(error.data["parameter"] == "valeu")
        }
        await service.stop()
    }

    @Test func credentialOfACallIsForThatCall() async throws {
        let service = try await TestService()
        let client = client(service.port) { $0 = $0.with(credential: "user-anna") }
        #expect(try await client.call(Check.Who()).uid == "anna")
        #expect(try await client.call(Check.Who(), credential: "admin").admin)
        #expect(try await client.call(Check.Who()).uid == "anna")
        await service.stop()
    }

    /// A response that is larger than its call takes is dropped as it comes; the connection and other calls go on.
    @Test func aResponseThatIsTooLargeFailsItsCallAlone() async throws {
        let service = try await TestService()
        let client = client(service.port) { $0 = $0.with(credential: "admin") }
        let subscription = try await client.subscribe(Check.Listen())
        let large = JSONValue.string(String(repeating: "x", count: 3_000_000))
        let refused = Task { try await client.resultText(of: Check.Echo(value: large), bytesMax: 2_000_000) }
        async let taken = client.call(Check.Echo(value: large))
        async let small = client.resultText(of: Check.Echo(value: 1), bytesMax: 20)
        await #expect { try await refused.value } throws: { ($0 as? RPCError)?.reason == "too_big" }
        let (whole, one) = try await (taken, small)
        #expect(whole.value == large && String(decoding: one, as: UTF8.self) == #"{"value":1}"#)
        await #expect { try await client.resultText(of: Check.Echo(value: "0123456789"), bytesMax: 20) } throws: {
            ($0 as? RPCError)?.reason == "too_big"
        }
        #expect(try await client.call(Check.Echo(value: 2)).value == 2)
        #expect(service.closed.current == 0)
        subscription.cancel()
        await client.close()
        await service.stop()
    }

    @Test func callsArePipelinedInOrder() async throws {
        let service = try await TestService()
        let client = client(service.port)
        async let one = client.call(Check.Later(gate: "a"))
        await service.gates.arrivals(1)
        async let two = client.call(Check.Later(gate: "b"))
        await service.gates.arrivals(2)
        service.gates.open("a")
        service.gates.open("b")
        #expect(try await one.gate == "a")
        #expect(try await two.gate == "b")
        await service.stop()
    }

    @Test func manyCallsInFlightAllGetResponses() async throws {
        let service = try await TestService()
        let client = client(service.port)
        let count = 20_000
        let answered = Shared(0)
        for _ in 0..<count {
            client.send(method: "check.echo", params: EncodedJSON(#"{"value":"x"}"#)) { result in
                if case .success(let text) = result, text == Array(#"{"value":"x"}"#.utf8) {
                    answered.change { $0 += 1 }
                }
            }
        }
        try await eventually("all are answered") { answered.current == count }
        await service.stop()
    }

    @Test func callFailsWhenItsTimeIsOver() async throws {
        let service = try await TestService()
        let client = client(service.port) { $0.timeout = .milliseconds(500) }
        await #expect(throws: RPCError.self) { try await client.call(Check.Later(gate: "never")) }
        do {
            _ = try await client.call(Check.Later(gate: "never"))
        } catch let error as RPCError {
            #expect(error.code == .unavailable)
            #expect(error.reason == "timeout")
            #expect(error.isRetryable == Check.Later(gate: "never").isIdempotent)
        }
        // The connection is not ended by that; the late response is passed over.
        service.gates.open("never")
        try await eventually("a call answered in time") { (try? await client.call(Check.Echo(value: 1)))?.value == 1 }
        await service.stop()
    }

    @Test func cancelledTaskDoesNotWait() async throws {
        let service = try await TestService()
        let client = client(service.port)
        let task = Task { try await client.call(Check.Later(gate: "never")) }
        await service.gates.arrivals(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        service.gates.open("never")
        try await eventually("a call answered in time") { (try? await client.call(Check.Echo(value: 1)))?.value == 1 }
        await service.stop()
    }

    @Test func portWithoutAServerIsUnavailable() async throws {
        let service = try await TestService()
        await service.stop()
        let client = client(service.port)
        for _ in 0..<3 {
            do {
                _ = try await client.call(Check.Echo(value: 1))
                Issue.record("nothing was thrown")
            } catch let error as RPCError {
                #expect(error.code == .unavailable)
                #expect(error.reason == "cannot_connect")
                #expect(error.isRetryable)
            }
        }
    }

    @Test func lostConnectionFailsItsCallsAndTheNextCallConnectsAgain() async throws {
        let service = try await TestService()
        let port = service.port
        let shown = Shared(0)
        let client = client(port) {
            $0.credential = {
                shown.change { $0 += 1 }
                return "user-anna"
            }
        }
        let pending = Task { try await client.call(Check.Later(gate: "never")) }
        await service.gates.arrivals(1)
        let read = Task { try await client.call(Check.Read(gate: "never")) }
        await service.gates.arrivals(2)
        await service.server.shutdown(grace: .zero)
        do {
            _ = try await pending.value
            Issue.record("nothing was thrown")
        } catch let error as RPCError {
            #expect(error.code == .unavailable)
            #expect(error.reason == "stopping")
            #expect(!error.isRetryable, "it may have been carried out")
        }
        let lost = await #expect(throws: RPCError.self) { try await read.value }
        #expect(lost?.reason == "stopping" && lost?.isRetryable == true)
        let next = try await TestService { $0.port = port }
        #expect(try await client.call(Check.Who()).uid == "anna")
        #expect(shown.current == 2)
        await client.close()
        await next.stop()
    }

    @Test func wrongCredentialFailsTheCallsThatWaitForIt() async throws {
        let service = try await TestService()
        let client = client(service.port) { $0 = $0.with(credential: "wrong") }
        do {
            _ = try await client.call(Check.Who())
            Issue.record("nothing was thrown")
        } catch let error as RPCError {
            #expect(error.code == .unauthenticated)
        }
        await service.stop()
    }

    @Test func closedClientThrowsUnavailable() async throws {
        let service = try await TestService()
        let client = client(service.port)
        _ = try await client.call(Check.Echo(value: 1))
        await client.close()
        await client.close()
        await #expect(throws: RPCError.self) { try await client.call(Check.Echo(value: 1)) }
        await service.stop()
    }

    @Test func credentialThatEndsIsRenewedBefore() async throws {
        // For the service no time passes: however slow the machine, the token does not end before the client shows a
        // new one.
        let start = WallClock.milliseconds()
        let service = try await TestService { $0.now = { start } }
        service.authenticator.shortTokenEnd.withLock { $0 = start + 2_000 }
        let shown = Shared(0)
        let client = client(service.port) {
            $0.credential = {
                shown.change { $0 += 1 }
                return shown.current == 1 ? "short-anna" : "user-anna"
            }
        }
        #expect(try await client.call(Check.Who()).uid == "anna")
        try await eventually("the credential was shown again") { shown.current == 2 }
        await service.stop()
    }

    @Test func credentialThatCannotBeRenewedAtOnceIsAskedForAgain() async throws {
        let start = WallClock.milliseconds()
        let service = try await TestService { $0.now = { start } }
        service.authenticator.shortTokenEnd.withLock { $0 = start + 2_000 }
        let asked = Shared(0)
        let client = client(service.port) {
            $0.credential = {
                asked.change { $0 += 1 }
                if asked.current == 2 { throw Missing(what: "a credential") }
                return asked.current == 1 ? "short-anna" : "user-anna"
            }
        }
        #expect(try await client.call(Check.Who()).uid == "anna")
        try await eventually("the credential was asked for again") { asked.current >= 3 }
        await service.stop()
    }

    @Test func lineTheServerRefusesFailsItsCall() async throws {
        let service = try await TestService { $0.limits.lineBytesMax = 10_000 }
        let client = client(service.port)
        let error = await #expect(throws: RPCError.self) {
            try await client.call(Check.Echo(value: .string(String(repeating: "x", count: 20_000))))
        }
        #expect(error?.reason == "line_too_long")
        #expect(try await client.call(Check.Echo(value: 1)).value == 1)
        await service.stop()
    }

    // MARK: Subscriptions

    @Test func subscriptionThatWasLetGoHoldsUpNoOther() async throws {
        let service = try await TestService()
        let client = client(service.port) { $0.subscriptionBufferMax = 4 }
        var dropped: RPCSubscription? = try await client.subscribe(Check.Listen(gate: nil))
        let kept = try await client.subscribe(Check.Listen(gate: nil))
        let listeners = service.listeners.current
        let id = try #require(dropped?.id)
        for number in 0..<8 {
            _ = listeners[0].connection.notify("check.event", subscription: id, members: EncodedJSON("\"n\":\(number)"))
        }
        // The client stops reading for the first one, until it is let go.
        _ = try await client.call(Check.Echo(value: 1))
        dropped = nil
        _ = listeners[1].connection.notify("check.event", subscription: kept.id, members: EncodedJSON("\"n\":8"))
        var events = kept.makeAsyncIterator()
        #expect(try await events.next()?.params["n"] == 8)
        await client.close()
        await service.stop()
    }

    @Test func subscriptionsOfTwoConnectionsHaveDifferentNames() async throws {
        let service = try await TestService()
        let one = try await client(service.port).subscribe(Check.Listen(gate: nil))
        let other = try await client(service.port).subscribe(Check.Listen(gate: nil))
        #expect(one.id != other.id)
        await service.stop()
    }

    @Test func subscriptionDeliversInOrderAndEndsWithTheLastWord() async throws {
        let service = try await TestService()
        let client = client(service.port)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        let listener = try #require(service.listeners.current.first)
        #expect(subscription.id == listener.subscription)
        for number in 0..<100 {
            _ = listener.connection.notify(
                "check.event", subscription: subscription.id, members: EncodedJSON("\"n\":\(number)"))
        }
        _ = listener.connection.notify(
            "check.cancelled", subscription: subscription.id, members: EncodedJSON(#""reason":"permission_denied""#))
        var seen: [RPCEvent] = []
        for try await event in subscription { seen.append(event) }
        #expect(seen.dropLast().map { $0.params["n"] } == (0..<100).map { .number(Double($0)) })
        #expect(seen.last?.method == "check.cancelled")
        await service.stop()
    }

    @Test func eventRightBehindTheResponseIsNotLost() async throws {
        let service = try await TestService()
        service.gates.open("now")
        let client = client(service.port)
        for _ in 0..<50 {
            let subscription = try await client.subscribe(Check.Listen(gate: "now"))
            var events = subscription.makeAsyncIterator()
            #expect(try await events.next()?.params["n"] == 0)
            subscription.cancel()
            #expect(try await events.next() == nil)
        }
        await service.stop()
    }

    @Test func subscriptionThrowsWhenTheConnectionIsLost() async throws {
        let service = try await TestService()
        let client = client(service.port)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        await service.server.shutdown(grace: .zero)
        await #expect(throws: RPCError.self) { for try await _ in subscription {} }
        await client.close()
    }

    @Test func slowSubscriberStopsTheClientFromReading() async throws {
        let service = try await TestService { $0.limits.unsentNotificationBytesMax = 100_000 }
        let client = client(service.port) { $0.subscriptionBufferMax = 8 }
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        let listener = try #require(service.listeners.current.first)
        let members = EncodedJSON("\"text\":\"" + String(repeating: "x", count: 20_000) + "\"")
        // A client that kept reading would never let the server fall behind.
        let sent = Shared(0)
        try await eventually("the server fell behind") {
            for _ in 0..<2_000 {
                guard listener.connection.notify("check.event", subscription: subscription.id, members: members) else {
                    return true
                }
                sent.change { $0 += 1 }
            }
            return false
        }
        // A call gets its response all the same, and nothing of the subscription is lost.
        var events = subscription.makeAsyncIterator()
        for _ in 0..<sent.current { #expect(try await events.next()?.params["text"] != nil) }
        #expect(try await client.call(Check.Echo(value: 1)).value == 1)
        await service.stop()
    }
}
