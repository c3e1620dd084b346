/// What one client may make a session hold. Writes on disconnect are held, and limited, by the service messages.
public struct SessionLimits: Sendable, Hashable {
    /// Bytes of the params of one native call: a line of 16 MiB without its envelope. A larger one is refused as
    /// `write_too_big`.
    public var callBytesMax = (16 << 20) - 1_024
    /// Requests without a response, above which the session wants no further messages (`wantsInput`); with twice as
    /// many it closes.
    public var requestsInFlightMax = 1_024
    /// Bytes of params of these requests, above which the session wants no further messages.
    public var requestBytesInFlightMax = 32 << 20
    /// Bytes of responses that wait for the response of an earlier request; with more the session closes.
    public var heldResponseBytesMax = 32 << 20
    /// Listens of one session.
    public var listensMax = 10_000
    /// Bytes of their paths and queries.
    public var listenBytesMax = 8 << 20
    /// Bytes of one query.
    public var queryBytesMax = 64 << 10
    /// Bytes of one credential.
    public var credentialBytesMax = 16 << 10
    /// Milliseconds in which the connection to messages must stand.
    public var wireMsMax = 10_000
    /// Milliseconds for which a read waits for an index that is being built.
    public var indexMsMax = 10_000
    /// Milliseconds between two tries of such a read.
    public var indexRetryMs = 250
    /// Milliseconds in which a client must close after the end of its token.
    public var authEndMsMax = 10_000

    public init() {}
}
