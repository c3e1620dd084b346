import NIOCore
import NIOHTTP1

/// What a native socket has carried, for its line in the access log and for metrics. On its event loop.
struct NativeTraffic {
    /// Nil: it has ended.
    private var record: RequestRecord?
    private var counts = RequestRecord.Messages()
    private let metrics: GatewayMetrics
    private let service: String

    /// - Parameters:
    ///   - head: the request for the socket.
    ///   - address: the IP address of the client.
    init(_ head: HTTPRequestHead, from address: String, to service: String, _ metrics: GatewayMetrics) {
        var record = RequestRecord(head, from: address, .native)
        record.status = HTTPResponseStatus.switchingProtocols.code
        (self.record, self.service, self.metrics) = (record, service, metrics)
        metrics.nativeSocketsChanged(service, by: 1)
    }

    /// The client has sent a message.
    mutating func received(_ bytes: Int) {
        (counts.received, counts.receivedBytes) = (counts.received &+ 1, counts.receivedBytes &+ bytes)
        metrics.nativeMessage(service, isOfClient: true)
    }

    /// The client is sent a message.
    mutating func sent(_ bytes: Int) {
        (counts.sent, counts.sentBytes) = (counts.sent &+ 1, counts.sentBytes &+ bytes)
        metrics.nativeMessage(service, isOfClient: false)
    }

    /// Returns what is logged of the socket; nil when that was returned before.
    ///
    /// - Parameter reason: why it has ended.
    mutating func ended(_ reason: String) -> RequestRecord? {
        guard var record else { return nil }
        self.record = nil
        metrics.nativeSocketsChanged(service, by: -1)
        counts.end = reason
        record.bytes = counts.sentBytes
        record.messages = counts
        return record
    }
}
