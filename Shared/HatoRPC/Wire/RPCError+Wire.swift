public import HatoModel

/// The errors of JSON-RPC itself, with the specification's own messages; `data.detail` says more.
extension RPCError {
    static func parseError(_ error: JSONError) -> RPCError {
        RPCError(.parseError, reason: "parse_error", "Parse error", data: ["detail": .string(error.description)])
    }

    static func invalidRequest(_ detail: String, reason: String = "invalid_request") -> RPCError {
        RPCError(.invalidRequest, reason: reason, "Invalid Request", data: ["detail": .string(detail)])
    }

    static func methodNotFound(_ method: String) -> RPCError {
        RPCError(
            .methodNotFound, reason: "method_not_found", "Method not found",
            data: ["method": .string(method.shortened(to: 128))])
    }

    static let positionalParams = RPCError(
        .invalidParams, reason: "positional_params", "Invalid params: parameters are passed by name, in an object",
        data: ["parameter": "params"])

    static func lineTooLong(_ limit: Int) -> RPCError {
        invalidRequest("A line may have \(limit) bytes here", reason: "line_too_long")
    }

    static let tooManyConnections = resourceExhausted(
        reason: "too_many_connections",
        "The service has as many connections as it takes; try again later", retryAfterMs: 1_000)

    static let tooManyConnectionsFromAddress = resourceExhausted(
        reason: "too_many_connections_from_address",
        "The service has as many connections from this address as it takes; close some, or use one for several calls",
        retryAfterMs: 1_000)

    static let tooManyForwardingConnections = resourceExhausted(
        reason: "too_many_forwarding_connections",
        "The service has as many connections that forward as it takes; close some, use one for several clients, or try "
            + "again later", retryAfterMs: 1_000)

    static let closedForAnotherConnection = resourceExhausted(
        reason: "too_many_connections",
        "Closed for a new connection: of those without a credential, and of those that one user has too many of, it was "
            + "silent for the longest time; show a credential (session.authenticate) soon after connecting",
        retryAfterMs: 1_000)

    static func credentialTooLong(_ limit: Int) -> RPCError {
        invalidParams(
            "auth", "'auth' must have at most \(limit) bytes, e.g. an ID token from auth.signIn",
            reason: "credential_too_long")
    }

    static func tooManyValues(_ bytesMax: Int) -> RPCError {
        invalidRequest(
            "The values of this line take more than the \(bytesMax) bytes of memory that those of one line may: send "
                + "them in several lines", reason: "too_many_values")
    }

    static let lineStalled = resourceExhausted(
        reason: "line_stalled",
        "This line arrives too slowly while other clients wait for memory; send the whole line without pauses",
        retryAfterMs: 1_000)

    static let memoryFull = resourceExhausted(
        reason: "busy",
        "Other clients use the memory that the service has for requests: try again later, or request less in one batch",
        retryAfterMs: 1_000)

    static let peerStalled = resourceExhausted(
        reason: "peer_stalled",
        "This connection does not read its responses while other clients wait for their memory; read faster, or request "
            + "less at a time",
        retryAfterMs: 1_000)

    static func idle(_ seconds: Int) -> RPCError {
        unavailable(reason: "idle", "Closed: nothing was sent for \(seconds) seconds; connect again when needed")
    }

    static let stopping = RPCError(
        .unavailable, reason: stoppingReason,
        "The service stops; whether what it accepted was carried out is unknown")

    static let stoppingReason = "stopping"

    static func tooBig(_ limit: Int) -> RPCError {
        resourceExhausted(
            reason: "too_big", "The response is larger than \(limit) bytes: page it, query it or export it")
    }

    /// -32001: a call without a credential of a method that requires one.
    public static let missingCredential = unauthenticated(
        reason: "missing_credential", "This method needs a credential: pass auth or call session.authenticate first")

    static let tokenExpired = unauthenticated(
        reason: "TOKEN_EXPIRED", "The token of this connection has ended: call session.authenticate with a new one")

    static let onlyAdministratorsMayUseAs = permissionDenied(
        "Only administrators, and service keys with as: true, may use as")

    static let invalidAs = invalidParams(
        "as",
        "as must be null, a user or a variable, e.g. {\"uid\": \"alice\", \"token\": {\"email\": \"…\"}} or "
            + "{\"variable\": {\"role\": \"guest\"}}")

    static func variableTooLong(_ limit: Int) -> RPCError {
        invalidParams(
            "as", "The variable may have at most \(limit) bytes of JSON, e.g. {\"variable\": {\"role\": \"guest\"}}")
    }

    static func tokenTooLong(_ limit: Int) -> RPCError {
        invalidParams(
            "as",
            "The token may have at most \(limit) bytes of JSON, e.g. {\"uid\": \"alice\", "
                + "\"token\": {\"email\": \"…\"}}")
    }

    static let onlyForwardersMayUseFrom = permissionDenied(
        "Only a connection that forwards may use from: call session.forward first, with a service key that may")

    static let onlyForwardersMayForward = permissionDenied(
        "Only administrators, and service keys with forward: true, may call session.forward")

    static let invalidFrom = invalidArgument(
        "from", reason: "invalid_address",
        "'from' must be an IP address without a port, e.g. \"203.0.113.7\" or \"2001:db8::7\"")
}
