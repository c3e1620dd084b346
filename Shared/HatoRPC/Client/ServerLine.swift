import HatoModel

/// What a line from a server says.
enum ServerLine {
    /// The response of call `id`: the text of its result.
    case result(id: UInt64, [UInt8])
    case error(id: UInt64?, RPCError)
    case notification(RPCEvent)

    static func read(_ line: Span<UInt8>, nestingMax: Int) throws(JSONError) -> ServerLine {
        var scanner = JSONScanner(depth: nestingMax)
        var id: UInt64?
        var method: String?
        var params = JSONObject()
        var result: Range<Int>?
        var error: RPCError?
        var cursor = try scanner.beginObject(line)
        while let name = try scanner.nextMember(line, &cursor) {
            switch name {
            case "id": id = number(line.extracting(try scanner.skip(line)))
            case "result": result = try scanner.skip(line)
            case "error":
                error = RPCError(json: try scanner.value(line)) ?? RPCError.badResponse("an error without a code")
            case "method": method = try scanner.string(line)
            case "params":
                if try scanner.kind(line) == .object {
                    params = try scanner.object(line)
                } else {
                    _ = try scanner.skip(line)
                }
            default: _ = try scanner.skip(line)
            }
        }
        try scanner.end(line)
        if let error { return .error(id: id, error) }
        if let id, let result {
            return .result(id: id, line.extracting(result).withUnsafeBufferPointer { Array($0) })
        }
        if let method, id == nil {
            return .notification(RPCEvent(method: method, params: params, byteCount: line.count))
        }
        return .error(id: id, RPCError.badResponse("neither result nor error"))
    }

    /// The id of a response whose line has only begun to come; nil when it does not stand at the beginning.
    static func id(ofBeginning line: Span<UInt8>) -> UInt64? {
        var scanner = JSONScanner()
        guard var cursor = try? scanner.beginObject(line) else { return nil }
        while let name = try? scanner.nextMember(line, &cursor), name == "id" || name == "jsonrpc" {
            guard let value = try? scanner.skip(line) else { return nil }
            if name == "id" { return number(line.extracting(value)) }
        }
        return nil
    }

    private static func number(_ text: Span<UInt8>) -> UInt64? {
        guard text.count > 0, text.count < 20 else { return nil }
        var value: UInt64 = 0
        for index in text.indices {
            guard text[index] >= UInt8(ascii: "0"), text[index] <= UInt8(ascii: "9") else { return nil }
            value = value &* 10 &+ UInt64(text[index] - UInt8(ascii: "0"))
        }
        return value
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
}
