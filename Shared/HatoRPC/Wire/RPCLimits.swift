public import HatoModel

/// Every limit of the wire, by name (protocol §1); a service makes each a setting.
public struct RPCLimits: Limits, Hashable {
    /// One line, without its end. Longer: -32600 `line_too_long`, then the connection closes.
    public var lineBytesMax = 16 << 20
    /// A credential in `auth`; a longer one is refused before it is looked up or hashed.
    public var credentialBytesMax = 16 << 10
    /// One line as long as its connection has not shown a valid credential.
    public var unauthenticatedLineBytesMax = 64 << 10
    /// Arrays and objects inside each other, the envelope included.
    public var nestingMax = 64
    /// Entries of one batch.
    public var batchEntriesMax = 1_000
    /// Requests of one connection that are being worked on; above, the server stops reading from it.
    public var requestsInFlightMax = 1_024
    /// Those among them that read; above, the connection's next request waits.
    public var readsInFlightMax = 16
    /// What a read may take without waiting for memory. One that outgrows it begins again when 16 times as much is
    /// reserved for it, and one that outgrows that when `responseBytesMax` is, in turn with those of other clients.
    public var unreservedReadBytesMax = 64 << 10
    /// Reads with a reservation of either size that run at a time; together fewer than a service has threads that read.
    public var largeReadsRunningMax = 1
    /// Bytes of requests of one connection that have not ended; above, the server stops reading from it.
    public var connectionBytesInFlightMax = 32 << 20
    /// The same over all connections, with the responses that peers have not taken yet.
    public var processBytesInFlightMax = 512 << 20
    /// What events that connections share take of it, while peers have not taken them; above, listeners are behind. At
    /// most half of `processBytesInFlightMax`, so that requests fit in beside peers that do not read.
    public var processEventBytesMax = 256 << 20
    /// What the values of one line take; more is refused (`too_many_values`).
    var requestMemoryBytesMax: Int { processBytesInFlightMax / 2 }
    /// Lines up to this do not wait for the memory that longer ones hold: 1 MiB with the read that brings their end.
    var mediumLineBytesMax: Int { max(0, min(1 << 20, processBytesInFlightMax / 64) - LineIntake.readBytesMax) }
    /// What one client holds of it (a signed-in user, else an address, of IPv6 its first 64 bits); above, its long
    /// lines are read one at a time. Less when little is free: no client may hold more than what stays for others.
    public var clientBytesInFlightMax = 128 << 20
    /// One response; larger ones become resource_exhausted `too_big`.
    public var responseBytesMax = 16 << 20
    /// Responses that one peer has not taken yet, or that wait for an earlier one; above, its next requests wait.
    public var unsentResponseBytesMax = 1 << 20
    /// Notifications that one peer has not taken yet; above, `RPCConnection.notify` returns false. With what else a
    /// connection takes, a peer that never reads costs less than 1,000 KiB.
    public var unsentNotificationBytesMax = 936 << 10
    /// Notifications that an event loop sends before it reads from its sockets again and responds; a write to a socket
    /// counts as ten. So many take some milliseconds.
    public var notificationsPerTurnMax = 4_000
    /// Connections in all. Beyond, a connection that has not shown a credential is closed for a new one; where there is
    /// none, the new one is refused (`too_many_connections`).
    public var connectionsMax = 16_384
    /// Percent of `connectionsMax` that connections without a credential hold; beyond, the one among them that is
    /// silent for the longest time is closed for a new one.
    public var connectionsWithoutCredentialPercentMax = 90
    /// Connections from one address, of IPv6 its /64 (`ClientAddress`); further ones are refused
    /// (`too_many_connections_from_address`).
    public var connectionsPerAddressMax = 4_096
    /// Connections of one user that are never closed for another; further ones count as those without a credential.
    public var connectionsPerUserMax = 1_024
    /// Connections from one address whose peers have closed their direction and still have responses to come; the one
    /// that has waited for longest is closed for a further one.
    public var halfClosedConnectionsPerAddressMax = 64
    /// A connection whose peer has closed its direction is closed after this time, whatever responses are still to
    /// come: a peer that has gone looks the same.
    public var halfClosedSecondsMax = 30
    /// A connection without traffic and without holds (`RPCConnection.beginHold`) is closed after this time.
    public var idleSecondsMax = 600
    /// A TLS handshake that takes longer closes the connection.
    public var handshakeSecondsMax = 10
    /// While others wait for the memory that a line longer than one read holds, it must grow by
    /// `stalledLineBytesPerSecond` on average over this time; else resource_exhausted `line_stalled`, then the
    /// connection closes.
    public var stalledLineSecondsMax = 5
    /// Bytes a second that a line must grow by while others wait for its memory. The one line that goes on although
    /// nothing fits has to grow by eight times as much in each second but its first.
    public var stalledLineBytesPerSecond = 32 << 10
    /// Meanwhile it must also grow so fast that the memory that is reserved for it would fill in this time: the more a
    /// line holds, the faster it has to come.
    public var awaitedLineSecondsMax = 10
    /// While others wait for the memory that responses and notifications to a peer take, it must take
    /// `stalledPeerBytesPerSecond` on average over this time; else resource_exhausted `peer_stalled`, then the
    /// connection closes.
    public var stalledPeerSecondsMax = 10
    /// Bytes a second that a peer must take while others wait for the memory of what is sent to it.
    public var stalledPeerBytesPerSecond = 32 << 10
    /// While others wait for the memory of large reads, a peer must take the results of its own, to the last byte,
    /// within this time, and `stalledPeerBytesPerSecond` on average from the third second on; else it is cut off.
    public var awaitedReadSecondsMax = 20
    /// Seconds between two looks at what a peer has taken whose socket is full.
    var peerLookSeconds: Int { min(stalledPeerSecondsMax, max(1, awaitedReadSecondsMax / 20)) }
    /// A peer that takes less than `stalledPeerBytesPerSecond`, while large reads of its own wait for it to take the
    /// response before, is cut off after this time: a read that waits keeps its snapshot of the store.
    public var parkedReadSecondsMax = 60
    /// While others wait for the memory of events, a peer must take those that it holds, with their last byte, within
    /// this time; else resource_exhausted `peer_stalled`, then the connection closes.
    public var awaitedEventSecondsMax = 60
    /// Bytes of output that the system keeps for one peer beside what is on its way to it (TCP_NOTSENT_LOWAT). What it
    /// does not take stays in the output of the connection, which `processBytesInFlightMax` counts.
    public var socketUnsentBytesMax = 128 << 10
    /// Bytes of input that the system keeps for one connection (SO_RCVBUF); Linux adds as much for its own records. At
    /// most 32 KiB until the peer has shown a credential.
    public var socketReceivedBytesMax = 256 << 10
    /// TCP keep-alive: seconds of silence before the first probe, between probes, and probes without response.
    public var keepAliveIdleSeconds = 20
    /// Seconds of silence after which TCP asks whether the peer is there, and between two such probes.
    public var keepAliveIntervalSeconds = 10
    /// Probes without a response after which the connection is closed.
    public var keepAliveProbes = 4

    public init() {}
}
