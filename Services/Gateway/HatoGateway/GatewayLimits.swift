public import HatoFirebase
public import HatoModel

/// What clients may make a gateway hold, and its times.
///
/// Each is a setting. Constants where they are used are numbers of a protocol that clients know, such as the pieces of
/// a message, parts of a limit, such as that of a site, and those that only pace the log and the gateway's own looks.
public struct GatewayLimits: Limits {
    /// Connections to messages, and to the notifier, that the calls of single requests share, for each event loop.
    public var sharedWiresMax = 4
    /// The same for calls with much to send.
    public var largeCallWiresMax = 2
    /// Bytes of the params of such a call, at least.
    public var largeCallBytesMin = 256 << 10
    /// Milliseconds after which the oldest call of such a connection keeps others off it while another one is free.
    public var slowCallMs = 50
    /// Bytes of calls that wait for services, for each event loop: half of them for messages, a quarter each for auth
    /// and the notifier.
    public var callBytesMax = 128 << 20
    /// Bytes of requests and messages that are not complete, for each event loop.
    public var heldBytesMax = 256 << 20
    /// The part of them that clients of one address take.
    public var heldBytesPerAddressMax = 64 << 20
    /// Bytes of responses and messages that clients have not taken, of all event loops together.
    public var untakenBytesMax = 256 << 20
    /// The part of them of clients of one address.
    public var untakenBytesPerAddressMax = 64 << 20
    /// Milliseconds for which a peer may take nothing while its address has left too much untaken.
    public var stalledPeerMsMax = 1_000
    /// Milliseconds over which such a peer must take `stalledPeerBytesPerSecond` on average.
    public var untakenMsMax = 10_000
    /// Bytes that a peer takes in a second which is only slow.
    public var stalledPeerBytesPerSecond = 32 << 10
    /// Milliseconds in which such a peer must take all it has, at its rate over `untakenMsMax`.
    public var untakenDrainMsMax = 30_000
    /// Milliseconds in which a call must have its response.
    public var callMsMax = 60_000
    /// Connections to auth, of all event loops together; at least one for each.
    public var authWiresMax = 32
    /// Milliseconds in which a call of auth must have its response; SDKs wait for 30 seconds.
    public var authCallMsMax = 25_000
    /// Milliseconds in which an import of accounts must have its response.
    public var importCallMsMax = 300_000
    /// Connections of clients.
    public var connectionsMax = 12_288
    /// Connections of one address, of IPv6 its /64; behind a trusted proxy, its requests under way.
    public var connectionsPerAddressMax = 2_048
    /// Requests of one address a second; 0: any number.
    public var requestsPerAddressSecondMax = 1_000
    /// Bytes of the head of a request.
    public var headBytesMax = 32 << 10
    /// Headers of a request.
    public var headersMax = 128
    /// Milliseconds in which a head must be complete.
    public var headMsMax = 10_000
    /// Milliseconds for which a body may bring nothing.
    public var bodyStallMs = 30_000
    /// Milliseconds in which a client must take a response that has an end, or what fills its WebSocket.
    public var responseMsMax = 600_000
    /// Milliseconds for which a connection may wait for its next request.
    public var idleMsMax = 60_000
    /// Milliseconds between two pings of a WebSocket.
    public var pingMs = 30_000
    /// Milliseconds without anything from a WebSocket after which its client has gone.
    public var silenceMsMax = 75_000
    /// Milliseconds in which a message that has begun on a WebSocket must be complete.
    public var messageMsMax = 300_000
    /// Bytes of the body of a message to devices.
    public var pushBodyBytesMax = 256 << 10
    /// Bytes of the body of a report of what a user did with one: anyone may send it.
    public var reportBodyBytesMax = 64 << 10
    /// Bytes of the body of a response from which it is compressed.
    public var compressedBytesMin = 1_024
    /// Bytes of the response to a read of a client that has not taken others; a larger one is dropped.
    public var stoppedResponseBytesMax = 64 << 10
    /// Milliseconds in which a service must take what the client of a native socket has sent before it closed.
    public var finishingMsMax = 30_000
    /// Milliseconds for which a client is read that has its last response or close frame: it would lose it otherwise.
    public var lingeringMsMax = 2_000
    /// Addresses with a count of their requests; twice as many are kept.
    public var countedAddressesMax = 32_768
    /// Polling sessions, for each event loop.
    public var pollSessionsMax = 8_192
    /// Polling sessions of one IP address, for each event loop.
    public var pollSessionsPerAddressMax = 512
    /// Bytes that the polling sessions of one IP address hold, for each event loop.
    public var pollBytesPerAddressMax = 64 << 20
    /// Of a polling session.
    public var polls = PollLimits()
    /// Of the REST interface.
    public var rest = RESTLimits()
    /// Of account operations.
    public var accounts = AccountLimits()
    /// Of a session.
    public var session = SessionLimits()

