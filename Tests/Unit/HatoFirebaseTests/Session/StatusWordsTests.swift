import HatoModel
import Testing

@testable import HatoFirebase

/// Which errors of services become which words (spec realtime-database §8.4), by value.
@Suite struct StatusWordsTests {
    private typealias Row = (
        code: RPCError.Code, reason: String, isRetryable: Bool, operations: [StatusWords.Operation],
        outcome: StatusWords.Outcome
    )

    private static let writes: [StatusWords.Operation] = [.write, .onDisconnect]
    private static let reads: [StatusWords.Operation] = [.listen, .get]
    private static let message = "It is so"

    private static let rows: [Row] = [
        (.permissionDenied, "permission_denied", false, reads + writes, .status(.permissionDenied)),
        (.unauthenticated, "TOKEN_EXPIRED", false, reads + writes, .endOfToken),
        (.unauthenticated, "INVALID_ID_TOKEN", false, reads + writes, .endOfToken),
        (.notFound, "database_not_found", false, reads + writes, .unknownNamespace),
        (.failedPrecondition, "etag_mismatch", false, [.write], .status(.dataStale)),
        (.failedPrecondition, "index_not_defined", false, [.get], .status(.failure(message))),
        (.failedPrecondition, "index_building", true, [.get], .indexIsBuilt),
        (.resourceExhausted, "too_big", false, reads, .status(.tooBig)),
        (.resourceExhausted, "too_big", false, writes, .status(.writeTooBig)),
        (.resourceExhausted, "too_many_listeners", false, [.listen], .status(.unavailable(message))),
        (.resourceExhausted, "busy", true, [.listen], .close),
        (.resourceExhausted, "busy", true, [.get, .write, .onDisconnect], .status(.unavailable(message))),
        (.resourceExhausted, "too_many_writes", true, [.write], .status(.unavailable(message))),
        (.resourceExhausted, "too_many_on_disconnect", false, [.onDisconnect], .status(.failure(message))),
        (.resourceExhausted, "on_disconnect_too_big", false, [.onDisconnect], .status(.failure(message))),
        (.resourceExhausted, "on_disconnect_full", true, [.onDisconnect], .status(.unavailable(message))),
        (.unavailable, "stopping", true, reads + writes, .close),
        (.unavailable, "store_closed", true, reads + writes, .close),
        (.unavailable, "outcome_unknown", false, writes, .close),
        (.unavailable, "key_not_fetched", true, reads + writes, .close),
        (.unavailable, "contended", true, [.write], .status(.unavailable(message))),
        (.invalidArgument, "invalid_key", false, reads + writes, .status(.failure(message))),
        (.invalidArgument, "invalid_value", false, writes, .status(.failure(message))),
        (.invalidArgument, "too_many_values", false, writes, .status(.writeTooBig)),
        (.invalidParams, "invalid_params", false, reads + writes, .status(.failure(message))),
        (.internalError, "internal", false, reads + writes, .status(.failure("Internal server error."))),
    ]

    @Test func errorsHaveTheirMeaning() {
        for row in Self.rows {
            for operation in row.operations {
                let error = RPCError(row.code, reason: row.reason, Self.message, retryable: row.isRetryable)
                #expect(
                    StatusWords.outcome(of: error, for: operation) == row.outcome, "\(row.reason) of \(operation)")
            }
        }
    }

    @Test func textsAreThoseOfProduction() {
        #expect(StatusWords.permissionDenied == StatusWords("permission_denied", "Permission denied"))
        #expect(StatusWords.dataStale == StatusWords("datastale", "Transaction hash does not match"))
        #expect(StatusWords.expiredToken == StatusWords("expired_token", "Auth token is expired."))
        #expect(StatusWords.unknownAction == StatusWords("failure", "Unknown action"))
        #expect(StatusWords.writeTooBig.word == "write_too_big")
        #expect(
            StatusWords.writeTooBig.text
                == "Data to write exceeds the maximum size that can be modified with a single request.")
        #expect(
            StatusWords.tooBig.text == "The specified payload is too large, please request a location with less data.")
    }

    /// Every error that a method of messages declares has a meaning that is no end of the session by accident.
    @Test func declaredErrorsOfWritesAreResponses() {
        for error in Messages.Set.errors + Messages.Update.errors + Messages.OnDisconnect.Set.errors {
            for reason in error.reasons where error.code != .unavailable && error.code != .notFound {
                let outcome = StatusWords.outcome(
                    of: RPCError(error.code, reason: reason, Self.message), for: .write)
                guard case .status(let status) = outcome else {
                    Issue.record("\(reason): \(outcome)")
                    continue
                }
                #expect(status.word != "ok")
            }
        }
    }
}
