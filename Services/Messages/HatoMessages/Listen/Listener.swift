import HatoModel
import HatoRPC
import HatoTree

/// One subscription of one connection. Lives on the publisher's thread.
final class Listener {
    typealias Answer = @Sendable (Result<Messages.Listen.Result, any Error>) -> Void

    enum State {
        /// Has been sent everything up to the newest group, or is told the next together with the others; `index` is
        /// its place in `Topic.live`.
        case live(index: Int)
        /// What it lacks is being read on a reader's thread, or its topic is about to get there.
        case loading
        /// Gathers its events for a while.
        case gathering
        /// Its socket is full; what it lacks is read when there is room.
        case waiting
        /// Its right is still to be judged; what it lacks is read when that is done (`ListenerRegistry+Doubts`).
        case inDoubt
        case ended
    }

    let id: UInt64
    let opening: Opening
    let topic: Topic
    var caller: Caller
    /// Nil for an administrator, who needs none.
    var right: ReadRight?
    var state = State.waiting
    /// What it has not been told, nor is being read for it; kept while it is not live.
    var missed: MissedChanges
    /// Of the request that opens it, until its first event is on its way.
    var answer: Answer?
    /// Of that request: told how many rows were read for it. Nil when nobody asks how long it takes.
    var watch: OperationWatch?
    /// Whether something was read for it that its first event tells, sent or not.
    var hasNews = false
    /// The version it listens again from; no event of it is older.
    var since: UInt64 = 0
    /// What the others are sent while it loads is not for it.
    var mustReadAgain = false
    /// Whether a timer runs that ends the gathering.
    var isScheduled = false
    /// How often it has been in doubt.
    var doubts = 0

    var connection: any ListenerPeer { opening.connection }

    init(id: UInt64, _ opening: Opening, topic: Topic) {
        self.id = id
        self.opening = opening
        self.topic = topic
        caller = opening.caller
        missed = MissedChanges(of: topic.key.path)
    }

    /// Whether its right is still to be judged.
    var isInDoubt: Bool { right?.isInDoubt ?? false }

    /// Stands for a listener while something is read for it, or waits: void as soon as it has been in doubt, for then
    /// it is shown only what is read after its right was judged.
    struct Ticket: Sendable {
        let id: UInt64
        let doubts: Int
    }

    var ticket: Ticket { Ticket(id: id, doubts: doubts) }

    /// Whether it wants its events gathered for a while.
    var gathers: Bool { opening.coalesceMs > 0 }

    /// It is sent everything up to now in another way.
    func forgetMissed() { missed = MissedChanges(of: topic.key.path) }

    /// It was not sent what these commits changed.
    func miss(_ notes: [CommitNote]) {
        for note in notes { missed.add(note.changes) }
        if topic.key.query != nil, !notes.isEmpty { missed.addWhole() }
    }

    /// Who wants to listen, and how.
    struct Opening: Sendable {
        var connection: any ListenerPeer
        var subscription: String
        var caller: Caller
        /// For whom it is counted; nil: an administrator asks.
        var client: String?
        var coalesceMs = 0
        /// Whether a refusal says why.
        var explains = false
        /// Takes the watch of its identity back.
        var endWatch: @Sendable () -> Void
    }

    /// Why one ends that did not ask for it.
    struct Cancellation {
        /// What `messages.cancelled` says.
        var reason: String
        /// What the request that opens it is answered, if it was not answered yet.
        var error: any Error

        static func lost(_ error: any Error) -> Cancellation {
            let reason =
                switch error {
                case MessagesError.denied: "permission_denied"
                case TreeError.tooBig: "too_big"
                default: "unavailable"
                }
            return Cancellation(reason: reason, error: error)
        }

        static let expired = Cancellation(
            reason: "token_expired", error: RPCError.unauthenticated(reason: "TOKEN_EXPIRED", "The token has ended"))

        static func dropped(_ database: DatabaseName) -> Cancellation {
            Cancellation(reason: "database_dropped", error: MessagesError.databaseNotFound(database))
        }
    }
}
