import HatoModel
import Logging
import Synchronization

/// What the order of a connection needs to know of a request that is being worked on.
struct RequestTicket: Hashable, Sendable {
    /// Its slot in the order of responses; all entries of a batch share one.
    var sequence: UInt64
    /// Its place in its batch; nil outside one.
    var entry: Int?
    var isSlow: Bool
    /// Whether later requests wait for its response.
    var isBarrier: Bool
    /// Whether it counts against the reads in flight.
    var isRead: Bool
    /// What it counts against the bytes in flight.
    var byteCount: Int
}

/// A request that waits for its response; made when it is read, completed once, from any thread.
///
/// The response is written where it is given: only bytes travel to the event loop.
final class PendingResponse: Sendable {
    let connection: RPCConnection
    let ticket: RequestTicket
    /// Nil for a notification, which has no response, whatever happens.
    let id: String?
    let method: String
    private let isCompleted = Atomic(false)

    init(connection: RPCConnection, ticket: RequestTicket, id: String?, method: String) {
        self.connection = connection
        self.ticket = ticket
        self.id = id
        self.method = method
    }

    deinit {
        // The response of a connection that has closed reaches no peer.
        guard !isCompleted.load(ordering: .relaxed), !connection.isClosed else { return }
        connection.hub.server.notices.notice(
            .unansweredRequest, "a request was let go without a response", ["method": "\(method)"], level: .error)
        connection.respond(ticket, id.map { Response.bytes(id: $0, error: .internalError) }, isError: true)
    }

    func succeed(_ write: (inout JSONWriter) throws -> Void) {
        // Of a connection that has closed it would reach no peer.
        guard let id, !connection.isClosed else { return finish(nil) }
        do {
            let bytes = try Response.bytes(id: id, write)
            let limit = connection.hub.server.limits.responseBytesMax
            guard bytes.count <= limit else { return fail(RPCError.tooBig(limit)) }
            finish(bytes)
        } catch {
            fail(error)
        }
    }

    func succeed(_ result: EncodedJSON) {
        succeed { writer in writer.write(encoded: result.bytes) }
    }

    /// Runs `again` when the memory of a larger read is reserved; never when the connection closes first.
    func readAgain(needsLargest: Bool, _ rerun: @escaping @Sendable (ReadReservation) -> Void) {
        connection.hub.post(.run(connection) { $0.readOutgrew(self, needsLargest: needsLargest, rerun) })
    }

    func fail(_ error: any Error) {
        if !(error is any RPCErrorConvertible) {
            connection.hub.server.notices.notice(
                .failedRequest, "a method failed with an error that it does not translate",
                ["method": "\(method)", "error": "\(String(reflecting: error))"], level: .error)
        }
        finish(id.map { refusal(RPCError(error), id: $0) }, isError: true)
    }

    /// What an error carries (the value that a condition missed, a name that is not known) may be too big to send; then
    /// it is left out.
    private func refusal(_ error: RPCError, id: String) -> [UInt8] {
        let bytes = Response.bytes(id: id, error: error)
        guard bytes.count > connection.hub.server.limits.responseBytesMax else { return bytes }
        var bare = error
        bare.message = String(error.message.prefix(1_000))
        bare.data = [:]
        for name in ["reason", "retryable"] { bare.data[name] = error.data[name] }
        return Response.bytes(id: id, error: bare)
    }

    private func finish(_ response: [UInt8]?, isError: Bool = false) {
        let isFirst = isCompleted.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
        if isFirst { connection.respond(ticket, response, isError: isError) }
    }
}

/// Writes response objects, without the line end.
enum Response {
    static func bytes(id: String, _ writeResult: (inout JSONWriter) throws -> Void) rethrows -> [UInt8] {
        var writer = opening(id: id)
        writer.appendRaw(",\"result\":")
        try writeResult(&writer)
        writer.appendRaw(UInt8(ascii: "}"))
        return writer.bytes
    }

    static func bytes(id: String, error: RPCError) -> [UInt8] {
        var writer = opening(id: id)
        writer.appendRaw(",\"error\":")
        error.write(into: &writer)
        writer.appendRaw(UInt8(ascii: "}"))
        return writer.bytes
    }

    private static let beginning = Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8)

    /// Where the id stands in every response.
    static var idOffset: Int { beginning.count }

    private static func opening(id: String) -> JSONWriter {
        var writer = JSONWriter(capacity: 160)
        writer.appendRaw(beginning)
        writer.appendRaw(id)
        return writer
    }
}
