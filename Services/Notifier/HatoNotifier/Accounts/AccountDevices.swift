import HatoFollow
import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// Devices and topics go with their user, and devices with the session under which they were registered: a user that
/// signs out on a device gets no notifications there.
final class AccountDevices: AccountDependents {
    private let outbox: Outbox
    private let auth: RPCClient
    private let notices: ThrottledNotices
    /// What is remembered of users.
    private let current: CurrentAccounts
    /// How long to wait after a failure.
    private static let pause = Duration.seconds(1)
    /// Devices that are gone, and whose deliveries are not dropped yet.
    private let gone: AsyncStream<String>
    private let isGone: AsyncStream<String>.Continuation
    /// Rings when rows of users that are gone are to be removed.
    private let bell = Bell()

    /// - Parameter auth: with a service key for `auth.sessions.list`.
    init(_ outbox: Outbox, auth: RPCClient, _ current: CurrentAccounts, notices: ThrottledNotices) {
        self.current = current
        self.outbox = outbox
        self.auth = auth
        self.notices = notices
        // Beyond it, deliveries are dropped when they are due.
        (gone, isGone) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(10_000))
        // What the process before has left.
        bell.ring()
    }

    /// Removes the rows of users that are gone, and drops what waits for devices that are, until the task is cancelled.
    func run() async {
        async let removing: Void = removeUsers()
        await dropDeliveries()
        await removing
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
            case .deleted: ends[uid, default: Ends()].isWhole = true
            case .signedOut: if let session = event.session { ends[uid, default: Ends()].sessions.insert(session) }
            case .created, .updated, .disabled, .enabled, .revoked, .keyRevoked: continue
            }
        }
        var (devices, writes): ([DeviceRecord], RecordWrites) = ([], RecordWrites())
        for (uid, end) in ends {
            if end.isWhole {
                _ = try GoneUsers.begin(uid, at: outbox.time.now(), in: rows, &writes)
            } else {
                devices += try rows.devices(of: uid).filter { $0.session.map(end.sessions.contains) == true }
            }
        }
        return removal(of: devices, writes)
    }

    /// Which of a user's devices go.
    private struct Ends {
        var isWhole = false
        var sessions: Set<String> = []
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

    /// Asks auth about each user that has devices of a session, topics or counts.
    func reconcile() async throws {
        current.forget(nil)
        try await reconcileDevices()
        for prefix in [TopicRecord.usersPrefix, RecordKey(.badge)] { try await reconcileUsers(prefix) }
    }

    private func reconcileUsers(_ prefix: RecordKey) async throws {
        var after: String?
        while let uid = try await nextUser(prefix, after: after) {
            after = uid
            // A user that has devices of sessions still was found just now; one that has others need not be in auth.
            let hasDevices = try await !outbox.store.read { try $0.devices(of: uid) }.isEmpty
            if hasDevices { continue }
            guard try await sessions(of: uid) == nil else { continue }
            _ = try await outbox.store.write { [outbox] transaction in
                var writes = RecordWrites()
                _ = try GoneUsers.begin(uid, at: outbox.time.now(), in: transaction, &writes)
                try writes.apply(to: transaction)
            }
            bell.ring()
        }
    }

    private func reconcileDevices() async throws {
        var after: String?
        while let uid = try await nextUser(RecordKey(.deviceOfUser), after: after) {
            after = uid
            // What is registered after auth was asked has a newer session.
            let known = try await outbox.store.read { try $0.devices(of: uid) }.filter { $0.session != nil }
            guard !known.isEmpty else { continue }
            let sessions = try await sessions(of: uid) ?? []
            let ended = known.filter { $0.session.map(sessions.contains) == false }
            guard !ended.isEmpty else { continue }
            _ = try await outbox.store.write { [self] transaction in
                let devices = try transaction.devices(of: uid).filter { device in
                    ended.contains { $0.device == device.device && $0.session == device.session }
                }
                try removal(of: devices)?(transaction)
            }
        }
        try await reconcilePreferences()
    }

    /// Asks auth about each of its users that has preferences.
    private func reconcilePreferences() async throws {
        var after: String?
        while let uid = try await outbox.store.read({ [after] in try PreferenceRows.nextAccount(after: after, in: $0) })
        {
            after = uid
            guard try await sessions(of: uid) == nil else { continue }
            _ = try await outbox.store.write { transaction in
                PreferenceRows.remove(of: uid, in: transaction)
            }
        }
    }

    /// The first user behind `uid` among rows whose keys have the user behind `prefix`.
    private func nextUser(_ prefix: RecordKey, after uid: String?) async throws -> String? {
        try await outbox.store.read { snapshot in
            var range = KeyRange(prefix: prefix.bytes)
            if let uid, let end = prefix.with(uid).end { range.lower = end }
            var next: String?
            guard !range.isEmpty else { return nil }
            try snapshot.scan(range, reverse: false) { key, _ in
                // It passes over one byte, the letter of a table.
                var reader = RecordKeyReader(key.copied.dropFirst(prefix.bytes.count - 1))
                next = reader.text()
                return .stop
            }
            return next
        }
    }

    /// Nil when there is no such user.
    private func sessions(of uid: String) async throws -> Set<String>? {
        do {
            var request = Auth.Sessions.List(uid: uid)
            // The most of one page: each one reads all sessions of the account.
            request.limit = 1_000
            var sessions: Set<String> = []
            repeat {
                let page = try await auth.call(request)
                sessions.formUnion(page.sessions.map(\.session))
                request.after = page.after
            } while request.after != nil
            return sessions
        } catch let error as RPCError where error.reason == "USER_NOT_FOUND" {
            return nil
        }
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
