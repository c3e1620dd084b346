import HatoModel
import HatoRPC

/// Writes the commits of one database's feed down as they come, cursor included, so that a feed never waits for what
/// earlier changes send: a change that notifies many users delays those of its writer only.
struct FeedIntake: Sendable {
    private let source: TriggerSource
    private let triggers: [FeedTrigger]
    private let backlog: ChangeBacklog
    /// Where the cursor is.
    private(set) var cursor: CursorRecord

    init(_ source: TriggerSource, _ triggers: [FeedTrigger], _ backlog: ChangeBacklog, _ cursor: CursorRecord) {
        self.source = source
        self.triggers = triggers
        self.backlog = backlog
        self.cursor = cursor
    }

    var database: DatabaseName { source.database }

    /// Writes down those changes of commits, in order, that fire a trigger, in one transaction.
    mutating func take(_ commits: [FeedCommit]) async throws {
        var (next, changes): (CursorRecord, [ChangeRecord]) = (cursor, [])
        var threads: [ThreadChange.Placed] = []
        for commit in commits where isNew(commit, behind: next) {
            (next.version, next.epoch, next.time) = (commit.version, commit.epoch, max(next.time, commit.time))
            // After another history took the place of the one that was followed, what had been handled there is known
            // by its time; commits of the very last millisecond are known by their idempotency keys.
            if let handledThrough = cursor.handledThrough, commit.time < handledThrough { continue }
            source.reportMany(commit)
            for change in commit.changes {
                let meanings = Set(triggers.flatMap { $0.threadChanges(for: change, of: commit) })
                threads += meanings.map { .init(change: $0, index: UInt32(clamping: changes.count)) }
            }
            for change in commit.changes where triggers.contains(where: { $0.fires(for: change, of: commit) }) {
                changes.append(
                    ChangeRecord(change: change, version: commit.version, epoch: commit.epoch, time: commit.time))
            }
        }
        guard next != cursor else { return }
        backlog.comes(cursor.version &+ 1)
        let (backlog, bytesMax) = (backlog, source.outbox.limits.backlogBytesMax)
        let move = CursorMove(from: cursor, to: next)
        let kept = try await source.rows.keep(changes, threads, moving: move) {
            backlog.excess(adding: $0, bytesMax: bytesMax)
        }
        source.outbox.metrics.changesIncomplete(threads.count { $0.change == .unknown })
        cursor = next
        backlog.came(kept.came, through: kept.sequence)
        backlog.went(kept.dropped)
        source.reportDropped(kept.dropped.reduce(0) { $0 + $1.rows })
    }

    /// Commits come in order, but again after a connection was lost; and in another history versions may begin anew.
    private func isNew(_ commit: FeedCommit, behind cursor: CursorRecord) -> Bool {
        commit.epoch != cursor.epoch || commit.version > cursor.version
    }
}
