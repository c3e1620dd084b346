import HatoFetch
import HatoIdentity
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Logging
import Synchronization
import Testing

@testable import HatoNotifier

/// A clock that stands still until the test moves it.
final class TestClock: Sendable {
    private struct State {
        var now: Int64 = 1_795_000_000_000
        var next = 0
        var sleepers: [Int: (time: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
    }

    private let state = Mutex(State())

    var now: Int64 { state.withLock { $0.now } }

    /// When the next sleeper wants to be woken.
    var nextAlarm: Int64? { state.withLock { $0.sleepers.values.map(\.time).min() } }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration.milliseconds
            let due = state.sleepers.filter { $0.value.time <= state.now }
            for key in due.keys { state.sleepers[key] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    var source: TimeSource {
        TimeSource(now: { self.now }, sleepUntil: { try await self.sleep(until: $0) })
    }

    private func sleep(until time: Int64) async throws {
        let key = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || time <= state.now { return true }
                    state.sleepers[key] = (time, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
            try Task.checkCancellation()
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: key) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}

/// A way to reach devices that does what the test says, and remembers what it was given.
final class ScriptedChannel: Channel {
    private struct State {
        var script: [DeliveryOutcome] = []
        var deliveries: [Delivery] = []
        var inFlight: [String: Int] = [:]
        var inFlightMax: [String: Int] = [:]
        var allInFlight = 0
        var allInFlightMax = 0
    }

    let platform: Notifier.Platform
    private let state = Mutex(State())
    private let gate: Gate?
    private let hangs: @Sendable (Delivery) -> Bool

    /// With a gate, attempts that hang wait until it is opened.
    init(
        _ platform: Notifier.Platform = .webhook, script: [DeliveryOutcome] = [], gate: Gate? = nil,
        hangs: @escaping @Sendable (Delivery) -> Bool = { _ in true }
    ) {
        self.platform = platform
        self.gate = gate
        self.hangs = hangs
        state.withLock { $0.script = script }
    }

    func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress { address }

    func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        let device = delivery.content.device
        let outcome = state.withLock { state in
            state.deliveries.append(delivery)
            state.inFlight[device, default: 0] += 1
            state.allInFlight += 1
            state.allInFlightMax = max(state.allInFlightMax, state.allInFlight)
            state.inFlightMax[device] = max(state.inFlightMax[device] ?? 0, state.inFlight[device] ?? 0)
            return state.script.isEmpty ? .delivered(DeliveryResponse(status: 200)) : state.script.removeFirst()
        }
        if hangs(delivery) { await gate?.pass() }
        state.withLock { state in
            state.inFlight[device, default: 0] -= 1
            state.allInFlight -= 1
        }
        return outcome
    }

    func shutdown() async {}

    func respondNext(_ outcomes: [DeliveryOutcome]) { state.withLock { $0.script += outcomes } }
    var deliveries: [Delivery] { state.withLock { $0.deliveries } }
    var titles: [String] { deliveries.compactMap(\.content.text.title) }
    /// The most attempts that were under way at a time.
    var inFlightMax: Int { state.withLock { $0.allInFlightMax } }
    func inFlightMax(_ device: String) -> Int { state.withLock { $0.inFlightMax[device] ?? 0 } }

    /// Whatever is tried again, it stays so: the delivery is dead.
    static let wrong = DeliveryOutcome.rejected(DeliveryResponse(status: 500, error: "wrong"))
    static let busy = DeliveryOutcome.failed(DeliveryResponse(status: 500), retryAfter: nil)
}

/// Closed until it is opened.
final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

enum TestKeys {
    static let administrator = "test-administrator-key-0123456789-abcdef"
}

extension NotifierConfiguration {
    /// No service is at the addresses; jitter is always the whole of its range.
    static func test(_ clock: TestClock? = nil, random: UInt64 = .max) throws -> NotifierConfiguration {
        let nobody = RPCClientConfiguration(host: "127.0.0.1", port: 1)
        var configuration = NotifierConfiguration(
            server: RPCServerConfiguration(service: "notifier", version: "0.1.0"), auth: nobody, messages: nobody,
            administratorKeys: try #require(AdministratorKeys(keys: [TestKeys.administrator])))
        if let clock { configuration.time = clock.source }
        configuration.delivery.silentPushDelay = .zero
        let counter = Atomic<UInt64>(0)
        configuration.random = { random ^ counter.add(1, ordering: .relaxed).oldValue }
        return configuration
    }
}

extension Outbox {
    static func test(
        _ store: any Store, _ clock: TestClock, _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> Outbox {
        var configuration = try NotifierConfiguration.test(clock)
        change(&configuration)
        return try await Outbox.open(
            store, configuration, metrics: NotifierMetrics(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// A device as registering leaves it.
    @discardableResult
    func addDevice(_ name: String, of uid: String, at host: String = "example.com") async throws -> DeviceRecord {
        var new = DeviceRecord(device: name, uid: uid, platform: .webhook, createdAt: 0)
        (new.url, new.secret) = ("https://\(host)/\(name)", WebhookSecret { 1 }.text)
        let device = new
        return try await change { draft in
            draft.writes.put(device.key, device)
            draft.writes.put(device.userKey)
            return device
        }
    }

    /// A phone, whose deliveries wait in the queue of its app.
    @discardableResult
    func addPhone(
        _ name: String, of uid: String, hasSucceeded: Bool = false, seenAt: Int64? = nil
    ) async throws -> DeviceRecord {
        var new = DeviceRecord(device: name, uid: uid, platform: .apns, createdAt: 0)
        new.token =
            String(repeating: "0", count: 64 - name.utf8.count * 2)
            + name.utf8.map { String($0, radix: 16) }.joined()
        (new.environment, new.hasSucceeded, new.seenAt) = (.production, hasSucceeded, seenAt)
        let device = new
        return try await change { draft in
            draft.writes.put(device.key, device)
            draft.writes.put(device.userKey)
            draft.writes.put(device.addressKey, bytes: Array(device.device.utf8))
            return device
        }
    }

    func device(_ name: String) async throws -> DeviceRecord? {
        try await store.read { try $0.record(DeviceRecord.self, DeviceRecord.key(name)) }
    }

    func notification(
        _ title: String, to uids: [String] = ["u1"], collapseKey: String? = nil, key: String? = nil,
        timeToLive: Duration = .seconds(86_400)
    ) -> NewNotification {
        var new = NewNotification(
            recipients: .uids(uids), text: .init(title: title), createdAt: time.now(),
            expiresAt: time.now() + timeToLive.milliseconds)
        new.collapseKey = collapseKey
        new.idempotency = key.map { .init(scope: "test", key: $0, fingerprint: title) }
        return new
    }

    @discardableResult
    func send(_ title: String, to uids: [String] = ["u1"], collapseKey: String? = nil) async throws -> String {
        try #require(try await accept(notification(title, to: uids, collapseKey: collapseKey)).notification)
    }

    func status(of notification: String) async throws -> Notifier.Status.Result? {
        try await NotificationStatuses(store).status(of: notification)
    }

    func states(of notification: String) async throws -> [Notifier.DeliveryState] {
        try await status(of: notification)?.deliveries.map(\.state) ?? []
    }
}

extension Outbox {
    /// Leases what is due, of webhooks and of all apps.
    func leaseAll() async throws -> [Lease] {
        var leases = try await lease(limit: 100).leases
        for queue in try await ProviderQueues(self).all() {
            leases += try await ProviderQueues(self).lease(from: queue, limit: 100).leases
        }
        return leases
    }

    /// Delivers what is due until nothing is, without moving the clock.
    func deliverAll() async throws -> [Lease] {
        var delivered: [Lease] = []
        for _ in 0..<1_000 {
            let leases = try await leaseAll()
            for lease in leases { try await record(.delivered(DeliveryResponse(status: 200)), of: lease) }
            delivered += leases
            guard leases.isEmpty else { continue }
            // What was merged is due in the next round.
            guard let next = try await counts().nextDueAt, next <= time.now() else { return delivered }
        }
        Issue.record("something is due and is not delivered")
        return delivered
    }
}
