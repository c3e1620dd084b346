/// The submissions that the planning thread has taken, in the order in which it plans them. Pure: its driver says how
/// long each took.
///
/// A few submissions, or those of one client, are planned in the order of their arrival, at no further cost. Otherwise,
/// and when planning takes long, clients take turns (`TurnQueue`) until none waits; submissions that arrive meanwhile
/// are added from time to time (`isDue`). So a client waits for about as much work of the others together as it gives
/// itself, however many submissions they have. The submissions of one client, and so those of one connection, keep
/// their order.
struct PlanningOrder {
    /// Taken from the queue and not yet put in order: filled by the planning thread, followed by `arrange`.
    var arrived: [Submission] = []
    /// The number of submissions in `arrived` that are planned.
    private var done = 0
    /// The submissions of `arrived` from `done` up to here are of one client.
    private var checked = 0
    private var turns = TurnQueue<Submission>()
    /// The next of `turns`; nil when clients take no turns.
    private var next: (job: Submission, turn: TurnQueue<Submission>.Turn)?
    private var plannedSinceArrival = 0
    /// What that took, in nanoseconds.
    private var timeSinceArrival = 0

    /// Fewer are planned as they came, unless that takes long.
    static let turnsMin = 16
    /// Submissions that are planned, while clients take turns, before those that have arrived since are added.
    static let arrivalInterval = 16
    /// The same as a time, in nanoseconds, whether clients take turns or not.
    static let arrivalTime = 2_000_000
    /// The capacity for so many is kept.
    private static let keptMax = 1_024

    /// The submission that is planned next; nil when there is none.
    var first: Submission? { next?.job ?? (done < arrived.count ? arrived[done] : nil) }

    /// Whether what has arrived meanwhile is to be added.
    var isDue: Bool {
        next != nil && plannedSinceArrival >= Self.arrivalInterval || timeSinceArrival >= Self.arrivalTime
    }

    /// The submissions that are not planned.
    var rest: [Submission] {
        var (rest, turns) = (Array(arrived[done...]), turns)
        if let next { rest.append(next.job) }
        while let submission = turns.takeNext()?.job { rest.append(submission) }
        return rest
    }

    /// Adds what has arrived, and puts all in order.
    mutating func add(_ submissions: inout [Submission]) {
        if done == arrived.count {
            removePlanned()
            swap(&arrived, &submissions)
        } else {
            // What is planned is not kept until nothing is left.
            if done >= arrived.count - done { forgetPlanned() }
            arrived.append(contentsOf: submissions)
            submissions.removeAll(keepingCapacity: submissions.count <= Self.keptMax)
        }
        arrange()
    }

    /// Puts what has arrived in order.
    mutating func arrange() {
        let isSlow = timeSinceArrival >= Self.arrivalTime
        (plannedSinceArrival, timeSinceArrival) = (0, 0)
        guard next != nil || hasSeveralClients(atLeast: isSlow ? 2 : Self.turnsMin) else { return }
        for submission in arrived[done...] { turns.append(submission, of: submission.client) }
        removePlanned()
        if next == nil { next = turns.takeNext() }
    }

    private mutating func hasSeveralClients(atLeast countMin: Int) -> Bool {
        guard arrived.count - done >= countMin else { return false }
        let client = arrived[done].client
        guard !arrived[max(done, checked)...].contains(where: { $0.client != client }) else { return true }
        checked = arrived.count
        return false
    }

    /// The first submission has been planned.
    ///
    /// - Parameter time: what that took, in nanoseconds.
    mutating func removeFirst(after time: Int) {
        timeSinceArrival += time
        guard let planned = next else {
            done += 1
            return
        }
        turns.ended(planned.turn, after: time)
        next = turns.takeNext()
        plannedSinceArrival = next == nil ? 0 : plannedSinceArrival + 1
    }

    /// Lets go of what is planned, when all is.
    mutating func removePlanned() {
        arrived.removeAll(keepingCapacity: arrived.capacity <= 2 * Self.keptMax)
        (done, checked) = (0, 0)
    }

    private mutating func forgetPlanned() {
        arrived.removeFirst(done)
        (done, checked) = (0, max(0, checked - done))
    }
}
