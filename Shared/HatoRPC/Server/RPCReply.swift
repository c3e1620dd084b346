public import HatoModel

/// Takes the response of one request: called once, from any thread.
///
/// Only the first call counts. When it is let go without one, the response is -32603, so that no peer waits for ever.
public struct RPCReply<Request: RPCRequest>: Sendable {
    let pending: PendingResponse

    /// Responds with a result.
    public func succeed(_ result: Request.Result) {
        pending.succeed { writer in result.write(into: &writer) }
    }

    /// Responds with a result that is already JSON text.
    public func succeed(encoded result: EncodedJSON) { pending.succeed(result) }

    /// For a read whose result outgrows `RPCContext.unreservedReadBytesMax`, or `ReadReservation.resultBytesMax`: what
    /// it has made is to be dropped, and `again` makes it anew, from the same snapshot, when more memory is reserved.
    /// Reads of different clients take turns. Never called when the connection closes first.
    ///
    /// `again` is called on an event loop, keeps the reservation until it has responded, and calls its `readEnded`
    /// then.
    ///
    /// - Parameter needsLargest: whether the memory of the largest response is reserved at once, for a read that takes
    ///   long: those with less wait for short ones only.
    public func readAgain(needsLargest: Bool = false, _ again: @escaping @Sendable (ReadReservation) -> Void) {
        pending.readAgain(needsLargest: needsLargest, again)
    }

    /// Responds with an error: `RPCError`, `RPCErrorConvertible`, or anything else, which is logged and becomes -32603.
    /// One about a parameter shows what would be right.
    public func fail(_ error: any Error) { pending.fail(Request.showingWhatIsRight(error)) }
}
