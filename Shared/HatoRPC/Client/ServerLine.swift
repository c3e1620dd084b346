import HatoModel

/// What a line from a server says.
enum ServerLine {
    /// The response of call `id`: the text of its result.
    case result(id: UInt64, [UInt8])
    case error(id: UInt64?, RPCError)
    case notification(RPCEvent)

    static func read(_ line: Span<UInt8>, nestingMax: Int) throws(JSONError) -> ServerLine {
        let envelope = try ServerEnvelope.read(line, nestingMax: nestingMax)
        let id = envelope.id.number
        if let error = envelope.error {
            var scanner = JSONScanner(at: error.lowerBound, depth: nestingMax)
            let read = RPCError(json: try scanner.value(line))
            return .error(id: id, read ?? RPCError.badResponse("an error without a code"))
        }
        if let id, let result = envelope.result {
            return .result(id: id, line.extracting(result).withUnsafeBufferPointer { Array($0) })
        }
        if let method = envelope.method, id == nil {
            var params = JSONObject()
            if let range = envelope.params {
                var scanner = JSONScanner(at: range.lowerBound, depth: nestingMax)
                params = try scanner.object(line)
            }
            return .notification(RPCEvent(method: method, params: params, byteCount: line.count))
        }
        return .error(id: id, RPCError.badResponse("neither result nor error"))
    }

    /// The id of a response whose line has only begun to come; nil when it does not stand at the beginning.
    static func id(ofBeginning line: Span<UInt8>) -> UInt64? {
        var scanner = JSONScanner()
        guard var cursor = try? scanner.beginObject(line) else { return nil }
        while let name = try? scanner.nextMember(line, &cursor), name == "id" || name == "jsonrpc" {
            guard let value = try? JSONSkipper.skip(line, &scanner) else { return nil }
            if name == "id" { return ServerEnvelope.number(line.extracting(value)) }
        }
        return nil
    }
}

extension RPCError {
    static func badResponse(_ what: String) -> RPCError {
        RPCError(
            .internalError, reason: "bad_answer", "The server sent a response that this client does not know: \(what)")
    }

    /// `why` is what ended it, where that is known.
    static func connectionLost(_ why: String?) -> RPCError {
        RPCError(
            .unavailable, reason: connectionLostReason,
            "The connection was lost\(why.map { " (\($0))" } ?? ""); whether the call was carried out is unknown")
    }

    static func responseTooBig(_ bytesMax: Int) -> RPCError {
        resourceExhausted(reason: "too_big", "The response is larger than the \(bytesMax) bytes that the call takes")
    }

    /// Never leaves this module: callers get `CancellationError`.
    static let abandoned = unavailable(reason: "abandoned", "The caller does not wait any more")

    static let clientClosed = unavailable(reason: "client_closed", "The client has been closed")

    private static let connectionLostReason = "connection_lost"
    private static let timedOutReason = "timeout"

    static let timedOut = RPCError(
        .unavailable, reason: timedOutReason, "No response in time; whether the call was carried out is unknown")

    /// The same of a call that may be made twice: retryable although it may have been carried out.
    var ofIdempotentCall: RPCError {
        guard let reason, [Self.connectionLostReason, Self.timedOutReason, Self.stoppingReason].contains(reason) else {
            return self
        }
        return RPCError.unavailable(reason: reason, message)
    }

    static let cannotConnectReason = "cannot_connect"

    static func cannotConnect(_ host: String, _ port: Int, _ reason: String) -> RPCError {
        unavailable(reason: cannotConnectReason, "No connection to \(host):\(port): \(reason)")
    }

    static func cannotConnect(_ reason: String) -> RPCError {
        unavailable(reason: cannotConnectReason, "No connection to the service: \(reason)")
    }
}
