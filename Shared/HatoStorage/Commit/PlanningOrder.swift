/// The submissions that the planning thread has taken, in the order in which it plans them. Pure.
///
/// A few submissions, or those of one client, are planned in the order of their arrival, at no further cost. Otherwise
/// clients take turns (`TurnQueue`) until none waits; submissions that arrive meanwhile are added from time to time
/// (`isDue`). So a client
/// waits for one submission of each other client, however many those have submitted. The submissions of one client,
/// and so those of one connection, keep their order.
struct PlanningOrder {
    /// Taken from the queue and not yet put in order: filled by the planning thread, followed by `arrange`.
    var arrived: [Submission] = []
    /// The number of submissions in `arrived` that are planned.
    private var done = 0
    private var turns = TurnQueue<Submission>()
    /// The next of `turns`; nil when clients take no turns.
    private var next: Submission?
    private var plannedSinceArrival = 0

    /// Fewer are planned as they came.
    static let turnsMin = 16
    /// Submissions that are planned, while clients take turns, before those that have arrived since are added.
    static let arrivalInterval = 16
    /// The capacity for so many is kept.
    private static let keptMax = 1_024

    /// The submission that is planned next; nil when there is none.
    var first: Submission? { next ?? (done < arrived.count ? arrived[done] : nil) }

    /// Whether clients take turns and what has arrived meanwhile is to be added.
    var isDue: Bool { plannedSinceArrival >= Self.arrivalInterval }

    /// The submissions that are not planned.
    var rest: [Submission] {
        var (rest, turns) = (Array(arrived[done...]), turns)
        if let next { rest.append(next) }
        while let submission = turns.takeNext()?.job { rest.append(submission) }
        return rest
    }

    /// Puts what has arrived in order.
    mutating func arrange() {
        plannedSinceArrival = 0
        guard next != nil || hasManyOfSeveralClients else { return }
        for submission in arrived { turns.append(submission, of: submission.client) }
        arrived.removeAll(keepingCapacity: arrived.count <= Self.keptMax)
        if next == nil { next = turns.takeNext()?.job }
    }

    private var hasManyOfSeveralClients: Bool {
        guard arrived.count >= Self.turnsMin, let first = arrived.first else { return false }
        let client = first.client
        return arrived.contains { $0.client != client }
    }

    /// The first submission has been planned.
    mutating func removeFirst() {
        guard next != nil else {
            done += 1
            return
        }
        next = turns.takeNext()?.job
        plannedSinceArrival = next == nil ? 0 : plannedSinceArrival + 1
    }

    /// Lets go of what is planned, when all is.
    mutating func removePlanned() {
        arrived.removeAll(keepingCapacity: arrived.count <= Self.keptMax)
        done = 0
    }
}
