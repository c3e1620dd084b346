import HatoModel
import HatoRPC
import HatoTree

/// One subscription of one connection. Lives on the publisher's thread.
final class Listener {
    typealias Completion = @Sendable (Result<Messages.Listen.Result, any Error>) -> Void

    let id: UInt64
    private(set) var opening: Opening
    let topic: Topic
    /// The bytes that are counted for its client (`ListenerTotals`).
    var charge = 0
    /// Nil for an administrator, who needs none.
    var authorisation: ReadAuthorisation? {
        didSet {
            // Equal, and kept once for all of them.
            if let authorisation { caller = authorisation.key.caller }
        }
    }
    var machine: ListenerStateMachine
    /// What is read for it.
    var reading: TopicReading?
    /// Its place in `Topic.live`.
    var liveIndex: Int?
    /// Of the request that opens it, until its first event is on its way.
    var completion: Completion?
    /// Of that request: counts the rows that were read for it. Nil when its duration is not measured.
    var watch: OperationWatch?

    var connection: any ListenerPeer { opening.connection }
    /// The caller it listens as now.
    var caller: Caller {
        get { opening.caller }
        set { opening.caller = newValue }
    }

    /// The client whose turns its readings take.
    var client: String {
        opening.forwarded?.client.client(speakingAs: caller) ?? connection.client(speakingAs: caller)
    }

    init(id: UInt64, _ opening: Opening, topic: Topic, etag: String?) {
        self.id = id
        self.opening = opening
        self.topic = topic
        machine = ListenerStateMachine(gathers: opening.coalesceMs > 0, etag: etag)
    }

    /// Whether its authorisation still waits for a verdict.
    var isOutdated: Bool { authorisation?.isOutdated ?? false }

    /// Stands for a listener while a catch-up job of it is under way; void when another has begun.
    struct Ticket: Sendable {
        let id: UInt64
        let job: UInt64
    }

    var ticket: Ticket { Ticket(id: id, job: machine.job) }

    /// What is known of a listener before it begins.
    struct Opening: Sendable {
        var connection: any ListenerPeer
        var subscription: String
        var caller: Caller
        /// For whom it is counted; nil: an administrator asks.
        var client: String?
        /// The address of the client; nil: that of the connection.
        var forwarded: ForwardedAddress?
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
        /// The error of the response to the request that opens it, if it has none yet.
        var error: any Error

        static func lost(_ error: any Error) -> Cancellation {
            let reason =
                switch error {
                case MessagesError.denied: "permission_denied"
                case TreeError.tooBig, MessagesError.listenersTooBig: "too_big"
                default: "unavailable"
                }
            return Cancellation(reason: reason, error: error)
        }

        static let expired = Cancellation(
            reason: "token_expired", error: RPCError.unauthenticated(reason: "TOKEN_EXPIRED", "The token has ended"))

        static let revoked = Cancellation(
            reason: "token_revoked",
            error: RPCError.unauthenticated(reason: "TOKEN_EXPIRED", "The session of the token was ended"))

        static func dropped(_ database: DatabaseName) -> Cancellation {
            Cancellation(reason: "database_dropped", error: MessagesError.databaseNotFound(database))
        }
    }
}
