/// Points at which a crash or a disk failure can be injected, one at every guarantee of a commit and at every step of
/// background work: `HATO_FAILPOINTS="commit.beforeSync=kill@37"` kills the process when it passes this point for the
/// 37th time.
///
/// They are always compiled in: the tested binary is the shipped one. While no order is set, passing one costs a
/// relaxed load. `Tests/Fault/README.md` says what each is for and what must hold after it.
package enum Failpoint: String, CaseIterable, Sendable {
    /// The log was torn by a crash, and what cutting it would leave has been read.
    case openBeforeCut = "open.beforeCut"
    /// The log is cut; the store has not been opened.
    case openAfterCut = "open.afterCut"
    /// RocksDB is open and has replayed its log; no other step of the opening has run.
    case openAfterRecovery = "open.afterRecovery"

    // A commit, in the order of its guarantees. Applied, synced and published are groups; an answer is the response to
    // one write.
    case commitBeforeApply = "commit.beforeApply"
    case commitAfterApply = "commit.afterApply"
    case commitBeforeSync = "commit.beforeSync"
    /// The log is synced with a commit and the note of its prepared rows; RocksDB has not ingested the rows.
    case commitBeforeTake = "commit.beforeTake"
    /// RocksDB has ingested them; their files and the note are still there.
    case commitAfterTake = "commit.afterTake"
    /// The log is synced; the `answered` file is not updated yet.
    case commitAfterSync = "commit.afterSync"
    /// Durable and noted; no snapshot shows it.
    case commitBeforePublish = "commit.beforePublish"
    /// Readers see it; no listener has been notified.
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

    /// Zeros are written ahead into the log and not synced. An error here affects only these zeros.
    case logAfterZeros = "log.afterZeros"

    case changesBeforeForget = "changes.beforeForget"
    /// The removed records are marked as removed and still there.
    case changesAfterMark = "changes.afterMark"
    case changesAfterForget = "changes.afterForget"

    case backupBeforeCopy = "backup.beforeCopy"
    /// The database is copied; its list is not written.
    case backupAfterCopy = "backup.afterCopy"
    /// Everything is written; the folder still has its hidden name.
    case backupBeforeRename = "backup.beforeRename"
    case backupAfterRename = "backup.afterRename"

    /// A mail is made; its server does not have it.
    case mailBeforeSend = "mail.beforeSend"
    /// The server has it; the queue still does.
    case mailAfterSend = "mail.afterSend"

    /// A notification is durable; its request has no response.
    case pushAfterAccept = "push.afterAccept"
    /// A delivery is leased; its receiver was not called.
    case pushBeforeAttempt = "push.beforeAttempt"
    /// The receiver has responded; that is not recorded.
    case pushAfterResponse = "push.afterResponse"
    /// A page of the deliveries to many devices is durable; more are to come, or its job has ended.
    case pushAfterPage = "push.afterPage"
    /// The effect of an action is done in the tree, or refused there; that is not recorded.
    case pushAfterEffect = "push.afterEffect"

    /// A look-up or a scan of rows begins.
    case storeRead = "store.read"

    /// Whether the caller can handle an error at this point.
    package var canFail: Bool {
        switch self {
        case .commitBeforePublish, .commitAfterPublish, .commitBeforeAnswer, .commitAfterAnswer, .eventsBeforeSend,
            .eventsAfterSend, .indexInPage, .indexAfterPage, .backupAfterRename, .mailBeforeSend,
            .mailAfterSend, .pushAfterAccept, .pushBeforeAttempt, .pushAfterResponse, .pushAfterPage, .pushAfterEffect:
            false
        default: true
        }
    }

    /// Does not return when an order kills the process here.
    package func pass() {
        if Failpoints.isArmed { Failpoints.passed(self) }
    }

    /// Like `pass`; throws when an order fails the disk here.
    package func passOrFail() throws(StoreError) {
        if Failpoints.isArmed { try Failpoints.passedOrFailed(self) }
    }
}
