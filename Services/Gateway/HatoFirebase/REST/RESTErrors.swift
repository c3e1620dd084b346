public import HatoModel

/// The errors of the REST interface by name, and which of them an error of a service becomes (spec realtime-database
/// §7.3, protocol §3). Clients compare some of the texts: they are Firebase's own where one is known.
public enum RESTErrors {
    // MARK: Requests

    /// A path that does not end in `.json`.
    public static let noSuffix = RESTError(
        404, "append .json to your request URI to use the REST API.", isPlainText: true)
    /// A path with a key that cannot exist.
    public static let invalidPath = RESTError(400, "Invalid path: Invalid token in path")
    /// A path deeper than a tree may be.
    public static let pathTooDeep = RESTError(
        400, "Invalid path: a path has at most \(TreeLimits.depthMax) keys, e.g. /chats/c1.json")
    /// A namespace without a database, and a path below `.settings` that does not exist.
    public static let notFound = RESTError(404, "404 Not Found")
    static let rulesMethod = RESTError(405, "Method not allowed", allowed: "GET, HEAD, PUT, OPTIONS")
    static let coverageMethod = RESTError(405, "Method not allowed", allowed: "GET, HEAD, OPTIONS")
    /// A method that is none of the interface.
    public static let method = RESTError(
        405, "Method not allowed", allowed: "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS")

    static let shallowAndQuery = RESTError(400, "Mixing 'shallow' and querying parameters is not supported")
    static let shallowAndExport = RESTError(400, "Mixing 'shallow' and 'format=export' is not supported")
    static let shallowAndETag = RESTError(400, "Mixing 'shallow' and etag requests is not supported")
    static let queryAndETag = RESTError(400, "Mixing querying parameters and ETag requests is not supported")
    static let mixedCondition = RESTError(
        400,
        "Mixing 'shallow', querying parameters or 'print=silent' and if-match or if-none-match requests "
            + "is not supported"
    )
    static let ifMatch = RESTError(400, "if-match is only supported by PUT and DELETE")
    static let ifNoneMatch = RESTError(400, "if-none-match is only supported by GET")
    static let queryOfWrite = RESTError(400, "Querying parameters are only supported by GET")
    static let callbackOfWrite = RESTError(400, "callback is only supported by GET")
    static let shallowStream = RESTError(400, "shallow is not supported by event streams")

    /// A parameter with a value that it cannot have.
    static func parameter(_ name: String, _ expected: String) -> RESTError {
        RESTError(400, "\(name) must be \(expected)")
    }

    // MARK: Bodies

    /// PUT, POST or PATCH without a body.
    public static let noData = RESTError(400, "Error: No data supplied.")
    /// The body of a PUT or POST is no JSON.
    public static let invalidData = RESTError(400, "Invalid data; couldn't parse JSON object, array, or value.")
    /// The body of a PATCH is no JSON object.
    public static let invalidPatch = RESTError(
        400,
        "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
    /// A write, or its body, is larger than allowed.
    public static let writeTooBig = RESTError(
        400, "Data to write exceeds the maximum size that can be modified with a single request.")
    /// Rules that are not UTF-8.
    public static let invalidRules = RESTError(400, "1:1: Parse error.\n")
    static let dataTooDeep = RESTError(
        400, "Invalid data; a value may be at most \(TreeLimits.depthMax) keys below the root of the database.")

    // MARK: Results

    /// The rules deny the request.
    public static let denied = RESTError(401, "Permission denied")
    /// A request that only administrators may make.
    public static let unauthorized = RESTError(401, "Unauthorized request.")
    /// A token that is none, or of another issuer.
    public static let invalidToken = RESTError(401, "Could not parse auth token.")
    /// A token that was valid.
    public static let expiredToken = RESTError(401, "Auth token is expired")
    /// A value that is larger than a response may be.
    public static let valueTooBig = RESTError(
        400, "The specified payload is too large, please request a location with less data.")
    /// A read that takes longer than its `timeout`.
    public static let timedOut = RESTError(400, "The request took longer than its timeout.")
    /// A service is away.
    public static let unavailable = RESTError(503, "Service unavailable", retryAfterSeconds: 1)
    /// A write whose outcome is not known. Not 500 or 503: firebase-admin repeats these.
    public static let unknownOutcome = RESTError(504, "The outcome of the write is not known.")
    /// The request fails by a mistake of the server.
    public static let `internal` = RESTError(500, "Internal server error.")

    /// The error of a response for an error of a service.
    public static func error(of error: RPCError) -> RESTError {
        switch error.code {
        case .unauthenticated: error.reason == "TOKEN_EXPIRED" ? expiredToken : invalidToken
        case .permissionDenied: error.data["path"]?.string == nil ? unauthorized : denied
        case .notFound: notFound
        case .failedPrecondition: precondition(error)
        case .resourceExhausted: exhausted(error)
        case .unavailable: unavailability(error)
        case .invalidArgument: argument(error)
        case .invalidParams where error.reason == "credential_too_long": invalidToken
        case .invalidRequest where error.reason == "line_too_long" || error.reason == "too_many_values": writeTooBig
        case .methodNotFound: RESTError(501, "Not implemented.")
        default: `internal`
        }
    }

    private static func precondition(_ error: RPCError) -> RESTError {
        switch error.reason {
        // The message is Firebase's own.
        case "index_not_defined": RESTError(400, error.message)
        case "index_building": waiting(unavailable, for: error)
        case "etag_mismatch": RESTError(412, error.message)
        default: RESTError(400, error.message)
        }
    }

    private static func exhausted(_ error: RPCError) -> RESTError {
        switch error.reason {
        case "too_big": valueTooBig
        case _ where error.retryAfter != nil: waiting(RESTError(429, error.message), for: error)
        default: RESTError(400, error.message)
        }
    }

    private static func unavailability(_ error: RPCError) -> RESTError {
        error.reason == "outcome_unknown" && !error.isRetryable ? unknownOutcome : waiting(unavailable, for: error)
    }

    private static func argument(_ error: RPCError) -> RESTError {
        switch error.reason {
        case "too_many_values", "too_many_paths": writeTooBig
        case "invalid_rules": RESTError(400, problems(error) ?? error.message)
        case let reason? where error.data["parameter"]?.string == "query": RESTError(400, reason)
        default: RESTError(400, error.message)
        }
    }

    /// One line for each problem: `3:15: Unknown variable 'x'.`
    private static func problems(_ error: RPCError) -> String? {
        guard let problems = error.data["problems"]?.array, !problems.isEmpty else { return nil }
        return problems.map { problem in
            "\(problem["line"]?.integer ?? 1):\(problem["column"]?.integer ?? 1): \(problem["message"]?.string ?? "")\n"
        }.joined()
    }

    private static func waiting(_ base: RESTError, for error: RPCError) -> RESTError {
        var base = base
        if let wait = error.retryAfter?.components {
            base.retryAfterSeconds = max(1, Int(clamping: wait.seconds) + (wait.attoseconds > 0 ? 1 : 0))
        }
        return base
    }
}
