/// Places where a crash or a failing disk can be ordered, one at every promise of a commit and at every step of what
/// runs in the background: `HATO_FAILPOINTS="commit.beforeSync=kill@37"` kills the process the 37th time it comes
/// there.
///
/// They are compiled in always: what is tested is what runs. As long as nothing was ordered, passing one costs a
/// relaxed load. `Tests/Fault/README.md` says what each is for and what must hold after it.
package enum Failpoint: String, CaseIterable, Sendable {
    /// The log was torn by a crash, and what cutting it would leave has been looked at.
    case openBeforeCut = "open.beforeCut"
    /// It is cut; the store has not been opened.
    case openAfterCut = "open.afterCut"
    /// RocksDB is open and has replayed its log; nothing else of the opening has been done.
    case openAfterRecovery = "open.afterRecovery"

    // A commit, in the order of its promises. Applied, synced and published are groups; an answer is one write's.
    case commitBeforeApply = "commit.beforeApply"
    case commitAfterApply = "commit.afterApply"
    case commitBeforeSync = "commit.beforeSync"
    /// The log with a commit and the note of its prepared rows is synced; RocksDB has not been given them.
    case commitBeforeTake = "commit.beforeTake"
    /// It has them; their files are still there, and so is the note.
    case commitAfterTake = "commit.afterTake"
    /// The log is synced; the `answered` file does not know yet.
    case commitAfterSync = "commit.afterSync"
    /// Durable and noted; no snapshot shows it.
    case commitBeforePublish = "commit.beforePublish"
    /// Readers see it; no listener has been told.
    case commitAfterPublish = "commit.afterPublish"
    case commitBeforeAnswer = "commit.beforeAnswer"
    case commitAfterAnswer = "commit.afterAnswer"

    /// The publisher has a group and has sent nothing of it.
    case eventsBeforeSend = "events.beforeSend"
    case eventsAfterSend = "events.afterSend"

    /// A page of an index build is about to be planned.
    case indexBeforePage = "index.beforePage"
    /// It is planned and put, not applied.
    case indexInPage = "index.inPage"
    /// It is durable; the next one is not queued.
    case indexAfterPage = "index.afterPage"

    /// Zeros are written ahead into the log and not synced. An error here is nobody's but theirs.
    case logAfterZeros = "log.afterZeros"

    case changesBeforeForget = "changes.beforeForget"
    /// What is forgotten is marked, and still there.
    case changesAfterMark = "changes.afterMark"
    case changesAfterForget = "changes.afterForget"

    case backupBeforeCopy = "backup.beforeCopy"
    /// The database is copied; its list is not written.
    case backupAfterCopy = "backup.afterCopy"
    /// All is written; the folder has its hidden name.
    case backupBeforeRename = "backup.beforeRename"
    case backupAfterRename = "backup.afterRename"

    /// A look-up or a scan of rows begins.
    case storeRead = "store.read"

    /// Whether whoever passes can be told of a failure there.
    package var canFail: Bool {
        switch self {
        case .commitBeforePublish, .commitAfterPublish, .commitBeforeAnswer, .commitAfterAnswer, .eventsBeforeSend,
            .eventsAfterSend, .indexInPage, .indexAfterPage, .backupAfterRename:
            false
        default: true
        }
    }

    /// Does not return when the process was ordered to die here.
    package func pass() {
        if Failpoints.isArmed { Failpoints.passed(self) }
    }

    /// `pass`; throws when the disk was ordered to fail here.
    package func passOrFail() throws(StoreError) {
        if Failpoints.isArmed { try Failpoints.passedOrFailed(self) }
    }
}
