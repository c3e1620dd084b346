/// What the parts of one connection share: its peer, its loop, and the machine that decides for all of them.
///
/// Each part reports to the machine what happened, and does what it returns. The parts reach the handler, where
/// everything that follows is looked at, through `connection.handler`. All of it is touched on the event loop only.
final class ConnectionState {
    let connection: RPCConnection
    let hub: LoopHub
    let server: ServerState
    var machine: ConnectionStateMachine
    /// Whether the peer has shown a valid credential.
    var hasShownCredential = false

    init(_ connection: RPCConnection, _ hub: LoopHub) {
        self.connection = connection
        self.hub = hub
        server = hub.server
        machine = ConnectionStateMachine(.init(hub.server.limits))
    }
}

extension ConnectionStateMachine.Limits {
    init(_ limits: RPCLimits) {
        self.init(
            requestsInFlightMax: limits.requestsInFlightMax, bytesInFlightMax: limits.connectionBytesInFlightMax,
            readsInFlightMax: limits.readsInFlightMax, readBytes: limits.unreservedReadBytesMax,
            unsentResponseBytesMax: limits.unsentResponseBytesMax, responseBytesMax: limits.responseBytesMax)
    }
}
