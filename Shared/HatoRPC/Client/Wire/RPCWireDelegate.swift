package import HatoModel
package import NIOCore

/// Gets what comes over wires, on their event loop and in exactly the order it came. None of these methods is called
/// inside a call of a method of the wire.
///
/// The texts are slices of what was read: one that is kept for long keeps the read it came with, of 64 KiB or of one
/// long line.
package protocol RPCWireDelegate: AnyObject {
    /// The connection stands, the handshake of TLS is done. What was sent before goes out now.
    func wireConnected(_ wire: RPCWire)
    /// The response to a request that has none yet.
    func wire(_ wire: RPCWire, received response: RPCWireResponse)
    /// A notification to a subscription.
    func wire(_ wire: RPCWire, received notification: RPCWireNotification)
    /// All that has come so far is delivered, or the wire was paused: the moment to pass on what was gathered.
    func wireDelivered(_ wire: RPCWire)
    /// The wire was not writable and is again.
    func wireBecameWritable(_ wire: RPCWire)
    /// The end, once, and the last call. `unanswered` are the ids of the requests without a response, in the order they
    /// were sent.
    func wireEnded(_ wire: RPCWire, _ end: RPCWireEnd, unanswered: [UInt64])
}

/// The response to a request.
package struct RPCWireResponse {
    /// What the service says of the request.
    package enum Outcome {
        /// The text of the result: one JSON value.
        case result(ByteBuffer)
        /// The error, and its text: an object.
        case error(RPCError, ByteBuffer)
    }

    /// Of the request.
    package var id: UInt64
    /// What the service says of it.
    package var outcome: Outcome
}

/// A notification to a subscription.
package struct RPCWireNotification {
    /// A member of the params.
    package struct Member {
        /// The name of the member.
        package var name: String
        /// The text of the value: one JSON value.
        package var text: ByteBuffer
    }

    /// The name of the notification.
    package var method: String
    /// The name of the subscription on its wire.
    package var subscription: String
    /// The other members of the params, in their order.
    package var members: [Member]

    /// The text of a member; nil where it is absent.
    package subscript(name: String) -> ByteBuffer? { members.first { $0.name == name }?.text }
}
