import HatoModel
import HatoStorage
import Synchronization

/// The one thread on which commits become events: everything that listens or follows lives here and nowhere else.
///
/// **Order.** Groups of commits come in the order in which they became durable, each followed by the answers of its
/// writes. Jobs run one after the other, so a listener's events of a commit leave before the answer of that commit
/// does, and a connection sees its own events before its own answers (protocol §5).
///
/// **The way past.** As long as nobody listens or follows, groups and answers do not come here: the answer goes
/// straight from the writer's thread. Who starts to listen first sets `isActive` and then takes a snapshot. The store
/// publishes a snapshot before it tells observers, so a group that found `isActive` false is in that snapshot: nothing
/// is missed.
final class Publisher: Sendable {
    /// Runs its argument on the publisher's thread, later.
    typealias Post = @Sendable (@escaping @Sendable (ListenerRegistry) -> Void) -> Void

    enum Job: Sendable {
        case group(CommitGroup)
        case answer(@Sendable () -> Void)
        case run(@Sendable (ListenerRegistry) -> Void)
    }

    private let jobs = JobQueue<Job>()
    private let activity = Activity()

    /// Throws when the operating system gives no thread.
    ///
    /// - Parameter makeRegistry: makes what lives on the thread; gets the way to post to it later, and to set
    ///   `isActive`.
    init(_ makeRegistry: @escaping @Sendable (@escaping Post, @escaping @Sendable (Bool) -> Void) -> ListenerRegistry)
        throws(StoreError)
    {
        let (jobs, activity) = (jobs, activity)
        try startThread {
            let registry = makeRegistry({ [weak jobs] body in _ = jobs?.append(.run(body)) }, { activity.isOn = $0 })
            var taken: [Job] = []
            while jobs.takeAll(into: &taken) {
                for job in taken {
                    switch job {
                    case .group(let group): registry.groupBecameDurable(group)
                    case .answer(let answer): answer()
                    case .run(let body): body(registry)
                    }
                }
                taken.removeAll(keepingCapacity: taken.count <= 4_096)
            }
        }
    }

    /// Whether somebody listens or follows.
    var isActive: Bool { activity.isOn }

    /// On the writer's thread, for every group.
    func groupBecameDurable(_ group: CommitGroup) {
        if isActive { _ = jobs.append(.group(group)) }
    }

    /// On the writer's thread, after the group: `answer` runs when the events of the group are on their way.
    func afterEvents(_ answer: @escaping @Sendable () -> Void) {
        if !isActive || !jobs.append(.answer(answer)) { answer() }
    }

    /// Runs `body` on the publisher's thread; not at all after `close`.
    func run(_ body: @escaping @Sendable (ListenerRegistry) -> Void) { _ = jobs.append(.run(body)) }

    func close() { jobs.close() }
}

/// A flag that threads share.
private final class Activity: Sendable {
    private let flag = Atomic<Bool>(false)

    var isOn: Bool {
        get { flag.load(ordering: .sequentiallyConsistent) }
        set { flag.store(newValue, ordering: .sequentiallyConsistent) }
    }
}
