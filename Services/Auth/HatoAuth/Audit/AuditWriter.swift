import HatoModel
import HatoStorage
import Logging
import Synchronization

/// Writes the failures of sign-ins, which have no transaction of their own: a second's together, after their responses,
/// so that the time of a response shows nothing, and an attacker causes one commit a second at most. What the last
/// second before a crash brought is lost.
///
/// State in memory: the failures that wait (`FailureLog`), behind a lock that is never held across an `await`.
final class AuditWriter: Sendable {
    private let store: any Store
    private let environment: AuthEnvironment
    private let nameKey: [UInt8]
    private let keepsEntries: Bool
    private let log = Mutex(FailureLog())

    init(_ configuration: AuthConfiguration, _ store: any Store, _ environment: AuthEnvironment, key: [UInt8]) {
        self.store = store
        self.environment = environment
        nameKey = key
        keepsEntries = configuration.keepAuditDays > 0
    }

    /// A sign-in that was refused.
    ///
    /// - Parameters:
    ///   - uid: The account, where there is one.
    ///   - name: The e-mail address or the username that was given.
    func signInFailed(_ error: any Error, uid: String? = nil, name: String? = nil) {
        guard keepsEntries else { return }
        let reason = (error as? any RPCErrorConvertible)?.rpcError.reason ?? (error as? RPCError)?.reason
        var record = AuditRecord(.signInFailed, of: uid)
        record.reason = reason ?? "internal"
        record.email = name.map { AuditName.text($0, key: nameKey) }
        if let call = AuditedCall.current { record = call.completed(record) }
        let now = environment.now()
        log.withLock { $0.failed(record, now: now) }
    }

    /// Writes what waits each second, until the task is cancelled, and the rest then.
    func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(1))
            await write()
        }
        let now = environment.now()
        await write(log.withLock { $0.takenAtEnd(now: now) })
    }

    func write() async {
        let now = environment.now()
        await write(log.withLock { $0.isEmpty ? [] : $0.taken(now: now) })
    }

    /// Deletes entries that are kept no longer, the oldest first, a page per transaction, until the task is cancelled.
    func forget(olderThanDays days: Int64) async throws {
        let old = environment.now() - days * 86_400_000
        while !Task.isCancelled {
            let keys = try await store.read { try AuditRows.keys(before: old, countMax: 500, in: $0) }
            guard !keys.isEmpty else { return }
            _ = try await store.write { rows in
                for key in keys { rows.deleteRow(key) }
            }
        }
    }

    private func write(_ failures: [(time: Int64, record: AuditRecord)]) async {
        guard !failures.isEmpty else { return }
        do {
            _ = try await store.write { rows in
                for (index, failure) in failures.prefix(AuditRows.countMax).enumerated() {
                    let id = AuditID(time: failure.time, version: rows.nextVersion, index: index)
                    AuditRows.put(failure.record, id, in: rows)
                }
            }
        } catch {
            environment.logger.warning("failed sign-ins could not be recorded", metadata: ["error": "\(error)"])
        }
    }
}
