import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import TestStores
import Testing

@testable import HatoFollow

/// How many followers there are at a time.
@Suite(.timeLimit(.minutes(5)))
struct FollowerSlotTests {
    private static let follow = Notifier.Follow(after: 1)

    @Test func followersThatOpenAtOnceAreNoMoreThanTheLimit() async throws {
        let bench = try await FollowBench(followersMax: 1)
        bench.store.hold(true)
        let (first, second) = (bench.client(), bench.client())
        let refused = Counter()
        try await withThrowingTaskGroup(of: RPCSubscription?.self) { group in
            for client in [first, second] {
                group.addTask {
                    do { return try await client.subscribe(Self.follow) } catch let error as RPCError {
                        #expect(error.reason == "too_many_followers")
                        refused.add()
                        return nil
                    }
                }
            }
            try await eventually("both were looked at") { bench.store.heldCount + refused.value == 2 }
            bench.store.hold(false)
            var opened: [RPCSubscription] = []
            for try await subscription in group { if let subscription { opened.append(subscription) } }
            #expect(opened.count == 1 && bench.followers.count == 1)
        }
        // The place of one that ends, or is refused for another reason, is free again.
        for client in [first, second] { await client.close() }
        try await eventually("the follower has ended") { bench.followers.count == 0 }
        let third = bench.client()
        let unknown = Notifier.Follow(after: 1, epoch: String(repeating: "0", count: 32))
        await #expect(throws: RPCError.self) { _ = try await third.subscribe(unknown) }
        let subscription = try await third.subscribe(Self.follow)
        #expect(bench.followers.count == 1)
        withExtendedLifetime(subscription) {}
        await third.close()
        await bench.stop()
    }

    @Test func oneConnectionTakesNotAllPlaces() async throws {
        let bench = try await FollowBench(followersMax: 8)
        let (first, second) = (bench.client(), bench.client())
        var opened: [RPCSubscription] = []
        for _ in 0..<2 { opened.append(try await first.subscribe(Self.follow)) }
        await #expect {
            _ = try await first.subscribe(Self.follow)
        } throws: {
            ($0 as? RPCError)?.reason == "too_many_followers"
        }
        opened.append(try await second.subscribe(Self.follow))
        #expect(bench.followers.count == 3)
        withExtendedLifetime(opened) {}
        for client in [first, second] { await client.close() }
        await bench.stop()
    }

    @Test func followerEndsWhenItsConnectionClosesWhileItOpens() async throws {
        let bench = try await FollowBench(followersMax: 1)
        for _ in 0..<50 {
            bench.store.hold(true)
            let client = bench.client()
            let opening = Task { _ = try? await client.subscribe(Self.follow) }
            try await eventually("it reads the store") { bench.store.heldCount == 1 }
            await client.close()
            await opening.value
            bench.store.hold(false)
            try await eventually("the follower has ended") {
                bench.opened == bench.called && bench.followers.count == 0
            }
        }
        await bench.stop()
    }
}

private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    func add() { count.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}

/// A service whose only method opens followers.
private final class FollowBench: Sendable {
    private struct State {
        var called = 0
        var opened = 0
    }

    private static let key = "test-administrator-key-0123456789-abcdef"

    let store: HeldStore
    let followers: EventFollowers<SlotEvent>
    private let server: RPCServer
    private let port: Int
    private let state: Shared

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    var called: Int { state.state.withLock { $0.called } }
    /// Calls that have ended.
    var opened: Int { state.state.withLock { $0.opened } }

    init(followersMax: Int) async throws {
        let store = HeldStore(try MemoryStore())
        let followers = EventFollowers<SlotEvent>(store, followersMax: followersMax)
        var configuration = RPCServerConfiguration(service: "notifier", version: "0")
        configuration.methods = [Notifier.Follow.self]
        var router = RPCRouter()
        let shared = Shared()
        router.handle(Notifier.Follow.self) { request, context in
            shared.state.withLock { $0.called += 1 }
            defer { shared.state.withLock { $0.opened += 1 } }
            return try await followers.follow(after: request.after, epoch: request.epoch, context)
        }
        let keys = try #require(AdministratorKeys(keys: [Self.key]))
        server = RPCServer(
            configuration, router: router,
            authenticator: ServiceAuthenticator(
                configuration: IdentityConfiguration(), administratorKeys: keys, fetchKeys: { [] }),
            logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() })
        port = try await server.start().port
        (self.store, self.followers, state) = (store, followers, shared)
    }

    func client() -> RPCClient {
        RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: Self.key))
    }

    func stop() async {
        await followers.stop()
        await server.shutdown(grace: .seconds(5))
        store.close()
    }
}

/// A store whose reads wait while a test holds them.
private final class HeldStore: WrappedStore {
    private struct State {
        var isHolding = false
        var held: [@Sendable () -> Void] = []
    }

    let store: any Store
    private let state = Mutex(State())

    init(_ store: any Store) { self.store = store }

    var heldCount: Int { state.withLock { $0.held.count } }

    func hold(_ isHolding: Bool) {
        let released = state.withLock { state in
            state.isHolding = isHolding
            defer { state.held = [] }
            return state.held
        }
        for body in released { store.submitRead(of: nil, isLong: false, body) }
    }

    func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        let isHeld = state.withLock { state in
            if state.isHolding { state.held.append(body) }
            return state.isHolding
        }
        if !isHeld { store.submitRead(of: client, isLong: isLong, body) }
    }
}

private struct SlotEvent: RecordedEvent {
    static let method = Notifier.Event.method
    static let endMethod = Notifier.Cancelled.method
    static let fields = Fields<Self>(blank: Self())
}
