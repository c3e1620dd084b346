public import HatoModel

/// The status of a response: a word for programs and a text for people (spec realtime-database §8.4).
///
/// Mobile clients know a few words only; other words are an unknown error there.
public struct StatusWords: Sendable, Hashable {
    /// The status, as in the member `s`.
    public var word: String
    /// The text, as in the member `d`.
    public var text: String

    public init(_ word: String, _ text: String) {
        self.word = word
        self.text = text
    }

    /// The rules deny it.
    public static let permissionDenied = StatusWords("permission_denied", "Permission denied")
    /// The hash of a transaction is not that of the value.
    public static let dataStale = StatusWords("datastale", "Transaction hash does not match")
    /// The credential has expired.
    public static let expiredToken = StatusWords("expired_token", "Auth token is expired.")
    /// The credential is wrong.
    public static let invalidToken = StatusWords("invalid_token", "Could not parse auth token.")
    /// A write is too large.
    public static let writeTooBig = StatusWords(
        "write_too_big",
        "Data to write exceeds the maximum size that can be modified with a single request.")
    /// A value is too large to be sent.
    public static let tooBig = StatusWords(
        "too_big", "The specified payload is too large, please request a location with less data.")
    /// There is no such action.
    public static let unknownAction = StatusWords("failure", "Unknown action")

    /// The operation failed for the reason that `text` says.
    public static func failure(_ text: String) -> StatusWords { StatusWords("failure", text) }

    /// It cannot be done now.
    public static func unavailable(_ text: String) -> StatusWords { StatusWords("unavailable", text) }
}

extension StatusWords {
    /// What a client requested.
    public enum Operation: Sendable, Hashable, CaseIterable {
        case listen, get, write, onDisconnect, auth
    }

    /// What an error of a service means for the client.
    public enum Outcome: Sendable, Hashable {
        /// The request gets a response.
        case status(StatusWords)
        /// The identity of the session has ended: one `ac`, and no response.
        case endOfToken
        /// An index is being built: the read is repeated for some seconds.
        case indexIsBuilt
        /// No response; the session closes, so that the client comes back and tries again after a pause.
        case close
        /// The database is not there: the client is shut down.
        case unknownNamespace
    }

    /// What an error means for the client that requested `operation`.
    public static func outcome(of error: RPCError, for operation: Operation) -> Outcome {
        if operation == .auth { return outcomeOfAuth(error) }
        switch error.code {
        case .permissionDenied: return .status(.permissionDenied)
        case .unauthenticated: return .endOfToken
        case .notFound where error.reason == "database_not_found": return .unknownNamespace
        case .failedPrecondition:
            switch error.reason {
            case "etag_mismatch": return .status(.dataStale)
            case "index_building": return .indexIsBuilt
            default: return .status(.failure(error.message))
            }
        case .resourceExhausted: return .exhausted(error, operation)
        case .unavailable:
            // Plans of a large write met other writes again and again; the store is well.
            return error.reason == "contended" ? .status(.unavailable(error.message)) : .close
        case .internalError: return .status(.failure("Internal server error."))
        default: return .status(error.reason == "too_many_values" ? .writeTooBig : .failure(error.message))
        }
    }

    /// Any status but `ok` makes a client drop its token: only a wrong credential gets one.
    private static func outcomeOfAuth(_ error: RPCError) -> Outcome {
        switch error.code {
        case .unauthenticated: .status(error.reason == "TOKEN_EXPIRED" ? .expiredToken : .invalidToken)
        case .permissionDenied: .status(.permissionDenied)
        case .invalidArgument, .invalidParams: .status(StatusWords(invalidToken.word, error.message))
        default: .close
        }
    }
}

extension StatusWords.Outcome {
    fileprivate static func exhausted(_ error: RPCError, _ operation: StatusWords.Operation) -> Self {
        switch (operation, error.reason) {
        case (.write, "too_big"), (.onDisconnect, "too_big"): .status(.writeTooBig)
        case (_, "too_big"): .status(.tooBig)
        // A listen that gets an error is over for the app; so it comes back when the service takes it.
        case (.listen, _) where error.isRetryable: .close
        case (.onDisconnect, _) where !error.isRetryable: .status(.failure(error.message))
        default: .status(.unavailable(error.message))
        }
    }
}
