import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// However a subscription ends at the client, the server learns it: it must not keep a listener without a reader.
@Suite(.timeLimit(.minutes(10)))
struct SubscriptionEndTests {
    private func client(_ service: TestService, timeout: Duration = .seconds(30), bufferMax: Int = 256) -> RPCClient {
        var configuration = RPCClientConfiguration(host: "127.0.0.1", port: service.port)
        configuration.timeout = timeout
        configuration.subscriptionBufferMax = bufferMax
        return RPCClient(configuration)
    }

    private func ended(_ service: TestService) -> [String] { service.ended.current.map(\.subscription) }

    @Test func cancelledSubscriptionIsEndedOnTheServer() async throws {
        let service = try await TestService()
        let client = client(service)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        subscription.cancel()
        subscription.cancel()
        // Calls of one client arrive in order: what was cancelled before is over.
        _ = try await client.call(Check.Echo(value: 1))
        #expect(ended(service) == [subscription.id])
        await service.stop()
    }

    @Test func subscriptionThatWasLetGoIsEndedOnTheServer() async throws {
        let service = try await TestService()
        let client = client(service)
        let id = try await client.subscribe(Check.Listen(gate: nil)).id
        try await eventually("it was ended") { ended(service) == [id] }
        await service.stop()
    }

    @Test func subscriptionWhoseReaderIsCancelledIsEndedOnTheServer() async throws {
        let service = try await TestService()
        let client = client(service)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        let reader = Task { for try await _ in subscription {} }
        reader.cancel()
        try await reader.value
        try await eventually("it was ended") { ended(service) == [subscription.id] }
        await service.stop()
    }

    @Test func subscriptionWhoseResponseIsLateIsEndedOnTheServer() async throws {
        let service = try await TestService()
        let client = client(service, timeout: .milliseconds(300))
        // One whose time is over before the connection stands is never sent.
        repeat {
            await #expect(throws: RPCError.self) { try await client.subscribe(Check.Listen(gate: "late")) }
        } while service.gates.arrived.isEmpty
        service.gates.open("late")
        // It may not have come yet.
        try await eventually("every orphan was ended") {
            !ended(service).isEmpty
                && Set(ended(service)) == Set(service.listeners.current.map(\.subscription))
        }
        #expect(Set(ended(service)).count == ended(service).count)
        await service.stop()
    }

    @Test func subscriptionWhoseCallerIsCancelledIsEndedOnTheServer() async throws {
        let service = try await TestService()
        let client = client(service)
        let opening = Task { try await client.subscribe(Check.Listen(gate: "late")).id }
        await service.gates.arrivals(1)
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
        service.gates.open("late")
        try await eventually("the orphan was ended") { ended(service) == service.listeners.current.map(\.subscription) }
        #expect(ended(service).count == 1)
        await service.stop()
    }

    @Test func subscriptionIsEndedWithTheCredentialItWasOpenedWith() async throws {
        let service = try await TestService()
        let client = client(service)
        let subscription = try await client.subscribe(Check.Listen(gate: nil), credential: "user-anna")
        subscription.cancel()
        try await eventually("it was ended") { !service.ended.current.isEmpty }
        #expect(service.ended.current.first?.uid == "anna")
        await service.stop()
    }

    @Test func subscriptionThatTheServerEndedIsNotEndedAgain() async throws {
        let service = try await TestService()
        let client = client(service)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        let listener = try #require(service.listeners.current.first)
        _ = listener.connection.notify(
            "check.cancelled", subscription: subscription.id, members: EncodedJSON(#""reason":"permission_denied""#))
        for try await _ in subscription {}
        subscription.cancel()
        _ = try await client.call(Check.Echo(value: 1))
        #expect(ended(service).isEmpty)
        await service.stop()
    }

    @Test func readersOfOneSubscriptionShareItsEventsAndAllSeeItsEnd() async throws {
        let service = try await TestService()
        let client = client(service)
        let subscription = try await client.subscribe(Check.Listen(gate: nil))
        let listener = try #require(service.listeners.current.first)
        let seen = Shared<[Double]>([])
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    do {
                        for try await event in subscription {
                            if let number = event.params["n"]?.number { seen.change { $0.append(number) } }
                        }
                    } catch { Issue.record(error) }
                }
            }
            for number in 0..<100 {
                _ = listener.connection.notify(
                    "check.event", subscription: subscription.id, members: EncodedJSON("\"n\":\(number)"))
            }
            _ = listener.connection.notify(
                "check.cancelled", subscription: subscription.id, members: EncodedJSON(#""reason":"stopping""#))
        }
        #expect(seen.current.sorted() == (0..<100).map(Double.init))
        await service.stop()
    }
}
