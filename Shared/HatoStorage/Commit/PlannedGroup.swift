/// What one sync will make durable: commits that are applied, and who is to be told and answered when it has.
///
/// Observers are told part by part, each part followed by its answers; as a rule there is one.
struct PlannedGroup {
    enum Answer {
        case write(any PendingWrite, UInt64)
        case snapshot(PendingSnapshot, any StoreSnapshot)
    }

    private struct Part {
        var commits: [Commit]
        var snapshot: any StoreSnapshot
        var answers: [Answer]
    }

    /// The version of the newest commit, of this group or before it.
    private(set) var version: UInt64
    /// The newest that was taken; durable only if it is the one the group began on.
    private(set) var snapshot: any StoreSnapshot
    /// Bytes of keys, values and records.
    private(set) var bytes = 0
    /// How long the sync took, once it is done.
    var syncTime = Duration.zero
    private var parts: [Part] = []
    private var commits: [Commit] = []
    private var answers: [Answer] = []

    init(on snapshot: any StoreSnapshot, answersMax: Int) {
        self.snapshot = snapshot
        version = snapshot.version
        answers.reserveCapacity(answersMax)
    }

    mutating func add(_ commit: Commit, bytes: Int) {
        version = commit.version
        commits.append(commit)
        self.bytes += bytes
    }

    mutating func add(_ answer: Answer) { answers.append(answer) }

    /// Takes a snapshot of what is applied, unless there is one.
    mutating func reachSnapshot(_ take: (UInt64) -> any StoreSnapshot) {
        if snapshot.version < version { snapshot = take(version) }
    }

    /// What comes now is told later than what has been added. The snapshot has been reached.
    mutating func endPart() {
        parts.append(Part(commits: commits, snapshot: snapshot, answers: answers))
        (commits, answers) = ([], [])
    }

    /// When everything is durable and published.
    func handOut(to observers: CommitObservers) {
        for part in parts {
            if !part.commits.isEmpty {
                observers.tell(CommitGroup(commits: part.commits, snapshot: part.snapshot, syncTime: syncTime))
            }
            for answer in part.answers {
                switch answer {
                case .write(let write, let version):
                    Failpoint.commitBeforeAnswer.pass()
                    write.answer(at: version)
                    Failpoint.commitAfterAnswer.pass()
                case .snapshot(let pending, let snapshot): pending.completion(.success(snapshot))
                }
            }
        }
    }
}
