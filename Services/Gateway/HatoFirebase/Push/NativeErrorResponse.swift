import HatoModel

/// Errors of a service as HTTP responses: `{"error": {"code", "message", "data"}}` as over JSON-RPC.
enum NativeErrorResponse {
    static func failure(_ error: RPCError) -> RESTAnswer {
        // What the gateway's own connection says is not for clients.
        let isOwn = ["cannot_connect", "connection_lost", "forward_refused"].contains(error.reason)
        let message = isOwn ? "The service cannot be reached now" : error.message
        let body: JSONObject = [
            "code": .number(Double(error.code.rawValue)), "message": .string(message),
            "data": .object(error.data),
        ]
        return RESTAnswer(
            status: status(error.code), headers: RetryAfter.header(RetryAfter.seconds(error)),
            body: JSONValue.object(["error": .object(body)]).encoded)
    }

    private static func status(_ code: RPCError.Code) -> Int {
        switch code {
        case .parseError, .invalidRequest, .invalidParams, .invalidArgument: 400
        case .unauthenticated: 401
        case .permissionDenied: 403
        case .notFound: 404
        case .alreadyExists, .failedPrecondition: 409
        case .resourceExhausted: 429
        case .methodNotFound: 501
        case .unavailable: 503
        default: 500
        }
    }
}
