/// What one client may make a polling session hold, and its times.
public struct PollLimits: Sendable, Hashable {
    /// How far a segment may be ahead of the next one.
    public var segmentsWaitingMax = 1_024
    /// Bytes of segments that wait for an earlier one.
    public var segmentBytesMax = 2 << 20
    /// Bytes of messages in one response; a larger message is in one of its own.
    public var responseBytesMax = 1 << 20
    /// Bytes of messages that no poll has fetched, above which the session should get no more (`wantsOutput`).
    public var unfetchedBytesMax = 1 << 20
    /// Milliseconds for which a poll waits for something to say.
    public var pollMsMax = 20_000
    /// Milliseconds without a poll after which the session has ended.
    public var idleMsMax = 60_000
    /// Bytes of messages on a socket that wait for the end of the polls, above which the socket is not read.
    public var switchBytesMax = 1 << 20
    /// Bytes of one message, of polls or of a socket; a larger one becomes `oversized`.
    public var messageBytesMax = 16 << 20

    public init() {}

    /// Bytes of messages that the session does not take yet, above which no further one may come.
    ///
    /// All that waited on a socket comes at once, behind a large message of the last poll.
    public var untakenBytesMax: Int { segmentBytesMax + switchedBytesMax(messageBytesMax) + messageBytesMax }

    /// Bytes of messages that may wait on a socket for the end of the polls: what is read until the socket is paused.
    func switchedBytesMax(_ messageBytesMax: Int) -> Int {
        switchBytesMax + 2 * (messageBytesMax + ReceivedMessage.besidesBytes)
    }
}
