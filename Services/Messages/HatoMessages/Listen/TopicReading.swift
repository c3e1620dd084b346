import HatoModel
import HatoStorage
import Synchronization

/// A reading for all listeners of a topic that lack the same. Lives on the publisher's thread.
final class TopicReading {
    /// Whether listeners still wait for it; read on a reader's thread.
    final class Waiters: ReadingPeer {
        private let hasEnded = Atomic<Bool>(false)

        var isClosed: Bool { hasEnded.load(ordering: .relaxed) }

        fileprivate func end() { hasEnded.store(true, ordering: .relaxed) }
    }

    let id: UInt64
    let topic: Topic
    let wanted: ListenerReading.Wanted
    /// Nil when its rows are not counted.
    let rows: RowCounter?
    let waiters = Waiters()
    /// What is read; nil as long as it waits for its turn and may be of any later version.
    private(set) var job: ListenerReading?
    var hasBegun = false
    /// The connection whose request it is as of.
    var requester: UInt64?
    /// Whether listeners of other connections wait for it, too.
    private(set) var isShared = false
    /// Whether it has outgrown what a reading may take that is not counted as a large one.
    var isLarge = false
    private(set) var listeners: [Listener.Ticket] = []
    /// How many of them have not left.
    private var waitingCount = 0

    init(id: UInt64, _ topic: Topic, _ wanted: ListenerReading.Wanted, rows: RowCounter?) {
        self.id = id
        self.topic = topic
        self.wanted = wanted
        self.rows = rows
    }

    /// From now on what it reads is known, and the topic keeps the events that follow.
    func prepare(_ job: ListenerReading) {
        if self.job == nil { topic.recent.jobBegan() }
        self.job = job
    }

    /// What it was to read is forgotten, or was read.
    func dropJob() {
        guard job != nil else { return }
        job = nil
        topic.recent.jobEnded()
    }

    func add(_ listener: Listener) {
        listener.reading = self
        if let requester, requester != listener.connection.id { isShared = true }
        listeners.append(listener.ticket)
        waitingCount += 1
    }

    /// What it would be sent is void. The reading ends when no other listener waits for it.
    func leave(_ listener: Listener) {
        listener.reading = nil
        waitingCount -= 1
        guard waitingCount == 0 else { return }
        waiters.end()
        if topic.readings[wanted] === self { topic.readings[wanted] = nil }
    }

    /// Whether what it reads is of a version.
    func isPrepared(at version: UInt64) -> Bool { job?.snapshot.version == version }

    /// Whether it is of use to a listener.
    ///
    /// - Parameters:
    ///   - oldest: what is read must be of this version or a later one.
    ///   - isFirst: whether what is read is the first event of the listener, which is as of its request.
    func serves(from oldest: UInt64, isFirst: Bool) -> Bool { job.map { $0.snapshot.version >= oldest } ?? !isFirst }
}
