import HatoFollow
import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// Devices and topics go with their user, and devices with the session under which they were registered: a user that
/// signs out on a device gets no notifications there.
final class AccountDevices: AccountDependents {
    private let outbox: Outbox
    private let notices: ThrottledNotices
    /// What is remembered of users.
    private let current: CurrentAccounts
    /// How long to wait after a failure.
    private static let pause = Duration.seconds(1)
    /// Devices that are gone, and whose deliveries are not dropped yet.
    private let gone: AsyncStream<String>
    private let isGone: AsyncStream<String>.Continuation
    /// Rings when rows of users that are gone are to be removed.
    private let bell: Bell
    private let reconciliation: AccountReconciliation

    /// - Parameter auth: with a service key for `auth.sessions.list`.
    init(_ outbox: Outbox, auth: RPCClient, _ current: CurrentAccounts, notices: ThrottledNotices) {
        self.current = current
        self.outbox = outbox
        self.notices = notices
        let bell = Bell()
        // Beyond it, deliveries are dropped when they are due.
        let (gone, isGone) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(10_000))
        (self.bell, self.gone, self.isGone) = (bell, gone, isGone)
        reconciliation = AccountReconciliation(outbox, auth: auth, notices: notices) { removed in
            for device in removed.devices { isGone.yield(device) }
            if removed.isWhole { bell.ring() }
        }
        // What the process before has left.
        bell.ring()
    }

    /// Removes the rows of users that are gone, and drops what waits for devices that are, until the task is cancelled.
    func run() async {
        async let removing: Void = removeUsers()
        async let reconciling: Void = reconciliation.run()
        await dropDeliveries()
        await removing
        await reconciling
    }

    private func removeUsers() async {
        let users = GoneUsers(store: outbox.store)
        for await _ in bell.rings {
            do {
                var isLast = false
                while !isLast {
                    let page = try await users.removePage()
                    for device in page.devices { isGone.yield(device) }
                    isLast = page.isLast
                }
            } catch {
                if Task.isCancelled { return }
                notices.notice(
                    .undroppedDeliveries, "rows of users that are gone cannot be removed", ["error": "\(error)"],
                    level: .error)
                do { try await outbox.time.sleepUntil(outbox.time.now() + Self.pause.milliseconds) } catch { return }
                bell.ring()
            }
        }
    }

    /// No refusal waits for it.
    private func dropDeliveries() async {
        for await device in gone { await notices.dropDeliveries(of: device, outbox) }
    }

    func changes(
        for events: [Auth.Event], in rows: any StoreTransaction
    ) throws -> (@Sendable (any StoreTransaction) throws -> Void)? {
        current.forget(Set(events.compactMap(\.uid)))
        var ends: [String: Ends] = [:]
        for event in events {
            guard let uid = event.uid else { continue }
            switch event.type {
            case .deleted: ends[uid, default: Ends()].userWent()
            case .created: ends[uid, default: Ends()].isBack = true
            case .signedOut: if let session = event.session { ends[uid, default: Ends()].sessions.insert(session) }
            case .updated, .disabled, .enabled, .revoked, .keyRevoked: continue
            }
        }
        var (devices, writes): ([DeviceRecord], RecordWrites) = ([], RecordWrites())
        for (uid, end) in ends {
            if end.isWhole || end.isBack { reconciliation.accountChanged(uid) }
            if end.isWhole { _ = try GoneUsers.begin(uid, at: outbox.time.now(), in: rows, &writes) }
            if end.isBack, try end.isWhole || GoneUsers.isGone(uid, in: rows) { GoneUsers.cameBack(uid, &writes) }
            if !end.isWhole {
                devices += try rows.devices(of: uid).filter { $0.session.map(end.sessions.contains) == true }
            }
        }
        return removal(of: devices, writes)
    }

    /// Which of a user's devices go.
    private struct Ends {
        var isWhole = false
        /// Whether there is an account with this uid again.
        var isBack = false
        var sessions: Set<String> = []

        mutating func userWent() { (isWhole, isBack) = (true, false) }
    }

    /// Nil when there are none.
    ///
    /// - Parameter users: the rows of users that are gone.
    private func removal(
        of devices: [DeviceRecord], _ users: RecordWrites = RecordWrites()
    ) -> (@Sendable (any StoreTransaction) throws -> Void)? {
        guard !devices.isEmpty || users.count > 0 else { return nil }
        return { [self] transaction in
            var writes = users
            for device in devices { device.delete(in: &writes) }
            try writes.apply(to: transaction)
            // Before it is durable: deliveries that are dropped too early belong to a user that is gone all the same,
            // and the transactions that remove a user's rows follow this one.
            for device in devices { isGone.yield(device.device) }
            if users.count > 0 { bell.ring() }
        }
    }

    /// Asks auth about each user that has rows, beside what follows.
    func reconcile() async throws {
        current.forget(nil)
        try await reconciliation.begin()
    }
}

extension ThrottledNotices {
    /// Drops the deliveries of a device that is gone. A failure is no failure of what removed it, which is done:
    /// deliveries of devices that are gone are dropped when they are due, too.
    func dropDeliveries(of device: String, _ outbox: Outbox) async {
        do { try await outbox.dropDeliveries(of: device) } catch {
            notice(
                .undroppedDeliveries, "deliveries of a device that is gone stay until they are due",
                ["device": "\(device)", "error": "\(error)"], level: .error)
        }
    }
}
