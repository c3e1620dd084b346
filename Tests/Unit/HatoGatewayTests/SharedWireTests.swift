import HatoModel
import Testing

@testable import HatoGateway

/// What the end of a shared connection says of calls without a response.
@Suite struct SharedWireTests {
    /// The service may have carried out such a call: it must not be taken for one that was refused.
    @Test(arguments: ["line_stalled", "peer_stalled"])
    func aRefusalOfAnOpenConnectionSaysNothingOfItsCalls(reason: String) {
        let error = RPCError.resourceExhausted(reason: reason, "too slow", retryAfterMs: 1_000).ofOpenConnection
        #expect(error.code == .unavailable && error.reason == "connection_lost" && !error.isRetryable)
        #expect(error.message.contains("too slow"))
    }

    @Test func anOutageKeepsItsReason() {
        let error = RPCError.unavailable(reason: "stopping", "the service stops")
        #expect(error.ofOpenConnection == error)
    }
}
