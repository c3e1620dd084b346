import HatoIdentity
import HatoModel
import HatoRPC
import Logging
import Testing

@testable import HatoFollow

@Suite(.timeLimit(.minutes(5)))
struct FollowerEndTests {
    private static let key = "test-administrator-key-0123456789-abcdef"

    /// A follower whose socket is full when it loses its right must learn of it all the same: it would wait for ever.
    @Test func followerGetsItsEndAlsoWhenTheSocketIsFull() async throws {
        var configuration = RPCServerConfiguration(service: "notifier", version: "0")
        configuration.methods = [Notifier.Follow.self]
        // Whatever is on its way fills it.
        configuration.limits.unsentNotificationBytesMax = 1
        var router = RPCRouter()
        router.handleInOrder(Notifier.Follow.self) { _, context, reply in
            let subscription = context.openSubscription()
            // On the event loop nothing leaves before this returns.
            _ = context.connection.notify(Notifier.Event.method, subscription: subscription, members: EncodedJSON(""))
            let isFull = !context.connection.notify(
                Notifier.Event.method, subscription: subscription, members: EncodedJSON(""))
            EventFollowers<SentEvent>.sendEnd(
                subscription, context.connection, isFull ? "token_expired" : "there was room")
            reply.succeed(FollowResult(subscription: subscription, epoch: "e", position: 0, time: 0))
        }
        let keys = try #require(AdministratorKeys(keys: [Self.key]))
        let server = RPCServer(
            configuration, router: router,
            authenticator: ServiceAuthenticator(
                configuration: IdentityConfiguration(), administratorKeys: keys, fetchKeys: { [] }),
            logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() })
        let port = try await server.start().port
        let client = RPCClient(
            RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: Self.key))
        let subscription = try await client.subscribe(Notifier.Follow())
        var events: [RPCEvent] = []
        for try await event in subscription { events.append(event) }
        #expect(events.map(\.method) == [Notifier.Event.method, Notifier.Cancelled.method])
        #expect(events.last?.params["reason"] == "token_expired")
        await client.close()
        await server.shutdown(grace: .seconds(5))
    }
}

private struct SentEvent: RecordedEvent {
    static let method = Notifier.Event.method
    static let endMethod = Notifier.Cancelled.method
    static let fields = Fields<Self>(blank: Self())
}