    /// The limits of a gateway that says nothing of them.
    public init() {}

    /// Bytes that a client must be able to hold: the longest message of a polling session, beside pieces of the next.
    /// With less, a write that is allowed would be refused for ever, and SDKs repeat it for ever.
    public static let heldBytesMin = PollLimits().messageBytesMax + 2 * PollLimits().segmentBytesMax

    /// Of `callBytesMax`, those of calls of messages: at least one call fits, or it could never be made.
    var messagesCallBytesMax: Int { max(callBytesMax / 2, session.callBytesMax) }
    /// The same of auth. An import is one call: whatever is escaped in it, it fits.
    var authCallBytesMax: Int {
        let body = max(accounts.importBytesMax, accounts.bodyBytesMax)
        return max(callBytesMax / 4, min(2 * body, session.callBytesMax))
    }

    public static let all: [Limit<GatewayLimits>] = main + ofDetails

    private static let main: [Limit<GatewayLimits>] = [
        Limit("connections-max", \.connectionsMax, 1...1_000_000, "connections of clients"),
        Limit(
            "connections-per-address-max", \.connectionsPerAddressMax, 1...1_000_000,
            "connections of one address, of IPv6 its /64, or its requests and sockets under way behind a trusted "
                + "proxy, and four times as many of a /48; requests beyond get 429, those of accounts 503; clients on "
                + "this machine without a trusted proxy are not counted"),
        Limit(
            "requests-per-address-second-max", \.requestsPerAddressSecondMax, 0...1_000_000,
            "requests of one address a second, of IPv6 its /64, four times as many of a /48, and at once those of ten "
                + "seconds; more get 429, those "
                + "of accounts 503; 0: any number, as for clients on this machine without a trusted proxy"),
        Limit(
            "shared-wires-max", \.sharedWiresMax, 1...64,
            "connections to messages, and to the notifier, that single requests share, for each event loop"),
        Limit(
            "large-call-wires-max", \.largeCallWiresMax, 1...64,
            "connections to messages for single requests with much to send, for each event loop"),
        Limit(
            "large-call-bytes-min", \.largeCallBytesMin, 1_024...1 << 30,
            "bytes of a request to messages beyond which it takes one of these connections"),
        Limit(
            "slow-call-ms", \.slowCallMs, 1...60_000,
            "milliseconds after which an open call keeps others off its connection while another one is free"),
        Limit(
            "call-bytes-max", \.callBytesMax, 1 << 20...1 << 36,
            "bytes of calls that wait, for each event loop: half of them for messages, a quarter each for auth and the "
                + "notifier; further ones are refused"),
        Limit(
            "held-bytes-max", \.heldBytesMax, 1 << 20...1 << 36,
            "bytes of requests and messages that are not complete, for each event loop; further ones are refused"),
        Limit(
            "held-bytes-per-address-max", \.heldBytesPerAddressMax, 1 << 20...1 << 36,
            "the part of them that one address takes, of IPv6 its /64, and four times as much a /48"),
        Limit(
            "untaken-bytes-max", \.untakenBytesMax, 1 << 20...1 << 36,
            "bytes that clients have not taken, of all event loops together; with more, the addresses with most get "
                + "nothing from services, of IPv6 those of a /48 together"),
        Limit(
            "untaken-bytes-per-address-max", \.untakenBytesPerAddressMax, 1 << 18...1 << 36,
            "the part of them of one address, of IPv6 its /64, and four times as much of a /48, beyond which it gets "
                + "nothing from services"),
        Limit(
            "stalled-peer-ms-max", \.stalledPeerMsMax, 1...3_600_000,
            "milliseconds without any progress after which such an address loses connections, those with the most "
                + "bytes first"),
        Limit(
            "untaken-ms-max", \.untakenMsMax, 1...3_600_000,
            "milliseconds after which it also loses connections that take too little"),
        Limit(
            "stalled-peer-bytes-per-second", \.stalledPeerBytesPerSecond, 1...1 << 30,
            "bytes that a connection takes in a second, on average over that time, that is only slow"),
        Limit(
            "untaken-drain-ms-max", \.untakenDrainMsMax, 1...86_400_000,
            "milliseconds in which such a connection must take all it has, at its average rate over that time"),
        Limit("call-ms-max", \.callMsMax, 1...3_600_000, "milliseconds in which a call must have its response"),
        Limit(
            "auth-wires-max", \.authWiresMax, 1...4_096,
            "connections to auth, of all event loops together, at least one for each; a quarter is for new passwords "
                + "and imports"),
        Limit(
            "auth-call-ms-max", \.authCallMsMax, 1...3_600_000,
            "milliseconds in which a call of auth must have its response; SDKs wait for 30,000"),
        Limit(
            "import-call-ms-max", \.importCallMsMax, 1...3_600_000,
            "milliseconds in which an import of accounts must have its response"),
        Limit(
            "account-body-bytes-max", \.accounts.bodyBytesMax, 1_024...1 << 24,
            "bytes of the body of an account operation"),
        Limit(
            "import-body-bytes-max", \.accounts.importBytesMax, 1_024...1 << 30,
            "bytes of the body of an import of accounts"),
        Limit("head-bytes-max", \.headBytesMax, 1_024...1 << 20, "bytes of the head of a request"),
        Limit("head-ms-max", \.headMsMax, 1...3_600_000, "milliseconds in which the head of a request must be there"),
        Limit("body-stall-ms", \.bodyStallMs, 1...3_600_000, "milliseconds for which a body may bring nothing"),
        Limit(
            "response-ms-max", \.responseMsMax, 1...86_400_000,
            "milliseconds in which a client must take a response that has an end, or what fills its WebSocket"),
        Limit("idle-ms-max", \.idleMsMax, 1...86_400_000, "milliseconds between two requests of a connection"),
        Limit("ping-ms", \.pingMs, 1...3_600_000, "milliseconds between two pings of a WebSocket"),
        Limit(
            "silence-ms-max", \.silenceMsMax, 1...86_400_000,
            "milliseconds without anything from a WebSocket after which its client has gone"),
        Limit(
            "message-ms-max", \.messageMsMax, 1...86_400_000,
            "milliseconds in which a message that has begun on a WebSocket must be complete"),
        Limit("poll-sessions-max", \.pollSessionsMax, 1...1_000_000, "polling sessions, for each event loop"),
        Limit(
            "poll-sessions-per-address-max", \.pollSessionsPerAddressMax, 1...1_000_000,
            "polling sessions of one address, of IPv6 its /64, and four times as many of a /48, for each event loop"),
        Limit(
            "poll-bytes-per-address-max", \.pollBytesPerAddressMax, 1 << 16...1 << 36,
            "bytes that the polling sessions of one IP address hold, for each event loop; a session beyond is closed"),
        Limit(
            "poll-ms-max", \.polls.pollMsMax, 1...600_000, "milliseconds for which a poll waits for something to say"),
        Limit(
            "poll-idle-ms-max", \.polls.idleMsMax, 1...3_600_000,
            "milliseconds without a poll after which a polling session has ended"),
        Limit(
            "poll-response-bytes-max", \.polls.responseBytesMax, 1_024...1 << 30,
            "bytes of messages in the response to a poll; a larger message is in one of its own"),
        Limit(
            "poll-unfetched-bytes-max", \.polls.unfetchedBytesMax, 1_024...1 << 30,
            "bytes that the client of a polling session has not taken, above which messages merges what follows"),
        Limit(
            "segments-waiting-max", \.polls.segmentsWaitingMax, 1...1_000_000,
            "how far a segment of a polling session may be ahead of the next one"),
        Limit(
            "segment-bytes-max", \.polls.segmentBytesMax, 4_096...1 << 30,
            "bytes of segments, and of messages, of a polling session that wait for earlier ones"),
        Limit(
            "switch-bytes-max", \.polls.switchBytesMax, 1_024...1 << 30,
            "bytes on the socket of a session that began with polls, above which it is not read"),
        Limit("body-bytes-max", \.rest.bodyBytesMax, 1_024...1 << 30, "bytes of the body of a request"),
        Limit(
            "push-body-bytes-max", \.pushBodyBytesMax, 1_024...16 << 20,
            "bytes of the body of a message to devices"),
        Limit(
            "report-body-bytes-max", \.reportBodyBytesMax, 1_024...1 << 20,
            "bytes of the body of a report of what a user did with a message"),
        Limit(
            "keep-alive-ms", \.rest.keepAliveMs, 1...3_600_000,
            "milliseconds between two keep-alives of an event stream"),
        Limit("listens-max", \.session.listensMax, 1...10_000_000, "listens of one session"),
        Limit(
            "requests-in-flight-max", \.session.requestsInFlightMax, 1...1_000_000,
            "requests of one session without a response, above which it is not read"),
        Limit(
            "wire-ms-max", \.session.wireMsMax, 1...600_000,
            "milliseconds in which the connection of a session to messages must stand"),
        Limit("index-ms-max", \.session.indexMsMax, 1...600_000, "milliseconds for which a query waits for its index"),
    ]
}
