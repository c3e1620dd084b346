public import HatoModel

extension RPCLimits {
    private static let bytes = 1...(1 << 40)
    /// The range for the size of one buffer.
    private static let bufferBytes = 1...(1 << 30)
    /// The range for a buffer of the operating system.
    private static let socketBytes = 4_096...(1 << 30)
    private static let counts = 1...1_000_000_000
    private static let seconds = 1...315_360_000
    /// The range that the operating system accepts for TCP keep-alive times and counts.
    private static let keepAliveSeconds = 1...32_767

    public static let all: [Limit<RPCLimits>] = [
        Limit("line-bytes-max", \.lineBytesMax, bufferBytes, "longest line, in bytes"),
        Limit(
            "unauthenticated-line-bytes-max", \.unauthenticatedLineBytesMax, bufferBytes,
            "longest line, in bytes, until the connection has shown a credential"),
        Limit(
            "credential-bytes-max", \.credentialBytesMax, bufferBytes,
            "longest credential in `auth`, in bytes; a longer one is refused before it is looked up"),
        Limit("nesting-max", \.nestingMax, 1...512, "depth of arrays and objects of a line"),
        Limit("batch-entries-max", \.batchEntriesMax, counts, "entries of one batch"),
        Limit(
            "requests-in-flight-max", \.requestsInFlightMax, counts, "requests of one connection worked on at a time"),
        Limit("reads-in-flight-max", \.readsInFlightMax, counts, "reads among them"),
        Limit(
            "unreserved-read-bytes-max", \.unreservedReadBytesMax, bufferBytes,
            "memory of a read that waits for no reservation, in bytes"),
        Limit(
            "large-reads-running-max", \.largeReadsRunningMax, counts,
            "reads with a reservation that run at a time, of each size"),
        Limit(
            "connection-bytes-in-flight-max", \.connectionBytesInFlightMax, bytes,
            "memory of the requests of one connection, in bytes; above, its next requests wait"),
        Limit(
            "process-bytes-in-flight-max", \.processBytesInFlightMax, bytes,
            "memory of lines, requests, running reads, and of responses and events that peers have not received, in bytes"
        ),
        Limit(
            "client-bytes-in-flight-max", \.clientBytesInFlightMax, bytes,
            "the part of it that one user or, without a signed-in user, one address holds"),
        Limit(
            "process-event-bytes-max", \.processEventBytesMax, bytes,
            "the part of it that events take until peers have received them, at most half of it"),
        Limit("response-bytes-max", \.responseBytesMax, bufferBytes, "largest response, in bytes"),
        Limit(
            "unsent-response-bytes-max", \.unsentResponseBytesMax, bufferBytes,
            "responses that one peer has not received, in bytes; above, its next requests wait"
        ),
        Limit(
            "unsent-notification-bytes-max", \.unsentNotificationBytesMax, bufferBytes,
            "notifications that one peer has not received, in bytes; above, its listeners fall behind"),
        Limit(
            "notifications-per-turn-max", \.notificationsPerTurnMax, counts,
            "notifications that a thread of connections sends before requests have their turn"),
        Limit(
            "connections-max", \.connectionsMax, counts,
            "connections; at the limit, a new one replaces the longest silent one without a credential, else the oldest one "
                + "of the user with the most, or is refused (too_many_connections)"),
        Limit(
            "connections-without-credential-percent-max", \.connectionsWithoutCredentialPercentMax, 1...100,
            "percent of connections-max for connections without a credential; at the limit, a new one replaces the "
                + "longest silent one"),
        Limit(
            "connections-per-address-max", \.connectionsPerAddressMax, counts,
            "connections of one address, of IPv6 its /64; more are refused (too_many_connections_from_address)"),
        Limit(
            "connections-per-user-max", \.connectionsPerUserMax, counts,
            "connections of one user with slots of their own; further ones count as connections without a credential, "
                + "and those of administrators do not count"
        ),
        Limit(
            "half-closed-connections-per-address-max", \.halfClosedConnectionsPerAddressMax, counts,
            "connections of one address whose peers have closed their direction before the last response; the oldest "
                + "is closed for a further one"),
        Limit(
            "half-closed-seconds-max", \.halfClosedSecondsMax, seconds,
            "seconds after which a connection is closed whose peer has closed its direction"),
        Limit(
            "idle-seconds-max", \.idleSecondsMax, seconds, "seconds without traffic after which a connection is closed"),
        Limit("handshake-seconds-max", \.handshakeSecondsMax, seconds, "seconds a TLS handshake may take"),
        Limit(
            "stalled-line-seconds-max", \.stalledLineSecondsMax, seconds,
            "seconds over which an unfinished line must grow, while others wait for memory"),
        Limit(
            "stalled-line-bytes-per-second", \.stalledLineBytesPerSecond, counts,
            "bytes by which such a line must grow in a second"),
        Limit(
            "awaited-line-seconds-max", \.awaitedLineSecondsMax, seconds,
            "seconds in which the memory reserved for such a line must fill"),
        Limit(
            "stalled-peer-seconds-max", \.stalledPeerSecondsMax, seconds,
            "seconds over which a peer must receive what is sent to it, while others wait for memory"),
        Limit(
            "stalled-peer-bytes-per-second", \.stalledPeerBytesPerSecond, counts,
            "bytes that such a peer must receive in a second"),
        Limit(
            "awaited-read-seconds-max", \.awaitedReadSecondsMax, seconds,
            "seconds in which a peer must receive large results, while others wait for the memory of large reads"),
        Limit(
            "parked-read-seconds-max", \.parkedReadSecondsMax, seconds,
            "seconds after which such a peer is disconnected when large reads of its own wait for it"),
        Limit(
            "awaited-event-seconds-max", \.awaitedEventSecondsMax, seconds,
            "seconds in which a peer must receive its events, while others wait for the memory of events"),
        Limit(
            "socket-unsent-bytes-max", \.socketUnsentBytesMax, socketBytes,
            "output of one connection that the system keeps and has not sent, in bytes"),
        Limit(
            "socket-received-bytes-max", \.socketReceivedBytesMax, socketBytes,
            "input of one connection that the system keeps, in bytes; at most 32 KiB before a credential is shown"),
        Limit(
            "keep-alive-idle-seconds", \.keepAliveIdleSeconds, keepAliveSeconds,
            "seconds of silence before the first TCP keep-alive probe"),
        Limit(
            "keep-alive-interval-seconds", \.keepAliveIntervalSeconds, keepAliveSeconds,
            "seconds between two TCP keep-alive probes"),
        Limit(
            "keep-alive-probes", \.keepAliveProbes, 1...127,
            "TCP keep-alive probes without a response after which a connection ends"),
    ]
}
