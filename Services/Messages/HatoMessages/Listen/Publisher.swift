import HatoModel
import HatoStorage
import Synchronization

/// The one thread on which commits become events: everything that listens or follows lives here and nowhere else.
///
/// **Order.** Groups of commits come in the order in which they became durable, each followed by the responses of its
/// writes. Jobs run one after the other, so a listener's events of a commit leave before the response of that commit
/// does, and a connection sees its own events before its own responses (protocol §5). Events that are computed on
/// another thread hold back the responses of those they are for (`DelayedResponses`).
///
/// **The way past.** As long as there are no listeners and no followers, groups and responses do not come here: the
/// response goes straight from the writer. A new listener comes by the writer too, between two groups, with the
/// snapshot that stands there (`open`): from then on groups come here, so none is missed and none comes twice.
final class Publisher: Sendable {
    typealias Body = @Sendable (ListenerRegistry) -> Void

    /// How what lives on the thread gets back there, and says whether groups must come.
    struct Line: Sendable {
        /// Runs a body on the publisher's thread, later.
        var post: @Sendable (@escaping Body) -> Void
        /// The same after so many milliseconds.
        var postLater: @Sendable (Int, @escaping Body) -> Void
        var setActive: @Sendable (Bool) -> Void
    }

    enum Job: Sendable {
        case group(CommitGroup)
        case completion(EarlierEvents, connection: UInt64, @Sendable () -> Void)
        case run(@Sendable (ListenerRegistry) -> Void)
    }

    private let jobs = JobQueue<Job>()
    private let activity = Activity()

    /// Throws when the operating system gives no thread.
    ///
    /// - Parameter makeRegistry: makes what lives on the thread.
    init(_ makeRegistry: @escaping @Sendable (Line) -> ListenerRegistry) throws(StoreError) {
        let (jobs, activity) = (jobs, activity)
        try startThread {
            let post: @Sendable (@escaping Body) -> Void = { [weak jobs] body in _ = jobs?.append(.run(body)) }
            let registry = makeRegistry(
                Line(
                    post: post, postLater: { Self.wait($0, then: $1, post) }, setActive: { activity.setAudience($0) }))
            var taken: [Job] = []
            while jobs.takeAll(into: &taken) {
                for job in taken {
                    switch job {
                    case .group(let group):
                        Failpoint.eventsBeforeSend.pass()
                        registry.groupBecameDurable(group)
                        Failpoint.eventsAfterSend.pass()
                    case .completion(let earlier, let connection, let completion):
                        registry.respond(connection, after: earlier, completion)
                    case .run(let body): body(registry)
                    }
                }
                taken.removeAll(keepingCapacity: taken.count <= 4_096)
            }
            registry.close()
        }
    }

    private static func wait(
        _ milliseconds: Int, then body: @escaping Body, _ post: @escaping @Sendable (@escaping Body) -> Void
    ) {
        Task {
            try? await Task.sleep(for: .milliseconds(milliseconds))
            post(body)
        }
    }

    /// Whether there are listeners or followers, or some are about to begin.
    var isActive: Bool { activity.isOn }

    /// On a thread of the writer, for every group.
    func groupBecameDurable(_ group: CommitGroup) {
        if isActive { _ = jobs.append(.group(group)) }
    }

    /// On a thread of the writer, after the group: `completion` runs when the earlier events that the connection
    /// listens to are on their way.
    func after(_ earlier: EarlierEvents, to connection: UInt64?, _ completion: @escaping @Sendable () -> Void) {
        if !isActive || !jobs.append(.completion(earlier, connection: connection ?? 0, completion)) { completion() }
    }

    /// Runs `body` on the publisher's thread; not at all after `close`.
    func run(_ body: @escaping @Sendable (ListenerRegistry) -> Void) { _ = jobs.append(.run(body)) }

    /// On a thread of the writer, between two groups: runs `body` on the publisher's thread when all groups up to now
    /// have been handled there; each later one comes after it.
    func open(_ body: @escaping @Sendable (ListenerRegistry) -> Void) {
        activity.openingBegan()
        let isQueued = jobs.append(
            .run { [activity] registry in
                body(registry)
                activity.openingEnded()
            })
        if !isQueued { activity.openingEnded() }
    }

    /// Returns when the registry has shown its figures.
    func showFigures() async {
        await withCheckedContinuation { continuation in
            let isQueued = jobs.append(
                .run { registry in
                    registry.showFigures()
                    continuation.resume()
                })
            if !isQueued { continuation.resume() }
        }
    }

    func close() { jobs.close() }
}

/// Whether groups have to come to the publisher's thread: asked on threads of the writer, changed there and on the
/// publisher's.
private final class Activity: Sendable {
    /// Whether the registry has listeners or followers; set by the publisher's thread.
    private let hasAudience = Atomic<Bool>(false)
    /// Those on the way there; begun on a thread of the writer, ended on the publisher's.
    private let openings = Atomic<Int>(0)

    /// An opening ends after it has set `hasAudience`: read in this order, no moment between the two is seen.
    var isOn: Bool {
        openings.load(ordering: .sequentiallyConsistent) > 0 || hasAudience.load(ordering: .sequentiallyConsistent)
    }

    func setAudience(_ isThere: Bool) { hasAudience.store(isThere, ordering: .sequentiallyConsistent) }
    func openingBegan() { openings.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    func openingEnded() { openings.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
}
