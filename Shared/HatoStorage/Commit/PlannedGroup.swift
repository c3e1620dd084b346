/// What one sync makes durable: applied commits, and the completions that run once they are durable.
///
/// Observers are notified part by part, each part followed by its completions; usually there is one part.
struct PlannedGroup: Sendable {
    enum Completion: Sendable {
        /// Completes with the version at which the write is durable, or with the error because of which it left
        /// nothing.
        case write(any StoreWrite, Result<UInt64, any Error>, hasCommit: Bool)
        case snapshot(PendingSnapshot, any StoreSnapshot)
    }

    private struct Part {
        var commits: [Commit]
        /// Nil when there are no commits.
        var snapshot: (any StoreSnapshot)?
        var completions: [Completion]
    }

    /// The version of the newest commit, of this group or before it.
    private(set) var version: UInt64
    /// The derived state as of that version.
    private(set) var derived: (any StoreDerived)?
    /// The newest snapshot that was taken.
    private(set) var snapshot: (any StoreSnapshot)?
    /// How many submissions wait for their completion.
    private(set) var count = 0
    /// Bytes of keys, values and records.
    private(set) var bytes = 0
    /// How long the sync took, once it is done.
    var syncTime = Duration.zero
    private var parts: [Part] = []
    private var commits: [Commit] = []
    private var completions: [Completion] = []

    init(after version: UInt64, _ derived: (any StoreDerived)?) {
        self.version = version
        self.derived = derived
    }

    mutating func add(_ commit: Commit, bytes: Int, _ newDerived: (any StoreDerived)?) {
        version = commit.version
        commits.append(commit)
        self.bytes += bytes
        if let newDerived { derived = newDerived }
    }

    mutating func add(_ completion: Completion) {
        completions.append(completion)
        count += 1
    }

    /// A snapshot of what is applied: an existing one if it is up to date, usually a new one.
    mutating func reachSnapshot(
        from published: any StoreSnapshot, _ take: (UInt64, (any StoreDerived)?) -> any StoreSnapshot
    ) -> any StoreSnapshot {
        let newest = snapshot ?? published
        let reached = newest.version < version ? take(version, derived) : newest
        snapshot = reached
        return reached
    }

    /// Ends the current part: what is added from now on is handed out after it. The snapshot has been reached.
    mutating func endPart() {
        parts.append(Part(commits: commits, snapshot: snapshot, completions: completions))
        (commits, completions) = ([], [])
    }

    /// Called when everything is durable and published.
    func handOut(to observers: CommitObservers) {
        for part in parts {
            if !part.commits.isEmpty, let snapshot = part.snapshot {
                observers.notify(CommitGroup(commits: part.commits, snapshot: snapshot, syncTime: syncTime))
            }
            for completion in part.completions {
                switch completion {
                case .write(let write, let result, hasCommit: _):
                    Failpoint.commitBeforeAnswer.pass()
                    write.ended(result)
                    Failpoint.commitAfterAnswer.pass()
                case .snapshot(let pending, let snapshot): pending.completion(.success(snapshot))
                }
            }
        }
    }

    /// Refuses everything instead of handing it out, when the store has failed.
    ///
    /// - Parameter logged: the newest version that may be in the log: the outcome of writes up to this version is
    ///   unknown. A write that left no commit has changed nothing, whatever the log holds.
    func refuse(_ error: StoreError, logged: UInt64) {
        for completion in parts.flatMap(\.completions) + completions {
            switch completion {
            case .write(let write, .success(let version), hasCommit: true) where version <= logged:
                write.ended(.failure(StoreError.outcomeUnknown(cause: error.cause)))
            case .write(let write, _, hasCommit: _): write.ended(.failure(error))
            case .snapshot(let pending, _): pending.completion(.failure(error))
            }
        }
    }
}
