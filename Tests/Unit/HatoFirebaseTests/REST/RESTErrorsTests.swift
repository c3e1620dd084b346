import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTErrorsTests {
    @Test func bodyIsThatOfFirebase() {
        let answer = RESTErrors.denied.response()
        #expect(answer.status == 401)
        #expect(answer.text == "{\n  \"error\" : \"Permission denied\"\n}\n")
        #expect(answer.header("content-type") == "application/json; charset=utf-8")
        #expect(answer.header("access-control-allow-origin") == "*")
        #expect(RESTError(400, "a \"b\"\n").response().text == "{\n  \"error\" : \"a \\\"b\\\"\\n\"\n}\n")
        #expect(RESTErrors.unavailable.response().header("retry-after") == "1")
        #expect(RESTErrors.denied.response(omitsBody: true).omitsBody)
    }

    private static let index = #"Index not defined, add ".indexOn": "date", for path "/tasks/2024", to the rules"#
    private static let tooBig = "The specified payload is too large, please request a location with less data."
    private static let writeTooBig =
        "Data to write exceeds the maximum size that can be modified with a single request."

    /// An error of a service, and the response it becomes.
    struct Row: Sendable {
        var code: RPCError.Code
        var reason: String
        var message = "detail"
        var data: JSONObject = [:]
        var isRetryable = false
        let status: Int
        let text: String

        init(
            _ code: RPCError.Code, _ reason: String, _ status: Int, _ text: String, message: String = "detail",
            data: JSONObject = [:], isRetryable: Bool = false
        ) {
            (self.code, self.reason, self.status, self.text) = (code, reason, status, text)
            (self.message, self.data, self.isRetryable) = (message, data, isRetryable)
        }

        var error: RPCError { RPCError(code, reason: reason, message, retryable: isRetryable, data: data) }
    }

    static let rows: [Row] = [
        Row(.unauthenticated, "TOKEN_EXPIRED", 401, "Auth token is expired"),
        Row(.unauthenticated, "INVALID_ID_TOKEN", 401, "Could not parse auth token."),
        Row(.unauthenticated, "missing_credential", 401, "Could not parse auth token."),
        Row(.invalidParams, "credential_too_long", 401, "Could not parse auth token."),
        Row(.permissionDenied, "permission_denied", 401, "Permission denied", data: ["path": "/a"]),
        Row(.permissionDenied, "permission_denied", 401, "Unauthorized request."),
        Row(.notFound, "database_not_found", 404, "404 Not Found"),
        Row(.failedPrecondition, "index_not_defined", 400, index, message: index),
        Row(.failedPrecondition, "index_building", 503, "Service unavailable"),
        Row(.resourceExhausted, "too_big", 400, tooBig),
        Row(.invalidArgument, "too_many_values", 400, writeTooBig),
        Row(.invalidArgument, "too_many_paths", 400, writeTooBig),
        Row(.invalidRequest, "line_too_long", 400, writeTooBig),
        Row(.invalidRequest, "too_many_values", 400, writeTooBig),
        Row(.resourceExhausted, "too_many_writes", 429, "detail", data: ["retryAfterMs": 1_500]),
        Row(.resourceExhausted, "too_many_listeners", 400, "detail"),
        Row(.invalidArgument, "invalid_value", 400, "detail", data: ["parameter": "value"]),
        Row(
            .invalidArgument, "limitToLast must be positive", 400, "limitToLast must be positive",
            data: ["parameter": "query"]),
        Row(.unavailable, "stopping", 503, "Service unavailable"),
        Row(.unavailable, "contended", 503, "Service unavailable"),
        Row(.unavailable, "outcome_unknown", 503, "Service unavailable", isRetryable: true),
        Row(.unavailable, "outcome_unknown", 504, "The outcome of the write is not known."),
        Row(.methodNotFound, "method_not_found", 501, "Not implemented."),
        Row(.internalError, "internal", 500, "Internal server error."),
        Row(.parseError, "parse_error", 500, "Internal server error."),
        Row(.invalidParams, "invalid_params", 500, "Internal server error."),
        Row(.alreadyExists, "key_exists", 500, "Internal server error."),
        Row(RPCError.Code(rawValue: 7), "other", 500, "Internal server error."),
    ]

    @Test(arguments: rows)
    func errorOfAServiceHasAStatusAndAText(row: Row) {
        let found = RESTErrors.error(of: row.error)
        #expect(found.status == row.status)
        #expect(found.text == row.text)
    }

    @Test func rulesHaveALineForEachProblem() {
        let error = RPCError(
            .invalidArgument, reason: "invalid_rules", "wrong",
            data: [
                "parameter": "rules",
                "problems": [
                    ["line": 3, "column": 15, "message": "Unknown variable 'tr'."],
                    ["line": 4, "column": 1, "message": "Expected '{'."],
                ],
            ])
        #expect(RESTErrors.error(of: error).text == "3:15: Unknown variable 'tr'.\n4:1: Expected '{'.\n")
        let without = RPCError.invalidArgument("rules", reason: "invalid_rules", "wrong")
        #expect(RESTErrors.error(of: without) == RESTError(400, "wrong"))
    }

    @Test func waitIsRoundedUp() {
        for (milliseconds, seconds) in [(1, 1), (1_000, 1), (1_001, 2), (60_000, 60)] {
            let error = RPCError.resourceExhausted(reason: "too_many_bytes", "x", retryAfterMs: milliseconds)
            #expect(RESTErrors.error(of: error).retryAfterSeconds == seconds)
        }
        let unavailable = RPCError(.unavailable, reason: "busy", "x", data: ["retryAfterMs": 1e300])
        #expect(RESTErrors.error(of: unavailable).retryAfterSeconds ?? 0 > 1)
    }
}
