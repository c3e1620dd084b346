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
            "longest line before a credential was shown"),
        Limit("credential-bytes-max", \.credentialBytesMax, bufferBytes, "longest credential in auth, in bytes"),
        Limit("nesting-max", \.nestingMax, 1...512, "arrays and objects inside each other"),
        Limit("batch-entries-max", \.batchEntriesMax, counts, "entries of one batch"),
        Limit(
            "requests-in-flight-max", \.requestsInFlightMax, counts, "requests of one connection worked on at a time"),
        Limit("reads-in-flight-max", \.readsInFlightMax, counts, "those among them that read"),
        Limit(
            "unreserved-read-bytes-max", \.unreservedReadBytesMax, bufferBytes,
            "what a read may take without waiting for memory, in bytes"),
        Limit("large-reads-running-max", \.largeReadsRunningMax, counts, "reads beyond that which run at a time"),
        Limit(
            "connection-bytes-in-flight-max", \.connectionBytesInFlightMax, bytes,
            "bytes of unanswered requests of one connection"),
        Limit(
            "process-bytes-in-flight-max", \.processBytesInFlightMax, bytes, "the same over all connections"),
        Limit(
            "client-bytes-in-flight-max", \.clientBytesInFlightMax, bytes,
            "what one user, or one address that is not signed in, holds of it"),
        Limit(
            "process-event-bytes-max", \.processEventBytesMax, bytes,
            "events that peers have not received, in bytes; at most half of process-bytes-in-flight-max"),
        Limit("response-bytes-max", \.responseBytesMax, bufferBytes, "largest response, in bytes"),
        Limit(
            "unsent-response-bytes-max", \.unsentResponseBytesMax, bufferBytes,
            "responses not taken by a peer, in bytes"
        ),
        Limit(
            "unsent-notification-bytes-max", \.unsentNotificationBytesMax, bufferBytes,
            "notifications a peer has not taken, in bytes"),
        Limit("connections-max", \.connectionsMax, counts, "connections in all"),
        Limit(
            "connections-without-credential-percent-max", \.connectionsWithoutCredentialPercentMax, 1...100,
            "percent of connections-max that connections without a credential hold; beyond, the longest silent one "
                + "is closed for a new one"),
        Limit(
            "connections-per-address-max", \.connectionsPerAddressMax, counts,
            "connections from one address, of IPv6 its /64"),
        Limit(
            "connections-per-user-max", \.connectionsPerUserMax, counts,
            "connections of one user that are never closed for another; further ones count as those without a credential"
        ),
        Limit("idle-seconds-max", \.idleSecondsMax, seconds, "seconds without traffic before a connection is closed"),
        Limit("handshake-seconds-max", \.handshakeSecondsMax, seconds, "seconds a TLS handshake may take"),
        Limit(
            "stalled-line-seconds-max", \.stalledLineSecondsMax, seconds,
            "seconds after which a long line that hardly grows is cut off, when others wait for memory"),
        Limit(
            "stalled-line-bytes-per-second", \.stalledLineBytesPerSecond, counts, "how much such a line has to grow"),
        Limit(
            "awaited-line-seconds-max", \.awaitedLineSecondsMax, seconds,
            "seconds in which the memory reserved for such a line has to fill"),
        Limit(
            "stalled-peer-seconds-max", \.stalledPeerSecondsMax, seconds,
            "seconds after which a peer that hardly takes its responses is cut off, when others wait for memory"),
        Limit(
            "stalled-peer-bytes-per-second", \.stalledPeerBytesPerSecond, counts, "how much such a peer has to take"),
        Limit(
            "awaited-read-seconds-max", \.awaitedReadSecondsMax, seconds,
            "seconds in which a peer has to take large results, when others wait for the memory of large reads"),
        Limit(
            "parked-read-seconds-max", \.parkedReadSecondsMax, seconds,
            "seconds after which such a peer is cut off when large reads of its own wait for it"),
        Limit(
            "awaited-event-seconds-max", \.awaitedEventSecondsMax, seconds,
            "seconds in which a peer has to take the events it holds, when others wait for the memory of events"),
        Limit(
            "socket-unsent-bytes-max", \.socketUnsentBytesMax, socketBytes,
            "output that the system keeps for one peer beside what is on its way to it, in bytes"),
        Limit(
            "socket-received-bytes-max", \.socketReceivedBytesMax, socketBytes,
            "input of one connection that the system keeps, in bytes"),
        Limit(
            "keep-alive-idle-seconds", \.keepAliveIdleSeconds, keepAliveSeconds,
            "seconds of silence before TCP asks the peer"),
        Limit(
            "keep-alive-interval-seconds", \.keepAliveIntervalSeconds, keepAliveSeconds,
            "seconds between TCP's questions"),
        Limit("keep-alive-probes", \.keepAliveProbes, 1...127, "probes without a response that end a connection"),
    ]
}
