import HatoModel
import HatoStorage
import HatoTree
import Synchronization

/// The snapshots that exports page through, each under a handle; one that rests too long is let go, for it pins
/// space, and sooner when others want its place.
///
/// A handle is of one place of one database. Under the same name there may be another database later, which the
/// snapshot has nothing of: a page of that would look like the last one.
final class ExportSnapshots: Sendable {
    /// What is exported.
    struct Source: Sendable, Hashable {
        var name: DatabaseName
        var database: DatabaseID
        var path: TreePath
    }

    private struct Entry {
        var snapshot: any StoreSnapshot
        var source: Source
        var usedAt: Int64
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var last: UInt64 = 0
    }

    private let state = Mutex(State())
    private let countMax: Int
    private let idleMs: Int64

    init(limits: MessagesLimits) {
        countMax = limits.exportSnapshotsMax
        idleMs = Int64(limits.exportIdleMs)
    }

    /// Exports under way.
    var count: Int { state.withLock { $0.entries.count } }

    /// A handle for `snapshot` that cannot be guessed.
    func open(_ snapshot: any StoreSnapshot, of source: Source, now: Int64) throws(MessagesError) -> String {
        let handle: String? = state.withLock { state in
            expire(&state, now)
            if state.entries.count >= countMax { evictOldest(&state, now) }
            guard state.entries.count < countMax else { return nil }
            state.last += 1
            let handle = "\(state.last)-\(String(UInt64.random(in: .min ... .max), radix: 36))"
            state.entries[handle] = Entry(snapshot: snapshot, source: source, usedAt: now)
            return handle
        }
        guard let handle else { throw .tooManyExports(max: countMax) }
        return handle
    }

    /// Whether a text has the form of a handle.
    static func isHandle(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && UInt64(parts[0]) != nil && UInt64(parts[1], radix: 36) != nil
    }

    /// For the next page of the same place.
    func snapshot(of handle: String, _ source: Source, now: Int64) throws(MessagesError) -> any StoreSnapshot {
        let entry = state.withLock { state in
            expire(&state, now)
            state.entries[handle]?.usedAt = now
            return state.entries[handle]
        }
        guard let entry else { throw .exportNotFound(handle) }
        guard entry.source.name == source.name, entry.source.path == source.path else {
            throw .otherExport(database: entry.source.name, entry.source.path)
        }
        guard entry.source.database == source.database else {
            close(handle)
            throw .exportNotFound(handle)
        }
        return entry.snapshot
    }

    /// After the last page.
    func close(_ handle: String) { state.withLock { $0.entries[handle] = nil } }

    func expire(now: Int64) { state.withLock { expire(&$0, now) } }

    /// An export that was not read for so long is replaced by a new one: clients that still page ask sooner.
    static let restMs: Int64 = 10_000

    private func evictOldest(_ state: inout sending State, _ now: Int64) {
        guard let oldest = state.entries.min(by: { $0.value.usedAt < $1.value.usedAt }),
            now - oldest.value.usedAt >= Self.restMs
        else { return }
        state.entries[oldest.key] = nil
    }

    private func expire(_ state: inout sending State, _ now: Int64) {
        for (handle, entry) in state.entries where now - entry.usedAt > idleMs { state.entries[handle] = nil }
    }
}
