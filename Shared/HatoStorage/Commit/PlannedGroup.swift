/// What one sync will make durable: commits that are applied, and who is to be told and answered when it has.
///
/// Observers are told part by part, each part followed by its answers; as a rule there is one.
struct PlannedGroup: Sendable {
    enum Answer: Sendable {
        /// With the version at which it is durable, or why it left nothing.
        case write(any StoreWrite, Result<UInt64, any Error>)
        case snapshot(PendingSnapshot, any StoreSnapshot)
    }

    private struct Part {
        var commits: [Commit]
        /// Nil when there are no commits.
        var snapshot: (any StoreSnapshot)?
        var answers: [Answer]
    }

    /// The version of the newest commit, of this group or before it.
    private(set) var version: UInt64
    /// The newest that was taken.
    private(set) var snapshot: (any StoreSnapshot)?
    /// How many are waiting for an answer.
    private(set) var count = 0
    /// Bytes of keys, values and records.
    private(set) var bytes = 0
    /// How long the sync took, once it is done.
    var syncTime = Duration.zero
    private var parts: [Part] = []
    private var commits: [Commit] = []
    private var answers: [Answer] = []

    init(after version: UInt64) { self.version = version }

    mutating func add(_ commit: Commit, bytes: Int) {
        version = commit.version
        commits.append(commit)
        self.bytes += bytes
    }

    mutating func add(_ answer: Answer) {
        answers.append(answer)
        count += 1
    }

    /// A snapshot of what is applied: the newest there is, as a rule taken now.
    mutating func reachSnapshot(
        from published: any StoreSnapshot, _ take: (UInt64) -> any StoreSnapshot
    ) -> any StoreSnapshot {
        let newest = snapshot ?? published
        let reached = newest.version < version ? take(version) : newest
        snapshot = reached
        return reached
    }

    /// What comes now is told later than what has been added. The snapshot has been reached.
    mutating func endPart() {
        parts.append(Part(commits: commits, snapshot: snapshot, answers: answers))
        (commits, answers) = ([], [])
    }

    /// When everything is durable and published.
    func handOut(to observers: CommitObservers) {
        for part in parts {
            if !part.commits.isEmpty, let snapshot = part.snapshot {
                observers.tell(CommitGroup(commits: part.commits, snapshot: snapshot, syncTime: syncTime))
            }
            for answer in part.answers {
                switch answer {
                case .write(let write, let result):
                    Failpoint.commitBeforeAnswer.pass()
                    write.ended(result)
                    Failpoint.commitAfterAnswer.pass()
                case .snapshot(let pending, let snapshot): pending.completion(.success(snapshot))
                }
            }
        }
    }

    /// Instead of handing out.
    func refuse(_ error: StoreError) {
        for answer in parts.flatMap(\.answers) + answers {
            switch answer {
            case .write(let write, _): write.ended(.failure(error))
            case .snapshot(let pending, _): pending.completion(.failure(error))
            }
        }
    }
}
